"""``freshet check URL``: fetch a page now, and show what every step makes of it."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Annotated

import typer

from freshet.crawler.commands import lookup, running
from freshet.crawler.commands.checking import Check, Step, check
from freshet.crawler.commands.console import print_json
from freshet.crawler.commands.display import show_line, show_list
from freshet.crawler.commands.options import DEFAULT_DB, ConfigFile, Db, Json, read_settings
from freshet.crawler.urls import origin

_TEXT_WIDTH = 100


def check_command(  # noqa: PLR0913, PLR0917 - the options are the arguments
    url: Annotated[
        str, typer.Argument(metavar="URL", help="Any URL; without a scheme https, then http.")
    ],
    include: Annotated[
        list[str] | None,
        typer.Option(metavar="SELECTOR", help="Try a CSS selector of the main text; repeatable."),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(metavar="SELECTOR", help="Try a CSS selector of what is none; repeatable."),
    ] = None,
    db: Db = DEFAULT_DB,
    blocks: Annotated[
        int, typer.Option(metavar="N", min=0, help="Blocks of main text to show, at most.")
    ] = 20,
    contact: Annotated[
        str | None, typer.Option(metavar="URL", help="Who calls; see `freshet crawl --help`.")
    ] = None,
    allow_private_addresses: Annotated[
        bool, typer.Option("--allow-private-addresses", help="Also loopback and private networks.")
    ] = False,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Fetch a page now and show what each step makes of it, and why. Nothing is stored.

    Asks the site's robots.txt first. Where the store knows the page, the text is compared
    with its last version, rung by rung.
    """
    urls = lookup.spellings(url)
    host = origin(urls[0]).host
    given = {
        "parse.include": {host: include} if include else None,
        "parse.ignore": {host: ignore} if ignore else None,
        "crawl.contact": contact,
        "network.allow_private_addresses": allow_private_addresses or None,
    }
    settings, _ = read_settings(config, given)
    found = running.run(check(settings, db, urls, time.time()))
    if json:
        print_json(asdict(found))
    else:
        _print(found, blocks)


def _print(found: Check, blocks: int) -> None:
    show_list(found.url, ("step", "", "found"), [_row(step) for step in found.steps])
    show_line("")
    show_line(found.conclusion, "bold")
    texts = found.blocks[:blocks]
    show_list(
        f"Main text: {len(found.blocks):,} blocks",
        ("kind", "text"),
        [(block.kind, _shortened(block.text)) for block in texts],
    )
    if len(found.blocks) > blocks:
        show_line(f"… and {len(found.blocks) - blocks:,} more; --blocks shows more", "dim")


def _row(step: Step) -> tuple[str, str, str]:
    return step.name, step.answer, step.why


def _shortened(text: str) -> str:
    return text if len(text) <= _TEXT_WIDTH else text[: _TEXT_WIDTH - 1] + "…"
