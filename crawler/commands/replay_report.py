"""A replay of archives, or of a store, as its user sees it: progress, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import typer
from rich.table import Table

from freshet.config.settings import Settings
from freshet.crawler.commands import running
from freshet.crawler.commands.console import err, out, print_json
from freshet.crawler.commands.replaying import replay
from freshet.crawler.commands.replaying_archives import Archives, Losses
from freshet.crawler.commands.replaying_store import Gaps, StoredPast, require_new
from freshet.crawler.commands.report import CrawlReport
from freshet.crawler.errors import CrawlError
from freshet.crawler.replaying.playing import Counts
from freshet.storage.queries import page

_SQLITE: Final = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a replay did: the report of each run, what was no visit, and what was lost."""

    reports: list[CrawlReport]
    counts: Counts
    losses: Losses | Gaps

    def as_json(self) -> dict[str, object]:
        """The same as JSON values."""
        return {
            "runs": [report.as_json() for report in self.reports],
            "other_exchanges": asdict(self.counts),
        } | self.losses.as_json()


def is_store(path: Path) -> bool:
    """Whether a file is a database, and not an archive."""
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        # Whoever reads it says what is wrong with it.
        return False


def fill(db: Path, past: Sequence[Path], settings: Settings) -> Replayed:
    """Replay a store, or archives, into a new store.

    Raises:
        CrawlError: there is nothing to replay, or ``db`` holds something else.
        StoreError: one of the stores cannot be opened, read or written.
    """
    if len(past) == 1 and is_store(past[0]):
        return _replay_store(past[0], db, settings)
    return _replay_archives(past, db, settings)


def _replay_archives(paths: Sequence[Path], db: Path, settings: Settings) -> Replayed:
    """Replay archives into a store; the index that it goes by stands beside it."""
    index = db.with_name(f"{db.name}.order")
    if db.exists() and not index.exists():
        raise CrawlError(
            f"{db}: no replay made it ({index.name} is not beside it); name a new file with --db"
        )
    with (
        err.status("Reading the archives") as status,
        closing(Archives(paths, index, settings, status.update)) as archives,
    ):
        with _told_that_it_goes_on():
            reports, counts = running.run(replay(settings, db, archives.runs()))
        return Replayed(reports, counts, archives.losses)


def _replay_store(store: Path, db: Path, settings: Settings) -> Replayed:
    """Replay what a store holds into another one; it is only read."""
    with _told_that_it_goes_on():
        return running.run(_from_store(store, db, settings))


async def _from_store(store: Path, db: Path, settings: Settings) -> Replayed:
    await require_new(db, store)
    with err.status("Reading the store") as status:
        async with page.snapshot(store) as connection:
            past = await StoredPast.of(connection, status.update)
            reports, counts = await replay(settings, db, await past.runs())
            return Replayed(reports, counts, past.gaps)


@contextmanager
def _told_that_it_goes_on() -> Iterator[None]:
    try:
        yield
    except typer.Exit as end:
        if end.exit_code == running.INTERRUPTED:
            err.print("What was replayed is kept: the same command goes on from there.")
        raise


def show(found: Replayed, *, json: bool) -> None:
    """Print what a replay did."""
    if json:
        print_json(found.as_json())
        return
    table = Table("run", "pages", "new", "changed", "unchanged", "gone", "refused", "errors")
    for column in table.columns:
        column.justify = "right"
    for it in found.reports:
        numbers = (
            it.run, it.pages, it.new, it.changed, it.unchanged, it.gone, it.refused, it.errors
        )  # fmt: skip
        table.add_row(*(f"{number:,}" for number in numbers))
    out.print(table)
    tell_losses(found)


def tell_losses(found: Replayed) -> None:
    """Say what a replay could not take in."""
    for line in found.losses.lines():
        err.print(line, markup=False, highlight=False, soft_wrap=True)
