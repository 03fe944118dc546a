"""Copies: pages of a site with another page's content, detected at each visit.

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
checks. Combinations of few words are exempt: the pages of an album show pictures.
"""

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from ctypes import POINTER, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass, field
from hashlib import blake2b
from html import unescape
from typing import Final, NamedTuple, Protocol
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from freshet.compiled import function
from freshet.crawler.admission.admit import Admission
from freshet.crawler.compare.near_duplicates import LEAST_SHINGLES
from freshet.crawler.fetch.bounds import LruCache
from freshet.crawler.reduce.page import markup_of
from freshet.crawler.reduce.sketch import Sketch
from freshet.crawler.urls import is_session, is_token
from freshet.storage.entries import CopyFinding, ParameterFinding
from freshet.storage.identity import UrlVariant, variants, without
from freshet.storage.records import DueUrl

_WORD: Final = re.compile(r"\w+")
_UNSEEN: Final = re.compile(
    r"<(script|style|template)\b.*?(?:</\1\s*>|$)|<!--.*?(?:-->|$)", re.IGNORECASE | re.DOTALL
)
#: Inline elements: their tags may be in the middle of a word.
_INLINE: Final = re.compile(
    r"</?(?:a|abbr|b|bdi|bdo|big|cite|code|dfn|em|font|i|kbd|mark|q|s|samp|small|span|strong|sub"
    r"|sup|tt|u|var|wbr)\b[^<>]*>",
    re.IGNORECASE,
)
_TAG: Final = re.compile(r"<[^<>]*>")
#: Words of a line that names the page's own address, as print views have one.
_LINE: Final = 40


@dataclass(frozen=True, slots=True)
class CopyCandidate:
    """A page that was read: its URL, the texts of its main blocks, its bytes and their type."""

    url: str
    texts: Sequence[str]
    body: bytes
    content_type: str | None


def show_the_same(one: CopyCandidate, other: CopyCandidate) -> bool:
    """Return whether each page has, somewhere, all of the other one's main text."""
    return _has(one, other) and _has(other, one)


def _has(page: CopyCandidate, other: CopyCandidate) -> bool:
    """Return whether a page contains the main text of the ``other`` page."""
    missing = set(other.texts).difference(page.texts)
    if not missing:
        return True
    host, there = urlsplit(other.url).netloc, _all_words(page)
    texts = (text for text in missing if not _is_address(text, host))
    return all(words in there for text in texts if (words := _words(text)).strip())


def _is_address(text: str, host: str) -> bool:
    return f"://{host}/" in text and len(_WORD.findall(text)) <= _LINE


def _all_words(page: CopyCandidate) -> str:
    html = markup_of(page.body, page.content_type).decode("utf-8", "replace")
    return _words(unescape(_TAG.sub(" ", _INLINE.sub("", _UNSEEN.sub(" ", html)))))


def _words(text: str) -> str:
    """Return the words of a text, each between two spaces."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "


#: Texts that are kept, at some 200 bytes each, and parameters of hosts with their pairs.
_TEXTS: Final = 131_072
_KEYS: Final = 4_096
#: Paths needed for the pairs of a parameter, and values from which on it may take any value.
_PATHS: Final = 2
_VALUES: Final = 3
#: Pages that are kept as they were read until the store has them, and the bytes of a page that is
#: looked at once more: a larger one would take the event loop for too long.
_RECENT: Final = 64
MOST_BYTES: Final = 1 << 18
#: Pairs of a host with different texts that are checked again.
_LOOKS: Final = 200


class _Read(NamedTuple):
    """A page that was read, its text, and the part of its URL that others lack.

    Of the digests two equal texts share one. A text of few words may be another's by chance.
    """

    page_id: int
    digests: tuple[bytes, ...]
    is_short: bool
    variant: UrlVariant | None
    shown: CopyCandidate | None = None


@dataclass(slots=True)
class _Pairs:
    """The equal pairs of a parameter, by their second pages, paths and values."""

    pages: set[int] = field(default_factory=set)
    paths: set[str] = field(default_factory=set)
    values: set[str] = field(default_factory=set)
    differ: bool = False
    is_copy: bool | None = None

    def count(self, page_id: int, sides: Sequence[UrlVariant], *, is_equal: bool) -> None:
        """Count a pair of pages, which are equal or not."""
        if is_equal:
            self.pages.add(page_id)
            self.paths.add(sides[0].rest.partition("?")[0])
            self.values.update(it.value for it in sides)
        self.differ |= not is_equal


def _compared(sides: Sequence[UrlVariant]) -> Collection[str]:
    """Return the parts of URLs that a pair of pages gives evidence of."""
    names = {it.name for it in sides}
    if len(sides) == 1:
        # Evidence about one value applies to that value alone.
        names.add(sides[0].key)
    return names


class ParameterPairs:
    """The pairs among the pages of one run; memory is bounded.

    A parameter makes copies from ``least`` pairs on; 0: never. A forgotten page is in no pair.
    ``again`` reads a page from the store, None if its bytes are not kept; the URL is one of its
    host.
    """

    def __init__(
        self, least: int, again: Callable[[int, str], Awaitable[CopyCandidate | None]] | None = None
    ) -> None:
        self._least, self._again = least, again
        self._recent: LruCache[int, CopyCandidate] = LruCache(_RECENT)
        self._looks: Counter[int] = Counter()
        self._texts: LruCache[tuple[int, str, str], _Read] = LruCache(_TEXTS)
        self._pairs: LruCache[tuple[int, str], _Pairs] = LruCache(_KEYS)
        self._copied: LruCache[int, set[str]] = LruCache(_KEYS)

    async def learn(
        self,
        host_id: int,
        page_id: int,
        url: str,
        digests: tuple[bytes, ...],
        *,
        is_short: bool,
        shown: CopyCandidate | None = None,
    ) -> list[ParameterFinding]:
        """Learn from a page; return the parameters that are now known to make copies, or not to.

        Equal texts share one of the ``digests``; for short texts that proves little. Without the
        page as it is ``shown`` the store is read.
        """
        if not self._least:
            return []
        if shown is not None and len(shown.body) <= MOST_BYTES:
            self._recent[page_id] = shown
        # A part that makes copies hides other pairs: first a session, then the referring page. The
        # whole URL is compared nevertheless: one pair that differs ends the conclusion.
        rest, _ = without(url, self._copied.get(host_id, ()))
        findings: list[ParameterFinding] = []
        for each in dict.fromkeys((url, rest)):
            plain = _Read(page_id, digests, is_short, None, shown)
            await self._learn((host_id, each), plain, findings)
        return findings

    async def _learn(
        self, place: tuple[int, str], plain: _Read, findings: list[ParameterFinding]
    ) -> None:
        host_id, url = place
        # Pages with one more parameter of any name, and this page for later ones.
        await self._meet((host_id, "+", url), plain, findings)
        self._keep((host_id, "", url), plain)
        for variant in variants(url):
            read = plain._replace(variant=variant)
            await self._meet((host_id, "", variant.rest), read, findings)
            await self._meet((host_id, variant.name, variant.rest), read, findings)
            self._keep((host_id, variant.name, variant.rest), read)
            self._keep((host_id, "+", variant.rest), read)

    def _keep(self, key: tuple[int, str, str], read: _Read) -> None:
        old = self._texts.use(key)
        if old is None or old.page_id == read.page_id:
            self._texts[key] = read._replace(shown=None)

    async def _meet(
        self, key: tuple[int, str, str], read: _Read, findings: list[ParameterFinding]
    ) -> None:
        """Compare a page with the one stored at the key, and append the findings."""
        old = self._texts.use(key)
        if old is None or old.page_id == read.page_id:
            return
        sides = [it.variant for it in (read, old) if it.variant is not None]
        is_equal = not set(read.digests).isdisjoint(old.digests)
        if not is_equal and not all(self._differ(key[0], it.name) for it in sides):
            is_equal = await self._show_the_same(key, read, old.page_id)
        if is_equal and read.is_short:
            return
        for name in _compared(sides):
            pairs = self._pairs_of(key[0], name)
            pairs.count(read.page_id, sides, is_equal=is_equal)
            findings += self._findings(key[0], name, pairs, sides)

    def _pairs_of(self, host_id: int, name: str) -> _Pairs:
        """Return the pairs that were seen of a part of URLs, to be counted further."""
        pairs = self._pairs.use((host_id, name)) or _Pairs()
        self._pairs[host_id, name] = pairs
        return pairs

    def _findings(
        self, host_id: int, name: str, pairs: _Pairs, sides: Sequence[UrlVariant]
    ) -> Sequence[ParameterFinding]:
        """Return the findings for a part of URLs from the pairs seen so far."""
        is_value = name == sides[0].key
        makes_copies = self._makes_copies(pairs, sides, is_value=is_value)
        if is_value and makes_copies and sides[0].name in (self._copied.get(host_id) or ()):
            # All values do.
            return ()
        if makes_copies == pairs.is_copy or not (makes_copies or pairs.differ):
            return ()
        pairs.is_copy = makes_copies
        copied = self._copied.use(host_id) or set()
        self._copied[host_id] = copied | {name} if makes_copies else copied - {name}
        return [ParameterFinding(host_id, name, len(pairs.pages), makes_copies)]

    def _differ(self, host_id: int, name: str) -> bool:
        pairs = self._pairs.get((host_id, name))
        return pairs is not None and pairs.differ

    async def _show_the_same(self, key: tuple[int, str, str], read: _Read, old_id: int) -> bool:
        """Return whether a page shows the content of an older one; None if that is unknown."""
        host_id, _, url = key
        is_large = read.shown is not None and len(read.shown.body) > MOST_BYTES
        if self._again is None or is_large or self._looks[host_id] >= _LOOKS:
            return False
        self._looks[host_id] += 1
        new = read.shown or await self._again(read.page_id, url)
        old = self._recent.get(old_id) or await self._again(old_id, url)
        return new is not None and old is not None and show_the_same(new, old)

    def _makes_copies(self, pairs: _Pairs, sides: Sequence[UrlVariant], *, is_value: bool) -> bool:
        if pairs.differ:
            return False
        if all(map(_may_be_session, sides)):
            return bool(pairs.pages)
        varies = is_value or len(pairs.values) >= _VALUES
        return varies and len(pairs.pages) >= self._least and len(pairs.paths) >= _PATHS


def _may_be_session(variant: UrlVariant) -> bool:
    """Return whether a part has a session's name, or, alone in the path, a session's form."""
    in_path = variant.name[0] != "?"
    return (in_path and is_token(variant.value)) or is_session(variant.name[1:], variant.value)


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
    """Return the most frequent page, the oldest of several; None without pages."""
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
    """The page that represents a text; ``pattern`` is None without parameters."""

    page_id: int
    pattern: str | None
    parameters: frozenset[str]


class HostTexts(Protocol):
    """The store, as the detector of copies asks for it."""

    async def texts(self, host_id: int, most: int, /) -> Sequence[tuple[int, str, bytes]]:
        """Return the first pages of a host, with id, URL and versioned sketch."""


@dataclass(slots=True, eq=False)
class Copies:
    """Detector of copies among the pages of one run; memory is bounded.

    A forgotten page makes a copy look like an original, never the other way round. ``parameters``
    learns from the same pages.
    """

    urls: Admission
    past: HostTexts
    parameters: ParameterPairs = field(default_factory=lambda: ParameterPairs(0))
    _shown: _Shown = field(default_factory=_Shown, init=False)
    _recalled: set[int] = field(default_factory=set, init=False)
    _digests: LruCache[tuple[int, bytes], _Page] = field(
        default_factory=lambda: LruCache(_DIGESTS), init=False
    )
    # Digests of each page's last text: an earlier text is not an original.
    _last: LruCache[int, Sequence[bytes]] = field(
        default_factory=lambda: LruCache(_DIGESTS // 2), init=False
    )

    async def find(
        self, due: DueUrl, text: Sketch, shown: CopyCandidate | None = None
    ) -> tuple[tuple[CopyFinding, ...], tuple[ParameterFinding, ...]]:
        """Return the findings on a page and its supposed original, and on the parts of its URL.

        ``shown`` is the page of the text.
        """
        learnt: list[ParameterFinding] = []
        page = self._page(due.page_id, due.url)
        if page.pattern is not None and due.host_id not in self._recalled:
            self._recalled.add(due.host_id)
            for page_id, url, sketch in await self.past.texts(due.host_id, _RECALLED):
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
        shown: CopyCandidate | None = None,
    ) -> Sequence[ParameterFinding]:
        is_short = text.shingle_count < LEAST_SHINGLES
        return await self.parameters.learn(
            host_id, page.page_id, url, digests, is_short=is_short, shown=shown
        )

    def _page(self, page_id: int, url: str) -> _Page:
        return _Page(page_id, self.urls.pattern(url), _parameters(url))

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
        # A copy that was seen before its original, which is the page with the fewest parameters.
        demoted = _findings(equal, page) if equal is not None else ()
        return (*_findings(page, None, barren if equal is None else None), *demoted)

    def _barren(self, host_id: int, url: str, page: _Page, text: Sketch) -> int | None:
        """Return the page that showed most of a page that had to prove its worth and did not."""
        new, sources = self._shown.take(host_id, page.page_id, text)
        proof = self.urls.proof(url) if page.pattern is not None and new <= _HEADING else None
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
    blocks = text.block_digests.copy()
    blocks.sort()
    digest = blake2b(blocks.data, digest_size=16).digest()
    return b"text" + text.text_digest, b"blocks" + digest
