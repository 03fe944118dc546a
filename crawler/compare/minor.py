"""The probability that a difference of two texts is a change, block by block.

Words differ, although the page was not edited: a server counts days in another time zone, an
application has a new build, an editor sets other quotation marks. Each differing block, with the
one that it replaced, has features (:class:`Features`); a logistic model (``minor_model.json``,
fitted by ``scripts/fit minor``) gives the log odds that it is a change.

*Invariant.* A difference is minor only if each of its blocks is, for a reason that can be named
(``REASONS``). Consequence: one word, price, number, date, name or address that differs alone in
the content is a change, independent of other differences.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, replace
from functools import cache
from importlib.resources import files
from itertools import chain
from math import exp, log1p
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

from freshet.crawler.compare.diff import align, compare_words
from freshet.crawler.compare.history import Layout, PlacedBlock
from freshet.crawler.compare.shifted_dates import may_move_alike, moved_alike
from freshet.crawler.reduce.blocks import Blocks
from freshet.crawler.reduce.sketch import block_digest

if TYPE_CHECKING:
    from freshet.storage.records import DueUrl

    Content: TypeAlias = tuple[bytes, str | None]

#: Below this probability of a change a block is minor.
_MINOR: Final = 0.5
#: A difference of more blocks is a change.
_MOST_BLOCKS: Final = 400
#: Characters of a block that a pattern is tried on.
_SHORT: Final = 200


class ReplacedBlock(NamedTuple):
    """A block and its replacement; one of them is empty if a block was only removed or added.

    ``share`` is the share of comparisons at which the block there was replaced. ``is_frame``: all
    pages of a small host have the block, or the others at its place. ``is_last``: it is among the
    last blocks of the page. ``is_listed``: a heading of the page has the same text. ``moved``: all
    dates of its list moved alike. ``is_own``: more than half of the text differs, so the difference
    concerns the subject of the page.
    """

    before: str
    after: str
    share: float = 0.0
    is_frame: bool = False
    is_last: bool = False
    is_listed: bool = False
    moved: bool = False
    is_own: bool = False


# -- typography --------------------------------------------------------------

_FOLDED: Final = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u02bc\u2032\u00b4\uff07", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033\uff02", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        "\u2026": "...",
    }
)
#: White space beside a mark; before a digit a mark may be a decimal point.
_SPACED: Final = re.compile(
    r"\s+(?=[,;:!?.)\]](?!\d))|(?<=[(\[])\s+|(?<=[,;:!?.)\]])\s+(?!\d|$)"
    r"|(?<=\")\s+(?=\w)|(?<=\w)\s+(?=\")"
)
#: Signs of code, in which a quotation mark has a meaning.
_CODE: Final = re.compile(r"[{}<>=\\$|]|`|\w\([\"'\u2018\u201c)]|::|->")


def _folded(text: str) -> str:
    """Return a text without typography: kinds of quotes and dashes, spaces at marks."""
    text = _SPACED.sub("", text.translate(_FOLDED))
    return text[:-1] if text[-1:] in {".", ":", ";", ","} else text


# -- counters and notes that a site makes itself -----------------------------


def _patterns() -> dict[str, re.Pattern[str]]:
    data = tomllib.loads((files(__package__) / "minor.toml").read_text("utf-8"))
    parts: dict[str, str] = data["parts"]

    def filled(text: str) -> str:
        return re.sub("<([A-Z]+)>", lambda found: parts[found[1]], text)

    return {
        name: re.compile(filled(text), re.VERBOSE | re.IGNORECASE)
        for name, text in (data["inside"] | data["whole"]).items()
    }


_PATTERNS: Final = _patterns()
_NUMBER: Final = re.compile(r"\d+(?:[.,\u00a0\u202f' ]\d{3})*(?:[.,]\d+)?\s?[kKmM]?(?!\w)")
_NUMBERED: Final = re.compile(r"\W*(?:\d+(?:\.\d+)*|[ivxlc]+|[a-z])[.):]\s+", re.IGNORECASE)
_WORD: Final = re.compile(r"\w+")
_DIGIT: Final = re.compile(r"\d")


def _whole(name: str, text: str) -> re.Match[str] | None:
    return _PATTERNS[name].fullmatch(text) if len(text) <= _SHORT else None


def _is_build(before: str, after: str) -> bool:
    old, new = _whole("build", before), _whole("build", after)
    if old is None or new is None:
        return False
    return before[: old.start("number")].casefold() == after[: new.start("number")].casefold()


def _is_count(before: str, after: str) -> bool:
    (old, counted), (new, counts) = (_NUMBER.subn("#", each[:_SHORT]) for each in (before, after))
    if counted != 1 or counts != 1 or not (_whole("count", old) and _whole("count", new)):
        return False
    # One view, two views.
    return [each.rstrip("s") for each in _words(old)] == [each.rstrip("s") for each in _words(new)]


def _is_clock(before: str, after: str) -> bool:
    return bool(_whole("clock", before) and _whole("clock", after))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


# -- features ----------------------------------------------------------------

#: The subject of a page at any place: prices, shares, addresses.
_TELLING: Final = re.compile(
    r"[$€£¥₹₽%]|\b(?:EUR|USD|GBP|CHF|JPY)\b|[\w.+-]+@[\w-]+\.\w|https?:|www\."
    r"|(?:\+|\b00)\d[\d\s()/-]{6,}|\btel\b|\d{3}[\s.-]\d{3,4}[\s.-]\d{3,4}",
    re.IGNORECASE,
)
_PROSE_WORDS: Final = 12


@dataclass(frozen=True, slots=True)
class Features:
    """Inputs of the score of a differing block, as numbers; the names of the weights.

    The first eight are reasons for which a block may be minor. The last five describe the words,
    and are 0 if a reason has judged the words itself: ``words`` is the logarithm of the number of
    differing words, ``length`` of the block's words.
    """

    typography: float
    new_tab: float
    dates_alike: float
    build: float
    count: float
    clock: float
    frame: float
    listed: float
    volatile: float
    last: float
    words: float = 0.0
    length: float = 0.0
    telling: float = 0.0
    number: float = 0.0
    prose: float = 0.0

    @property
    def reason(self) -> str:
        """Return in words why the block may be minor."""
        return next(why for name, why in REASONS.items() if getattr(self, name))


#: Reasons by the feature.
REASONS: Final = {
    "typography": "only quotation marks, dashes or spaces differ",
    "new_tab": "only a note on where a link opens differs",
    "dates_alike": "all dates of a list moved by the same time",
    "build": "only the version of the site's software differs",
    "count": "only a count of visits differs",
    "clock": "only a clock differs",
    "frame": "all known pages of the host have what differs",
    "listed": "only entries of a table of contents differ",
}
#: Reasons by the place of a block, for any words.
_OF_PLACE: Final = frozenset({"frame", "listed"})
NAMES: Final = tuple(each.name for each in fields(Features))


def features(pair: ReplacedBlock) -> Features | None:
    """Return the features of a differing block, None without a reason why it may be minor."""
    before, after = pair.before, pair.after
    reasons = _reasons(pair)
    if not any(reasons.values()):
        return None
    found = Features(**reasons, volatile=pair.share, last=pair.is_last)
    if any(is_so for name, is_so in reasons.items() if name not in _OF_PLACE):
        return found
    runs = (run for run in compare_words(before, after) if not run.is_kept)
    differing = " ".join(chain.from_iterable((run.before, run.after) for run in runs))
    length = max(len(_words(before)), len(_words(after)))
    return replace(
        found,
        words=log1p(len(_words(differing))),
        length=log1p(length),
        telling=any(map(_TELLING.search, (before, after))),
        number=any(map(str.isdigit, differing)),
        prose=length >= _PROSE_WORDS,
    )


def _reasons(pair: ReplacedBlock) -> dict[str, bool]:
    before, after = pair.before, pair.after
    is_edit = bool(before and after)
    is_counted = is_edit and not pair.is_own
    is_same = is_edit and _folded(before) == _folded(after)
    is_code = is_same and bool(_CODE.search(before) or _CODE.search(after))
    return {
        "typography": is_same and not is_code,
        "new_tab": not is_same and _differs_in_notes(before, after),
        "dates_alike": pair.moved,
        "build": is_counted and (pair.is_last or pair.is_frame) and _is_build(before, after),
        "count": is_counted and _is_count(before, after),
        "clock": is_counted and _is_clock(before, after),
        "frame": pair.is_frame and not pair.is_own,
        "listed": pair.is_listed,
    }


def _differs_in_notes(before: str, after: str) -> bool:
    """Return whether only a note on a link was added or removed."""
    unnoted = [_PATTERNS["new_tab"].sub("", each) for each in (before, after)]
    return unnoted != [before, after] and _folded(unnoted[0]) == _folded(unnoted[1])


@cache
def _weights() -> tuple[float, dict[str, float]]:
    data = json.loads((files(__package__) / "minor_model.json").read_text("utf-8"))
    return data["intercept"], data["weights"]


def probability(found: Features) -> float:
    """Return the probability that a differing block is a change."""
    intercept, weights = _weights()
    odds = intercept + sum(weights[name] * getattr(found, name) for name in NAMES)
    return 1 / (1 + exp(-max(-50.0, min(50.0, odds))))


# -- a difference ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Difference:
    """Differences between two texts beside frame and volatile blocks.

    ``before`` and ``after`` are the layouts of both. ``shares`` has, by block, the share of
    comparisons at which the block at its slot was replaced; ``frame`` has the frame's blocks of a
    small host. ``may_be_marks`` is False if words of the texts differ and only these blocks do,
    ``may_stand`` if the version before cannot contain the added text.
    """

    before: Layout
    after: Layout
    removed: Sequence[PlacedBlock]
    added: Sequence[PlacedBlock]
    shares: Mapping[PlacedBlock, float] = field(default_factory=dict)
    frame: Collection[PlacedBlock] = frozenset()
    may_be_marks: bool = True
    may_stand: bool = True

    def fits(self, old: Blocks, new: Blocks) -> bool:
        """Return whether these are the texts of the two layouts."""
        sides = (self.before, self.removed, old), (self.after, self.added, new)
        return all(
            len(layout) == len(text)
            and all(block_digest(text.texts[layout.number(i)]) == i.digest for i in items)
            for layout, items, text in sides
        )


def may_be_minor(new: Blocks, difference: Difference) -> bool:
    """Return whether a difference may be minor, as far as the new text and the digests tell.

    Reading the old text takes as long as parsing its page. A block without a counterpart is minor
    only as frame or as an entry of a table of contents. If words differ, not all of the blocks
    differ in typography alone: one has another reason.
    """
    gone, come = difference.removed, difference.added
    if len(gone) + len(come) > _MOST_BLOCKS or len(difference.after) != len(new):
        return False
    left = [item for item in gone if item not in difference.frame]
    numbers = [difference.after.number(item) for item in come if item not in difference.frame]
    entries = 0
    if len(numbers) > len(gone) or len(left) > len(come):
        entries = _listed_entries(new, left, numbers, difference)
        if not entries:
            return False
    said = bool(difference.may_be_marks or difference.frame or entries)
    return said or _may_count(new, numbers, difference)


def _listed_entries(
    new: Blocks, left: Sequence[PlacedBlock], numbers: Sequence[int], difference: Difference
) -> int:
    """Count the entries of a table of contents among removed and added blocks; 0 for few."""
    gone, come = difference.removed, difference.added
    if len(numbers) + len(left) < _LEAST_LISTED:
        return 0
    headings = _named(new)
    names = set(map(str.casefold, headings))
    others = [it for it in numbers if not _is_listed(new.texts[it], names)]
    entries = len(numbers) - len(others)
    if len(left) > len(come):
        entries += len(_entry_digests(headings).intersection(item.digest for item in left))
    return 0 if entries < _LEAST_LISTED or len(others) > len(gone) else entries


def _may_count(new: Blocks, come: Sequence[int], difference: Difference) -> bool:
    """Return whether one of the new blocks may be a counter or a note of the site itself."""
    texts = [new.texts[number] for number in come]
    if _is_counted(texts) or _is_noted(texts, difference):
        return True
    # The date of another row may have been here.
    numbers = (difference.after.numbers(new.places[number]) for number in come)
    rows = {number for each in numbers for number in each}.difference(come)
    return may_move_alike(texts, [new.texts[i] for i in rows if len(new.texts[i]) <= _SHORT])


def _is_counted(texts: Sequence[str]) -> bool:
    """Return whether a text is a build, a time or a count of a site."""
    if any(_whole(name, text) for text in texts for name in ("build", "clock")):
        return True
    return any(_whole("count", _NUMBER.sub("#", text[:_SHORT])) for text in texts)


def _is_noted(texts: Sequence[str], difference: Difference) -> bool:
    """Return whether a note on a link may have been added or removed."""
    gone = {item.digest for item in difference.removed}
    unnoted = ((text, _PATTERNS["new_tab"].sub("", text)) for text in texts)
    if any(bare != text and block_digest(bare) in gone for text, bare in unnoted):
        return True
    # A removed note is in the old text only, at the end of a link.
    return all(len(_words(text)) < _PROSE_WORDS and not _DIGIT.search(text) for text in texts)


def _named(blocks: Blocks) -> list[str]:
    """Return the headings of a page without their numbers."""
    rows = zip(blocks.texts, blocks.kinds, strict=True)
    return [_unnumbered(text) for text, kind in rows if kind == "heading"]


def _unnumbered(text: str) -> str:
    """Return a text without the number of an entry before it."""
    numbered = _NUMBERED.match(text)
    return text if numbered is None else text[numbered.end() :]


def _is_listed(text: str, headings: Collection[str]) -> bool:
    """Return whether a block may be of a table of contents, by its words in any case."""
    return _unnumbered(text).casefold() in headings or _whole("contents", text) is not None


def _entry_digests(headings: Sequence[str]) -> set[int]:
    """Return the digests that entries of a table of contents have, with numbers or without."""
    return {
        block_digest(f"{number}{name}")
        for n, text in enumerate(headings)
        for name in (text, text.lower())
        for number in ("", f"{n}. ", f"{n + 1}. ", f"{n} ", f"{n + 1} ")
    }


def why_minor(old: Blocks, new: Blocks, difference: Difference, at: float) -> str | None:
    """Return the reasons for which a difference is minor, None if it is a change.

    ``old`` and ``new`` are the whole texts, ``at`` is the time of the visit.
    """
    reasons: Counter[str] = Counter()
    for pair in pairs(old, new, difference, at):
        found = features(pair)
        if found is None or probability(found) >= _MINOR:
            return None
        reasons[found.reason] += 1
    return "; ".join(reason for reason, _ in reasons.most_common()) or None


#: The reason of :func:`have_stood`.
STOOD: Final = "what differs stands on both versions of the page, as content on one of them only"


def is_worth_reading(new: Blocks, difference: Difference) -> bool:
    """Return whether a difference may be minor, judged without the old version."""
    return is_addition(difference) or may_be_minor(new, difference)


def is_addition(difference: Difference) -> bool:
    """Return whether no block replaced another at its place, which would be an edit."""
    slots = {slot for item in difference.removed for slot in item.slots}
    return all(slots.isdisjoint(item.slots) for item in difference.added)


class _Past(Protocol):
    """The store, see :class:`.detection.PageHistories`."""

    async def text(self, due: DueUrl, content: Content, /) -> Blocks | None: ...

    async def standing(
        self, due: DueUrl, content: Content, digests: Set[int], /
    ) -> Blocks | None: ...


class Versions(NamedTuple):
    """Two versions of a page, as a store has them: their contents, and the new text."""

    past: _Past
    due: DueUrl
    old: Content
    new: Content
    text: Blocks


async def why_of(difference: Difference, versions: Versions, at: float) -> str | None:
    """Return why a difference at ``at`` is minor, by its words or their place."""
    past, due, old, new, text = versions
    if has_new_words(text, difference, old[0], new[0]):
        difference = replace(difference, may_be_marks=False, may_stand=False)
    last = await past.text(due, old) if may_be_minor(text, difference) else None
    why = None if last is None else why_minor(last, text, difference, at)
    return why or await _why_stood(difference, versions)


async def _why_stood(difference: Difference, versions: Versions) -> str | None:
    """Return why a difference is minor if both versions contain it equally often and in order."""
    if not difference.may_stand or not is_addition(difference):
        return None
    past, due, old, new, _ = versions
    digests = {item.digest for item in (*difference.removed, *difference.added)}
    # One version may decide. Added text is on the new version, removed text on the old one.
    first, second = (new, old) if difference.removed else (old, new)
    there = await past.standing(due, first, digests)
    here = await past.standing(due, second, digests) if there else None
    return STOOD if there and here and there.texts == here.texts else None


#: Runs of letters and digits with the same form in the bytes of most pages; entities and tags
#: divide them.
_PLAIN_WORD: Final = re.compile(r"[a-zA-Z0-9]{3,}")
#: Most words to search for, the longest of the added ones.
_MOST_WORDS: Final = 32


def has_new_words(new: Blocks, difference: Difference, before: bytes, after: bytes) -> bool:
    """Return whether the added text has a word that only the bytes of the new version contain.

    The old version does not contain such a text, and it differs in more than its marks. A search of
    bytes takes a hundredth of the time of reading a page.
    """
    come = (new.texts[difference.after.number(item)] for item in difference.added)
    words = sorted(set(_PLAIN_WORD.findall(" ".join(come))), key=len, reverse=True)[:_MOST_WORDS]
    return any(word not in before and word in after for word in map(str.encode, words))


def pairs(old: Blocks, new: Blocks, difference: Difference, at: float) -> Iterator[ReplacedBlock]:
    """Yield the differing blocks, each with the one that it replaced; none of too many."""
    gone, come = difference.removed, difference.added
    if len(gone) + len(come) > _MOST_BLOCKS or not difference.fits(old, new):
        return
    went = {item: difference.before.number(item) for item in gone}
    came = {item: difference.after.number(item) for item in come}
    moved = _moved_places(old, new, difference, at)
    listed = _listed(old, new, went, came)
    is_own = len(came) > _OWN * len(new) or len(went) > _OWN * len(old)
    for left, right in _coupled(old, new, went, came):
        items = (*left, *right)
        text, number = (new, came[right[0]]) if right else (old, went[left[0]])
        yield ReplacedBlock(
            before=old.texts[went[left[0]]] if left else "",
            after=new.texts[came[right[0]]] if right else "",
            share=max(difference.shares.get(item, 0.0) for item in items),
            is_frame=all(item in difference.frame for item in items),
            is_last=number >= len(text) - max(_LAST, len(text) // _LAST_SHARE),
            is_listed=listed.issuperset(items),
            moved=all(item.place in moved for item in items),
            is_own=is_own,
        )


#: Share of a text above which a difference concerns its subject.
_OWN: Final = 0.5
#: Blocks at the end of a page: this number, or one in ``_LAST_SHARE`` of a long one.
_LAST: Final = 4
_LAST_SHARE: Final = 20
#: Least entries of a table of contents that appear or disappear together.
_LEAST_LISTED: Final = 3


def _moved_places(old: Blocks, new: Blocks, difference: Difference, at: float) -> set[int]:
    """Return the places of lists in which only the dates moved, all by the same time."""
    lists: dict[int, list[tuple[str, str]]] = {}
    for place in {item.place for item in (*difference.removed, *difference.added)}:
        gone, come = (layout.numbers(place) for layout in (difference.before, difference.after))
        if len(gone) == len(come):
            lists[place] = [(old.texts[i], new.texts[j]) for i, j in zip(gone, come, strict=True)]
    return moved_alike(lists, at)


def _listed(
    old: Blocks, new: Blocks, went: Mapping[PlacedBlock, int], came: Mapping[PlacedBlock, int]
) -> set[PlacedBlock]:
    """Return the entries of a table of contents: headings that stay on the page have their text."""
    if len(went) + len(came) < _LEAST_LISTED:
        return set()
    headings = _headings(old) & _headings(new)
    found, titles = set[PlacedBlock](), set[PlacedBlock]()
    for text, numbers in ((old, went), (new, came)):
        for item, number in numbers.items():
            said = text.texts[number]
            if _whole("contents", said):
                titles.add(item)
            elif text.kinds[number] != "heading" and _entry(said) in headings:
                found.add(item)
    return found | titles if len(found) >= _LEAST_LISTED else set()


def _headings(blocks: Blocks) -> set[str]:
    rows = zip(blocks.texts, blocks.kinds, strict=True)
    return {_entry(text) for text, kind in rows if kind == "heading"} - {""}


def _entry(text: str) -> str:
    """Return a heading as a table of contents has it: without its number."""
    return _folded(_unnumbered(text)).casefold()


def _coupled(
    old: Blocks, new: Blocks, went: Mapping[PlacedBlock, int], came: Mapping[PlacedBlock, int]
) -> Iterator[tuple[list[PlacedBlock], list[PlacedBlock]]]:
    """Yield removed blocks with those that replaced them: at the same slot, or by their words."""
    by_slot = {slot: item for item in came for slot in item.slots}
    left, right = list(went), dict.fromkeys(came)
    rest = []
    for item in left:
        partner = next((by_slot[slot] for slot in item.slots if by_slot.get(slot) in right), None)
        if partner is None:
            rest.append(item)
        else:
            del right[partner]
            yield [item], [partner]
    others = list(right)
    texts = [old.texts[went[item]] for item in rest], [new.texts[came[item]] for item in others]
    for block in align(*texts):
        yield _at(rest, block.before), _at(others, block.after)


def _at(items: Sequence[PlacedBlock], number: int | None) -> list[PlacedBlock]:
    return [] if number is None else [items[number]]
