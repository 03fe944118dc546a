"""PageRank of the pages of a store, and across shards by the mass that flows between them.

Pages of other shards stand in a store with the links to them, so that all links from a page are
here. A shard solves for its own pages with the mass that the others have told it (table
``inflow``), and tells each of them what flows to its pages. Mass counts by one page's jumps, not by
their number, so that shards need to agree on no total.

*Invariant.* Told again and again, in any order and however late, the masses tend to those of one
store (a chaotic relaxation: Chazan and Miranker, 1969; blocks of the web solved by themselves:
Kamvar et al., 2003). Each exchange shrinks the error of what is told to α of itself at most, and to
αc/(1 − α(1 − c)) where a share c of each page's links leaves its shard. What was told stands in the
store: a restart loses none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Final

import aiosqlite
import numpy as np
from numpy.typing import NDArray

from freshet.scheduler.arrays import Floats, Ints, rows_among
from freshet.storage.queries import link_columns
from freshet.storage.tables import outgoing

_FOLLOWED: Final = 0.85
_STEPS: Final = 100
#: Steps end when the ranks move by less than this share of themselves, on the mean.
_STILL: Final = 1e-6
#: The hash of a page's URL, and the mass that flows to it.
MASS: Final = np.dtype([("page", "<i8"), ("mass", "<f4")])
#: Pages told to a shard at once: those with the most mass. Of 1-norms, what is left out shifts all
#: ranks by 1/(1 − α) of itself at most.
_MOST: Final = 1_000_000


def pagerank(given: Floats, source: NDArray[np.integer], target: NDArray[np.integer]) -> Floats:
    """Return (n,), the PageRank of pages from links between them, which are rows (m,).

    Links count once each, those to itself not; a surfer jumps anywhere from a page without links,
    else follows one with α = 0.85. The share of pages without links only scales the solution,
    so x = g + α Σ_{i→j} x_i/d_i is iterated, with g = 1: what jumps give; what flows in is added.
    Each step shrinks the error by α; they end when ranks move by a millionth on the mean, after
    100 at most.

    Reference: Page et al., "The PageRank citation ranking", 1999; the linear form by Del Corso,
    Gullí and Romani, "Fast PageRank computation via a sparse linear system", 2005.

    >>> pagerank(np.ones(3), np.array([0, 1]), np.array([2, 2])).round(3).tolist()
    [1.0, 1.0, 2.7]
    """
    n, others = len(given), source != target
    # By their targets, each link once; np.unique hashes, which takes twenty times as long.
    links = np.sort(target[others].astype(np.int64) * n + source[others])
    links = links[np.diff(links, prepend=-1) > 0]
    linked, source = np.divmod(links, max(n, 1))
    starts = np.flatnonzero(np.diff(linked, prepend=-1))
    linked = linked[starts]
    handed = _FOLLOWED / np.maximum(np.bincount(source, minlength=n), 1)
    rank, flows = given, np.empty(len(source))
    for _ in range(_STEPS):
        before, rank = rank, given.copy()
        # Written into one place, for pages of memory cost more than what is done with them.
        np.take(before * handed, source, out=flows, mode="clip")
        rank[linked] += np.add.reduceat(flows, starts)
        if np.abs(rank - before).sum() <= _STILL * rank.sum():
            break
    return rank


async def ranked(reader: aiosqlite.Connection) -> tuple[link_columns.LinkedPages, Floats]:
    """Return the pages of a store, those of other shards included, and the mass of each.

    Of a page of another shard it is what flows to it from here.
    """
    pages = await link_columns.pages(reader, elsewhere=True)
    source, target = await link_columns.links(reader, pages)
    given = pages.here.astype(np.float64)
    told = np.frombuffer(await outgoing.inflow(reader), MASS)
    if len(told) and len(pages):
        page, place = np.unique(told["page"], return_inverse=True)
        mass = np.bincount(place, told["mass"])
        async for found in link_columns.urls(reader, every=True):
            ids, urls = zip(*found, strict=True)
            at, is_told = rows_among(page, await asyncio.to_thread(hashes, urls))
            ids_told = np.array(ids)[is_told]
            # Pages found since then are left out.
            known = ids_told < len(pages.row_of)
            row, flows = pages.row_of[ids_told[known]], mass[at[known]]
            is_here = (row >= 0) & pages.here[row]
            np.add.at(given, row[is_here], flows[is_here])
    return pages, await asyncio.to_thread(pagerank, given, source, target)


async def outflow(reader: aiosqlite.Connection, shard_of: Callable[[str], int]) -> dict[int, bytes]:
    """Return by shard the mass that flows to its pages, as :func:`.outgoing.take_inflow` takes it.

    ``shard_of`` returns the shard of a URL. A shard that is not among them is to be told nothing,
    b"", in the place of what it was told before.
    """
    pages, mass = await ranked(reader)
    if pages.here.all():
        return {}
    parts = [(np.empty(0, np.int64), np.empty(0, MASS))]

    def told(ids: Ints, urls: tuple[str, ...]) -> tuple[Ints, NDArray[np.void]]:
        row = pages.row_of[ids]
        flows = np.flatnonzero(~pages.here[row] & (pages.page_id[row] == ids) & (mass[row] > 0))
        chosen = [urls[k] for k in flows.tolist()]
        found = np.empty(len(chosen), MASS)
        found["page"], found["mass"] = hashes(chosen), mass[row[flows]]
        return np.array([shard_of(url) for url in chosen], np.int64), found

    async for found in link_columns.urls(reader, every=True):
        ids, urls = zip(*found, strict=True)
        known = np.array(ids) < len(pages.row_of)
        parts.append(await asyncio.to_thread(told, np.array(ids)[known], urls[: known.sum()]))
    shards, masses = map(np.concatenate, zip(*parts, strict=True))
    by_mass = np.argsort(-masses["mass"], kind="stable")
    shards, masses = shards[by_mass], masses[by_mass]
    return {shard: masses[shards == shard][:_MOST].tobytes() for shard in set(shards.tolist())}


def hashes(urls: Sequence[str]) -> Ints:
    """Return the 64-bit hash of each URL."""
    joined = b"".join(
        blake2b(url.encode("utf-8", "replace"), digest_size=8).digest() for url in urls
    )
    return np.frombuffer(joined, "<i8")
