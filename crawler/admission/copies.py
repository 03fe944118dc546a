"""Copies: pages of a site with another page's content, detected as they come.

Parameters that do not matter (an order, a printer version, a session) give one page many URLs
(Z. Bar-Yossef, I. Keidar and U. Schonfeld, "Do not crawl in the DUST", 2007, find such rules from
pages fetched in the same way). This module decides whether a page is a copy, from the visit's own
data; the store decides the consequence for its pattern.

An error here costs pages. Hence a copy is one of *equal* text, or of equal blocks in another
order: products that differ in a line are all similar, and so are the versions of a manual
(``?version=2``). Texts of few words are equal by chance and never copies.

Calendars and combinations of recurring values are endless, so their pages must prove their worth:
one that shows at most one block that no other page has shown (its heading) is *barren*. It counts
as a copy of the page that showed most of it, unless it leads to unknown pages, which the store
sees. Combinations of few words are exempt: the pages of an album show pictures.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from ctypes import POINTER, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

import numpy as np
from numpy.typing import NDArray

from freshet.compiled import function
from freshet.crawler.admission.parameters import ParameterPairs
from freshet.crawler.admission.same_page import Shown
from freshet.crawler.admission.traps import Proof
from freshet.crawler.compare.near_duplicates import LEAST_SHINGLES
from freshet.crawler.lru import LruCache
from freshet.crawler.reduce.sketch import Sketch
from freshet.storage.entries import CopyFinding, ParameterFinding
from freshet.storage.records import DueUrl

# -- shown -------------------------------------------------------------------
# A list of filtered products is made of blocks that other lists show as well, an empty month of a
# calendar of blocks of every month; their texts still differ, if only in the heading.

#: Blocks that are kept, at 16 bytes each: two to the power of this.
_BITS: Final = 18
_blocks_shown: Final = function(
    "blocks_shown",
    [*(c_void_p, c_uint32, c_void_p, c_size_t, c_uint64, c_int64, c_void_p), POINTER(c_size_t)],
    c_size_t,
    is_short=True,
)


class _Shown:
    """The blocks that pages have shown, each with the page that showed it first.

    Memory is fixed: of two blocks with the same place in the table the later one stays. A forgotten
    block looks new, never the other way round.
    """

    def __init__(self) -> None:
        self._table = np.zeros((1 << _BITS, 2), np.uint64)
        self._address = self._table.ctypes.data

    def take(self, host_id: int, page_id: int, text: Sketch) -> tuple[int, NDArray[np.int64]]:
        """Add a page's text.

        Return the number of its blocks that no other page had shown, and the pages that had shown
        the others first.
        """
        # Both are used up by the core: in one array, which numpy makes at once.
        room = np.array((text.block_digests, text.block_digests))
        at, count, others = room.ctypes.data, len(text.block_digests), c_size_t()
        places = self._address, _BITS, at, count, host_id, page_id, at + 8 * count
        distinct = _blocks_shown(*places, others)
        return distinct - others.value, room[1, : others.value].view(np.int64)


def _most_frequent(pages: NDArray[np.int64]) -> int | None:
    """Return the page that is there most often, the oldest of several; None of none."""
    if not len(pages):
        return None
    found, counts = np.unique(pages, return_counts=True)
    return int(found[np.argmax(counts)])


#: Digests that are kept, those used last, at some 300 bytes each.
_DIGESTS: Final = 65_536
#: Blocks of a barren page that no other page has shown: its heading.
_HEADING: Final = 1
#: Pages of a host that are read again after a restart.
_RECALLED: Final = 2_048


@dataclass(frozen=True, slots=True)
class _Page:
    """A page that stands for a text; ``pattern`` is None where it has no parameters."""

    page_id: int
    pattern: str | None
    parameters: frozenset[str]


@dataclass(slots=True, eq=False)
class Copies:
    """Detector of copies among the pages of one run; memory is bounded.

    ``pattern_of`` gives a URL's pattern, ``recall`` the first pages of a host, up to a number, with
    id, URL and versioned sketch, and ``proof`` tells for which URLs barren pages count. A forgotten
    page makes a copy look like an original, never the other way round. ``parameters`` learns from
    the same pages.
    """

    pattern_of: Callable[[str], str | None]
    recall: Callable[[int, int], Awaitable[Sequence[tuple[int, str, bytes]]]]
    proof: Callable[[str], Proof | None] = lambda _url: None
    parameters: ParameterPairs = field(default_factory=lambda: ParameterPairs(0))
    _shown: _Shown = field(default_factory=_Shown, init=False)
    _recalled: set[int] = field(default_factory=set, init=False)
    _digests: LruCache[tuple[int, bytes], _Page] = field(
        default_factory=lambda: LruCache(_DIGESTS), init=False
    )
    # Those of each page's last text: its earlier texts are nobody's original.
    _last: LruCache[int, Sequence[bytes]] = field(
        default_factory=lambda: LruCache(_DIGESTS // 2), init=False
    )

    async def find(
        self, due: DueUrl, text: Sketch, shown: Shown | None = None
    ) -> tuple[tuple[CopyFinding, ...], tuple[ParameterFinding, ...]]:
        """Return the findings on a page and its supposed original, and on the parts of its URL.

        ``shown`` is the page of the text.
        """
        learnt: list[ParameterFinding] = []
        page = self._page(due.page_id, due.url)
        if page.pattern is not None and due.host_id not in self._recalled:
            self._recalled.add(due.host_id)
            for page_id, url, sketch in await self.recall(due.host_id, _RECALLED):
                old, last = self._page(page_id, url), Sketch.from_bytes(sketch)
                digests = _digests(last)
                self._compare(due.host_id, url, old, last, digests)
                learnt += await self._learnt(due.host_id, old, url, last, digests)
        digests = _digests(text)
        found = self._compare(due.host_id, due.url, page, text, digests)
        learnt += await self._learnt(due.host_id, page, due.url, text, digests, shown=shown)
        return found, tuple(learnt)

    async def _learnt(
        self,
        host_id: int,
        page: _Page,
        url: str,
        text: Sketch,
        digests: tuple[bytes, bytes],
        *,
        shown: Shown | None = None,
    ) -> Sequence[ParameterFinding]:
        is_short = text.shingle_count < LEAST_SHINGLES
        return await self.parameters.learn(
            host_id, page.page_id, url, digests, is_short=is_short, shown=shown
        )

    def _page(self, page_id: int, url: str) -> _Page:
        return _Page(page_id, self.pattern_of(url), _parameters(url))

    def _compare(
        self, host_id: int, url: str, page: _Page, text: Sketch, digests: tuple[bytes, bytes]
    ) -> tuple[CopyFinding, ...]:
        barren = self._barren(host_id, url, page, text)
        if text.shingle_count < LEAST_SHINGLES:
            return tuple(_findings(page, None, barren))
        equal = self._equal(host_id, page, digests)
        if equal is not None and len(equal.parameters) <= len(page.parameters):
            return tuple(_findings(page, equal))
        self._learn(host_id, page, digests)
        # A copy that came before its original: the one with the fewest parameters is that.
        demoted = _findings(equal, page) if equal is not None else ()
        return (*_findings(page, None, barren if equal is None else None), *demoted)

    def _barren(self, host_id: int, url: str, page: _Page, text: Sketch) -> int | None:
        """Return the page that showed most of a page that had to prove its worth and did not."""
        new, sources = self._shown.take(host_id, page.page_id, text)
        proof = self.proof(url) if page.pattern is not None and new <= _HEADING else None
        if proof == "combined" and text.shingle_count < LEAST_SHINGLES:
            return None
        return _most_frequent(sources) if proof is not None else None

    def _equal(self, host_id: int, page: _Page, digests: tuple[bytes, bytes]) -> _Page | None:
        """Return another page with this text, or with these blocks in another order."""
        for digest in digests:
            found = self._digests.get((host_id, digest))
            if found is not None and found.page_id != page.page_id:
                self._digests.move_to_end((host_id, digest))
                return found
        return None

    def _learn(self, host_id: int, page: _Page, digests: tuple[bytes, bytes]) -> None:
        """Record a page as the original of its text, and no longer of the one before."""
        for digest in self._last.get(page.page_id, ()):
            if self._digests.get((host_id, digest), page).page_id == page.page_id:
                self._digests.pop((host_id, digest), None)
        for digest in digests:
            self._digests[host_id, digest] = page
        self._last[page.page_id] = digests


def _findings(
    page: _Page, original: _Page | None, barren: int | None = None
) -> Iterator[CopyFinding]:
    """Return the findings on a page; ``barren`` is the page that showed most of it."""
    if page.pattern is None:
        return
    if original is not None:
        yield CopyFinding(page.page_id, page.pattern, original.page_id)
    else:
        yield CopyFinding(page.page_id, page.pattern, barren, is_barren=barren is not None)


def _parameters(url: str) -> frozenset[str]:
    """Return the parameters of a URL, in its query and in its path, with their values."""
    path, _, query = url.partition("?")
    return frozenset((*path.split(";")[1:], *(query.split("&") if query else ())))


def _digests(text: Sketch) -> tuple[bytes, bytes]:
    """Return the digests of a text, and of its blocks in any order."""
    blocks = np.sort(text.block_digests).tobytes()
    return b"text" + text.text_digest, b"blocks" + blake2b(blocks, digest_size=16).digest()
