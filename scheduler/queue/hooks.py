"""Protocols by which a recrawl agenda calls the run around it and the snapshots of former runs."""

from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from freshet.scheduler.queue.ranker import Ranker


class AgendaHooks(Protocol):
    """The run around an agenda: its pool, its host queues, its budget and its timing of work."""

    def wake(self) -> None:
        """Begin the next round at once, because work in a thread has ended."""

    def timed(self, work: str) -> AbstractContextManager[None]:
        """Time a piece of work under this name."""

    def away(self, now: float) -> Collection[int]:
        """Return the hosts (ids) that are unreachable."""

    def saved(self, now: float) -> float:
        """Return the number of requests saved from the budget."""

    def save(self, most: float) -> None:
        """Allow at most this many requests of the budget to be saved."""

    def allows(self, now: float) -> bool:
        """Return whether the budget allows a request now."""


class NoHooks(AgendaHooks):
    """Hooks of an agenda without a run: requests are unlimited, and all hosts are reachable."""

    def wake(self) -> None:
        """Do nothing: no task is waiting."""

    def timed(self, work: str) -> AbstractContextManager[None]:
        """Return a context manager that does not measure."""
        del work
        return nullcontext()

    def away(self, now: float) -> Collection[int]:
        """Return an empty collection."""
        del now
        return ()

    def saved(self, now: float) -> float:
        """Return 0."""
        del now
        return 0.0

    def save(self, most: float) -> None:
        """Do nothing."""

    def allows(self, now: float) -> bool:
        """Return True."""
        del now
        return True


class Memory(Protocol):
    """The stored snapshot of a former run."""

    async def recall(self) -> bool:
        """Read the snapshot; return whether the agenda now has all data of the store."""

    def anew(self) -> Ranker:
        """Return a new ranker without data."""
