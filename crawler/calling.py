"""Calls: requests that are for no page, sent as politely as any errand, in the budget.

To whom it matters hears the answer before anything else happens, and what he notes of it is
committed with the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

from freshet.crawler.errands import CallErrand
from freshet.crawler.frontier import Frontier
from freshet.storage.records import Entry, FetchResult

#: Hears the answer at a time, and returns what is to be written down.
Heard = Callable[[FetchResult, float], Sequence[Entry]]


class Calls:
    """The calls that wait in the frontier or are under way."""

    def __init__(self, frontier: Frontier) -> None:
        self._frontier = frontier
        self._hearing: dict[int, Heard] = {}
        self._numbers = count(1)

    def __len__(self) -> int:
        return len(self._hearing)

    def place(self, lane: str, url: str, hearing: Heard, *, form: str | None = None) -> None:
        """Ask on this lane as soon as it is polite; post the ``form`` where there is one."""
        number = next(self._numbers)
        self._hearing[number] = hearing
        self._frontier.call(CallErrand(number, url, lane, form))

    def answered(self, errand: CallErrand, result: FetchResult, now: float) -> Sequence[Entry]:
        """A call has been answered; what follows from it for the store."""
        return self._hearing.pop(errand.number)(result, now)
