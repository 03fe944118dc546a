"""``freshet open`` and ``freshet opened``: what people open of the lists that they see."""

import hashlib
import json
import sys
import time
import webbrowser
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from sqlite3 import Connection
from typing import IO, Annotated, Any, Final

import typer

from freshet.config.settings import Settings
from freshet.crawler.cli import options
from freshet.crawler.cli.options import DEFAULT_DB, ConfigFile, Db, Json, read_settings
from freshet.crawler.errors import CrawlError, UsageError
from freshet.crawler.extensions.readers import tables as openings
from freshet.crawler.extensions.readers.audience import OpenedLists, note_opening
from freshet.crawler.extensions.readers.settings import PresentationSettings
from freshet.crawler.frontier.clock import moment_of
from freshet.crawler.read.lists import Impression
from freshet.crawler.run import terminal
from freshet.crawler.run.terminal import counted, fail, print_json, show_line
from freshet.crawler.urls import canonical
from freshet.storage.database import write_beside
from freshet.storage.errors import trouble
from freshet.storage.queries import page
from freshet.storage.stores import open_stores

#: Lists of one transaction, and bytes of one line.
_BATCH: Final = 500
_LONGEST: Final = 1_000_000
_KEYS: Final = frozenset({"shown", "opened", "promoted", "at", "id"})


def open_command(
    place: Annotated[
        int, typer.Argument(metavar="N", min=1, help="The number of the page.", show_default=False)
    ],
    db: Db = DEFAULT_DB,
    print_only: Annotated[
        bool, typer.Option("--print", help="Print the URL; start no browser.")
    ] = False,
    config: ConfigFile = None,
) -> None:
    """Open a result of your last search, and note that you did.

    The store keeps lists where `presentation.record` is on. The page is opened in the browser that
    this machine has, or that the environment variable BROWSER names.
    """
    settings, _ = read_settings(config, {})
    if not settings.group(PresentationSettings).record:
        fail("no list is kept: set `record = true` in [presentation], and search again", 2)
    url = terminal.run(_open(db, place))
    show_line(url)
    if not print_only and not webbrowser.open(url):
        show_line("no browser was found here; the environment variable BROWSER names one", "yellow")


async def _open(db: Path, place: int) -> str:
    stores = open_stores(db)
    lists = await stores.each(_last_list)
    options.tell_down(db, stores.down)
    # Each shard has the pages of a list that are its own.
    last = max(at for at, _ in lists.values())
    latest = [(shard, rows) for shard, (at, rows) in lists.items() if at == last]
    listed = {n: (shard, it) for shard, rows in latest for n, it in rows.items()}
    if not listed:
        raise CrawlError(f"{db}: no list is kept; `freshet search` shows one")
    if place not in listed:
        raise CrawlError(
            f"{place}: the last list has {min(listed)} to {max(listed)}; give one of these numbers"
        )
    shard, (showing_id, url) = listed[place]
    if url is None:
        raise CrawlError(f"{place}: this page was forgotten just now; run `freshet search` again")
    await note_opening(stores.paths[shard], showing_id, time.time())
    return url


async def _last_list(path: Path) -> tuple[float, dict[int, tuple[int, str | None]]]:
    """Return when the last list was shown, 0 without any, and its pages by place."""
    async with page.snapshot(path) as db:
        at, listed = await openings.last_list(db, "terminal")
        found = {n: (it, await openings.found(db, it)) for n, it in listed.items()}
    return at, {n: (it, told and told[0]) for n, (it, told) in found.items()}


# -- what others report ------------------------------------------------------


def opened_command(
    source: Annotated[
        Path, typer.Option("--from", metavar="FILE", help="The file, - for standard input.")
    ],
    db: Db = DEFAULT_DB,
    config: ConfigFile = None,
    as_json: Json = False,
) -> None:
    """Note what people opened of lists that other programs showed.

    Each line has `shown`, the URLs in their order, and `opened`, those of them that were opened.
    It may have `promoted`, those that came there by chance, `at`, a time (else now), and `id`, by
    which a list that is given again is known (else by the whole line).
    """
    settings, _ = read_settings(config, {})
    if not settings.group(PresentationSettings).record:
        fail("nothing is noted: set `record = true` in [presentation]", 2)
    now = time.time()
    stores = options.stores_at(db)
    if stores.shards is not None and (lost := [it for it in stores.paths if not it.exists()]):
        fail(f"{lost[0]}: there is no such file; bring it back, for nothing is noted without it")
    known = terminal.run(_audience(db, settings, now)) if stores.shards is None else None
    audience = known or OpenedLists.nobody()
    told = dict.fromkeys(("lists", "known_before", "opened", "unknown_urls"), 0)
    with terminal.told_in_one_line(), _reading(source) as lines:
        numbered = _numbered(source, lines)
        while batch := list(islice(numbered, _BATCH)):
            read = [_ReportedList.read(f"{source}, line {n}", line, now) for n, line in batch]
            _note_in_all(stores.paths, read, audience, told)
    if as_json:
        print_json(told)
        return
    show_line(
        f"{counted(told['lists'], 'list')} noted with {counted(told['opened'], 'opening')}; "
        f"{told['known_before']:,} noted before; URLs that the store lacks: "
        f"{told['unknown_urls']:,}"
    )


@dataclass(frozen=True, slots=True)
class _ReportedList:
    """A list that another program showed: canonical URLs; ``key`` is that of the list."""

    key: str
    at: float
    shown: Sequence[str]
    opened: frozenset[str]
    promoted: frozenset[str]

    @classmethod
    def read(cls, where: str, line: bytes, now: float) -> "_ReportedList":
        """Read a line; raises UsageError, which says ``where`` it stands."""
        try:
            told = _object(line)
            shown, opened, promoted = (_urls(told, key) for key in ("shown", "opened", "promoted"))
            _require_among(shown, [*opened, *promoted])
            at = moment_of(told["at"], now) if "at" in told else now
            key = told.get("id", line.decode().strip())
            return cls(key, at, shown, frozenset(opened), frozenset(promoted))
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{where}: {error}; `freshet opened --help` shows the form") from error

    def showing(self, place: int, page_id: int) -> Impression:
        """Return a page of the list, with the same id whenever it is read."""
        # JSON may name half of a character.
        named = f"{place} {self.key}".encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(named, digest_size=8).digest()
        promoted = self.shown[place - 1] in self.promoted
        return Impression(int.from_bytes(digest) >> 1, page_id, place, promoted)


def _object(line: bytes) -> dict[str, Any]:
    told = json.loads(line)
    if not isinstance(told, dict) or not told.keys() <= _KEYS or "shown" not in told:
        raise ValueError(f"not an object that has shown, of {', '.join(sorted(_KEYS))}")
    if strange := [key for key in ("at", "id") if not isinstance(told.get(key, ""), str)]:
        raise ValueError(f"{strange[0]} is not a string")
    return told


def _urls(told: dict[str, Any], key: str) -> list[str]:
    urls = told.get(key, [])
    if not isinstance(urls, list) or not all(isinstance(url, str) for url in urls):
        raise ValueError(f"{key} is not a list of URLs")
    return [canonical(url) for url in urls]


def _require_among(shown: Sequence[str], others: Sequence[str]) -> None:
    if strange := set(others).difference(shown):
        raise ValueError(f"{min(strange)[:200]} is not among those shown")


def _numbered(source: Path, lines: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not empty, with their numbers from 1 on."""
    number = 0
    while line := lines.readline(_LONGEST + 1):
        number += 1
        if len(line) > _LONGEST:
            raise UsageError(f"{source}, line {number}: more than {_LONGEST:,} bytes; shorten it")
        if line.strip():
            yield number, line


def _reading(source: Path) -> IO[bytes]:
    if str(source) == "-":
        return sys.stdin.buffer
    try:
        return source.open("rb")
    except OSError as error:
        raise CrawlError(trouble(source, error)) from error


async def _audience(db: Path, settings: Settings, now: float) -> OpenedLists | None:
    async with page.snapshot(db) as connection:
        return await OpenedLists.of(connection, settings.group(PresentationSettings), now)


def _note_in_all(
    stores: Sequence[Path], reported: Sequence[_ReportedList], audience: OpenedLists,
    told: dict[str, int],
) -> None:  # fmt: skip
    """Note these lists in each store that has pages of them, and add to what is told of all."""
    told["unknown_urls"] += sum(len(each.shown) for each in reported)
    noted: dict[bool, set[int]] = {True: set(), False: set()}
    work = partial(_note, reported=reported, audience=audience, told=told, noted=noted)
    for path in stores:
        write_beside(path, work)
    told["lists"] += len(noted[True])
    told["known_before"] += len(noted[False] - noted[True])


def _note(
    db: Connection, reported: Sequence[_ReportedList], audience: OpenedLists,
    told: dict[str, int], noted: dict[bool, set[int]],
) -> None:  # fmt: skip
    """Note what a store has of these lists; add to what is told of all, and to the new (True)."""
    page_ids = openings.page_ids(db, {url for each in reported for url in each.shown})
    for number, each in enumerate(reported):
        places = enumerate(each.shown, 1)
        listed = [each.showing(n, page_ids[url]) for n, url in places if url in page_ids]
        told["unknown_urls"] -= len(listed)
        is_new = audience.recording("file", each.at, listed)(db)
        if listed:
            noted[is_new].add(number)
        for it in listed if is_new else ():
            if each.shown[it.place - 1] in each.opened:
                openings.note_opening(db, it.showing_id, each.at)
                told["opened"] += 1
