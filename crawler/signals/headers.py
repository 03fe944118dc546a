"""Times in the headers of a response: the server's clock, its freshness, the page's age.

RFC 9110 (Date, Last-Modified, ETag) and RFC 9111 (Age, Cache-Control, Expires).
"""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from freshet.crawler.lru import LruCache
from freshet.crawler.reduce.page import MAX_HEADER, header_links
from freshet.crawler.signals.dates import Span, span_of
from freshet.crawler.signals.listings import Claimed, Complaints, claimed
from freshet.crawler.urls import is_http, resolve, without_fragment
from freshet.storage.entries import Advertised, ClaimKind, HeaderSigns, Kind, Role
from freshet.storage.records import DueUrl, FetchResult, Observation, Validators

_DAY_S: Final = 86_400.0
#: A Last-Modified this near to the time of the response is that time.
_SAME_MOMENT_S: Final = 5.0
#: RFC 9111, section 1.2.2: a longer time is taken as this, 68 years.
_LONGEST_S: Final = float(2**31)
_DIRECTIVE: Final = re.compile(r'([a-z-]+)(?:\s*=\s*"?(\d{1,20})"?)?', re.IGNORECASE)
_COMPARED: Final = {Kind.UNCHANGED: False, Kind.CHANGED: True}


@dataclass(frozen=True, slots=True)
class Times:
    """The times that a response names, Unix seconds by the clock of the server.

    ``skew_s`` is by how much that clock is at least ahead of ours (negative: behind), 0 where
    the two may agree, None without a Date. ``wish_s`` is the number of seconds for which the server
    wants the response to be used, None where it says nothing.
    """

    skew_s: float | None = None
    modified: Span | None = None
    modified_now: bool | None = None
    wish_s: float | None = None


def times_of(result: FetchResult) -> Times:
    """Return the times of a response; a malformed header is ignored."""
    date = _at(result.header("Date"))
    modified = span_of(result.header("Last-Modified") or "")
    # A cache forwards the Date of the server with the Age of the response.
    answered = None if date is None else date + _seconds(result.header("Age"))
    now = result.started_at + result.duration_s if answered is None else answered
    is_now = None
    if modified is not None:
        moments = (now,) if date is None else (now, date)
        is_now = any(abs(modified.until - at) <= _SAME_MOMENT_S for at in moments)
    skew = None if answered is None else _skew_s(answered, result)
    return Times(skew, modified, is_now, _wish_s(result, date))


def etag_moved(before: Validators, after: str | None) -> bool | None:
    """Return whether the ETag has changed; None where one of the two is missing."""
    if before.etag is None or after is None:
        return None
    return before.etag.removeprefix("W/") != after.removeprefix("W/")


def text_moved(kind: Kind, status: int | None) -> bool | None:
    """Return whether a visit found the page changed; None on the server's word alone (304)."""
    return None if status == 304 else _COMPARED.get(kind)


def _at(text: str | None) -> float | None:
    span = span_of(text) if text else None
    return None if span is None or span.since != span.until else span.since


def _skew_s(date: float, result: FetchResult) -> float:
    """Return the skew; a Date tells whole seconds, of some moment of the request."""
    first, last = result.started_at - 1, result.started_at + result.duration_s
    skew = date - min(max(date, first), last)
    return min(max(skew, -_DAY_S), _DAY_S)


def _wish_s(result: FetchResult, date: float | None) -> float | None:
    said = dict[str, str]()
    for value in result.header_values("Cache-Control"):
        for name, seconds in _DIRECTIVE.findall(value[:1024]):
            said.setdefault(name.lower(), seconds)
    if "no-store" in said or "no-cache" in said:
        return 0.0
    if said.get("max-age"):
        return min(float(said["max-age"]), _LONGEST_S)
    expires = result.header("Expires")
    if expires is None:
        return None
    at = _at(expires)
    # "0" and other dates that are none mean the past.
    now = result.started_at if date is None else date
    return 0.0 if at is None else min(max(0.0, at - now), _LONGEST_S)


def _seconds(text: str | None) -> float:
    return min(float(text), _LONGEST_S) if text and re.fullmatch(r"\d{1,20}", text) else 0.0


# -- signals in headers ------------------------------------------------------
#
# Last-Modified is a signal unless it is, for most responses of the host, the time of the response.

log = logging.getLogger(__name__)

#: Responses whose median gives a host's clock.
_MEASURED: Final = 15
#: Responses after which a host's Last-Modified is judged.
_JUDGED_AFTER: Final = 5
_HOSTS: Final = 20_000
#: A greater skew is logged: it moves the host's claims by minutes.
_TOLD_S: Final = 120.0
_ANSWERS: Final = frozenset({Kind.NEW, Kind.CHANGED, Kind.UNCHANGED})


@dataclass(slots=True)
class _HostAnswers:
    skews: deque[float] = field(default_factory=lambda: deque(maxlen=_MEASURED))
    modified_now: int = 0
    modified_past: int = 0

    @property
    def makes_dates_up(self) -> bool:
        answers = self.modified_now + self.modified_past
        return answers >= _JUDGED_AFTER and self.modified_now > self.modified_past


@dataclass(frozen=True, slots=True)
class HeaderSignals:
    """The change signals of one response; see :class:`~freshet.storage.records.Visit`.

    ``said`` is what a source of ``claim_kind`` claims.
    """

    signs: HeaderSigns | None = None
    wish_s: float | None = None
    claim_kind: ClaimKind | None = None
    said: Claimed = field(default_factory=Claimed)


class HostHeaders:
    """The clocks of hosts, and the signals in the headers of their responses."""

    def __init__(self, complaints: Complaints) -> None:
        self._complaints = complaints
        self._hosts: LruCache[int, _HostAnswers] = LruCache(_HOSTS)

    def skew_s(self, host_id: int) -> float:
        """Return the seconds by which a host's clock is ahead of ours; 0 if not known."""
        known = self._hosts.get(host_id)
        return median(known.skews) if known is not None and known.skews else 0.0

    def signals(
        self,
        due: DueUrl,
        role: Role,
        seen: Observation,
        result: FetchResult,
        said: Claimed | None = None,
    ) -> HeaderSignals:
        """Return the signals of a response: its headers, and the claims that a listing ``said``."""
        if seen.kind not in _ANSWERS:
            return HeaderSignals()
        times = times_of(result)
        known = self._of(due.host_id)
        self._note(known, times, due)
        skew = median(known.skews) if times.skew_s is not None else None
        signs = HeaderSigns(
            skew,
            times.modified_now,
            etag_moved(due.validators, result.header("ETag")),
            text_moved(seen.kind, seen.status),
        )
        if said is not None:
            return HeaderSignals(signs, times.wish_s, ClaimKind(role), said)
        modified = result.header("Last-Modified")
        if role is not Role.PAGE or modified is None or times.modified_now or known.makes_dates_up:
            return HeaderSignals(signs, times.wish_s)
        said = claimed([(due.url, modified)], seen.at, self.skew_s(due.host_id))
        self._complaints.tell(f"Last-Modified of {due.url.split('/')[2]}", said)
        return HeaderSignals(signs, times.wish_s, ClaimKind.LAST_MODIFIED, said)

    def _note(self, known: _HostAnswers, times: Times, due: DueUrl) -> None:
        if times.modified_now is not None:
            known.modified_now += times.modified_now
            known.modified_past += not times.modified_now
        if times.skew_s is None:
            return
        known.skews.append(times.skew_s)
        skew = median(known.skews)
        if abs(skew) >= _TOLD_S and self._complaints.is_new(f"clock {due.host_id}"):
            ahead = "ahead of" if skew > 0 else "behind"
            log.info(
                "%s: the host's clock is %.0f s %s ours; its dates are corrected by that",
                due.url,
                abs(skew),
                ahead,
            )

    def _of(self, host_id: int) -> _HostAnswers:
        known = self._hosts.use(host_id)
        if known is None:
            known = self._hosts[host_id] = _HostAnswers()
        return known


# -- hub links ---------------------------------------------------------------


def advertised(
    headers: Iterable[str], document: Sequence[tuple[str, str]], url: str
) -> Advertised | None:
    """Return the first hub that is named, and the topic: rel=self, else the fetched URL.

    ``headers`` are Link headers, which count first (W3C WebSub, section 4), ``document`` links as
    (relation, reference), found at ``url``.
    """
    named = [
        (token, target)
        for target, parameters in header_links(headers)
        for token in parameters.get("rel", "").lower().split()
    ]
    if not named and not document:
        return None
    hub = _first("hub", named, url) or _first("hub", document, url)
    if hub is None:
        return None
    topic = _first("self", named, url) or _first("self", document, url)
    return Advertised(hub, topic or without_fragment(url))


def _first(relation: str, links: Iterable[tuple[str, str]], base: str) -> str | None:
    for token, reference in links:
        if token == relation:
            url = resolve(reference, base)
            if url is not None and is_http(url) and len(url) <= MAX_HEADER:
                return without_fragment(url)
    return None
