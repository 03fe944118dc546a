"""``freshet duplicates``: pages with several URLs."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from freshet.crawler import terminal
from freshet.crawler.cli.options import DEFAULT_DB, Db, Json
from freshet.crawler.compare.near_duplicates import THRESHOLD, Variant, variant
from freshet.crawler.run.orders import require_readable
from freshet.crawler.run.upkeep import Grouping, catch_up
from freshet.crawler.terminal import (
    Cell,
    counted,
    counted_duplicates,
    fail,
    print_json,
    say,
    show_line,
    show_list,
)
from freshet.storage.database import open_store
from freshet.storage.queries import page
from freshet.storage.tables import near_duplicates
from freshet.storage.tables.near_duplicates import Duplicate, IndexState

HEADER = ("duplicate", "kind", "resemblance")
_SHOWN_OF_GROUP = 8
_WORDS: Final[dict[Variant, tuple[str, str]]] = {
    "mirror": ("mirror", "mirrors"),
    "printer_version": ("printer version", "printer versions"),
    "parameters": ("parameter variant", "parameter variants"),
    "other": ("other URL", "other URLs"),
}


@dataclass(frozen=True, slots=True)
class Copy:
    """A duplicate's URL, its kind, and its similarity to its group (0 to 1)."""

    url: str
    kind: Variant
    resemblance: float
    resemblance_se: float
    at: float


@dataclass(frozen=True, slots=True)
class _CopyGroup:
    """Pages that count as one."""

    representative: str
    duplicates: list[Copy]


@dataclass(frozen=True, slots=True)
class Duplicates:
    """The largest groups, out of all that ``state`` counts."""

    state: IndexState
    groups: list[_CopyGroup]


def duplicates_command(
    db: Db = DEFAULT_DB,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="Groups to show, at most.")] = 20,
    update: Annotated[
        bool, typer.Option("--update", help="First compare the pages that have changed since.")
    ] = False,
    threshold: Annotated[
        float | None,
        typer.Option(
            metavar="R",
            min=0.5,
            max=0.99,
            show_default=f"as before, at first {THRESHOLD}",
            help="With --update: the resemblance from which two pages are one page. "
            "Another one than before compares all pages anew.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Show duplicate pages: mirrors, printer versions, parameter variants.

    Pages with the same main text count as one page, under the URL that they name as canonical, or
    the shortest.
    """
    if threshold is not None and not update:
        fail("--threshold is for --update: it compares all pages anew", 2)
    if update:
        _tell(terminal.run(_update(db, threshold)))
    found = terminal.run(_read(db, limit))
    if json:
        print_json(asdict(found))
    else:
        _print(found)


async def _update(db: Path, threshold: float | None) -> Grouping:
    # Where there is no store, opening it for writing would make one.
    async with page.snapshot(db) as connection:
        await require_readable(connection, db)
    database = await open_store(db)
    try:
        return await catch_up(database, time.time, threshold=threshold)
    finally:
        await database.close()


def _tell(done: Grouping) -> None:
    if done.rebuilt_from is not None:
        say(
            "threshold",
            "dim",
            f"{done.rebuilt_from:g} became {done.threshold:g}: all pages were compared anew",
        )


async def _read(db: Path, limit: int) -> Duplicates:
    async with page.snapshot(db) as connection:
        state = await near_duplicates.state(connection)
        return Duplicates(
            state,
            [_group(*g) for g in (await near_duplicates.groups(connection, limit)).items()],
        )


def _group(representative: str, duplicates: Sequence[Duplicate]) -> _CopyGroup:
    return _CopyGroup(
        representative,
        [
            Copy(d.url, variant(d.url, representative), d.resemblance, d.resemblance_se, d.at)
            for d in duplicates
        ],
    )


def _print(found: Duplicates) -> None:
    state = found.state
    for group in found.groups:
        show_list(_title(group), HEADER, [_row(c) for c in group.duplicates], _SHOWN_OF_GROUP)
    if beyond := state.groups - len(found.groups):
        show_line(f"… and {counted(beyond, 'group', 'more ')}; --limit shows more", "dim")
    show_line(counted_duplicates(state))
    if state.unseen or state.waiting:
        show_line("Some pages have changed since they were compared; --update compares them", "dim")


def _title(group: _CopyGroup) -> str:
    counts = Counter(copy.kind for copy in group.duplicates)
    kinds = [f"{n:,} {_WORDS[kind][n > 1]}" for kind, n in counts.most_common()]
    return f"{group.representative}  ({', '.join(kinds)})"


def _row(copy: Copy) -> Sequence[Cell]:
    error = f" ± {copy.resemblance_se:.2f}" if copy.resemblance_se else ""
    return copy.url, _WORDS[copy.kind][0], f"{copy.resemblance:.2f}{error}"
