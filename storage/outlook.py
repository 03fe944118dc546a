"""What a daemon expects, of one page and of all. Pure values.

Others take them from :mod:`freshet.storage.records`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

#: Changes a day from which on a page counts in each class of :attr:`Outlook.changing`.
RATE_CLASSES: Final = (1.0, 1 / 7, 1 / 30, 1 / 365, 0.0)


@dataclass(frozen=True, slots=True)
class Audit:
    """A page that was drawn at random: how likely it is ``expected`` to be stale, and ``since``.

    ``hazard`` is how many changes are expected since.
    """

    importance: float
    since: float
    expected: float
    hazard: float


@dataclass(frozen=True, slots=True)
class CappedLane:
    """A politeness key of which more looks a day are ``wanted`` than it allows at ``most``.

    ``pages`` is how many it has.
    """

    lane: str
    most: float
    wanted: float
    pages: int

    @property
    def refused(self) -> float:
        """Looks a day that go to others."""
        return max(0.0, self.wanted - self.most)


@dataclass(frozen=True, slots=True)
class Discovered:
    """How the looks of an invocation were shared, and what is thought to be there unknown.

    Attributes:
        first_looks: at pages that were never captured.
        revealing_looks: at those worth more for what they might reveal than for what they refresh.
        refreshing_looks: all others.
        unknown_pages: new pages that no look has revealed yet, as expected.
        new_per_day: those that come in a day, as expected.
    """

    first_looks: int = 0
    revealing_looks: int = 0
    refreshing_looks: int = 0
    unknown_pages: float = 0.0
    new_per_day: float = 0.0

    @property
    def share(self) -> float | None:
        """The share of the looks that went to finding pages; None before the first look."""
        found = self.first_looks + self.revealing_looks
        looks = found + self.refreshing_looks
        return found / looks if looks else None


@dataclass(frozen=True, slots=True)
class Outlook:
    """How a daemon stands, and what it expects; an entry for the writer.

    Attributes:
        at: Unix seconds; ``began_at`` those of when this invocation began.
        budget: requests a day, by ``policy``.
        flowed: requests that the budget had room for since ``began_at``; ``forgone`` those of
            them that nothing could be asked with.
        watched: pages; ``captured`` those of which there is a copy, ``gone`` those that are no
            longer there, ``waiting`` those that were found and never fetched.
        stale: the share of the captured pages' importance whose copy is expected to be stale,
            ``harmonic`` the mean of H(N) expected; None where there are none.
        price: what the looks taken last were worth (median); None where the policy has none.
        changing: how many captured pages change at least as often as :data:`RATE_CLASSES` say.
        clocked: the share of the captured pages that go by their site's clock.
        next_at: when the next request may start; ``next_page_id`` what it will be for.
        capped: where politeness allows less than is wanted, the most refused first.
        discovered: what is done to find new pages.
    """

    at: float
    began_at: float
    budget: float
    policy: str
    flowed: float
    forgone: float
    watched: int
    captured: int
    waiting: int
    gone: int
    stale: float | None
    harmonic: float | None
    price: float | None
    changing: tuple[int, ...]
    clocked: float
    next_at: float
    next_page_id: int | None
    capped: tuple[CappedLane, ...] = ()
    discovered: Discovered = Discovered()

    fetches: ClassVar[int] = 0
    targets: ClassVar[None] = None
    host: ClassVar[None] = None
