"""The options that verbs share, and how they lie over the settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from freshet.config.loading import ConfigError, Origins, load
from freshet.config.settings import Settings
from freshet.crawler.commands.console import fail

Db = Annotated[Path, typer.Option("--db", metavar="FILE", help="The store (one SQLite file).")]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="Settings in TOML; see `freshet config show`."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]

Logs = Annotated[
    str | None,
    typer.Option("--log-format", metavar="FORMAT", help="How log lines look: console or json."),
]

#: What crawls and daemons share.
Scope = Annotated[
    str | None,
    typer.Option(
        "--scope", metavar="KIND", help="What belongs to a seed: host, domain, prefix or list."
    ),
]
Delay = Annotated[
    float | None,
    typer.Option("--delay", metavar="SECONDS", help="Seconds between two exchanges with a host."),
]
Contact = Annotated[
    str | None,
    typer.Option("--contact", metavar="URL", help="URL that tells webmasters who crawls."),
]
PrivateAddresses = Annotated[
    bool | None,
    typer.Option("--allow-private-addresses", help="Also crawl loopback and private networks."),
]
Resolve = Annotated[
    list[str] | None,
    typer.Option(
        "--resolve", metavar="HOST:ADDRESS", help="Fixed address of a host; may be repeated."
    ),
]
ArchiveDir = Annotated[
    str | None,
    typer.Option(
        "--archive", metavar="DIR", help="Keep what goes over the wire there, as WARC files."
    ),
]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Stop at a bad line of the site list."),
]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Log every page as it is committed."),
]

DEFAULT_DB = Path("crawl.db")


def read_settings(file: Path | None, overrides: Mapping[str, object]) -> tuple[Settings, Origins]:
    """The settings; options that were not given (None) stay out. Wrong ones end the program."""
    given = {key: value for key, value in overrides.items() if value is not None}
    try:
        return load(file, given)
    except ConfigError as error:
        fail(str(error), 2)
