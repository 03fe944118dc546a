"""``freshet history URL`` and ``freshet text URL``: the visits to a page, and its main content."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import aiosqlite
import typer

from freshet.crawler.cli.changefeed import ChunkChars
from freshet.crawler.cli.options import (
    DEFAULT_DB,
    ConfigFile,
    Db,
    Json,
    Page,
    home_of,
    read_settings,
)
from freshet.crawler.read import documents
from freshet.crawler.read.chunks import CHUNK_CHARS
from freshet.crawler.read.documents import StoredDocument, in_kinds
from freshet.crawler.read.numbers import VersionNumber, numbers_of
from freshet.crawler.read.store import Store
from freshet.crawler.run import terminal
from freshet.crawler.run.network import parser_of
from freshet.crawler.run.terminal import (
    Cell,
    blocks,
    fail,
    inert,
    joined,
    json_text,
    moment,
    print_json,
    show_line,
    show_list,
    size,
    told_in_one_line,
)
from freshet.storage.entries import REFRESHED
from freshet.storage.queries import page
from freshet.storage.queries.page import KnownUrl, OtherName, PastObservation

HEADER = ("time", "kind", "version", "stage", "HTTP", "resemblance", "blocks", "size", "reason")


@dataclass(frozen=True, slots=True)
class _VisitHistory:
    """The newest observations of a URL out of ``total``; for an alias, also the final page's."""

    url: str
    total: int
    observations: list[PastObservation]
    alias: OtherName | None = None
    final_page: _VisitHistory | None = None


def history_command(  # noqa: PLR0913, PLR0917 - the options are the arguments
    url: Page,
    db: Db = DEFAULT_DB,
    limit: Annotated[
        int, typer.Option(metavar="N", min=1, max=10**9, help="Show at most N observations.")
    ] = 20,
    all_kinds: Annotated[
        bool, typer.Option("--all", help="Show kinds of change, even those that do not count.")
    ] = False,
    numbers: Annotated[
        bool, typer.Option("--numbers", help="Show the price, or a number, of each stored version.")
    ] = False,
    within: Annotated[
        str | None,
        typer.Option(metavar="SELECTOR", help="With --numbers: the number in this element (CSS)."),
    ] = None,
    number: Annotated[
        str,
        typer.Option(
            metavar="TEXT", help='With --numbers: the text around the number, as "Price: * EUR".'
        ),
    ] = "",
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """List every visit to a page and what it found, newest first.

    Each line has the result (kind), the detection stage that decided it, and the similarity
    of the main text to the previous version (0 to 1). With --all, "refreshed" is a page with only
    such differences as change.counts excludes; the reason names them.
    --numbers lists the versions instead, oldest first, with a number for each: the price in the
    page's data, or else the price shown, or else the first number in its text.
    """
    if numbers:
        home = partial(home_of, db, config=config)
        found = terminal.run(_numbers(home, url, config, within=within, number=number))
        _print_numbers(url, found, as_json=json)
        return
    if within is not None or number:
        fail("--within and --number need --numbers", 2)
    read = _read(partial(home_of, db, config=config), url, limit, all_kinds=all_kinds)
    history = terminal.run(read)
    if json:
        print_json(asdict(history))
    else:
        _print(history, time.time())


async def _numbers(
    home: Callable[[str], Path], url: str, config: Path | None, *, within: str | None, number: str
) -> list[VersionNumber]:
    """Return the number in each kept version of a page, or of the page that it leads to."""
    settings, _ = read_settings(config, {})
    parser = parser_of(settings)
    try:
        async with page.snapshot(home(url)) as connection:
            known: KnownUrl | OtherName = await documents.known(connection, url)
            known = getattr(known, "alias", None) or known
            return await numbers_of(
                connection, parser, known.url, known.page_id, within=within, number=number
            )
    finally:
        await parser.close()


def _print_numbers(url: str, found: Sequence[VersionNumber], *, as_json: bool) -> None:
    if as_json:
        print_json({"url": url, "numbers": [asdict(each) for each in found]})
        return
    if not found:
        show_line(f"{url}: no version has its bytes")
        return
    now = time.time()
    rows = [
        (
            str(it.version), moment(it.at, now),
            None if it.value is None else f"{it.value:.15g}", it.source or None,
        )
        for it in found
    ]  # fmt: skip
    show_list(url, ("version", "time", "number", "from"), rows)


async def _read(
    home: Callable[[str], Path], url: str, limit: int, *, all_kinds: bool
) -> _VisitHistory:
    visits = partial(_visits, limit=limit, all_kinds=all_kinds)
    async with page.snapshot(home(url)) as connection:
        known = await documents.known(connection, url)
        own = await visits(connection, known)
        if (alias := known.alias) is None:
            return own
        final = await visits(connection, alias)
    async with page.snapshot(home(alias.url)) as connection:
        # The other shard may not have received this URL yet.
        if (there := await page.find(connection, [alias.url])) is not None:
            final = await visits(connection, there)
    return replace(own, alias=alias, final_page=final)


async def _visits(
    connection: aiosqlite.Connection, of: KnownUrl | OtherName, limit: int, *, all_kinds: bool
) -> _VisitHistory:
    total = await page.observation_count(connection, of.page_id)
    found = await page.observations(connection, of.page_id, limit)
    return _VisitHistory(of.url, total, found if all_kinds else [_plain(each) for each in found])


def _plain(observation: PastObservation) -> PastObservation:
    """Return an observation without the kinds of change that do not count."""
    return replace(observation, kinds=None) if observation.kind == "unchanged" else observation


def _print(history: _VisitHistory, now: float) -> None:
    if not history.observations:
        show_line(f"{history.url}: never visited")
    else:
        show_list(history.url, HEADER, [row(o, now) for o in history.observations])
        if older := history.total - len(history.observations):
            show_line(f"… and {older:,} older; --limit shows more", "dim")
    if history.alias is not None and history.final_page is not None:
        alias = history.alias
        show_line(f"It is an alias ({alias.kind}, {moment(alias.at, now)}) of {alias.url}")
        _print(history.final_page, now)


def row(observation: PastObservation, now: float) -> Sequence[Cell]:
    """Return an observation as a row under :data:`HEADER`."""
    o = observation
    return (
        moment(o.at, now),
        REFRESHED if o.kind == "unchanged" and o.kinds else o.kind,
        str(o.version) if o.version is not None else None,
        o.rung,
        str(o.status) if o.status is not None else None,
        _resemblance(o),
        blocks(o.blocks_added, o.blocks_removed) if o.kind == "changed" else None,
        size(o.size_bytes) if o.size_bytes is not None else None,
        joined((o.reason, o.detail or in_kinds(o.kinds)), ": "),
    )


def _resemblance(observation: PastObservation) -> str | None:
    if observation.resemblance is None:
        return None
    error = observation.resemblance_se
    return f"{observation.resemblance:.2f}" + (f" ± {error:.2f}" if error is not None else "")


# -- text --------------------------------------------------------------------


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
        typer.Option(metavar="N", help="A version number of `freshet history`; -1 is the last."),
    ] = None,
    as_of: Annotated[
        str | None, typer.Option(metavar="TIME", help="The version at this time: 2026-03-31T12:00.")
    ] = None,
    chunks: Annotated[
        bool, typer.Option("--chunks", help="Print chunks, one JSON object a line.")
    ] = False,
    chunk_chars: ChunkChars = CHUNK_CHARS,
    db: Db = DEFAULT_DB,
    config: ConfigFile = None,
) -> None:
    """Print the main content of a page.

    Menus, adverts and other frames are left out; links are absolute. The text is extracted from the
    stored bytes on each call. JSON adds the page's metadata: title, author, dates ….
    """
    _require_one_version(version, as_of)
    with told_in_one_line(), Store(db, config=config) as store:
        found = store.page(url, version or as_of)
    if form == "json" and not chunks:
        print_json(found.as_json())
    elif found.missing is not None:
        fail(f"{found.url}: {found.missing}")
    else:
        sys.stdout.write(_chunk_lines(found, chunk_chars) if chunks else _content(found, form))


def _require_one_version(version: str | None, as_of: str | None) -> None:
    if version is not None and as_of is not None:
        fail("give --version or --as-of, not both", 2)
    if version is not None and not version.removeprefix("-").isdecimal():
        fail(f"--version {version}: not a number as in `freshet history`; -1 is the last", 2)
    if as_of is not None and as_of.isdecimal():
        fail(f"--as-of {as_of}: not a time such as 2026-03-31T12:00", 2)


def _chunk_lines(found: StoredDocument, chars: int) -> str:
    return "".join(f"{json_text(each.as_json())}\n" for each in found.cut(chars))


def _content(found: StoredDocument, form: str) -> str:
    content = {"markdown": found.markdown, "text": found.text, "html": found.html}[form]
    return inert(content, "") + "\n"
