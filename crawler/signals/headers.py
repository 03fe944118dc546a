"""Times in response headers: the server's clock, freshness lifetime, and Last-Modified.

RFC 9110 (Date, Last-Modified, ETag) and RFC 9111 (Age, Cache-Control, Expires).
"""

import logging
import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final, Protocol

from freshet.crawler.fetch.bounds import LruCache
from freshet.crawler.reduce.page import MAX_HEADER, header_links
from freshet.crawler.signals.dates import span_of
from freshet.crawler.signals.listings import Complaints, SourceClaims, claimed
from freshet.crawler.urls import is_http, origin, resolve, without_fragment
from freshet.entry_points import loaded
from freshet.storage.entries import Claim, ClaimKind, HeaderSigns, HubLink, Kind, Role, SourceReport
from freshet.storage.records import DueUrl, FetchResult, Observation, Validators

_DAY_S: Final = 86_400.0
#: A Last-Modified within this distance of the response's time counts as equal to it.
_SAME_MOMENT_S: Final = 5.0
#: RFC 9111, section 1.2.2: longer times are cut to this (68 years).
_LONGEST_S: Final = float(2**31)
_AGE: Final = re.compile(r"\d{1,20}")
_DIRECTIVE: Final = re.compile(r'([a-z-]+)(?:\s*=\s*"?(\d{1,20})"?)?', re.IGNORECASE)
_COMPARED: Final = {"unchanged": False, "changed": True}


def clock_skew_s(result: FetchResult) -> float | None:
    """Return a lower bound of the seconds by which the server's clock is ahead (negative: behind).

    0 if the clocks may agree; None without a Date.
    """
    answered = _answered_at(result)
    if answered is None:
        return None
    # Date has whole seconds, and may be of any moment during the request.
    first, last = result.started_at - 1, result.started_at + result.duration_s
    if first <= answered <= last:
        return 0.0
    skew = answered - (first if answered < first else last)
    return min(max(skew, -_DAY_S), _DAY_S)


def is_modified_now(result: FetchResult) -> bool | None:
    """Return whether Last-Modified is the time of the response; None without a Last-Modified."""
    text = result.header("Last-Modified")
    modified = span_of(text) if text else None
    if modified is None:
        return None
    times = (_at(result.header("Date")), _answered_at(result))
    moments = [at for at in times if at is not None] or [result.started_at + result.duration_s]
    return any(abs(modified[1] - at) <= _SAME_MOMENT_S for at in moments)


def etag_moved(before: Validators, after: str | None) -> bool | None:
    """Return whether the ETag has changed; None if one of the two is missing."""
    if before.etag is None or after is None:
        return None
    return before.etag.removeprefix("W/") != after.removeprefix("W/")


def text_moved(kind: Kind, status: int | None) -> bool | None:
    """Return whether a visit compared the page and found a change; None for a 304."""
    return None if status == 304 else _COMPARED.get(kind)


def _at(text: str | None) -> float | None:
    span = span_of(text) if text else None
    return None if span is None or span[0] != span[1] else span[0]


def _answered_at(result: FetchResult) -> float | None:
    """Return the time of the response by the server's clock, or None without a Date."""
    date = _at(result.header("Date"))
    # A cache forwards the Date of the server with the Age of the response.
    age = result.header("Age") or ""
    age_s = min(float(age), _LONGEST_S) if age and _AGE.fullmatch(age) else 0.0
    return None if date is None else date + age_s


def wish_s(result: FetchResult) -> float | None:
    """Return the freshness lifetime of a response in seconds, or None if no header states one."""
    directives = dict[str, str]()
    for value in result.header_values("Cache-Control"):
        for name, seconds in _DIRECTIVE.findall(value[:1024]):
            directives.setdefault(name.lower(), seconds)
    if "no-store" in directives or "no-cache" in directives:
        return 0.0
    if directives.get("max-age"):
        return min(float(directives["max-age"]), _LONGEST_S)
    expires = result.header("Expires")
    if expires is None:
        return None
    at = _at(expires)
    # "0" and other invalid dates mean the past.
    date = _at(result.header("Date"))
    now = result.started_at if date is None else date
    return 0.0 if at is None else min(max(0.0, at - now), _LONGEST_S)


# -- signals in headers ------------------------------------------------------
#
# Last-Modified is a signal unless it equals the time of the response for most of the host's
# responses.

log = logging.getLogger(__name__)

#: Number of responses over which the median of a host's clock skew is taken.
_MEASURED: Final = 15
#: Number of responses after which the Last-Modified of a host is judged.
_JUDGED_AFTER: Final = 5
_HOSTS: Final = 20_000
#: A larger skew is logged, as it shifts the host's claims by minutes.
_REPORTED_S: Final = 120.0
_ANSWERS: Final = frozenset({"new", "changed", "unchanged"})


#: Group of entry points that provide a :class:`SignalReader`.
READERS: Final = "freshet.signals"


class SignalReader(Protocol):
    """Function that extracts change times of pages from a response."""

    def __call__(self, url: str, result: FetchResult, /) -> Iterable[Claim]:
        """Return claims: pages and the times of their changes by our clock.

        Claims on pages that the store does not have are ignored. Each host of each reader is a
        source; its reliability is estimated from visits.
        """


@dataclass(slots=True)
class _HostAnswers:
    skews: deque[float] = field(default_factory=lambda: deque(maxlen=_MEASURED))
    modified_now: int = 0
    modified_past: int = 0

    @property
    def makes_dates_up(self) -> bool:
        answers = self.modified_now + self.modified_past
        return answers >= _JUDGED_AFTER and self.modified_now > self.modified_past


class HostHeaders:
    """Clock skews of hosts, and change signals in the headers of their responses."""

    def __init__(self, complaints: Complaints) -> None:
        self._complaints = complaints
        self._readers: Mapping[str, SignalReader] = loaded(READERS)
        self._hosts: LruCache[int, _HostAnswers] = LruCache(_HOSTS)

    def skew_s(self, host_id: int) -> float:
        """Return the seconds by which a host's clock is ahead of ours; 0 if unknown."""
        known = self._hosts.get(host_id)
        return median(known.skews) if known is not None and known.skews else 0.0

    def signals(
        self,
        due: DueUrl,
        role: Role,
        seen: Observation,
        result: FetchResult,
        said: SourceClaims | None = None,
    ) -> tuple[HeaderSigns | None, float | None, SourceReport | None]:
        """Return a response's header signs, its freshness lifetime in seconds, and its claims.

        The claims come from the listing (``said``), else from a :class:`SignalReader`, else from
        the page's Last-Modified.
        """
        if seen.kind not in _ANSWERS:
            return None, None, None
        known = self._hosts.use(due.host_id) or _HostAnswers()
        self._hosts[due.host_id] = known
        skew, is_now = clock_skew_s(result), is_modified_now(result)
        signs = HeaderSigns(
            self._note(known, skew, is_now, due),
            is_now,
            etag_moved(due.validators, result.header("ETag")),
            text_moved(seen.kind, seen.status),
        )
        if said is not None:
            kind: ClaimKind = "sitemap" if role == "sitemap" else "feed"
            own = SourceReport(
                kind, due.host_id, due.url, said.claims, said.rejected, page_id=due.page_id
            )
            return signs, wish_s(result), own
        if role != "page":
            return signs, wish_s(result), None
        read = self._read(due, result, seen.at)
        if read is None and not (is_now or known.makes_dates_up):
            read = self._modified(due, result, seen.at)
        return signs, wish_s(result), read

    def _read(self, due: DueUrl, result: FetchResult, at: float) -> SourceReport | None:
        """Return the claims of the first reader that returns any."""
        for name, reader in self._readers.items():
            if claims := tuple(reader(due.url, result)):
                source, known = f"{origin(due.url)}#{name}", [it for it in claims if it.until <= at]
                rejected = len(claims) - len(known)
                return SourceReport("ping", due.host_id, source, tuple(known), rejected)
        return None

    def _modified(self, due: DueUrl, result: FetchResult, at: float) -> SourceReport | None:
        """Return the claim of a page's Last-Modified; its source is the host."""
        modified = result.header("Last-Modified")
        if modified is None:
            return None
        said = claimed([(due.url, modified)], at, self.skew_s(due.host_id))
        self._complaints.tell(f"Last-Modified of {due.url.split('/')[2]}", said)
        return SourceReport("last_modified", due.host_id, None, said.claims, said.rejected)

    def _note(
        self, known: _HostAnswers, skew: float | None, is_now: bool | None, due: DueUrl
    ) -> float | None:
        """Record a response; return the clock skew of its host, or None without a Date."""
        if is_now is not None:
            known.modified_now += is_now
            known.modified_past += not is_now
        if skew is None:
            return None
        known.skews.append(skew)
        usual = median(known.skews)
        if abs(usual) >= _REPORTED_S and self._complaints.is_new(f"clock {due.host_id}"):
            log.info(
                "%s: the host's clock is %.0f s %s ours; its dates are corrected by that",
                due.url,
                abs(usual),
                "ahead of" if usual > 0 else "behind",
            )
        return usual


# -- hub links ---------------------------------------------------------------


def advertised(
    headers: Iterable[str], document: Sequence[tuple[str, str]], url: str
) -> HubLink | None:
    """Return the first hub and the topic: rel=self, else the fetched URL. None without a hub.

    ``headers`` are Link headers, which take precedence (W3C WebSub, section 4). ``document`` are
    the links (relation, reference) of the document at ``url``.
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
    return HubLink(hub, topic or without_fragment(url))


def _first(relation: str, links: Iterable[tuple[str, str]], base: str) -> str | None:
    for token, reference in links:
        if token == relation:
            url = resolve(reference, base)
            if url is not None and is_http(url) and len(url) <= MAX_HEADER:
                return without_fragment(url)
    return None
