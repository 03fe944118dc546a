"""Change detection: a ladder that stops at the first rung that decides.

    304         the server answers 304 Not Modified (RFC 9110, section 15.4.5)
    body        equal digests of the bytes, before the page is parsed
    text        equal digests of the main text, before the last sketch is read
    volatile    only blocks differ that differ at every visit, or
    frame       that belong to the site's template, or
    flip        that alternate between earlier versions
    minor       only blocks differ that can differ without an edit of the page
    blocks      all other differences, block by block, and their size
    document    no block differs, but another part that the settings compare, such as links

The first two are rungs of :class:`freshet.crawler.visit.Reducer`, the last one is of
:mod:`freshet.crawler.compare.kinds`, ``minor`` of :mod:`freshet.crawler.compare.minor`, and the
others of :func:`freshet.crawler.compare.detection.judge_blocks`.

Digests decide exactly whether a page changed; MinHash only estimates by how much. A
failed fetch is never compared: it is not a version of a page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from heapq import nlargest
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import numpy as np

from freshet.crawler.compare.history import (
    ALWAYS,
    COME,
    GONE,
    MOST_BLOCKS,
    MOST_SLOTS,
    NOTHING,
    STREAK,
    STREAK_AGAINST_THE_SITE,
    Layout,
    LayoutDifference,
    PageMemory,
    PageRecord,
    PendingDifference,
    PlacedBlock,
    Presence,
    Slot,
    SlotHistory,
    alternates,
    beside_slots,
    bounded,
    difference,
    equal_ends,
    is_near,
    later,
)
from freshet.crawler.fetch.bounds import LruCache
from freshet.crawler.reduce.blocks import Blocks
from freshet.crawler.reduce.sketch import Sketch, resemblance
from freshet.storage import value
from freshet.storage.entries import REBASED, RETURN, Amendment, Channel, Kind, Retraction, Rung
from freshet.storage.records import Digests, Doubt, DueUrl, PageHistory

if TYPE_CHECKING:
    from freshet.crawler.compare.minor import Difference
    from freshet.crawler.compare.templates import HostRun, Template


@value(frozen=True, slots=True)
class Verdict:
    """The result of one visit, and what the store records of it.

    Content is new, or by the ``rung`` that decided changed or unchanged. A page may be gone; one
    that is not content is failed, with the kind of its block page as ``reason``.
    ``resemblance`` (0 to 1) and its standard error are estimates; the
    numbers of blocks added and removed are exact. ``reason`` and ``detail`` replace those of the
    fetch result where they are not None. ``keeps_sketch`` and the fields from ``memory`` on: see
    :class:`~freshet.storage.records.Visit`. ``kinds`` and ``channels``: see
    :mod:`freshet.crawler.compare.kinds`. ``difference`` has the blocks of a change that may be
    minor. ``may_be_copy``: it is doubtful for no more than that URLs of other names show its text.
    """

    kind: Kind
    rung: Rung | None = None
    resemblance: float | None = None
    resemblance_se: float | None = None
    blocks_added: int | None = None
    blocks_removed: int | None = None
    reason: str | None = None
    detail: str | None = None
    keeps_sketch: bool = True
    memory: bytes | None = None
    amendments: tuple[Amendment, ...] = ()
    not_content: bytes | None = None
    retractions: tuple[Retraction, ...] = ()
    kinds: tuple[Channel, ...] = ()
    channels: bytes | None = None
    doubt: Doubt | None = None
    may_be_copy: bool = False
    difference: Difference | None = field(default=None, compare=False, repr=False)


# -- renaming ----------------------------------------------------------------
# A rebuild of a site gives its wrappers other classes, and so its places other names. The blocks
# that stand in both texts show which place became which, and where no block of a place stayed, so
# does the same gap between two blocks that did.

_Anchor = tuple[int, int]


def new_names(old: Layout, new: Layout) -> dict[int, int]:
    """Map places that only the old text has to the new ones that replaced them."""
    if np.array_equal(old.places, new.places):
        return {}
    start, end = equal_ends(old, new)
    before, after = (it.part(start, len(it) - end) for it in (old, new))
    came, went = after.places.tolist(), before.places.tolist()
    gone = set(went).difference(new.places.tolist())
    come = set(came).difference(old.places.tolist()) if gone else set[int]()
    if not come:
        return {}
    votes = Counter(
        (went[i], came[j]) for i, j in _pairs(before, after) if went[i] in gone and came[j] in come
    )
    return _elected(votes)


def _elected(votes: Counter[tuple[int, int]]) -> dict[int, int]:
    """Give each place the name with most votes that no other has."""
    names: dict[int, int] = {}
    given = set[int]()
    for (place, name), _ in votes.most_common():
        if place not in names and name not in given:
            names[place] = name
            given.add(name)
    return names


def _pairs(old: Layout, new: Layout) -> Iterator[_Anchor]:
    """Return corresponding blocks: equal ones, and those that fill equally long gaps between."""
    anchors = [(-1, -1), *_anchors(old, new), (len(old), len(new))]
    for (i, j), (next_i, next_j) in pairwise(anchors):
        if next_i - i == next_j - j:
            yield from zip(range(i + 1, next_i), range(j + 1, next_j), strict=True)
        if next_i < len(old):
            yield next_i, next_j


def _anchors(old: Layout, new: Layout) -> list[_Anchor]:
    """Return the numbers of blocks that each text has once and in the same order."""
    before, after = old.digests.tolist(), new.digests.tolist()
    there = {digest: number for number, digest in enumerate(after)}
    once = {d for d, n in Counter(before).items() if n == 1}
    once &= {d for d, n in Counter(after).items() if n == 1}
    anchors: list[_Anchor] = []
    for i, digest in enumerate(before):
        if digest in once and (not anchors or there[digest] > anchors[-1][1]):
            anchors.append((i, there[digest]))
    return anchors


# -- judging -----------------------------------------------------------------
# A difference is explained block by block: volatile blocks and variants by the page's own history
# (:mod:`~crawler.compare.history`), frame by the host's template
# (:mod:`~freshet.crawler.compare.templates`). An unexplained one is a change, be it one word: there
# is no threshold on its size unless the user sets one. An earlier verdict is amended once all its
# blocks have become volatile.

#: Stands for the order of all blocks among the slots.
ORDER: Final[Slot] = ((1 << 64) - 1, 0)
#: A text of which more than this share is replaced at volatile slots is its own content.
_MOST_VOLATILE: Final = 0.5
_RETURN: Final = "the text is again one that the page had before"
_WHY: Final = {
    "volatile": "these blocks differ at every visit",
    "flip": "the page alternates between these versions",
}
#: A difference of more blocks is followed as a whole text, not block by block.
_MOST_FOLLOWED: Final = 48


def judge_blocks(
    past: PageRecord, new: Sketch, host: HostRun, at: float, *, significant_below: float = 1.0
) -> Verdict:
    """Judge a text that differs from the page's last one, seen at ``at``.

    The verdict has the new memory of the page, and corrections of earlier verdicts. The next
    comparison uses the new sketch unless only volatile blocks differ: these are in the memory, and
    sketches are kept for ever.

    Any unexplained difference counts, and so does another order of the same blocks
    (a ranking is content): then no block is added or removed. Only with
    ``significant_below`` under 1 a change is insignificant where the resemblance of the
    texts is not below it.
    """
    before, layout = past.layout, Layout.of(new)
    names = new_names(before, layout)
    # The history of this page, and of the others, uses the old names.
    as_before = layout.renamed({after: name for name, after in names.items()})
    found = difference(before, as_before)
    slots = _slots(past, found, as_before, host.template)
    blocks = _blocks(past, found, as_before, new)
    memory = PageMemory(past.comparisons + 1, slots, blocks, past.memory.deltas)
    own = memory.volatile

    def is_volatile(slot: Slot) -> bool:
        return slot in own or host.template.is_volatile(slot)

    beside = beside_slots(is_volatile, found.removed, found.added)
    is_own = len(found.added) - len(beside[1]) > _MOST_VOLATILE * len(layout)
    removed, added = (found.removed, found.added) if is_own else beside
    host.differed(new.text_digest, removed, added)
    if _alternates(memory, (_text(past.sketch), _text(new))):
        explained = _Explained("flip")
    else:
        explained = _explained(found, removed, added, memory, host)
    verdict = _verdict(explained, past.sketch, new, significant_below)
    if verdict.kind == "changed":
        if past.memory.blocks.get(_text(new)):
            verdict = replace(verdict, reason=RETURN, detail=_RETURN)
        differing = _difference_of(explained, found, past, new, (as_before, host.template))
        verdict = replace(verdict, difference=differing)
    memory, amendments = _amended(memory, None if is_own else is_volatile)
    memory = _with_delta(memory, verdict, explained, at)
    memory = memory.renamed(names) if names else memory
    is_covered = verdict.rung == "volatile" and PageRecord(past.sketch, memory).layout == layout
    return replace(
        verdict, memory=memory.to_bytes(), amendments=amendments, keeps_sketch=not is_covered
    )


def _difference_of(
    explained: _Explained,
    found: LayoutDifference,
    past: PageRecord,
    new: Sketch,
    as_before: tuple[Layout, Template],
) -> Difference | None:
    """Return the difference of a change, with what may make it minor; None where blocks moved."""
    from freshet.crawler.compare.minor import Difference  # noqa: PLC0415 - no first crawl asks

    if explained.moved:
        return None
    after, template = as_before
    items = explained.beside_frame()
    shares = _shares(chain(*items), past.memory)
    frame = template.frame_of_small(*items, past.layout)
    is_all = not found.moved() and explained.has_all(found)
    may_be_marks = not is_all or has_same_words(past.sketch, new)
    return Difference(past.layout, after, *items, shares, frame, may_be_marks=may_be_marks)


def _with_delta(
    memory: PageMemory, verdict: Verdict, explained: _Explained, at: float
) -> PageMemory:
    """Return the memory with the difference of a verdict that others may correct later."""
    is_open = verdict.kind == "changed" or verdict.rung == "frame"
    if not is_open or explained.moved or not (explained.removed or explained.added):
        return memory
    delta = PendingDifference(at, verdict.kind, explained.removed, explained.added)
    return replace(memory, deltas=bounded([*memory.deltas, delta]))


# -- learning ----------------------------------------------------------------------


def _slots(
    past: PageRecord, found: LayoutDifference, layout: Layout, template: Template
) -> dict[Slot, SlotHistory]:
    """Return the histories of slots after this comparison: those with the most replacements."""
    fresh = SlotHistory(NOTHING).after_stillness(past.comparisons)
    slots: dict[Slot, SlotHistory] = {}
    for slot, (digest, is_other) in _shown(past.memory, found, layout).items():
        if not is_near(slot):
            continue
        known = past.memory.slots.get(slot)
        history = fresh if known is None else known.after_stillness(past.still)
        streak = STREAK_AGAINST_THE_SITE if template.at(slot).is_content else STREAK
        history = history.after(digest, replaced=is_other, streak=streak)
        if history.replacements:
            slots[slot] = history
    if len(slots) <= MOST_SLOTS:
        return slots
    return dict(nlargest(MOST_SLOTS, slots.items(), lambda kept: kept[1].replacements.bit_count()))


def _shown(
    memory: PageMemory, found: LayoutDifference, layout: Layout
) -> dict[Slot, tuple[int, bool]]:
    """Return the block at each slot that is or was of interest, and whether it is another one.

    An added or removed block counts only where it is the only one of its place: in a list, it moves
    the blocks after it to other slots.
    """
    shown = {
        slot: (NOTHING if digest is None else digest, False)
        for slot, history in memory.slots.items()
        if (digest := layout.at(slot)) is not None or history.digest == NOTHING
    }
    for items, is_there in ((found.removed, False), (found.added, True)):
        for item in items:
            if item.is_alone:
                digest = item.digest if is_there else NOTHING
                shown |= dict.fromkeys(item.slots, (digest, True))
    shown |= {slot: (digest, True) for slot, digest in found.replaced.items()}
    if found.moved():
        shown[ORDER] = (NOTHING, True)
    return shown


def _blocks(
    past: PageRecord, found: LayoutDifference, layout: Layout, new: Sketch
) -> dict[int, Presence]:
    """Return the presence of single blocks, and of the text as a whole."""
    now = {*layout.digests.tolist(), _text(new)}
    blocks: dict[int, Presence] = {}
    for digest, presence in past.memory.blocks.items():
        history = later(presence, present=bool(presence & 1), visits=past.still)
        history = later(history, present=digest in now)
        # A block that was present, or absent, at all remembered visits is forgotten.
        if history not in {0, ALWAYS}:
            blocks[digest] = history
    gone, come = [_text(past.sketch)], [_text(new)]
    if len(found.removed) + len(found.added) <= _MOST_FOLLOWED:
        gone += (item.digest for item in found.removed)
        come += (item.digest for item in found.added)
    for digest in gone:
        blocks.setdefault(digest, GONE)
    for digest in come:
        blocks.setdefault(digest, COME)
    return dict(list(blocks.items())[-MOST_BLOCKS:])


def _text(sketch: Sketch) -> int:
    """Return a name for a whole text among the names of blocks."""
    return int.from_bytes(sketch.text_digest[:8], "little")


# -- explaining --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Explained:
    """The difference beside the volatile blocks, and the rung that explains it, if one does.

    ``frame`` has the differing blocks that belong to the template. ``moved`` is true if other
    blocks are in another order.
    """

    rung: Rung | None
    removed: tuple[PlacedBlock, ...] = ()
    added: tuple[PlacedBlock, ...] = ()
    frame: frozenset[PlacedBlock] = frozenset()
    moved: bool = False

    def beside_frame(self) -> tuple[tuple[PlacedBlock, ...], tuple[PlacedBlock, ...]]:
        """Return the removed and the added blocks that do not belong to the template."""
        removed, added = (
            tuple(item for item in items if item not in self.frame)
            for items in (self.removed, self.added)
        )
        return removed, added

    def has_all(self, found: LayoutDifference) -> bool:
        """Return whether these are all differences of two layouts, and none is frame."""
        return not self.frame and (self.removed, self.added) == (found.removed, found.added)


def _shares(items: Iterable[PlacedBlock], memory: PageMemory) -> dict[PlacedBlock, float]:
    """Return in which share of the comparisons the blocks at the slots of items were replaced."""
    found: dict[PlacedBlock, float] = {}
    for item in items:
        known = [memory.slots[slot].share for slot in item.slots if slot in memory.slots]
        if known:
            found[item] = max(replaced / max(1, compared) for replaced, compared in known)
    return found


def as_minor(found: Verdict, why: str, at: float) -> Verdict:
    """Return the verdict on a change at ``at`` that is minor; no later visit corrects it."""
    memory = PageMemory() if found.memory is None else PageMemory.from_bytes(found.memory)
    memory = replace(memory, deltas=tuple(each for each in memory.deltas if each.at != at))
    return replace(
        found, kind="unchanged", rung="minor", reason=None, detail=why, memory=memory.to_bytes()
    )


def _explained(
    found: LayoutDifference,
    removed: tuple[PlacedBlock, ...],
    added: tuple[PlacedBlock, ...],
    memory: PageMemory,
    host: HostRun,
) -> _Explained:
    shuffled = found.moved() and ORDER not in memory.volatile
    if shuffled and found.moved(beside=host.template.blocks):
        return _Explained(None, removed, added, moved=True)
    if not removed and not added:
        return _Explained("frame" if shuffled else "volatile")
    went, came = host.frame_items(removed, added)
    rest = {*removed, *added} - went - came
    if not rest:
        return _Explained("frame", removed, added)
    if _alternates(memory, (item.digest for item in rest)):
        return _Explained("flip")
    return _Explained(None, removed, added, frozenset(went | came))


def _alternates(memory: PageMemory, digests: Iterable[int]) -> bool:
    return all(alternates(memory.blocks.get(digest, 0)) for digest in digests)


# -- concluding --------------------------------------------------------------------


def _verdict(explained: _Explained, old: Sketch, new: Sketch, significant_below: float) -> Verdict:
    if explained.rung is not None:
        return Verdict("unchanged", explained.rung)
    value, standard_error = resemblance(old, new)
    significant = significant_below >= 1 or value < significant_below
    return Verdict(
        "changed" if significant else "unchanged",
        "blocks",
        resemblance=value,
        resemblance_se=standard_error,
        blocks_added=len(explained.beside_frame()[1]),
        blocks_removed=len(explained.beside_frame()[0]),
    )


def _amended(
    memory: PageMemory, is_volatile: Callable[[Slot], bool] | None
) -> tuple[PageMemory, tuple[Amendment, ...]]:
    """Return the memory without the deltas that are explained by now, and the corrections."""
    amendments, kept = [], []
    for delta in memory.deltas:
        rung = _rung_by_now(delta, memory, is_volatile)
        if rung is None:
            kept.append(delta)
        else:
            amendments.append(Amendment(delta.at, "unchanged", rung, _WHY[rung]))
    return replace(memory, deltas=tuple(kept)), tuple(amendments)


def _rung_by_now(
    delta: PendingDifference, memory: PageMemory, is_volatile: Callable[[Slot], bool] | None
) -> Rung | None:
    """Return the rung that now explains an earlier change, if one does."""
    items = (*delta.removed, *delta.added)
    if delta.kind != "changed":
        return None
    if is_volatile is not None and all(any(map(is_volatile, item.slots)) for item in items):
        return "volatile"
    return "flip" if _alternates(memory, (item.digest for item in items)) else None


# -- detector ----------------------------------------------------------------
#
# The ladder from the main text on. It reads the stored histories of pages and hosts.
#
# Invariant: what is stored is read only where a text differs, and a host's sample of pages a
# few times in a run, the first when its first text differs; that of a host with few pages each
# time. Consequence: an unchanged page costs a comparison of digests.

#: Pages of a host whose sketches are read to learn its template.
SAMPLE_PAGES: Final = 32
#: Differing texts of a host after which its template is learnt again: what a run shows of the
#: first pages is known for the others.
_LEARN_AGAIN_AT: Final = frozenset({6, 24, 96, 384})
#: Hosts whose templates are held.
_HOSTS: Final = 256
#: A page that moved is the same page from this resemblance of its texts on.
_SAME_PAGE: Final = 0.5


#: The bytes of a version, and their type.
Content: TypeAlias = tuple[bytes, str | None]


class PageHistories(Protocol):
    """The store, as a comparison asks for it."""

    async def history(self, page_id: int, /) -> PageHistory | None:
        """Return the history of a page, None before its first capture with a text."""

    async def predecessor(self, page_id: int, /) -> PageHistory | None:
        """Return the history of the URL from which a page has moved here."""

    async def sample(self, host_id: int, most: int, /) -> list[PageHistory]:
        """Return histories of at most ``most`` pages of a host."""

    async def not_content(self, host_id: int, /) -> bytes | None:
        """Return a host's block pages as stored (versioned bytes)."""

    async def text(self, due: DueUrl, content: Content, /) -> Blocks | None:
        """Return the text of a version of a page; None if it cannot be read."""

    async def standing(self, due: DueUrl, content: Content, digests: Set[int], /) -> Blocks | None:
        """Find in a version of a page as :func:`~freshet.crawler.reduce.page.standing`.

        None is returned if its site's selectors choose the content.
        """

    async def again(self, due: DueUrl, /) -> Sketch | None:
        """Return the sketch of that text."""

    async def channels(self, page_id: int, /) -> bytes | None:
        """Return the channels of a page's last version, None if they are not kept."""

    async def content(self, page_id: int, /) -> Content | None:
        """Return the content of that version; None if it is not kept."""


#: Kinds of verdicts on a text that was compared with an earlier one.
COMPARED: Final = frozenset({"changed", "unchanged"})
_SAME_TEXT: Final = Verdict("unchanged", "text", keeps_sketch=False)
#: The old memory names blocks that the text does not have any more.
_REBASED: Final = Verdict(
    "new",
    reason=REBASED,
    detail="the text is read in another way now, and the last bytes are not kept: not compared",
    memory=PageMemory().to_bytes(),
)


class Detector:
    """Judges texts for one run. ``significant_below``: see :func:`judge_blocks`."""

    def __init__(self, past: PageHistories, *, significant_below: float = 1.0) -> None:
        self._past = past
        self._significant_below = significant_below
        self._pages: Counter[int] = Counter()
        self._hosts: LruCache[int, HostRun] = LruCache(_HOSTS)

    def visited(self, host_id: int) -> None:
        """Count a page of the host that has content, changed or not."""
        self._pages[host_id] += 1

    async def detect(
        self,
        due: DueUrl,
        new: Sketch,
        at: float,
        history: PageHistory | None = None,
        *,
        text_version: str | None = None,
        text: Blocks | None = None,
        rels: Sequence[str] = (),
        content: Content | None = None,
    ) -> Verdict:
        """Judge the text of a page whose bytes differ from the last ones, seen at ``at``.

        ``history`` is the page's, if it has been read, and ``rels`` are those of its links. Without
        its ``text`` and ``content``, and where that of the last version is not kept, only moved
        entries of a list are minor. A last text of another ``text_version`` is read again from its
        bytes; if they are not kept, the new one is a new baseline.
        """
        if due.digests is None:
            return await self._first(due, new, at, text_version)
        if not due.digests.is_comparable(text_version):
            return await self._read_again(
                due, new, at, text_version, text=text, rels=rels, content=content
            )
        if due.digests.text == new.text_digest:
            return _SAME_TEXT
        if due.digests.text is not None:
            history = history or await self._past.history(due.page_id)
        else:
            history = None
        if history is None:
            # The last version had no text: the bytes, which differ, decide.
            return Verdict("changed", "body")
        found = await self._judged(due, PageRecord.of(history), new, at)
        difference = found.difference
        why = difference and (
            _why_moved(due, difference, rels)
            or await self._why_minor(due, difference, at, text=text, content=content)
        )
        return as_minor(found, why, at) if why else found

    async def _why_minor(
        self,
        due: DueUrl,
        difference: Difference,
        at: float,
        *,
        text: Blocks | None,
        content: Content | None,
    ) -> str | None:
        """Return why a difference is minor by its words or by what stands on both versions."""
        from freshet.crawler.compare.minor import Versions, is_worth_reading, why_of  # noqa: PLC0415 - no first crawl asks

        if text is None or content is None or not is_worth_reading(text, difference):
            return None
        last = await self._past.content(due.page_id)
        if last is None:
            return None
        return await why_of(difference, Versions(self._past, due, last, content, text), at)

    async def _first(
        self, due: DueUrl, new: Sketch, at: float, text_version: str | None
    ) -> Verdict:
        """Judge a page that was not seen before: it is new, unless it has moved here."""
        # Also where a link to the new URL was found before the redirect.
        history = await self._past.predecessor(due.page_id)
        if history is None or history.text_version != text_version:
            return Verdict("new")
        past = PageRecord.of(history)
        detail = "it stood at another URL before"
        if past.sketch.text_digest == new.text_digest:
            memory = past.memory.to_bytes()
            return Verdict("unchanged", "text", memory=memory, detail=detail)
        if not is_same_page(past.sketch, new):
            return Verdict("new")
        judged = await self._judged(due, past, new, at)
        # The page itself has no sketch and no verdict yet.
        return replace(judged, keeps_sketch=True, amendments=(), detail=detail)

    async def _read_again(
        self,
        due: DueUrl,
        new: Sketch,
        at: float,
        text_version: str | None,
        *,
        text: Blocks | None,
        rels: Sequence[str],
        content: Content | None,
    ) -> Verdict:
        last = await self._past.again(due)
        if last is None or (past := await self._past.history(due.page_id)) is None:
            return _REBASED
        history = PageRecord.of(past).read_again(last, text_version)
        due = replace(due, digests=Digests(b"", last.text_digest, text_version))
        found = await self.detect(
            due, new, at, history, text_version=text_version, text=text, rels=rels, content=content
        )
        # What is stored is of the last reading.
        memory = None if past.memory in {None, history.memory} else history.memory
        return replace(found, keeps_sketch=True, memory=found.memory or memory)

    async def _judged(self, due: DueUrl, past: PageRecord, new: Sketch, at: float) -> Verdict:
        host = await self._host(due.host_id)
        return judge_blocks(past, new, host, at, significant_below=self._significant_below)

    async def _host(self, host_id: int) -> HostRun:
        from freshet.crawler.compare.templates import HostRun, Template  # noqa: PLC0415 - no first crawl asks

        known = self._hosts.use(host_id)
        # Of a small host one page that changes is a large part: all are read each time.
        if (
            known is None
            or known.differing in _LEARN_AGAIN_AT
            or (known.template.is_of_small and known.differing)
        ):
            histories = await self._past.sample(host_id, SAMPLE_PAGES)
            # Another text of the host may have been judged during the wait.
            known = self._hosts.use(host_id) or HostRun()
            self._hosts[host_id] = known
            # A template needs two pages: a block of one page may be its content.
            records = [PageRecord.of(history) for history in histories if len(histories) > 1]
            known.template = Template.learnt(records)
        known.pages = self._pages[host_id]
        return known


def _why_moved(due: DueUrl, difference: Difference, rels: Sequence[str]) -> str | None:
    """Return why a difference is minor by its entries, None if it is not."""
    from freshet.crawler.compare.list_pages import MOVED, has_moved, is_later_page  # noqa: PLC0415 - no first crawl asks

    return MOVED if is_later_page(due.url, rels) and has_moved(difference) else None


def has_same_words(old: Sketch, new: Sketch) -> bool:
    """Return whether two texts may have the same words: typography is not in their shingles."""
    return old.shingle_count == new.shingle_count and np.array_equal(old.minima, new.minima)


def is_same_page(old: Sketch, new: Sketch) -> bool:
    """Return whether the page at its new URL has the old page's text."""
    return resemblance(old, new)[0] >= _SAME_PAGE
