"""PageRank of the pages of a store, and across shards by exchanged mass.

Pages of other shards are in a store with the links to them, so all links of a page are known. A
shard solves for its own pages, with the mass received from other shards (table ``inflow``), and
sends each of them the mass that flows to its pages. The jump of each page has mass 1, so shards
need not agree on the total number of pages.

*Invariant.* Under repeated exchanges, in any order and with any delay, the masses converge to the
PageRank of one store (a chaotic relaxation: Chazan and Miranker, 1969; blocks of the web solved by
themselves: Kamvar et al., 2003). Each exchange reduces the error of the sent masses to at most α
times itself, and to αc/(1 − α(1 − c)) if a share c of each page's links leaves its shard. Received
masses are stored, so a restart loses none.
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
#: Iteration ends when ranks change by less than this share on average.
_STILL: Final = 1e-6
#: The hash of a page's URL, and the mass that flows to it.
MASS: Final = np.dtype([("page", "<i8"), ("mass", "<f4")])
#: Pages sent to a shard at once: those with the most mass. In the 1-norm, the omitted mass shifts
#: all ranks by at most 1/(1 − α) of itself.
_MOST: Final = 1_000_000


def pagerank(given: Floats, source: NDArray[np.integer], target: NDArray[np.integer]) -> Floats:
    """Return (n,), the PageRank of pages from links between them, which are rows (m,).

    Repeated links count once, links of a page to itself do not count. A surfer jumps anywhere from
    a page without links, else follows one with α = 0.85. The share of pages without links only
    scales the solution, so x = g + α Σ_{i→j} x_i/d_i is iterated, where g is 1 for the jumps plus
    the mass that flows in. Each step reduces the error by the factor α. The iteration ends when
    ranks change by a millionth on average, or after 100 steps.

    Reference: Page et al., "The PageRank citation ranking", 1999; the linear form by Del Corso,
    Gullí and Romani, "Fast PageRank computation via a sparse linear system", 2005.

        >>> pagerank(np.ones(3), np.array([0, 1]), np.array([2, 2])).round(3).tolist()
        [1.0, 1.0, 2.7]
    """
    n, others = len(given), source != target
    # Sort by target and remove repeated links; np.unique takes twenty times as long, because it
    # hashes.
    links = np.sort(target[others].astype(np.int64) * n + source[others])
    links = links[np.diff(links, prepend=-1) > 0]
    linked, source = np.divmod(links, max(n, 1))
    starts = np.flatnonzero(np.diff(linked, prepend=-1))
    linked = linked[starts]
    handed = _FOLLOWED / np.maximum(np.bincount(source, minlength=n), 1)
    rank, flows = given, np.empty(len(source))
    for _ in range(_STEPS):
        before, rank = rank, given.copy()
        # Reuse one buffer: allocating memory costs more than the computation.
        np.take(before * handed, source, out=flows, mode="clip")
        rank[linked] += np.add.reduceat(flows, starts)
        if np.abs(rank - before).sum() <= _STILL * rank.sum():
            break
    return rank


async def ranked(reader: aiosqlite.Connection) -> tuple[link_columns.LinkedPages, Floats]:
    """Return the pages of a store, including those of other shards, and their masses.

    The mass of a page of another shard is the mass that flows to it from this store.
    """
    pages = await link_columns.pages(reader, elsewhere=True)
    source, target = await link_columns.links(reader, pages)
    given = pages.here.astype(np.float64)
    received = np.frombuffer(await outgoing.inflow(reader), MASS)
    if len(received) and len(pages):
        page, place = np.unique(received["page"], return_inverse=True)
        mass = np.bincount(place, received["mass"])
        async for found in link_columns.urls(reader, every=True):
            ids, urls = zip(*found, strict=True)
            at, is_received = rows_among(page, await asyncio.to_thread(hashes, urls))
            ids_received = np.array(ids)[is_received]
            # Skip pages found since the pages were read.
            known = ids_received < len(pages.row_of)
            row, flows = pages.row_of[ids_received[known]], mass[at[known]]
            is_here = (row >= 0) & pages.here[row]
            np.add.at(given, row[is_here], flows[is_here])
    return pages, await asyncio.to_thread(pagerank, given, source, target)


async def outflow(reader: aiosqlite.Connection, shard_of: Callable[[str], int]) -> dict[int, bytes]:
    """Return the mass that flows to each shard's pages, as bytes for :func:`.outgoing.take_inflow`.

    ``shard_of`` returns the shard of a URL. A shard that is not in the result must be sent b"",
    which replaces what it received before.
    """
    pages, mass = await ranked(reader)
    if pages.here.all():
        return {}
    parts = [(np.empty(0, np.int64), np.empty(0, MASS))]

    def flowing(ids: Ints, urls: tuple[str, ...]) -> tuple[Ints, NDArray[np.void]]:
        row = pages.row_of[ids]
        flows = np.flatnonzero(~pages.here[row] & (pages.page_id[row] == ids) & (mass[row] > 0))
        chosen = [urls[k] for k in flows.tolist()]
        found = np.empty(len(chosen), MASS)
        found["page"], found["mass"] = hashes(chosen), mass[row[flows]]
        return np.array([shard_of(url) for url in chosen], np.int64), found

    async for found in link_columns.urls(reader, every=True):
        ids, urls = zip(*found, strict=True)
        known = np.array(ids) < len(pages.row_of)
        parts.append(await asyncio.to_thread(flowing, np.array(ids)[known], urls[: known.sum()]))
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
