"""What later visits say of earlier ones, and of other pages. Pure values.

Others take them from :mod:`freshet.storage.records`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from math import inf
from typing import TYPE_CHECKING, ClassVar, Final

from freshet.storage.words import Kind, RobotsStanding, Rung


@dataclass(frozen=True, slots=True)
class Amendment:
    """An earlier observation of a page, made at ``at``, in the light of later ones."""

    at: float
    kind: Kind
    rung: Rung
    reason: str


@dataclass(frozen=True, slots=True)
class Retraction:
    """A page's last capture, made at ``at`` (None: whenever), was no content: ``reason`` says."""

    page_id: int
    at: float | None
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class CopyFinding:
    """A page of a ``pattern`` says what another one says; ``original_id`` is None if none does.

    One that ``is_barren`` shows nothing but what others show, that one most of it: it counts for a
    page of its own if it leads to pages that were not known.
    """

    page_id: int
    pattern: str
    original_id: int | None
    is_barren: bool = False


# -- host state --------------------------------------------------------------
#
# What is remembered of hosts: politeness, robots.txt, and what their headers are worth.
#
# Others take them from :mod:`freshet.storage.records`.


@dataclass(frozen=True, slots=True)
class RobotsRecord:
    """One origin's robots.txt as last fetched; ``body`` is already cut to the limit.

    ``stale_since`` is set while an older copy is used because the file is unreachable.
    """

    standing: RobotsStanding
    fetched_at: float
    body: bytes = b""
    reason: str | None = None
    stale_since: float | None = None


@dataclass(frozen=True, slots=True)
class HostState:
    """What politeness must remember of one host across runs."""

    host_id: int
    lane: str
    last_exchange_at: float
    delay_s: float
    failures: int = 0
    parked_until: float | None = None
    parked_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Host:
    """A host (scheme, name and port) as the frontier takes it from the store."""

    host_id: int
    origin: str
    state: HostState | None = None
    robots: RobotsRecord | None = None


@dataclass(frozen=True, slots=True)
class HeaderSigns:
    """What the headers of one answer show of its host.

    ``skew_s`` is by how much the host's clock is ahead of ours as measured until now, None
    where nothing was measured. ``modified_now`` says whether Last-Modified was the time of the
    answer; ``etag_moved`` whether the ETag is another one, ``text_moved`` whether the page
    has changed: None where there is nothing to compare.
    """

    skew_s: float | None = None
    modified_now: bool | None = None
    etag_moved: bool | None = None
    text_moved: bool | None = None


# -- signals -----------------------------------------------------------------
#
# What others say of when pages changed. Pure values; never mixed with own observations.
#
# Others take them from :mod:`freshet.storage.records`.

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class ClaimKind(StrEnum):
    """Who says it: a sitemap, a feed, the header of an answer, a hub, or whoever pings."""

    SITEMAP = "sitemap"
    FEED = "feed"
    LAST_MODIFIED = "last_modified"
    WEBSUB = "websub"
    PING = "ping"


CLAIM_KINDS: Final = tuple(ClaimKind)  # in the order of their codes in columns


@dataclass(frozen=True, slots=True)
class Claim:
    """The page at ``url`` (canonical) changed last at some time in [``since``, ``until``].

    Unix seconds; they are equal where the source is exact. Raises ValueError for times that are
    not finite or not in order.
    """

    url: str
    since: float
    until: float

    def __post_init__(self) -> None:
        if not -inf < self.since <= self.until < inf:
            raise ValueError(f"no time is in [{self.since}, {self.until}]: {self.url}")


@dataclass(frozen=True, slots=True, eq=False)
class Claims:
    """m claims, in the order in which they were received.

    Attributes:
        source_id: (m,), id in table ``claim_source``.
        kind: (m,), place of the source's kind in :data:`CLAIM_KINDS`.
        page_id: (m,), the page as which the claimed URL stands: its target, where it has moved
            there for good.
        since, until: (m,), Unix seconds by our clock, between which the page changed last; not
            after ``received_at``.
        received_at: (m,), Unix seconds.
    """

    source_id: NDArray[np.int64]
    kind: NDArray[np.int8]
    page_id: NDArray[np.int64]
    since: NDArray[np.float64]
    until: NDArray[np.float64]
    received_at: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.source_id)


@cache
def no_claims() -> Claims:
    """Return no claims at all."""
    import numpy as np  # noqa: PLC0415  # the parser's process starts without it

    times = np.empty(0)
    return Claims(
        source_id=np.empty(0, np.int64), kind=np.empty(0, np.int8), page_id=np.empty(0, np.int64),
        since=times, until=times, received_at=times,
    )  # fmt: skip


# -- subscribing -------------------------------------------------------------
#
# The nouns of WebSub: what a page advertises, and what is agreed with its hub. Pure values.
#
# Others take them from :mod:`freshet.storage.records`.


class SubscriptionState(StrEnum):
    """How a subscription stands with its hub.

    ``WANTED``: none yet, or no longer; the hub is asked. ``ACTIVE``: verified, its lease runs.
    ``DENIED``: the hub said no. ``LEAVING``: to be ended.
    """

    WANTED = "wanted"
    ACTIVE = "active"
    DENIED = "denied"
    LEAVING = "leaving"


@dataclass(frozen=True, slots=True)
class Advertised:
    """A page's hub and the topic as which the hub knows it; URLs."""

    hub: str
    topic: str


@dataclass(frozen=True, slots=True)
class Subscription:
    """The subscription to a page's topic at its hub.

    ``token`` names it in the callback's path, ``secret`` signs what comes; both cannot be guessed.
    ``pending_until``: until then the hub may verify what it was asked for last. ``lease_until``
    is None before the first verification. ``next_at`` is when the hub is asked (again).
    """

    page_id: int
    host_id: int
    url: str
    hub: str
    topic: str
    token: str
    secret: str
    next_at: float
    state: SubscriptionState = SubscriptionState.WANTED
    pending_until: float | None = None
    lease_until: float | None = None
    failures: int = 0
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class SubscriptionNoted:
    """A subscription as it stands from now on; ``ended``: there is none any more."""

    subscription: Subscription
    at: float
    ended: bool = False
    fetches: int = 0
    targets: None = None
    host: HostState | None = None


@dataclass(frozen=True, slots=True)
class Called:
    """A request was made that is for no page: to a hub, or for the key of a ping."""

    at: float
    fetches: int = 1
    targets: None = None
    host: HostState | None = None


# -- outlook -----------------------------------------------------------------
#
# What a daemon expects, of one page and of all. Pure values.
#
# Others take them from :mod:`freshet.storage.records`.

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
