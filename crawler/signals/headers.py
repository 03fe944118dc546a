"""What the headers of one answer say of time: the server's clock, its wish, the page's age.

RFC 9110 (Date, Last-Modified, ETag) and RFC 9111 (Age, Cache-Control, Expires).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from freshet.crawler.signals.lastmod import Span, span_of
from freshet.storage.records import FetchResult, Validators
from freshet.storage.words import Kind

_DAY_S: Final = 86_400.0
#: A Last-Modified this near to the time of the answer is that time.
_SAME_MOMENT_S: Final = 5.0
#: RFC 9111, section 1.2.2: whatever is longer is taken as this, 68 years.
_LONGEST_S: Final = float(2**31)
_DIRECTIVE: Final = re.compile(r'([a-z-]+)(?:\s*=\s*"?(\d{1,20})"?)?', re.IGNORECASE)
_COMPARED: Final = {Kind.UNCHANGED: False, Kind.CHANGED: True}


@dataclass(frozen=True, slots=True)
class Times:
    """The times that an answer names, Unix seconds by the clock of the server.

    ``skew_s`` is by how much that clock is at least ahead of ours (negative: behind), 0 where
    the two may agree, None where there is no Date. ``wish_s`` is for how many seconds the server
    wishes the answer to be used, None where it says nothing.
    """

    skew_s: float | None = None
    modified: Span | None = None
    modified_now: bool | None = None
    wish_s: float | None = None


def times_of(result: FetchResult) -> Times:
    """What an answer says; a header that cannot be understood says nothing."""
    date = _at(result.header("Date"))
    modified = span_of(result.header("Last-Modified") or "")
    # A cache passes the Date of the server on, and tells how long ago it heard it.
    answered = None if date is None else date + _seconds(result.header("Age"))
    now = result.started_at + result.duration_s if answered is None else answered
    is_now = None
    if modified is not None:
        moments = (now,) if date is None else (now, date)
        is_now = any(abs(modified.until - at) <= _SAME_MOMENT_S for at in moments)
    skew = None if answered is None else _skew_s(answered, result)
    return Times(skew, modified, is_now, _wish_s(result, date))


def etag_moved(before: Validators, after: str | None) -> bool | None:
    """Whether the ETag is another one; None where one of the two is missing."""
    if before.etag is None or after is None:
        return None
    return before.etag.removeprefix("W/") != after.removeprefix("W/")


def text_moved(kind: Kind, status: int | None) -> bool | None:
    """Whether a visit found the page changed; None where the server's word was taken (304)."""
    return None if status == 304 else _COMPARED.get(kind)


def _at(text: str | None) -> float | None:
    span = span_of(text) if text else None
    return None if span is None or span.since != span.until else span.since


def _skew_s(date: float, result: FetchResult) -> float:
    """A Date tells whole seconds, of some moment of the exchange."""
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
