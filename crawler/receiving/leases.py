"""Subscriptions to hubs as a state machine (W3C WebSub, sections 5 and 6).

Invariant: a hub's verification is confirmed only where this side has asked for just that (mode and
topic) and still waits for it. Consequence: nobody can subscribe us to anything, or end what we
have, without having been asked.

Pure: the time is an argument, in Unix seconds, and ``mint`` gives what cannot be guessed. Methods
return a subscription as it stands from now on where something is to be written down.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from freshet.storage.entries import Advertised, Subscription, SubscriptionState

_HOUR_S: Final = 3_600.0
_DAY_S: Final = 24 * _HOUR_S
#: How long a hub may take to verify what it was asked for; then it is asked again.
_PENDING_S: Final = _HOUR_S
#: A lease is renewed when so much of it has passed.
_RENEWED_AT: Final = 0.8
#: What hubs may say of a lease: less is asked for again after this at the soonest.
_LEAST_RENEWAL_S: Final = 300.0
_LONGEST_LEASE_S: Final = 365 * _DAY_S
_BACK_OFF_S: Final = _HOUR_S
_BACK_OFF_MOST_S: Final = 7 * _DAY_S
_DENIED_S: Final = 7 * _DAY_S
#: A page that names another hub is believed once a day.
_MOVED_AGAIN_S: Final = _DAY_S
_FAREWELLS: Final = 3
#: Redirects of a hub in a row that are followed at once.
_HOPS: Final = 3


@dataclass(frozen=True, slots=True)
class LeaseRules:
    """``lease_s`` is asked for; no more than ``most`` subscriptions, ``of_a_host`` of one host."""

    lease_s: float = 10 * _DAY_S
    most: int = 1_000
    of_a_host: int = 20


class Leases:
    """All subscriptions, by the token in their callback."""

    def __init__(
        self, rules: LeaseRules, mint: Callable[[], str], stored: Iterable[Subscription] = ()
    ) -> None:
        self._rules = rules
        self._mint = mint
        self._by_token = {each.token: each for each in stored}
        self._by_page = {each.page_id: each.token for each in self._by_token.values()}
        self._of_host = Counter(each.host_id for each in self._by_token.values())
        self._moved_at: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self._by_token)

    def of(self, token: str) -> Subscription | None:
        """The subscription whose callback has this token."""
        return self._by_token.get(token)

    def urls(self) -> list[str]:
        """The pages that are subscribed to."""
        return [each.url for each in self._by_token.values()]

    def active(self, now: float) -> int:
        """How many have a lease that runs."""
        return sum(is_live(each, now) for each in self._by_token.values())

    # -- what is wanted ----------------------------------------------------------

    def advertised(
        self, page_id: int, host_id: int, url: str, said: Advertised, now: float
    ) -> Subscription | None:
        """A page names its hub: a subscription that is new, or is with another hub now."""
        token = self._by_page.get(page_id)
        if token is not None:
            return self._moved(self._by_token[token], said, now)
        rules = self._rules
        if len(self) >= rules.most or self._of_host[host_id] >= rules.of_a_host:
            return None
        new = Subscription(
            page_id, host_id, url, said.hub, said.topic, self._mint(), self._mint(), now
        )
        self._of_host[host_id] += 1
        self._by_page[page_id] = new.token
        return self.put(new)

    def _moved(self, known: Subscription, said: Advertised, now: float) -> Subscription | None:
        if known.state is SubscriptionState.LEAVING or said == Advertised(known.hub, known.topic):
            return None
        if now < self._moved_at.get(known.page_id, -_MOVED_AGAIN_S) + _MOVED_AGAIN_S:
            return None
        self._moved_at[known.page_id] = now
        # What the former hub knows must not be of use with another.
        del self._by_token[known.token]
        anew = Subscription(
            known.page_id, known.host_id, known.url, said.hub, said.topic, self._mint(),
            self._mint(), now,
        )  # fmt: skip
        self._by_page[known.page_id] = anew.token
        return self.put(anew)

    def leave(self, is_wanted: Callable[[str], bool], now: float) -> list[Subscription]:
        """End the subscriptions whose page is not wanted any more, and resume the others."""
        changed = []
        for each in list(self._by_token.values()):
            leaving = each.state is SubscriptionState.LEAVING
            if is_wanted(each.url) is leaving:
                state = SubscriptionState.WANTED if leaving else SubscriptionState.LEAVING
                changed.append(self.put(replace(each, state=state, next_at=now, failures=0)))
        return changed

    # -- asking hubs -------------------------------------------------------------

    def due(self, now: float) -> list[Subscription]:
        """Those whose hub is to be asked now, the longest due first."""
        found = [each for each in self._by_token.values() if each.next_at <= now]
        return sorted(found, key=lambda each: (each.next_at, each.page_id))

    def asked(self, token: str, now: float) -> Subscription:
        """The hub is being asked: from now on it may verify, also before it has answered.

        Whatever it answers, it is asked again only after a pause that grows until it verifies.
        """
        known = self._by_token[token]
        failures = known.failures + 1
        return self.put(
            replace(
                known, pending_until=now + _PENDING_S, failures=failures,
                next_at=now + _back_off_s(failures),
            )
        )  # fmt: skip

    def answered(
        self, token: str, now: float, failure: str | None, moved_to: str | None = None
    ) -> Subscription | None:
        """The hub's answer to the request: accepted, moved, or a failure with its reason.

        None where the subscription has ended since, or nothing is to be noted.
        """
        known = self._by_token.get(token)
        if known is None or (failure is None and moved_to is None):
            return None
        follow = moved_to is not None and known.failures <= _HOPS
        return self.put(
            replace(
                known, hub=moved_to or known.hub, next_at=now if follow else known.next_at,
                pending_until=None, detail=failure,
            )
        )  # fmt: skip

    def has_ended(self, subscription: Subscription) -> bool:
        """Whether the farewell was heard, or said often enough: the lease runs out anyway."""
        leaving = subscription.state is SubscriptionState.LEAVING
        return leaving and subscription.failures >= _FAREWELLS

    def forget(self, token: str) -> None:
        """There is no such subscription any more."""
        gone = self._by_token.pop(token)
        del self._by_page[gone.page_id]
        self._of_host[gone.host_id] -= 1

    # -- what hubs say -----------------------------------------------------------

    def verified(
        self, token: str, mode: str, topic: str, lease_s: float | None, now: float
    ) -> Subscription | None:
        """The hub asks whether it was asked; None: it was not.

        ``lease_s`` is what the hub grants, None where it does not say, as for an unsubscription.
        """
        known = self._by_token.get(token)
        if known is None or topic != known.topic or mode != _mode(known):
            return None
        if known.pending_until is None or now > known.pending_until:
            return None
        if mode == "unsubscribe":
            return replace(known, state=SubscriptionState.LEAVING, failures=_FAREWELLS)
        lease_s = min(self._rules.lease_s if lease_s is None else lease_s, _LONGEST_LEASE_S)
        if not lease_s > 0:
            return None
        return self.put(
            replace(
                known, state=SubscriptionState.ACTIVE, pending_until=None,
                lease_until=now + lease_s, failures=0, detail=None,
                next_at=now + max(_RENEWED_AT * lease_s, _LEAST_RENEWAL_S),
            )
        )  # fmt: skip

    def denied(self, token: str, topic: str, reason: str, now: float) -> Subscription | None:
        """The hub says no, at once or later; None: to something that is not ours."""
        known = self._by_token.get(token)
        if known is None or topic != known.topic:
            return None
        failures = known.failures + 1
        return self.put(
            replace(
                known, state=SubscriptionState.DENIED, pending_until=None, lease_until=None,
                failures=failures, detail=reason or "the hub gave no reason",
                next_at=now + _DENIED_S * min(failures, 8),
            )
        )  # fmt: skip

    def request(self, subscription: Subscription, callback: str) -> dict[str, str]:
        """What the hub is told, as the fields of a form."""
        fields = {
            "hub.callback": callback,
            "hub.mode": _mode(subscription),
            "hub.topic": subscription.topic,
        }
        if subscription.state is not SubscriptionState.LEAVING:
            fields["hub.lease_seconds"] = f"{self._rules.lease_s:.0f}"
            fields["hub.secret"] = subscription.secret
        return fields

    def put(self, subscription: Subscription) -> Subscription:
        """Let a subscription that is known stand so."""
        self._by_token[subscription.token] = subscription
        return subscription


def is_live(subscription: Subscription, now: float) -> bool:
    """Whether the hub may send: the lease runs, until its very end."""
    ends_at = subscription.lease_until
    return ends_at is not None and now <= ends_at


def _mode(subscription: Subscription) -> str:
    leaving = subscription.state is SubscriptionState.LEAVING
    return "unsubscribe" if leaving else "subscribe"


def _back_off_s(failures: int) -> float:
    return min(_BACK_OFF_MOST_S, _BACK_OFF_S * 4.0 ** min(failures - 1, 8))
