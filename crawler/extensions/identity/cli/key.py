"""``freshet key``: the key that signs requests, made, shown and rotated."""

import sys
import time
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from freshet.crawler.cli.options import ConfigFile, Json, read_settings
from freshet.crawler.extensions.identity.agent import IdentitySettings
from freshet.crawler.run.terminal import moment, print_json, say, show_list

key_command = typer.Typer(
    help="Make, show and rotate the key that signs requests.", no_args_is_help=True
)


@key_command.callback()
def _group() -> None:
    """Make, show and rotate the key that signs requests."""


@key_command.command("new")
def new_command(config: ConfigFile = None) -> None:
    """Make a key in the file that identity.key names; an existing file is not changed."""
    from freshet.crawler.extensions.identity.keys import key_file, new_key, write_new  # noqa: PLC0415 - an extra

    path, key = key_file(_said(config).key), new_key(time.time())
    write_new(path, [key])
    say("key:", "green", f"{key.thumbprint} in {path}; nobody else may read it")
    say(
        "next:", "green",
        "publish `freshet key show --directory` at an https URL of yours, and set "
        "identity.directory to it and identity.sign to true",
    )  # fmt: skip


@key_command.command("show")
def show_command(
    directory: Annotated[
        bool, typer.Option("--directory", help="Print the file to publish instead.")
    ] = False,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Show the public keys, and since when and until when each is used."""
    from freshet.crawler.extensions.identity.keys import directory as published  # noqa: PLC0415 - an extra
    from freshet.crawler.extensions.identity.keys import key_file, read_keys, signing_at  # noqa: PLC0415 - likewise

    now, path = time.time(), key_file(_said(config).key)
    keys = read_keys(path)
    if directory:
        sys.stdout.write(published(keys, now).decode() + "\n")
        return
    signing = signing_at(keys, now)
    told = [
        {
            "thumbprint": it.thumbprint, "public": it.public, "since": float(it.begins),
            "until": None if it.ends is None else float(it.ends), "signs": it is signing,
        }
        for it in keys
    ]  # fmt: skip
    if json:
        print_json({"file": str(path), "keys": told})
        return
    _print(told, now, f"Keys in {path}")


def _print(told: Sequence[dict[str, Any]], now: float, title: str) -> None:
    rows = [
        (
            it["thumbprint"], moment(it["since"], now),
            "for good" if it["until"] is None else moment(it["until"], now),
            "yes" if it["signs"] else "no",
        )
        for it in told
    ]  # fmt: skip
    show_list(title, ("thumbprint", "since", "until", "signs now"), rows)


@key_command.command("rotate")
def rotate_command(
    after: Annotated[
        float,
        typer.Option(
            min=0,
            max=365,
            metavar="DAYS",
            help="The new key signs from then on: verifiers must have fetched the directory.",
        ),
    ] = 2,
    keep: Annotated[
        float,
        typer.Option(
            min=0,
            max=365,
            metavar="DAYS",
            help="For so long after that the others stay in the directory.",
        ),
    ] = 7,
    config: ConfigFile = None,
) -> None:
    """Add a key that takes over later; the present one stays in the directory until it expires.

    Publish the directory again at once. `freshet serve` does so by itself.
    """  # fmt: skip
    from freshet.crawler.extensions.identity.keys import key_file, read_keys, rotated, write_again  # noqa: PLC0415 - an extra

    path = key_file(_said(config).key)
    now = time.time()
    keys = rotated(read_keys(path), now, after, keep)
    write_again(path, keys)
    say("key:", "green", f"{keys[-1].thumbprint} signs from {moment(keys[-1].begins, now)}")
    say(
        "next:", "green",
        "publish `freshet key show --directory` again; a running daemon takes the key over with "
        "`freshet reload`",
    )  # fmt: skip


def _said(config: ConfigFile) -> IdentitySettings:
    return read_settings(config, {})[0].group(IdentitySettings)
