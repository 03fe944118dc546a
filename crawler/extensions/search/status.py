"""The search index of a store in ``freshet status`` and on the dashboard."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from aiosqlite import Connection as Reader

from freshet.crawler.extensions.search import tables
from freshet.crawler.run.hooks import StatusTable
from freshet.crawler.run.terminal import counted

#: Numbers of pages ``indexed`` and ``not_indexed``, and the ``quality`` of searches if measured.
State: TypeAlias = Mapping[str, Any]


async def read(db: Reader) -> State | None:
    """Return the numbers of an index; None without one."""
    found = await tables.counts(db)
    if found is None:
        return None
    meters = tables.metering()
    quality = None if meters is None else await meters.quality(db)
    return {"indexed": found[0], "not_indexed": found[1] - found[0], "quality": quality}


def merged(found: Iterable[State | None]) -> State | None:
    """Return the numbers of several indexes together; their quality cannot be merged."""
    held = [each for each in found if each is not None]
    if not held:
        return None
    sums = {name: sum(each[name] for each in held) for name in ("indexed", "not_indexed")}
    return {**sums, "quality": None}


def lines(state: State | None) -> Mapping[str, str | None]:
    """Return how many pages are indexed."""
    if state is None:
        return {}
    to_come = (
        f", {counted(state['not_indexed'], 'page')} not indexed yet" if state["not_indexed"] else ""
    )
    return {"search index": counted(state["indexed"], "page") + to_come}


def table(_state: State | None) -> StatusTable | None:
    """Return no table."""
    return None


def troubles(_state: State | None) -> Iterable[tuple[str, str]]:
    """Return no troubles: a search index needs no action."""
    return ()
