"""Whether a daemon lives, and whether it does what it should.

*Alive* is what the watchdog asks: a process that is not is killed, so it counts only what a new
start would mend. *Healthy* is what people and their monitoring ask: it counts all that keeps the
copy from being refreshed, also a store that is away and a network that is down.

*Invariant.* Waiting that is meant (for the budget, for a store that is away, for a drain) is no
lack of life, however long it takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

#: A batch commits in less, even on a slow disk beside a reader; SQLite itself gives up after 10 s.
_COMMITS_WITHIN_S: Final = 120.0
#: The slowest exchange ends in less, and the pool looks for work when one does.
_TURNS_WITHIN_S: Final = 900.0
#: A request that the budget allows is sent in less, unless no host can be asked.
_ASKS_WITHIN_S: Final = 600.0


class State(StrEnum):
    """What a daemon is about."""

    STARTING = "starting"
    FETCHING = "fetching"
    RELOADING = "reloading"
    UPKEEP = "upkeep"
    STOPPING = "stopping"


@dataclass(frozen=True, slots=True)
class Vitals:
    """What is known of a daemon at one moment; counts only grow.

    ``turns`` are the looks of the pool for work, ``spent`` the requests sent, ``commits`` the
    batches committed; ``backlog`` the entries that wait for that, ``queued`` the pages that may be
    asked for next; ``held``: the budget allows no request yet; ``parked`` hosts are not asked.
    """

    turns: int = 0
    spent: int = 0
    commits: int = 0
    backlog: int = 0
    queued: int = 0
    parked: int = 0
    held: bool = False
    store_is_away: bool = False


class Vitality:
    """Looks at the vitals from time to time; ``now`` is in seconds of any clock that only grows."""

    def __init__(self, now: float) -> None:
        self._last = Vitals()
        self._state = State.STARTING
        self._turned_at = self._committed_at = self._asked_at = now

    def look(self, state: State, vitals: Vitals, now: float) -> None:
        """Take notice of what has moved since the last look."""
        last, self._last, self._state = self._last, vitals, state
        waits = vitals.store_is_away or state is not State.FETCHING
        if waits or vitals.held or vitals.turns != last.turns:
            self._turned_at = now
        if vitals.store_is_away or not vitals.backlog or vitals.commits != last.commits:
            self._committed_at = now
        if waits or vitals.held or not vitals.queued or vitals.spent != last.spent:
            self._asked_at = now

    def lifeless(self, now: float) -> str | None:
        """What only a new start can mend; None if it is alive."""
        silent_s = now - self._committed_at
        if silent_s > _COMMITS_WITHIN_S:
            return (
                f"nothing has been committed for {silent_s:.0f} s although {self._last.backlog} "
                "entries wait"
            )
        silent_s = now - self._turned_at
        if silent_s > _TURNS_WITHIN_S:
            return f"the pool has not looked for work for {silent_s:.0f} s"
        return None

    def problems(self, now: float) -> list[str]:
        """What is wrong, in sentences; none if it does what it should."""
        found = []
        if self._state in {State.STARTING, State.STOPPING}:
            found.append(f"it is {self._state}")
        if self._last.store_is_away:
            found.append("the store is unavailable, and fetching is paused until it can be written")
        if lifeless := self.lifeless(now):
            found.append(lifeless)
        idle_s = now - self._asked_at
        if idle_s > _ASKS_WITHIN_S:
            found.append(
                f"nothing has been fetched for {idle_s:.0f} s although pages are due and the "
                f"budget allows it; {self._last.parked} hosts are parked"
            )
        return found
