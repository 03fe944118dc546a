"""The last rungs of the ladder: what differs between two texts, and whether it counts.

A difference is explained block by block. Volatile blocks (:mod:`~crawler.detection.volatility`)
are explained by the page's own history, frame by the host's template
(:mod:`~freshet.crawler.detection.templates`), variants by earlier versions
(:mod:`~crawler.detection.flips`). What nothing explains is a change, be it one word: there is
no threshold on its size unless the user sets one.

What is learnt later is believed earlier, too: a verdict whose every block has become volatile
since is amended.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from freshet.crawler.detection.change import Verdict
from freshet.crawler.detection.flips import Presence
from freshet.crawler.detection.layout import Difference, Item, Layout, Slot, difference
from freshet.crawler.detection.memory import (
    MOST_BLOCKS,
    MOST_SLOTS,
    Delta,
    PageMemory,
    PageRecord,
    bounded,
    is_near,
)
from freshet.crawler.detection.renaming import new_names
from freshet.crawler.detection.sketch import Sketch, resemblance
from freshet.crawler.detection.templates import HostRun, Template, frame_items
from freshet.crawler.detection.volatility import STREAK, STREAK_AGAINST_THE_SITE, SlotHistory
from freshet.storage.entries import Amendment
from freshet.storage.words import Kind, Rung

#: Stands for the order of all blocks among the slots.
ORDER: Final[Slot] = ((1 << 64) - 1, 0)
#: A text in which more than this share of the blocks is volatile is its own content.
_MOST_VOLATILE: Final = 0.5
_WHY: Final = {
    Rung.VOLATILE: "these blocks differ at every visit",
    Rung.FLIP: "the page alternates between these versions",
}
#: A difference of more blocks is not followed block by block, but as a whole text.
_MOST_FOLLOWED: Final = 48


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on a text, what to remember of the page, and what to see differently.

    ``keeps_sketch`` says that the new sketch is the one to compare with next time. It is not
    where only volatile blocks differ: these are in the memory, and sketches are kept for ever.
    """

    verdict: Verdict
    memory: PageMemory
    amendments: tuple[Amendment, ...]
    keeps_sketch: bool


def judge_blocks(
    past: PageRecord, new: Sketch, host: HostRun, at: float, *, significant_below: float = 1.0
) -> Judgement:
    """Judge a text that differs from the page's last one, seen at ``at``.

    Any difference that is not explained counts, and so does another order of the same blocks
    (a ranking is content): then no block is added or removed. Only with
    ``significant_below`` under 1 does a change count as none where the resemblance of the
    texts is not below it.
    """
    before, layout = past.layout, Layout.of(new)
    names = new_names(before, layout)
    # What is known of this page, and of the others, is known by the old names.
    as_before = layout.renamed({after: name for name, after in names.items()})
    found = difference(before, as_before)
    memory = _learnt(past, found, as_before, new, host.template)
    removed, added = _without_volatile(found, memory, host.template, len(layout))
    host.differed(new.text_digest, removed, added)
    if _alternates(memory, (_text(past.sketch), _text(new))):
        explained = _Explained(Rung.FLIP)
    else:
        explained = _explained(found, removed, added, memory, host)
    verdict = _verdict(explained, past.sketch, new, significant_below)
    memory, amendments = _amended(memory, host.template.volatile)
    if _may_turn(explained, verdict):
        delta = Delta(at, verdict.kind, explained.removed, explained.added)
        memory = replace(memory, deltas=bounded([*memory.deltas, delta]))
    memory = memory.renamed(names) if names else memory
    is_covered = verdict.rung is Rung.VOLATILE and PageRecord(past.sketch, memory).layout == layout
    return Judgement(verdict, memory, amendments, keeps_sketch=not is_covered)


# -- learning ----------------------------------------------------------------------


def _learnt(
    past: PageRecord, found: Difference, layout: Layout, new: Sketch, template: Template
) -> PageMemory:
    """The memory after this comparison, without its delta."""
    slots = _slots(past, found, layout, template)
    blocks = _blocks(past, found, layout, new)
    return PageMemory(past.comparisons + 1, slots, blocks, past.memory.deltas)


def _slots(
    past: PageRecord, found: Difference, layout: Layout, template: Template
) -> dict[Slot, SlotHistory]:
    fresh = SlotHistory(0).after_stillness(past.comparisons)
    replaced = {**found.replaced, **({ORDER: 0} if found.moved() else {})}
    slots: dict[Slot, SlotHistory] = {}
    for slot in filter(is_near, {**past.memory.slots, **replaced}):
        digest = 0 if slot == ORDER else layout.at(slot)
        if digest is None:
            continue
        known = past.memory.slots.get(slot)
        history = fresh if known is None else known.after_stillness(past.still)
        streak = STREAK_AGAINST_THE_SITE if slot in template.content else STREAK
        history = history.after(digest, replaced=slot in replaced, streak=streak)
        if history.replacements:
            slots[slot] = history
    return _liveliest(slots)


def _liveliest(slots: dict[Slot, SlotHistory]) -> dict[Slot, SlotHistory]:
    """The slots that may be remembered: those at which most was replaced."""
    if len(slots) <= MOST_SLOTS:
        return slots
    ranked = sorted(slots.items(), key=lambda kept: -kept[1].replacements.bit_count())
    return dict(ranked[:MOST_SLOTS])


def _blocks(
    past: PageRecord, found: Difference, layout: Layout, new: Sketch
) -> dict[int, Presence]:
    """The comings and goings of single blocks, and of the text as a whole."""
    now = set(layout.digests) | {_text(new)}
    blocks: dict[int, Presence] = {}
    for digest, presence in past.memory.blocks.items():
        history = presence.after(present=presence.now, visits=past.still)
        history = history.after(present=digest in now)
        if not history.forgotten:
            blocks[digest] = history
    gone, come = [_text(past.sketch)], [_text(new)]
    if len(found.removed) + len(found.added) <= _MOST_FOLLOWED:
        gone += (item.digest for item in found.removed)
        come += (item.digest for item in found.added)
    for digest in gone:
        blocks.setdefault(digest, Presence.of_gone())
    for digest in come:
        blocks.setdefault(digest, Presence.of_come())
    return dict(list(blocks.items())[-MOST_BLOCKS:])


def _text(sketch: Sketch) -> int:
    """A name for a whole text among the names of blocks."""
    return int.from_bytes(sketch.text_digest[:8], "little")


# -- explaining --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Explained:
    """What differs beside the volatile blocks, and the rung that explains it, if one does.

    ``frame`` are those of the blocks that belong to the template; ``moved`` says that
    others stand in another order.
    """

    rung: Rung | None
    removed: tuple[Item, ...] = ()
    added: tuple[Item, ...] = ()
    frame: frozenset[Item] = frozenset()
    moved: bool = False


def _explained(
    found: Difference,
    removed: tuple[Item, ...],
    added: tuple[Item, ...],
    memory: PageMemory,
    host: HostRun,
) -> _Explained:
    shuffled = found.moved() and ORDER not in memory.volatile
    if shuffled and found.moved(beside=host.template.blocks):
        return _Explained(None, removed, added, moved=True)
    if not removed and not added:
        return _Explained(Rung.FRAME if shuffled else Rung.VOLATILE)
    went, came = frame_items(removed, added, host)
    rest = {*removed, *added} - went - came
    if not rest:
        return _Explained(Rung.FRAME, removed, added)
    if _alternates(memory, (item.digest for item in rest)):
        return _Explained(Rung.FLIP)
    return _Explained(None, removed, added, frozenset(went | came))


def _alternates(memory: PageMemory, digests: Iterable[int]) -> bool:
    known = (memory.blocks.get(digest) for digest in digests)
    return all(presence is not None and presence.alternates for presence in known)


def _without_volatile(
    found: Difference, memory: PageMemory, template: Template, size: int
) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
    """What differs beside the blocks that were replaced at volatile slots."""
    volatile = (memory.volatile | template.volatile) & found.replaced.keys()
    removed = tuple(item for item in found.removed if volatile.isdisjoint(item.slots))
    added = tuple(item for item in found.added if volatile.isdisjoint(item.slots))
    if len(found.added) - len(added) > _MOST_VOLATILE * size:
        return found.removed, found.added
    return removed, added


# -- concluding --------------------------------------------------------------------


def _verdict(explained: _Explained, old: Sketch, new: Sketch, significant_below: float) -> Verdict:
    if explained.rung is not None:
        return Verdict(Kind.UNCHANGED, explained.rung)
    estimate = resemblance(old, new)
    significant = significant_below >= 1 or estimate.value < significant_below
    return Verdict(
        Kind.CHANGED if significant else Kind.UNCHANGED,
        Rung.BLOCKS,
        resemblance=estimate.value,
        resemblance_se=estimate.standard_error,
        blocks_added=sum(item not in explained.frame for item in explained.added),
        blocks_removed=sum(item not in explained.frame for item in explained.removed),
    )


def _may_turn(explained: _Explained, verdict: Verdict) -> bool:
    """Whether later visits, or other pages, may show this verdict in another light."""
    is_open = verdict.kind is Kind.CHANGED or verdict.rung is Rung.FRAME
    return is_open and bool(explained.removed or explained.added) and not explained.moved


def _amended(
    memory: PageMemory, volatile_on_site: frozenset[Slot]
) -> tuple[PageMemory, tuple[Amendment, ...]]:
    """The memory without those deltas that are explained by now, and what to say of them."""
    volatile = memory.volatile | volatile_on_site
    amendments, kept = [], []
    for delta in memory.deltas:
        rung = _rung_in_hindsight(delta, memory, volatile)
        if rung is None:
            kept.append(delta)
        else:
            amendments.append(Amendment(delta.at, Kind.UNCHANGED, rung, _WHY[rung]))
    return replace(memory, deltas=tuple(kept)), tuple(amendments)


def _rung_in_hindsight(delta: Delta, memory: PageMemory, volatile: frozenset[Slot]) -> Rung | None:
    """What explains a change that was seen earlier, if anything does by now."""
    items = (*delta.removed, *delta.added)
    if delta.kind is not Kind.CHANGED:
        return None
    if all(not volatile.isdisjoint(item.slots) for item in items):
        return Rung.VOLATILE
    return Rung.FLIP if _alternates(memory, (item.digest for item in items)) else None
