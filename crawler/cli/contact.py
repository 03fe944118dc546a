"""The contact that each request names; a terminal user is asked for it once."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import typer

from freshet.config import ConfigError
from freshet.config.loading import Origins, users_file
from freshet.config.settings import Settings, contact
from freshet.crawler.cli.options import host_needing_contact
from freshet.crawler.cli.verbs import TYPED
from freshet.crawler.run import terminal
from freshet.crawler.run.terminal import fail, say
from freshet.storage.records import StoredSeed

_NAME = "crawl.contact"


def with_contact(
    settings: Settings,
    origins: Origins,
    db: Path | None,
    seeds: Sequence[StoredSeed],
    context: typer.Context,
) -> Settings:
    """Return the settings with a contact, if these seeds or those of the store ``db`` need one."""
    host = host_needing_contact(settings, db, seeds)
    return settings if host is None else asked(settings, origins, host, context)


def asked(settings: Settings, origins: Origins, host: str, context: typer.Context) -> Settings:
    """Return the settings with the contact that a visit of this public host needs.

    On a terminal the user is asked, and the answer is stored in the user-wide settings file.
    Elsewhere the program exits and prints the command to type; ``context`` has the typed one.
    """
    if origins[_NAME] != "default":
        fail(f"{host} is a public host, and {_NAME} is empty ({origins[_NAME]}): set it there", 2)
    if not terminal.asks():
        _refuse(host, context)
    with terminal.told_in_one_line():
        found = _asked(host, context)
        _keep(found)
    crawl = settings.crawl.model_copy(update={"contact": found})
    return settings.model_copy(update={"crawl": crawl})


def _refuse(host: str, context: typer.Context) -> NoReturn:
    typed = context.meta[TYPED]
    line = shlex.join(["freshet", *typed, "--contact", "you@example.org"])
    fail(f"{host} is a public host, and a crawler must say who runs it: {line}", 2)


def _asked(host: str, context: typer.Context) -> str:
    """Ask until the answer is a contact; exit at the end of the input."""
    say("contact:", "green", f"{host} is a public host, and a crawler must say who runs it")
    while True:
        sys.stderr.write("Your mail address, or a URL about you (asked once): ")
        sys.stderr.flush()
        line = sys.stdin.readline()
        if not line:
            sys.stderr.write("\n")
            _refuse(host, context)
        try:
            if found := contact(line.strip()):
                return found
        except ValueError as error:
            say("contact:", "yellow", str(error))


def _keep(found: str) -> None:
    """Store a contact in the user-wide settings file; else warn that it is for this run."""
    path = users_file()
    if path is None:
        say("not stored:", "yellow", f"there is no home directory; {found} is for this run only")
        return
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        from freshet.crawler.cli.config import write_settings  # noqa: PLC0415 - once

        write_settings(path, {_NAME: found}, mode=0o600)
    except (OSError, ConfigError) as error:
        why = error if isinstance(error, ConfigError) else f"{path}: {error.strerror or error}"
        say("not stored:", "yellow", f"{why}; {found} is for this run only")
    else:
        say("stored:", "green", f"{_NAME} = {found} in {path}")
