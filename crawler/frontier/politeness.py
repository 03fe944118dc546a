"""Politeness: host queues as state machines, their keys, and retries.

Invariant: in every host queue, a request starts at least the queue's delay after the end of the
previous one of any kind (page, robots.txt, redirect, failure). Consequence: no server
sees requests closer together than configured, from any code path, because every request starts with
:meth:`HostQueue.start` and ends with :meth:`HostQueue.end`. Times are Unix seconds.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime, timedelta, tzinfo
from fnmatch import fnmatchcase
from math import exp2, inf, log2
from random import Random
from typing import Final, Literal, Protocol, TypeAlias

from freshet.crawler.urls import origin, registrable_domain
from freshet.storage.entries import NO_CONTENT, HostState, Repeats
from freshet.storage.records import DueUrl


@dataclass(frozen=True, slots=True)
class Hours:
    """Crawl window of a host: minutes after midnight in a time zone.

    An ``end`` that is not after ``start`` is on the next day.
    """

    start: int
    end: int
    zone: tzinfo

    def opens_at(self, now: float) -> float:
        """Return the first time from ``now`` on that lies within the window."""
        local = datetime.fromtimestamp(now, self.zone)
        minute = local.hour * 60 + local.minute
        inside = self.start <= minute < self.end
        if self.end <= self.start:
            inside = minute >= self.start or minute < self.end
        return now if inside else self._next(local, self.start)

    def closes_at(self, now: float) -> float:
        """Return the next time at which the window ends."""
        return self._next(datetime.fromtimestamp(now, self.zone), self.end)

    def _next(self, after: datetime, minute: int) -> float:
        hour, minute = divmod(minute % 1_440, 60)
        moment = after.replace(hour=hour, minute=minute, second=0, microsecond=0)
        # Local time: a day with a change to or from summer time has 23 or 25 hours.
        days = (moment + timedelta(day) for day in range(3))
        return next(day.timestamp() for day in days if day.timestamp() > after.timestamp())


@dataclass(frozen=True, slots=True)
class PolitenessRules:
    """Rules of politeness; names in ``_s`` are in seconds.

    The delay is the largest of ``delay_s``, robots.txt's Crawl-delay up to
    ``crawl_delay_cap_s``, and ``slow_factor`` times the last response time up to
    ``slow_cap_s``. A failure parks a host for ``back_off_initial_s`` times
    ``back_off_factor`` to the power of the failures before it, plus jitter. Requests start within
    all of the ``hours``, if any are set. The delay doubles after each ``forbidden_burst``
    successive 403 responses: one 403 concerns the page, a burst concerns the crawler.
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
    hours: tuple[Hours, ...] = ()

    def opens_at(self, now: float) -> float:
        """Return the first time from ``now`` on that lies within all hours."""
        for _ in range(2 * len(self.hours)):
            later = max(each.opens_at(now) for each in self.hours)
            if later == now:
                break
            now = later
        return now

    def closes_at(self, now: float) -> float:
        """Return the next time at which one of the hours ends; inf without hours."""
        return min((each.closes_at(now) for each in self.hours), default=inf)


#: Maps the default rules and an origin to the rules of that origin.
RulesAt: TypeAlias = Callable[[PolitenessRules, str], PolitenessRules]


def stricter(one: PolitenessRules, other: PolitenessRules) -> PolitenessRules:
    """Return ``one`` with the longer delay, the fewer connections, and the hours of both."""
    return replace(
        one,
        delay_s=max(one.delay_s, other.delay_s),
        connections_per_host=min(one.connections_per_host, other.connections_per_host),
        hours=tuple(dict.fromkeys((*one.hours, *other.hours))),
    )


#: Class of a response by its meaning for the host; ``ours``: the crawler caused the failure.
HostAnswer = Literal["fine", "throttled", "forbidden", "failed", "down", "ours"]

# No connection was made. ``parked_host``: not tried, as the page needs another host, which pauses.
_CONNECTION_FAILURES = frozenset(
    "dns no_resolver no_network connect tls not_tls timeout_connect parked_host".split()
)
_BROKEN_OFF = frozenset("hung_up protocol timeout_headers timeout_body too_slow cut_short".split())
#: The host's name has no address, temporarily or permanently.
NO_ADDRESS = frozenset({"address", "no_such_host"})
_NO_REQUEST = NO_ADDRESS | {"url"}
#: Most failures in a row blamed on single URLs of a host with as many good answers before.
_MOST_DEAD = 20
#: More doublings exceed every cap; 1024 doublings overflow a float.
_MOST_DOUBLINGS = 64


def answer_of(status: int | None, reason: str | None, *, lasting: bool = False) -> HostAnswer:
    """Classify a response by its status and failure word (see ``FetchResult.reason``).

    Without a connection the host is down. A connection that broke (before or after the status)
    or a 5xx may be the fault of this one URL. In a ``lasting`` run a name without an address also
    counts as down, because it may get an address later.
    """
    if status in (429, 503):
        return "throttled"
    if status == 403:
        return "forbidden"
    if reason in _CONNECTION_FAILURES:
        return "down"
    if reason in _NO_REQUEST:
        return "down" if lasting and reason in NO_ADDRESS else "fine"
    if status is None or status >= 500 or reason in _BROKEN_OFF:
        return "failed"
    return "fine"


# -- repeated requests: some servers fail on headers that the crawler adds ----------------------

_DAY_S = 86_400.0
#: Number of pages after which all requests to a host are plain, and how long that lasts for a page
#: or a host: the server may be repaired, and plain requests cost both sides more.
_PLAIN_PAGES = 3
_PLAIN_S = 30 * _DAY_S
#: Number of failed repeats after which a host gets no more of them, and for how long.
_MOST_VAIN = 3
_VAIN_S = _DAY_S


def may_repeat(known: Repeats, now: float) -> bool:
    """Return whether a request to a host that failed may be repeated as a plain one."""
    return known.vain < _MOST_VAIN or now >= known.repeated_at + _VAIN_S


def is_plain_host(known: Repeats, now: float) -> bool:
    """Return whether requests to a host are plain from the first one on."""
    return known.helped >= _PLAIN_PAGES and now < known.repeated_at + _PLAIN_S


def is_plain_page(due: DueUrl, now: float) -> bool:
    """Return whether a page is requested plainly because its last full request failed."""
    plain_at = due.plain_at
    return due.repeat_of is not None or (plain_at is not None and now < plain_at + _PLAIN_S)


def repeated(known: Repeats, *, helped: bool, now: float) -> Repeats:
    """Return the repeat counts of a host after a repeat that ended now."""
    if helped:
        return Repeats(known.helped + 1, 0, now)
    return Repeats(known.helped, known.vain + 1, now)


class _BackOff(Protocol):
    """Exponential back-off: first pause, factor, longest pause, and share of jitter."""

    @property
    def back_off_initial_s(self) -> float: ...
    @property
    def back_off_factor(self) -> float: ...
    @property
    def back_off_max_s(self) -> float: ...
    @property
    def back_off_jitter(self) -> float: ...


def back_off_s(rules: _BackOff, troubles: int, rng: Random) -> float:
    """Return the pause after this number of failures in a row (from 1), with jitter."""
    doublings = min((troubles - 1) * log2(rules.back_off_factor), _MOST_DOUBLINGS)
    pause = min(rules.back_off_initial_s * exp2(doublings), rules.back_off_max_s)
    return pause * (1 + rules.back_off_jitter * rng.random())


@dataclass(slots=True, eq=False)
class HostQueue:
    """Queue of one politeness key: a host, a domain, an address, or a group of hosts.

    ``ready_at`` is the time at which the next request may start, ``parked_until`` the end of the
    pause for ``parked_reason`` (-inf: never). ``troubles`` counts consecutive failures, the first
    of them at ``failing_since``; ``forbidden`` counts consecutive 403 responses. ``answered`` is
    the number of good responses minus failures, from 0 to 20.
    """

    key: str
    rules: PolitenessRules
    rng: Random
    crawl_delay_s: float = 0.0
    in_flight: int = 0
    ready_at: float = -inf
    last_end_at: float = -inf
    response_s: float = 0.0
    troubles: int = 0
    failing_since: float = -inf
    forbidden: int = 0
    answered: int = 0
    parked_until: float = -inf
    parked_reason: str | None = None
    # The delay of an earlier run applies until the first good response.
    _inherited_delay_s: float = field(default=0.0, init=False)

    @property
    def delay_s(self) -> float:
        """The pause between two requests; doubled by each burst of 403 responses."""
        rules = self.rules
        slow_s = min(self.response_s * rules.slow_factor, rules.slow_cap_s)
        wanted_s = min(self.crawl_delay_s, rules.crawl_delay_cap_s)
        delay = max(rules.delay_s, wanted_s, slow_s, self._inherited_delay_s)
        if self.forbidden < rules.forbidden_burst:
            return delay
        bursts = min(self.forbidden // rules.forbidden_burst, _MOST_DOUBLINGS)
        return max(delay, min(max(delay, 1.0) * 2.0**bursts, rules.back_off_max_s))

    @property
    def is_full(self) -> bool:
        """True if the connection limit is reached."""
        return self.in_flight >= self.rules.connections_per_host

    def start(self) -> None:
        """Start a request. Call only if the queue is not full and ``ready_at`` has passed."""
        self.in_flight += 1

    def end(
        self,
        now: float,
        response_s: float,
        answer: HostAnswer,
        retry_after_s: float | None,
        why: str,
    ) -> None:
        """End a request that took ``response_s``, and set the time of the next one."""
        self.in_flight -= 1
        self.last_end_at = max(self.last_end_at, now)
        if answer not in ("down", "ours"):
            self.response_s = response_s
        self.heed(now, answer, retry_after_s, why)
        self.ready_at = max(self.ready_at, now + self.delay_s)

    def heed(self, now: float, answer: HostAnswer, retry_after_s: float | None, why: str) -> None:
        """Count an answer, and pause the queue if the answer requires it.

        Retry-After is obeyed up to a cap. Repeated refusals lead to longer pauses.
        """
        # A request that was under way when the queue was parked belongs to the same failure:
        # it is not counted, and does not end the pause.
        if now >= self.parked_until and answer != "ours":
            self._count(answer, now)
        pause = self._pause_s(answer, retry_after_s)
        self.ready_at = max(self.ready_at, now + pause)
        if pause > 0 and now + pause >= self.parked_until:
            self.parked_until, self.parked_reason = now + pause, why

    def owe(self, now: float, requests: int) -> None:
        """Charge the queue the delay of ``requests`` requests that were made at once."""
        self.ready_at = max(self.ready_at, now) + requests * self.delay_s

    def obey_crawl_delay(self, crawl_delay_s: float) -> None:
        """Apply this Crawl-delay, counted from the end of the last request."""
        self.crawl_delay_s = crawl_delay_s
        self.ready_at = max(self.ready_at, self.last_end_at + self.delay_s)

    def restore(self, state: HostState) -> None:
        """Continue from the state that an earlier run left for a host of this queue."""
        last_end_at = -inf if state.last_exchange_at is None else state.last_exchange_at
        if state.queue == self.key and last_end_at < self.last_end_at:
            return
        self.last_end_at = max(self.last_end_at, last_end_at)
        self._inherited_delay_s = max(self._inherited_delay_s, state.delay_s)
        self.troubles = max(self.troubles, state.failures)
        if state.parked_until is not None and state.parked_until > self.parked_until:
            self.parked_until, self.parked_reason = state.parked_until, state.parked_reason
        self.ready_at = max(self.ready_at, self.last_end_at + self.delay_s, self.parked_until)

    def hold(self, since: float) -> None:
        """Wait for the delay from ``since``: the end of the last request is unknown."""
        self.ready_at = max(self.ready_at, since + self.delay_s)

    def rest(self, until: float) -> None:
        """Wait until a time: the cause of the last failure is not known yet."""
        self.ready_at = max(self.ready_at, until)

    def release(self, since: float) -> None:
        """Wait for the delay only; drop failures that began at ``since`` or later."""
        if self.troubles and self.failing_since >= since:
            self.troubles = 0
            self.parked_until, self.parked_reason = -inf, None
        self.ready_at = max(self.last_end_at + self.delay_s, self.parked_until)

    def shift(self, by: float) -> None:
        """Shift all times by a jump of the clock; pauses keep their length."""
        self.ready_at += by
        self.failing_since += by
        self.last_end_at += by
        self.parked_until += by

    def state(self, host_id: int) -> HostState:
        """Return the state that must outlive the process."""
        is_parked = self.parked_until > self.last_end_at
        return HostState(
            host_id=host_id,
            queue=self.key,
            last_exchange_at=None if self.last_end_at == -inf else self.last_end_at,
            delay_s=self.delay_s,
            failures=self.troubles,
            parked_until=self.parked_until if is_parked else None,
            parked_reason=self.parked_reason if is_parked else None,
        )

    def _count(self, answer: HostAnswer, now: float) -> None:
        if answer == "fine":
            self.answered = min(max(self.answered - self.troubles, 0) + 1, _MOST_DEAD)
            self.troubles = 0
            self.forbidden = 0
            self._inherited_delay_s = 0.0
        elif answer == "forbidden":
            self.troubles = 0
            self.forbidden += 1
        else:
            self.failing_since = self.failing_since if self.troubles else now
            self.troubles += 1

    def _pause_s(self, answer: HostAnswer, retry_after_s: float | None) -> float:
        if answer in ("fine", "forbidden", "ours"):
            return 0.0
        wanted_s = min(retry_after_s or 0.0, self.rules.retry_after_cap_s)
        # The first refusal with a Retry-After is obeyed exactly, and failures are taken for
        # the URLs' own, of a host that has answered well for longer: back-off starts after them.
        free: dict[HostAnswer, int] = {
            "throttled": int(wanted_s > 0),
            "failed": max(self.rules.failures_to_park, self.answered) - 1,
        }
        beyond = self.troubles - free.get(answer, 0)
        return max(wanted_s, back_off_s(self.rules, beyond, self.rng) if beyond > 0 else 0.0)


# -- keys of host queues -----------------------------------------------------

_DEFAULT_PORTS = frozenset({80, 443})


#: The unit that has one queue, and so one delay.
QueueKind = Literal["host", "domain", "ip"]


def group_of(host: str, groups: Mapping[str, Sequence[str]]) -> str | None:
    """Return the first group with a pattern (``*.example.org``) that matches a host, or None."""
    found = (
        name
        for name, patterns in groups.items()
        if any(fnmatchcase(host, pattern.lower()) for pattern in patterns)
    )
    return next(found, None)


class HostQueues(Protocol):
    """The host queues of a run."""

    async def queue_key(self, url: str, /) -> str:
        """Return the politeness key of a URL's host."""


async def queue_key(
    url: str,
    kind: QueueKind,
    groups: Mapping[str, Sequence[str]],
    addresses: Callable[[str], Awaitable[list[str]]],
) -> str:
    """Return the queue key of a URL's (or origin's) host: a custom group, or a key of this kind.

    ``groups`` maps names to host patterns (``*.example.org``); ``addresses`` resolves a host name.
    The lowest address is the key, so the order of the DNS answer does not matter.
    """
    place = origin(url)
    if (name := group_of(place.host, groups)) is not None:
        return f"group {name}"
    match kind:
        case "domain":
            return registrable_domain(place.host)
        case "ip":
            return min(await addresses(place.host), default=place.host)
        case "host":
            # http and https of a name share a queue; other ports are taken for other servers.
            return place.host if place.port in _DEFAULT_PORTS else f"{place.host}:{place.port}"


# -- retries -----------------------------------------------------------------
#
# The URLs of a host that is down wait with its queue, and no attempt is counted. If a host
# answers and a URL fails, the attempt is counted and the URL moves behind the others.

_FINAL = frozenset(
    {
        "address", "no_such_host", "too_large", "headers_too_large", "encoding", "tls",
        "bad_redirect", "internal", "content_type", "http_204", "http_205",
    }
)  # fmt: skip


@dataclass(slots=True, eq=False)
class Retries:
    """Decides on retries; a URL is tried ``attempts`` times in one run.

    In a ``lasting`` run URLs of a name without an address wait with their host.
    """

    rules: PolitenessRules
    attempts: int
    rng: Random
    _: KW_ONLY
    lasting: bool = False

    def after(
        self, due: DueUrl, status: int | None, reason: str | None, now: float
    ) -> tuple[float | None, bool]:
        """Decide on a URL that failed at ``now`` with this status and reason.

        Return the time of the next attempt (None: no more), and whether this attempt counts.
        """
        answer = answer_of(status, reason, lasting=self.lasting)
        return self._at(due, reason, answer, now), answer != "down"

    def _at(self, due: DueUrl, reason: str | None, answer: HostAnswer, now: float) -> float | None:
        if self.lasting and reason in NO_ADDRESS:
            return now
        # A page that had content before may have it again at the next attempt.
        is_lost = reason in NO_CONTENT and due.digests is not None
        is_answer = answer in ("fine", "forbidden") and reason != "browser" and not is_lost
        if reason in _FINAL or is_answer:
            return None
        if answer == "down":
            return now
        if due.attempt + 1 >= self.attempts:
            return None
        return now + back_off_s(self.rules, due.attempt + 1, self.rng)


_KEPT_S: Final = 30.0
_AHEAD_S: Final = 3_600.0
_LEAST_AHEAD: Final = 2.0
#: Floats near the present Unix time are 2e-7 s apart: a request due within this time is due.
_CLOCK_S: Final = 1e-6


class Pacer:
    """A token bucket; ``per_day`` is the budget (inf: no limit), ``now`` in seconds.

    The bucket starts empty: the first request waits for its share of the day.

    Attributes:
        spent: requests started.
        forgone: unused budget: requests that were allowed while no host could take one.
        saves: largest number of requests that is kept for a crawl window; 0: no saving.

    Raises:
        ValueError: if the budget is not above 0.

    >>> pacer = Pacer(86_400 / 100, now=0)  # one in 100 seconds
    >>> pacer.allows(99), pacer.allows_at(99), pacer.allows(100)
    (False, 100.0, True)
    """

    def __init__(self, per_day: float, now: float) -> None:
        self.spent = 0
        self.forgone = self.saves = 0.0
        self._at = now
        self._balance = 0.0
        self._set(per_day)

    def _set(self, per_day: float) -> None:
        if not per_day > 0:
            raise ValueError(f"per_day is {per_day!r}; it must be above 0")
        self._per_s = per_day / _DAY_S
        self._reserve = self._most = max(1.0, self._per_s * _KEPT_S)
        self._ahead = max(_LEAST_AHEAD, self._per_s * _AHEAD_S)
        self._enough = 1.0 - min(0.5, 1e-9 + self._per_s * _CLOCK_S)

    @property
    def per_day(self) -> float:
        """The budget in force."""
        return self._per_s * _DAY_S

    def change(self, per_day: float, now: float) -> None:
        """Change the budget, which must be above 0; the balance stays."""
        self._flow(now)
        self._set(per_day)

    def save(self, most: float) -> None:
        """Keep up to ``most`` unused requests, but at least half a minute's."""
        self.saves = most
        self._most = max(self._reserve, most)

    def saved(self, now: float) -> float:
        """Return the number of requests that may start now."""
        self._flow(now)
        return max(0.0, self._balance)

    def flowed(self, now: float) -> float:
        """Return the number of requests that the budget has allowed since the start."""
        self._flow(now)
        return self.spent + self.forgone + self._balance

    def allows(self, now: float) -> bool:
        """Return whether a request may start."""
        if self._per_s == inf:
            return True
        self._flow(now)
        return self._balance >= self._enough

    def allows_at(self, now: float) -> float:
        """Return the time at which the next request may start, if no other starts before."""
        if self.allows(now):
            return now
        return now + (1.0 - self._balance) / self._per_s

    def presses_at(self, now: float, overdue_at: float) -> float:
        """Return when a visit that is overdue at ``overdue_at`` may start ahead of the budget."""
        self._flow(now)
        balance = self._balance + self._ahead
        allowed_at = -inf if balance >= self._enough else now + (1.0 - balance) / self._per_s
        return max(overdue_at, allowed_at)

    def started(self, requests: int = 1) -> None:
        """Count a request that has started, or several."""
        self.spent += requests
        if self._per_s < inf:
            self._balance -= requests

    def put_back(self) -> None:
        """Refund a request that was counted as started and was not made."""
        self.spent -= 1
        if self._per_s < inf:
            self._balance += 1.0

    def shift(self, by: float) -> None:
        """Shift all times by a jump of the clock."""
        self._at += by

    def _flow(self, now: float) -> None:
        # A clock that was set back does not change the balance.
        balance = self._balance + max(0.0, now - self._at) * self._per_s
        self._at = now
        # Saved requests are kept when ``save`` lowers the limit.
        self._balance = min(balance, max(self._most, self._balance))
        self.forgone += balance - self._balance
