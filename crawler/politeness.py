"""Politeness as a state machine: when may the next exchange with a host start?

Invariant: in every lane, the start of an exchange lies at least the lane's delay after
the end of the one before it, whatever that one was (page, robots.txt, redirect, failure).
Consequence: no server sees requests closer together than configured, from any code path,
because every exchange starts with :meth:`Lane.start` and ends with :meth:`Lane.end`.

Pure: the time and the random generator are arguments; times are Unix seconds.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from math import exp2, inf, log2
from random import Random
from typing import NamedTuple, Protocol

from freshet.crawler.urls import origin, registrable_domain
from freshet.storage.entries import HostState
from freshet.storage.records import DueUrl


@dataclass(frozen=True, slots=True)
class PolitenessRules:
    """How a host is treated; seconds unless the name says otherwise.

    The delay is the largest of ``delay_s``, robots.txt's Crawl-delay up to
    ``crawl_delay_cap_s``, and ``slow_factor`` times the last response time up to
    ``slow_cap_s``. Trouble parks a host for ``back_off_initial_s`` times
    ``back_off_factor`` to the power of the troubles before it, with jitter on top.
    """

    delay_s: float = 1.0
    connections_per_host: int = 1
    crawl_delay_cap_s: float = 60.0
    slow_factor: float = 1.0
    slow_cap_s: float = 30.0
    back_off_initial_s: float = 5.0
    back_off_factor: float = 4.0
    back_off_max_s: float = 21_600.0
    back_off_jitter: float = 0.25
    failures_to_park: int = 3
    retry_after_cap_s: float = 86_400.0
    forbidden_burst: int = 5


class Answer(StrEnum):
    """What an exchange said about its host."""

    FINE = "fine"
    THROTTLED = "throttled"
    FORBIDDEN = "forbidden"
    FAILED = "failed"
    DOWN = "down"


_CONNECTION_FAILURES = frozenset({"dns", "connect", "tls", "not_tls", "timeout_connect"})
_BROKEN_OFF = frozenset({"protocol", "timeout_headers", "timeout_body", "too_slow", "cut_short"})
#: The host's name leads nowhere, for now or for ever.
NO_ADDRESS = frozenset({"address", "no_such_host"})
_NO_EXCHANGE = NO_ADDRESS | {"url"}
#: Doublings beyond this are beyond every cap, and would not fit a float at 1024.
_MOST_DOUBLINGS = 64


def answer_of(status: int | None, reason: str | None, *, lasting: bool = False) -> Answer:
    """Classify an exchange by its status and failure word (see ``FetchResult.reason``).

    No connection at all means that the host is down; a connection that broke (before or
    after the status), or a 5xx, may be this one URL's fault. In a ``lasting`` run a name
    without an address is down, too: it may have one again.
    """
    if status in (429, 503):
        return Answer.THROTTLED
    if status == 403:
        return Answer.FORBIDDEN
    if reason in _CONNECTION_FAILURES:
        return Answer.DOWN
    if reason in _NO_EXCHANGE:
        return Answer.DOWN if lasting and reason in NO_ADDRESS else Answer.FINE
    if status is None or status >= 500 or reason in _BROKEN_OFF:
        return Answer.FAILED
    return Answer.FINE


class BackOff(Protocol):
    """How pauses grow: the first one, by which factor, up to which, and the share of chance."""

    @property
    def back_off_initial_s(self) -> float: ...  # noqa: D102 - the class says it
    @property
    def back_off_factor(self) -> float: ...  # noqa: D102
    @property
    def back_off_max_s(self) -> float: ...  # noqa: D102
    @property
    def back_off_jitter(self) -> float: ...  # noqa: D102


def back_off_s(rules: BackOff, troubles: int, rng: Random) -> float:
    """Return the pause after so many troubles in a row (from 1), jitter included."""
    doublings = min((troubles - 1) * log2(rules.back_off_factor), _MOST_DOUBLINGS)
    pause = min(rules.back_off_initial_s * exp2(doublings), rules.back_off_max_s)
    return pause * (1 + rules.back_off_jitter * rng.random())


class Lane:
    """One politeness key: a host, a domain, an address, or a group of hosts.

    Times are Unix seconds, -inf for never. ``ready_at`` is when the next exchange may start;
    ``parked_until`` is the part of it that trouble asked for, on account of
    ``parked_reason``. ``troubles`` and ``forbidden`` count answers in a row.
    """

    __slots__ = (
        "_inherited_delay_s", "crawl_delay_s", "forbidden", "in_flight", "key", "last_end_at",
        "parked_reason", "parked_until", "ready_at", "response_s", "rng", "rules", "troubles",
    )  # fmt: skip

    def __init__(self, key: str, rules: PolitenessRules, rng: Random) -> None:
        self.key = key
        self.rules = rules
        self.rng = rng
        self.crawl_delay_s = 0.0
        self.in_flight = 0
        self.ready_at = -inf
        self.last_end_at = -inf
        self.response_s = 0.0
        self.troubles = 0
        self.forbidden = 0
        self.parked_until = -inf
        self.parked_reason: str | None = None
        # What an earlier run had learnt of the host counts until the host answers well.
        self._inherited_delay_s = 0.0

    @property
    def delay_s(self) -> float:
        """The pause between two exchanges; doubled by each burst of 403 answers."""
        rules = self.rules
        delay = max(
            rules.delay_s,
            min(self.crawl_delay_s, rules.crawl_delay_cap_s),
            min(self.response_s * rules.slow_factor, rules.slow_cap_s),
            self._inherited_delay_s,
        )
        bursts = min(self.forbidden // rules.forbidden_burst, _MOST_DOUBLINGS)
        if not bursts:
            return delay
        return max(delay, min(max(delay, 1.0) * 2.0**bursts, rules.back_off_max_s))

    @property
    def is_full(self) -> bool:
        """Whether no further connection may be used, whatever the time."""
        return self.in_flight >= self.rules.connections_per_host

    def start(self) -> None:
        """An exchange starts; only where the lane is not full and ``ready_at`` has come."""
        self.in_flight += 1

    def end(
        self, now: float, response_s: float, answer: Answer, retry_after_s: float | None, why: str
    ) -> None:
        """An exchange has ended: decide when the next may start.

        ``response_s`` is the time it took. A Retry-After is obeyed up to a cap, and
        outgrown where the host keeps refusing in spite of it.
        """
        self.in_flight -= 1
        self.last_end_at = max(self.last_end_at, now)
        if answer is not Answer.DOWN:
            self.response_s = response_s
        # What was under way when the lane was parked belongs to the trouble that parked it:
        # it neither counts twice nor says that the trouble is over.
        if now >= self.parked_until:
            self._count(answer)
        pause = self._pause_s(answer, retry_after_s)
        self.ready_at = max(self.ready_at, now + max(pause, self.delay_s))
        if pause > 0 and now + pause >= self.parked_until:
            self.parked_until, self.parked_reason = now + pause, why

    def refused(self, now: float, retry_after_s: float | None, why: str) -> None:
        """An exchange that ended well was a refusal by its content: pause as for a 429."""
        self.start()
        self.end(now, self.response_s, Answer.THROTTLED, retry_after_s, why)

    def obey_crawl_delay(self, crawl_delay_s: float) -> None:
        """Keep this Crawl-delay from now on, after the last exchange already."""
        self.crawl_delay_s = crawl_delay_s
        self.ready_at = max(self.ready_at, self.last_end_at + self.delay_s)

    def restore(self, state: HostState) -> None:
        """Go on as an earlier run left a host of this lane."""
        if state.lane == self.key and state.last_exchange_at < self.last_end_at:
            return
        self.last_end_at = max(self.last_end_at, state.last_exchange_at)
        self._inherited_delay_s = max(self._inherited_delay_s, state.delay_s)
        self.troubles = max(self.troubles, state.failures)
        if state.parked_until is not None and state.parked_until > self.parked_until:
            self.parked_until, self.parked_reason = state.parked_until, state.parked_reason
        self.ready_at = max(self.ready_at, self.last_end_at + self.delay_s, self.parked_until)

    def state(self, host_id: int) -> HostState:
        """What must outlive the process."""
        is_parked = self.parked_until > self.last_end_at
        return HostState(
            host_id, self.key, self.last_end_at, self.delay_s, self.troubles,
            self.parked_until if is_parked else None, self.parked_reason if is_parked else None,
        )  # fmt: skip

    def _count(self, answer: Answer) -> None:
        if answer is Answer.FINE:
            self.troubles = 0
            self.forbidden = 0
            self._inherited_delay_s = 0.0
        elif answer is Answer.FORBIDDEN:
            self.troubles = 0
            self.forbidden += 1
        else:
            self.troubles += 1

    def _pause_s(self, answer: Answer, retry_after_s: float | None) -> float:
        if answer in (Answer.FINE, Answer.FORBIDDEN):
            return 0.0
        asked = min(retry_after_s or 0.0, self.rules.retry_after_cap_s)
        # The first refusal with a Retry-After is obeyed as it stands, and single failures
        # are taken for the URL's own: back-off starts with the troubles after them.
        free = {Answer.THROTTLED: int(asked > 0), Answer.FAILED: self.rules.failures_to_park - 1}
        beyond = self.troubles - free.get(answer, 0)
        return max(asked, back_off_s(self.rules, beyond, self.rng) if beyond > 0 else 0.0)


# -- keys --------------------------------------------------------------------
#
# The politeness key: which hosts share one lane, and so one delay.

_DEFAULT_PORTS = frozenset({80, 443})


class LaneKind(StrEnum):
    """What a lane is shared by."""

    HOST = "host"
    DOMAIN = "domain"
    IP = "ip"


class LaneKeys:
    """Maps origins to lanes: a custom group first, then the chosen kind of key.

    ``groups`` name host patterns (``*.example.org``); ``addresses`` resolves a host name,
    and its first address in sorted order is the key, so that the answer's rotation does
    not matter.
    """

    def __init__(
        self,
        kind: LaneKind,
        groups: Mapping[str, Sequence[str]],
        addresses: Callable[[str], Awaitable[list[str]]],
    ) -> None:
        self._kind = kind
        self._groups = groups
        self._addresses = addresses

    async def key(self, url: str) -> str:
        """The lane of a URL's (or origin's) host."""
        place = origin(url)
        for name, patterns in self._groups.items():
            if any(fnmatchcase(place.host, pattern.lower()) for pattern in patterns):
                return f"group {name}"
        match self._kind:
            case LaneKind.DOMAIN:
                return registrable_domain(place.host)
            case LaneKind.IP:
                return min(await self._addresses(place.host), default=place.host)
            case _:
                # http and https of one name share a lane; another port is another server.
                return place.host if place.port in _DEFAULT_PORTS else f"{place.host}:{place.port}"


# -- retrying ----------------------------------------------------------------
#
# Retries: the one place that says whether and when a failed URL is asked for again.
#
# Pure. A host that is down is the lane's affair: its URLs wait with it and are not charged.
# A URL that fails on a host that answers is charged an attempt, and put behind the others.

_FINAL = frozenset(
    {
        "address", "no_such_host", "too_large", "headers_too_large", "encoding", "tls",
        "bad_redirect", "internal",
    }
)  # fmt: skip


class Retry(NamedTuple):
    """The time of the next try, None for none, and whether it is charged to the URL."""

    at: float | None
    charged: bool


class Retries:
    """Decides on retries; ``attempts`` is how often a URL is tried in one run.

    In a ``lasting`` run URLs of a name without an address wait with their host.
    """

    def __init__(
        self, rules: PolitenessRules, attempts: int, rng: Random, *, lasting: bool = False
    ) -> None:
        self._lasting = lasting
        self._rules = rules
        self._attempts = attempts
        self._rng = rng

    def obey(self, rules: PolitenessRules) -> None:
        """Wait by these rules from now on."""
        self._rules = rules

    def after(self, due: DueUrl, status: int | None, reason: str | None, now: float) -> Retry:
        """Decide on a URL that failed at ``now`` with this status and reason."""
        answer = answer_of(status, reason, lasting=self._lasting)
        return Retry(self._at(due, reason, answer, now), answer is not Answer.DOWN)

    def _at(self, due: DueUrl, reason: str | None, answer: Answer, now: float) -> float | None:
        if self._lasting and reason in NO_ADDRESS:
            return now
        if reason in _FINAL or answer in (Answer.FINE, Answer.FORBIDDEN):
            return None
        if answer is Answer.DOWN:
            return now
        if due.attempt + 1 >= self._attempts:
            return None
        return now + back_off_s(self._rules, due.attempt + 1, self._rng)
