"""The nouns of WebSub: what a page advertises, and what is agreed with its hub. Pure values.

Others take them from :mod:`freshet.storage.records`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from freshet.storage.host_state import HostState


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
