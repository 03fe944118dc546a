"""How often sources of claims are right, and how late, for people to read. Pure; compiled."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from freshet.scheduler.compiling import part
from freshet.scheduler.recrawl.claim_state import SOURCES, Told

#: One record of an array; numba reads its fields by their names.
Record: TypeAlias = Any

#: The last so many count.
_LATELY: Final = 50.0


@part
def time_claim(it: Record, claim: Record, heard_before: float) -> None:
    """Note how long ago a change was that has come since the hearing before."""
    if claim.until > heard_before:
        it.late += it.heard - claim.until
        it.timed += 1.0
        if it.timed > _LATELY:
            it.late *= _LATELY / it.timed
            it.timed = _LATELY


@part
def score(told: Told, slot: int, changed: bool, heard: float) -> None:
    """Note for each source of a page whether it was right, and whether it had missed a change.

    Of the time after it was asked last it could not know.
    """
    page = told.page[slot]
    for j in range(min(told.facts[0].sources, SOURCES)):
        if page.by >> j & 1:
            it = told.source[j]
            claimed = _claims(told, slot, j)
            it.looked += claimed
            it.found += claimed * changed
            it.claimed += claimed * changed * heard
            it.changes += changed * heard
            if it.looked > _LATELY:
                it.found *= _LATELY / it.looked
                it.looked = _LATELY
            if it.changes > _LATELY:
                it.claimed *= _LATELY / it.changes
                it.changes = _LATELY


@part
def _claims(told: Told, slot: int, source: int) -> float:
    """1 where an event of a source stands for a page, else 0."""
    facts = told.facts[0]
    for j in range(told.page[slot].standing):
        number = told.standing[slot, j]
        event = told.event[number % len(told.event)]
        if number >= facts.events - len(told.event) and event.source == source:
            return 1.0
    return 0.0
