"""What pages are worth to readers, with ``daemon.importance = "opened"``: ``freshet.interests``."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from aiosqlite import Connection as Reader

from freshet.scheduler.arrays import Bools, Floats, Ints
from freshet.storage.database import Database


async def appeals(_db: Reader) -> Callable[[Sequence[int], Sequence[str]], Floats] | None:
    """Return a function by which pages with short URLs are worth more."""
    return lambda _ids, urls: np.array([1 / len(url) for url in urls])


async def marks(_db: Reader) -> Mapping[int, float]:
    """Return no marks."""
    return {}


async def told(
    _db: Reader,
    _page_id: int,
    _host_id: int,
    _now: float,
    *,
    decides: bool,  # noqa: ARG001
) -> str | None:
    """Say nothing of a page."""
    return None


async def judge_next(_database: Database, _now: float) -> None:
    """Judge nothing anew."""


async def items(_db: Reader) -> tuple[Ints, Floats, Floats, Bools] | None:
    """Return no openings."""
    return None
