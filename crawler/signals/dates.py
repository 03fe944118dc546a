"""Parser of dates in sitemaps, feeds and headers; the results are time spans.

A date without a time means some time on that day. A date without a zone may be in any zone: the
span begins with the easternmost zone (UTC+14) and ends with the westernmost one (UTC−12).
Accepted formats: the W3C profile of ISO 8601, misspellings of it that are common on the web, and
the dates of mail and HTTP.
"""

import re
from calendar import monthrange, timegm
from datetime import UTC, datetime
from email.utils import parsedate_tz
from functools import lru_cache
from typing import Final, TypeAlias

_HOUR_S: Final = 3_600.0
_DAY_S: Final = 86_400.0
_EASTERNMOST_S: Final = 14 * _HOUR_S
_WESTERNMOST_S: Final = 12 * _HOUR_S
_LONGEST: Final = 64
_REMEMBERED: Final = 8_192
#: The month of the first web page (December 1990).
_FIRST_PAGE_AT: Final = float(timegm((1990, 12, 1, 0, 0, 0)))
#: Tolerance for small clock errors, and for the time between writing and serving.
_SLACK_S: Final = 300.0

_W3C: Final = re.compile(
    r"""(?P<year>\d{4})
    (?: [-/.]? (?P<month>\d\d) (?: [-/.]? (?P<day>\d\d) (?: (?:[Tt]|\ +)
        (?P<hour>\d\d) (?: :? (?P<minute>\d\d) (?: :? (?P<second>\d\d) (?:[.,](?P<part>\d+))? )? )?
        \s* (?P<zone> [Zz] | UTC | GMT | [+−-]\d\d(?::?\d\d)? )?
    )? )? )?""",
    re.VERBOSE,
)
_MAIL_ZONE: Final = re.compile(r"\s(?:[+-]\d{4}|UTC?|GMT|Z|[ECMP][SD]T)(?:\s*\(.*\))?$", re.I)


#: Some time between two moments, Unix seconds; both equal for an exact moment.
Span: TypeAlias = tuple[float, float]


@lru_cache(_REMEMBERED)
def span_of(text: str) -> Span | None:
    """Return the time span of a date, or None if the text is not a date."""
    text = text.strip()
    if not text or len(text) > _LONGEST:
        return None
    return _exact(text) or _by_parts(text) or _of_mail(text)


def believed(span: Span | None, heard_at: float, skew_s: float = 0.0) -> Span | str:
    """Return the span if it is plausible for a date received at ``heard_at``, else the reason.

    ``skew_s`` is the number of seconds by which the host's clock is ahead of ours.
    """
    if span is None:
        return "it is not a date"
    since, until = span
    if until < _FIRST_PAGE_AT:
        return "it is from before the web"
    return "it lies in the future" if since > heard_at + skew_s + _SLACK_S else span


def _exact(text: str) -> Span | None:
    """Parse the usual form, with seconds and a zone, by the fast library function."""
    if len(text) < len("2006-01-02T15:04:05Z") or text[10] != "T":
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    offset = at.utcoffset()
    if offset is None or not _exists(offset.total_seconds()) or text[16] != ":":
        return None
    return at.timestamp(), at.timestamp()


def _by_parts(text: str) -> Span | None:
    found = _W3C.fullmatch(text)
    if found is None:
        return None
    year, (month, day, hour, minute, second) = int(found["year"]), map(_number, found.groups()[1:6])
    if not _is_date(year, month, day):
        return None
    start = float(timegm((year, month or 1, day or 1, 0, 0, 0)))
    if hour is None:
        return _anywhere(start, start + _days(year, month, day) * _DAY_S)
    time = _time_of_day(hour, minute, second)
    if time is None:
        return None
    since, length = time
    at = start + since + float(f"0.{found['part'] or 0}")
    offset = _offset_s(found["zone"])
    return _anywhere(at, at + length) if offset is None else (at - offset, at + length - offset)


def _number(part: str | None) -> int | None:
    return None if part is None else int(part)


def _is_date(year: int, month: int | None, day: int | None) -> bool:
    """Return whether the year, month and day exist."""
    if not year or month not in {None, *range(1, 13)}:
        return False
    return day is None or 1 <= day <= monthrange(year, month or 1)[1]


def _time_of_day(hour: int, minute: int | None, second: int | None) -> tuple[float, float] | None:
    """Return the seconds since midnight and the length of the span; None if the time is invalid.

    The span is 3,600 seconds without minutes, 60 without seconds, else 0.
    """
    if minute is None:
        return (hour * _HOUR_S, _HOUR_S) if hour <= 24 else None
    if hour > 24 or minute > 59 or (second or 0) > 60:
        return None
    return hour * _HOUR_S + minute * 60 + (second or 0), 60.0 if second is None else 0.0


def _days(year: int, month: int | None, day: int | None) -> int:
    """Return the number of days in a date without a time."""
    if day is not None:
        return 1
    if month is not None:
        return monthrange(year, month)[1]
    return sum(monthrange(year, each)[1] for each in range(1, 13))


def _offset_s(zone: str | None) -> float | None:
    """Return the offset east of UTC in seconds; None without a zone or if it does not exist."""
    if zone is None:
        return None
    digits = re.sub(r"\D", "", zone)
    offset = int(digits[:2] or 0) * _HOUR_S + int(digits[2:] or 0) * 60
    offset = -offset if zone[0] in "-−" else offset
    return offset if _exists(offset) else None


def _exists(offset_s: float) -> bool:
    return -_WESTERNMOST_S <= offset_s <= _EASTERNMOST_S


def _of_mail(text: str) -> Span | None:
    """Parse a date of mail (RFC 5322) or HTTP, such as "Sun, 06 Nov 1994 08:49:37 GMT"."""
    found = parsedate_tz(text)
    if found is None:
        return None
    offset = found[-1]
    try:
        at = datetime(*found[:6], tzinfo=UTC).timestamp()
    except (ValueError, OverflowError):
        return None
    # The library returns 0 for a missing or unknown zone.
    if offset is None or not _exists(offset) or _MAIL_ZONE.search(text) is None:
        return _anywhere(at, at)
    return at - offset, at - offset


def _anywhere(since: float, until: float) -> Span:
    """Return the span between two local times in an unknown zone."""
    return since - _EASTERNMOST_S, until + _WESTERNMOST_S
