"""Parameters of a host's URLs that do not select content, by the pages that were read.

Sessions, words to highlight and print views give each page of a host many URLs. Two URLs that
differ in one parameter alone are a *pair*. Where enough pairs show equal content, and none does
not, the parameter makes copies on the whole host: of a page that is known under one URL the others
are held back (:mod:`freshet.storage.tables.url_parameters`). One pair that differs ends it.

Texts that differ are looked at once more: the choice of the main text may differ, and not the page
(:mod:`freshet.crawler.admission.same_page`).

No more is concluded than was seen. A parameter of few values makes copies with these values only:
``?page=1`` shows what the page without it shows, and ``?page=2`` does not.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from freshet.crawler.admission.same_page import Shown, show_the_same
from freshet.crawler.lru import LruCache
from freshet.crawler.urls import is_session, is_token
from freshet.storage.entries import ParameterFinding
from freshet.storage.identity import Variant, variants, without

#: Texts that are kept, at some 200 bytes each, and parameters of hosts with their pairs.
_TEXTS: Final = 131_072
_KEYS: Final = 4_096
#: Paths on which the pairs of a parameter stand, and values from which on it may have any.
_PATHS: Final = 2
_VALUES: Final = 3
#: Pages that are kept as they were read until the store has them, and the bytes of a page that is
#: looked at once more: a larger one would take the event loop for too long.
_RECENT: Final = 64
MOST_BYTES: Final = 1 << 18
#: Pairs of a host whose texts differ that are looked at once more.
_LOOKS: Final = 200


class _Read(NamedTuple):
    """A page that was read, its text, and the part of its URL that others lack.

    Of the digests two equal texts share one. A text of few words may be another's by chance.
    """

    page_id: int
    digests: tuple[bytes, ...]
    is_short: bool
    variant: Variant | None
    shown: Shown | None = None


@dataclass(slots=True)
class _Pairs:
    """The equal pairs of a parameter, by their second pages, paths and values."""

    pages: set[int] = field(default_factory=set)
    paths: set[str] = field(default_factory=set)
    values: set[str] = field(default_factory=set)
    differ: bool = False
    is_copy: bool | None = None

    def count(self, page_id: int, sides: Sequence[Variant], *, is_equal: bool) -> None:
        """Count a pair of pages, which are equal or not."""
        if is_equal:
            self.pages.add(page_id)
            self.paths.add(sides[0].rest.partition("?")[0])
            self.values.update(it.value for it in sides)
        self.differ |= not is_equal


def _compared(sides: Sequence[Variant]) -> Collection[str]:
    """Return the parts of URLs of which a pair of pages tells."""
    names = {it.name for it in sides}
    if len(sides) == 1:
        # What was seen of a value is seen of it alone.
        names.add(sides[0].key)
    return names


class ParameterPairs:
    """The pairs among the pages of one run; memory is bounded.

    A parameter makes copies from ``least`` pairs on; 0: never. A forgotten page is in no pair.
    ``again`` reads a page from the store, None if its bytes are not kept; the URL is one of its
    host.
    """

    def __init__(
        self, least: int, again: Callable[[int, str], Awaitable[Shown | None]] | None = None
    ) -> None:
        self._least, self._again = least, again
        self._recent: LruCache[int, Shown] = LruCache(_RECENT)
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
        shown: Shown | None = None,
    ) -> list[ParameterFinding]:
        """Learn from a page; return of which parameters it is known now whether they make copies.

        Of the ``digests`` of texts two equal ones share one. That short ones do proves nothing.
        Without the page as it is ``shown`` the store is asked.
        """
        if not self._least:
            return []
        if shown is not None and len(shown.body) <= MOST_BYTES:
            self._recent[page_id] = shown
        # What makes copies hides other pairs: a session, and then the page that it came from. The
        # whole URL is compared all the same: one pair that differs ends what was concluded.
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
        # Pages that have one parameter more, whatever it is, and this page for those that come.
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
        """Compare a page with the one that is kept there, and append what follows."""
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
        self, host_id: int, name: str, pairs: _Pairs, sides: Sequence[Variant]
    ) -> Sequence[ParameterFinding]:
        """Return what follows for a part of URLs from the pairs that were seen of it."""
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
        """Return whether a page shows what an older one does, as far as that can be told."""
        host_id, _, url = key
        is_large = read.shown is not None and len(read.shown.body) > MOST_BYTES
        if self._again is None or is_large or self._looks[host_id] >= _LOOKS:
            return False
        self._looks[host_id] += 1
        new = read.shown or await self._again(read.page_id, url)
        old = self._recent.get(old_id) or await self._again(old_id, url)
        return new is not None and old is not None and show_the_same(new, old)

    def _makes_copies(self, pairs: _Pairs, sides: Sequence[Variant], *, is_value: bool) -> bool:
        if pairs.differ:
            return False
        if all(map(_may_be_session, sides)):
            return bool(pairs.pages)
        varies = is_value or len(pairs.values) >= _VALUES
        return varies and len(pairs.pages) >= self._least and len(pairs.paths) >= _PATHS


def _may_be_session(variant: Variant) -> bool:
    """Return whether a part has a session's name; in the path, where they stand alone, its form."""
    in_path = variant.name[0] != "?"
    return (in_path and is_token(variant.value)) or is_session(variant.name[1:], variant.value)
