"""``freshet changefeed``: changes since a cursor, for programs that keep a copy in sync."""

import sys
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Annotated, Literal

import typer

from freshet.config.sites import pattern
from freshet.crawler.cli.options import DEFAULT_DB, ConfigFile, Db, read_settings, tell_down
from freshet.crawler.errors import CrawlError, UsageError
from freshet.crawler.read.changefeed import BATCH, HEARTBEAT_S, Change, Changefeed, uses_of
from freshet.crawler.read.chunks import CHUNK_CHARS, FEWEST_CHARS
from freshet.crawler.read.library import Library
from freshet.crawler.run import terminal
from freshet.crawler.run.network import parser_of
from freshet.crawler.run.terminal import fail, json_text, replacing
from freshet.storage.errors import CursorGone, trouble

ChunkChars = Annotated[
    int,
    typer.Option(
        "--chunk-chars", metavar="N", min=FEWEST_CHARS, max=10**6, help="The longest chunks."
    ),
]


def changefeed_command(  # noqa: PLR0913, PLR0917 - the options are the arguments
    since: Annotated[
        str | None,
        typer.Option(
            metavar="CURSOR", help="Where to start: a cursor, 0 (all changes) or now (new ones)."
        ),
    ] = None,
    db: Db = DEFAULT_DB,
    limit: Annotated[
        int, typer.Option(metavar="N", min=0, max=10**9, help="At most N changes; 0: all.")
    ] = 0,
    include_docs: Annotated[
        bool, typer.Option("--include-docs", help="Add each page's document: metadata and text.")
    ] = False,
    feed: Annotated[
        Literal["normal", "longpoll", "continuous"],
        typer.Option(
            metavar="KIND", help="normal, longpoll (wait for a change) or continuous (never end)."
        ),
    ] = "normal",
    matching: Annotated[
        str | None,
        typer.Option(
            "--filter", metavar="PATTERN", help="Only pages with a matching URL; * is a wildcard."
        ),
    ] = None,
    chunks: Annotated[
        bool, typer.Option("--chunks", help="Add each document as chunks, and ids of removed ones.")
    ] = False,
    chunk_chars: ChunkChars = CHUNK_CHARS,
    noise: Annotated[
        bool, typer.Option("--all", help="Include versions that differ only by noise.")
    ] = False,
    usage: Annotated[
        list[str] | None,
        typer.Option(
            metavar="USE",
            help="Leave out pages that forbid this use: search, ai-train … (see crawl.purpose).",
        ),
    ] = None,
    cursor_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Start at the cursor in FILE, and save the next cursor there."
        ),
    ] = None,
    config: ConfigFile = None,
) -> None:
    """Print what changed since a cursor, one JSON object a line.

    Store "seq" of the last line that you have processed, and pass it as --since next time. A page
    that is gone has "deleted". The last line is {"last_seq": CURSOR}; a continuous feed has no such
    line.
    """
    settings, _ = read_settings(config, {})
    parser = parser_of(settings)
    library = Library(db, parser, settings)
    match = pattern(matching) if matching is not None else None
    chars = chunk_chars if chunks else None
    uses = uses_of(usage or (), "--usage")
    changes = Changefeed(
        library, include_docs, noise=noise, match=match, chunk_chars=chars, usage=uses
    )
    place = _cursor_in(cursor_file) if since is None else since

    async def printed() -> None:
        try:
            await _print(changes, place, feed, limit=limit or sys.maxsize, cursor_file=cursor_file)
        except ValueError as error:
            named = f"--cursor-file {cursor_file}:" if since is None else "--since"
            raise UsageError(f"{named} {error}") from error
        except CursorGone as error:
            raise CrawlError(f"{db}: {error} (--since 0)") from error
        finally:
            library.close()
            await parser.close()

    terminal.run(printed())


def _write(found: Iterable[Change]) -> None:
    """Write changes as one line each, and flush."""
    for change in found:
        sys.stdout.write(json_text(change.as_json()) + "\n")
    sys.stdout.flush()


def _keep(cursor: str, file: Path | None) -> None:
    """Save the cursor in the file, if one is given, by an atomic replacement."""
    if file is not None:
        with replacing(file) as partial:
            partial.write_text(cursor + "\n", "ascii")


async def _batches(
    changes: Changefeed, place: str, feed: Literal["normal", "longpoll", "continuous"], limit: int
) -> AsyncIterator[tuple[list[Change], str]]:
    """Yield batches of changes, each with the cursor after it, until the feed ends."""
    wait_s = 0.0 if feed == "normal" else HEARTBEAT_S
    while limit:
        found, place = await changes.awaited(place, wait_s, min(limit, BATCH))
        yield found, place
        limit -= len(found)
        if feed == "continuous":
            continue
        if not found and not wait_s:
            return
        if found:
            wait_s = 0.0


async def _print(
    changes: Changefeed,
    place: str,
    feed: Literal["normal", "longpoll", "continuous"],
    *,
    limit: int,
    cursor_file: Path | None,
) -> None:
    down, told = dict[int, str](), tell_down(changes.library.path, {})
    async for found, cursor in _batches(changes, place, feed, limit):
        _write(found)
        if cursor != place:
            _keep(cursor, cursor_file)
        place = cursor
        if changes.down != down:
            down = dict(changes.down)
            told = tell_down(changes.library.path, down)
    if feed != "continuous":
        sys.stdout.write(json_text({"last_seq": place} | told) + "\n")


def _cursor_in(file: Path | None) -> str:
    if file is None or not file.exists():
        return "0"
    try:
        return file.read_text("ascii", "replace").strip()
    except OSError as error:
        fail(f"--cursor-file {trouble(file, error)}", 2)
