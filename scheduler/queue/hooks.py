"""The run around a recrawl agenda, and its memory: Protocols that are given at construction."""

from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from freshet.scheduler.queue.ranker import Ranker


class AgendaHooks(Protocol):
    """The run around an agenda: its pool, its host queues, its budget and its clock for work."""

    def wake(self) -> None:
        """Begin the next turn at once: work in a thread has ended."""

    def timed(self, work: str) -> AbstractContextManager[None]:
        """Time a piece of work, by its name."""

    def away(self, now: float) -> Collection[int]:
        """Return the hosts (ids) that are unreachable."""

    def saved(self, now: float) -> float:
        """Return how many requests of the budget have been saved."""

    def save(self, most: float) -> None:
        """Save so many requests of the budget at most."""

    def allows(self, now: float) -> bool:
        """Return whether the budget allows a request now."""


class NoHooks(AgendaHooks):
    """An agenda on its own: it is never short of requests, and all hosts can be reached."""

    def wake(self) -> None:
        """Do nothing: nobody waits."""

    def timed(self, work: str) -> AbstractContextManager[None]:
        """Time nothing."""
        del work
        return nullcontext()

    def away(self, now: float) -> Collection[int]:
        """Return no host."""
        del now
        return ()

    def saved(self, now: float) -> float:
        """Return 0."""
        del now
        return 0.0

    def save(self, most: float) -> None:
        """Save nothing."""

    def allows(self, now: float) -> bool:
        """Return True."""
        del now
        return True


class Memory(Protocol):
    """The snapshot of former runs."""

    async def recall(self) -> bool:
        """Read the snapshot; return whether the agenda knows all that the store holds now."""

    def anew(self) -> Ranker:
        """Return a ranker that has learnt nothing."""
