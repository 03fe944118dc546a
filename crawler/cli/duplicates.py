"""``freshet duplicates``: pages that several URLs show."""

import pickle
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from freshet.crawler.cli.options import DEFAULT_DB, Db, Json, read_each, stores_at
from freshet.crawler.compare.near_duplicates import (
    THRESHOLD,
    Variant,
    decoded,
    index_of,
    optimal_banding,
    variant,
)
from freshet.crawler.run import terminal
from freshet.crawler.run.terminal import (
    Cell,
    counted,
    counted_duplicates,
    fail,
    print_json,
    say,
    show_line,
    show_list,
)
from freshet.crawler.run.upkeep import Grouping, catch_up, require_readable
from freshet.storage.database import open_store
from freshet.storage.entries import summed
from freshet.storage.queries import page
from freshet.storage.tables import near_duplicates
from freshet.storage.tables.near_duplicates import Duplicate, IndexState, Parameters

#: The duplicates of each group, by the group's representative URL.
_Groups: TypeAlias = dict[str, list[Duplicate]]

HEADER = ("duplicate", "kind", "resemblance")
_SHOWN_OF_GROUP = 8
_WORDS: Final[dict[Variant, tuple[str, str]]] = {
    "mirror": ("mirror", "mirrors"),
    "printer_version": ("printer version", "printer versions"),
    "parameters": ("parameter variant", "parameter variants"),
    "other": ("other URL", "other URLs"),
}


def duplicates_command(
    db: Db = DEFAULT_DB,
    limit: Annotated[
        int, typer.Option(metavar="N", min=1, max=10**9, help="Show at most N groups.")
    ] = 20,
    update: Annotated[
        bool, typer.Option("--update", help="First compare the pages that changed since.")
    ] = False,
    threshold: Annotated[
        float | None,
        typer.Option(
            metavar="R",
            min=0.5,
            max=0.99,
            show_default=f"as before, at first {THRESHOLD}",
            help="With --update: two pages of this resemblance or more count as one page. "
            "A new value compares all pages again.",
        ),
    ] = None,
    lsh: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write datasketch objects to FILE with pickle: 'index', a MinHashLSH of the "
            "pages by URL, and 'minhashes', the MinHash of each page.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """List mirrors, printer versions and parameter variants.

    URLs with the same main text count as one page. The page is listed under its canonical URL, or
    under the shortest one.
    """
    if threshold is not None and not update:
        fail("--threshold compares all pages again; add --update", 2)
    if update:
        _update_all(db, threshold)
    if lsh is not None:
        _write(lsh, db)
        return
    found, down = read_each(db, partial(_read, limit=limit))
    states = [it for it, _ in found]
    parameters = next((it.parameters for it in states if it.parameters), None)
    state = summed(states, parameters=parameters)
    rows = chain(*(groups.items() for _, groups in found))
    groups = dict(sorted(rows, key=lambda group: (-len(group[1]), group[0]))[:limit])
    if json:
        listed = [_as_json(*group) for group in groups.items()]
        print_json({"state": asdict(state), "groups": listed} | down)
    else:
        _print(state, groups)


def _write(file: Path, db: Path) -> None:
    found, _ = read_each(db, _sketches)
    chosen = next((parameters for parameters, _ in found if parameters), None)
    banding = (chosen.bands, chosen.band_rows) if chosen else optimal_banding(THRESHOLD)
    sketches = decoded(chain.from_iterable(stored.items() for _, stored in found))
    minhashes = {url: sketch.minhash() for url, sketch in sketches.items()}
    try:
        with file.open("wb") as out:
            pickle.dump({"index": index_of(sketches, banding), "minhashes": minhashes}, out)
    except OSError as error:
        fail(f"{file}: {error.strerror or error}; name another file with --lsh")
    say("wrote", "green", f"{file}: {counted(len(minhashes), 'page')}")


async def _sketches(db: Path) -> tuple[Parameters | None, dict[str, bytes]]:
    async with page.snapshot(db) as connection:
        parameters = await near_duplicates.parameters(connection)
        return parameters, await near_duplicates.current(connection)


def _update_all(db: Path, threshold: float | None) -> None:
    """Compare the pages that have changed; the next read reports a shard that is down."""
    updated = terminal.run(stores_at(db).each(partial(_update, threshold=threshold)))
    for done in updated.values():
        if done.rebuilt_from is not None:
            became = f"{done.rebuilt_from:g} became {done.threshold:g}"
            say("threshold", "dim", f"{became}: all pages were compared again")


async def _update(db: Path, threshold: float | None) -> Grouping:
    # Opening a missing store for writing would create it.
    async with page.snapshot(db) as connection:
        await require_readable(connection, db)
    database = await open_store(db)
    try:
        return await catch_up(database, time.time, threshold=threshold)
    finally:
        await database.close()


async def _read(db: Path, limit: int) -> tuple[IndexState, _Groups]:
    async with page.snapshot(db) as connection:
        state = await near_duplicates.state(connection)
        return state, await near_duplicates.groups(connection, limit)


def _as_json(representative: str, duplicates: Sequence[Duplicate]) -> dict[str, object]:
    listed = [
        {"url": d.url, "kind": variant(d.url, representative)} | asdict(d) for d in duplicates
    ]
    return {"representative": representative, "duplicates": listed}


def _print(state: IndexState, groups: _Groups) -> None:
    for representative, duplicates in groups.items():
        kinds = [variant(each.url, representative) for each in duplicates]
        counts = [f"{n:,} {_WORDS[kind][n > 1]}" for kind, n in Counter(kinds).most_common()]
        rows = [_row(*each) for each in zip(duplicates, kinds, strict=True)]
        show_list(f"{representative}  ({', '.join(counts)})", HEADER, rows, _SHOWN_OF_GROUP)
    if beyond := state.groups - len(groups):
        show_line(f"… and {counted(beyond, 'group', 'more ')}; --limit shows more", "dim")
    show_line(counted_duplicates(state))
    if state.unseen or state.waiting:
        show_line("Some pages have changed since they were compared; --update compares them", "dim")


def _row(copy: Duplicate, kind: Variant) -> Sequence[Cell]:
    error = f" ± {copy.resemblance_se:.2f}" if copy.resemblance_se else ""
    return copy.url, _WORDS[kind][0], f"{copy.resemblance:.2f}{error}"
