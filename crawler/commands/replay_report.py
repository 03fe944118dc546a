"""A replay of archives as its user sees it: progress, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import typer
from rich.table import Table

from config.settings import Settings
from crawler.commands import running
from crawler.commands.console import err, out, print_json
from crawler.commands.replaying import replay
from crawler.commands.replaying_archives import Archives, Losses
from crawler.commands.report import CrawlReport
from crawler.errors import CrawlError
from crawler.replaying.playing import Counts

#: Records that every archive has, and of which nobody expects an exchange.
_PLAIN: Final = frozenset({"warcinfo"})
_SQLITE: Final = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a replay did: the report of each run, what was no visit, and what was lost."""

    reports: list[CrawlReport]
    counts: Counts
    losses: Losses

    def as_json(self) -> dict[str, object]:
        """The same as JSON values."""
        return {
            "runs": [report.as_json() for report in self.reports],
            "other_exchanges": asdict(self.counts),
            "damages": dict(self.losses.flaws),
            "first_damages": self.losses.damages,
            "records_skipped": self.losses.skipped,
        }


def is_store(path: Path) -> bool:
    """Whether a file is a database, and not an archive."""
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        # Whoever reads it says what is wrong with it.
        return False


def replay_archives(paths: Sequence[Path], db: Path, settings: Settings) -> Replayed:
    """Replay archives into a store; the index that it goes by stands beside it.

    Raises:
        CrawlError: there is nothing to replay, or the store holds something else.
        StoreError: the store cannot be opened, read or written.
    """
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
    for damage in found.losses.damages:
        err.print(damage, markup=False, highlight=False, soft_wrap=True)
    left = found.losses.flaws.total() - len(found.losses.damages)
    if left > 0:
        err.print(f"and {left:,} more damaged or missing records")
    skipped = {kind: count for kind, count in found.losses.skipped.items() if kind not in _PLAIN}
    if skipped:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in skipped.items())
        err.print(f"no exchange of HTTP, and skipped: {kinds}", markup=False, soft_wrap=True)
