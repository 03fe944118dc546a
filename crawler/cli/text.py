"""``freshet text URL``: the main content of a page, as Markdown, text, HTML or JSON."""

import re
import sys
from typing import Annotated, Final, Literal

import typer

from freshet.crawler.cli.options import DEFAULT_DB, ConfigFile, Db, Page
from freshet.crawler.store import Store
from freshet.crawler.terminal import fail, print_json, told_in_one_line

#: Characters that would command a terminal.
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def text_command(
    url: Page,
    form: Annotated[
        Literal["markdown", "text", "html", "json"],
        typer.Option(
            "--format", metavar="FORM", help="markdown, text, html, or json with the metadata."
        ),
    ] = "markdown",
    version: Annotated[
        str | None,
        typer.Option(
            metavar="N", help="A version by its number in `freshet history`; -1 is the last."
        ),
    ] = None,
    as_of: Annotated[
        str | None, typer.Option(metavar="TIME", help="The version of then: 2026-03-31T12:00.")
    ] = None,
    db: Db = DEFAULT_DB,
    config: ConfigFile = None,
) -> None:
    """Print the main content of a page: the last significant version, or the one asked for.

    Menus, adverts and other frames are left out; links are absolute. It is made from the kept
    bytes when it is read. JSON also has what the page says of itself: title, author, dates ….
    """
    if version is not None and as_of is not None:
        fail("--version and --as-of exclude each other", 2)
    if version is not None and not version.removeprefix("-").isdecimal():
        fail(f"--version {version}: not a number as in `freshet history`; -1 is the last", 2)
    with told_in_one_line(), Store(db, config=config) as store:
        found = store.page(url, version or as_of)
    if form == "json":
        print_json(found.as_json())
        return
    if found.missing is not None:
        fail(f"{found.url}: {found.missing}")
    content = {"markdown": found.markdown, "text": found.text, "html": found.html}[form]
    sys.stdout.write(_CONTROLS.sub("", content) + "\n")
