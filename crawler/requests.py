"""Calls: requests that are for no page, sent as politely as any errand, in the budget.

To whom it matters hears the answer before anything else happens, and what he notes of it is
committed with the call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import count

from freshet.crawler.frontier import CallErrand, Frontier
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


# -- probing -----------------------------------------------------------------
#
# Probing: visits ask for a page that cannot exist, and wait for how their host answers.
#
# The frontier sends a probe as politely as any errand, before the host's next page. A visit
# that waits has ended its own exchange, and so keeps nobody from the network.


class Probing:
    """The probes under way, one for a host; ``waiting`` counts the visits that wait."""

    def __init__(self, frontier: Frontier) -> None:
        self._frontier = frontier
        self._answers: dict[int, asyncio.Future[FetchResult | None]] = {}
        self._asked: Callable[[], None] = lambda: None
        self._is_over = False
        self.waiting = 0

    def listen(self, asked: Callable[[], None]) -> None:
        """Have ``asked`` called whenever the frontier has a new probe."""
        self._asked = asked

    async def ask(self, host_id: int, url: str) -> FetchResult | None:
        """How the host answers; None where robots.txt forbids to ask, or the run ends first.

        A host is asked one thing at a time: who asks meanwhile gets the same answer.
        """
        answer = self._answers.get(host_id)
        if answer is None:
            if self._is_over or not self._frontier.probe(host_id, url):
                return None
            answer = self._answers[host_id] = asyncio.get_running_loop().create_future()
            self._asked()
        self.waiting += 1
        try:
            # Who else waits for this answer must get it, even if this visit is broken off.
            return await asyncio.shield(answer)
        finally:
            self.waiting -= 1

    def answered(self, host_id: int, result: FetchResult) -> None:
        """A probe has been answered."""
        answer = self._answers.pop(host_id, None)
        if answer is not None:
            answer.set_result(result)

    def resume(self) -> None:
        """Errands are sent again."""
        self._is_over = False

    def give_up(self) -> None:
        """No errand is sent any more: who waits goes on without an answer."""
        self._is_over = True
        for answer in self._answers.values():
            answer.set_result(None)
        self._answers.clear()
