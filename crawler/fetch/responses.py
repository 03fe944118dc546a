"""The head of a response: status, dates and media type (RFC 9110)."""

import re
from calendar import timegm
from dataclasses import dataclass
from email.utils import parsedate_tz
from typing import TypeGuard

from freshet.crawler.bounds import VALIDATOR_CHARS
from freshet.crawler.urls import is_http, resolve, without_credentials
from freshet.storage.entries import Outcome

#: Names and values as they came, in order.
RawHeaders = tuple[tuple[bytes, bytes], ...]

#: Media types of pages, feeds and sitemaps, beside JSON and text of other kinds.
_PAGE_TYPES = frozenset(
    f"application/{name}"
    for name in ("xhtml+xml", "xml", "rss+xml", "atom+xml", "rdf+xml", "json", "pdf", "x-pdf")
)
#: Text for programs.
_NO_PAGE_TYPES = frozenset({"text/css", "text/javascript", "text/ecmascript", "text/vtt"})
#: The number of bytes that the MIME Sniffing standard examines (section 5.2).
SNIFFED_BYTES = 1445

_FIELD_VALUE = re.compile(rf"[!-~](?:[ -~]{{0,{VALIDATOR_CHARS - 2}}}[!-~])?")
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_GONE = frozenset({404, 410})
_WITHOUT_CONTENT = frozenset({204, 205})
_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xfe\xff", b"\xff\xfe")
#: Control characters that text never holds (MIME Sniffing standard, section 3).
_BINARY = bytes({*range(0x09), 0x0B, *range(0x0E, 0x1B), *range(0x1C, 0x20)})
#: The value for a delay too large to represent (RFC 9111, section 1.2.2).
_LONGEST_DELAY_S = float(2**31)


@dataclass(frozen=True, slots=True)
class StatusVerdict:
    """The outcome that a status code stands for; ``fetched`` if its body is whole."""

    outcome: Outcome
    reason: str | None = None
    detail: str | None = None
    location: str | None = None


def judge(status: int, url: str, location: bytes | None, *, is_conditional: bool) -> StatusVerdict:
    """Judge the status, and the Location where it counts.

    206 is a failure: nobody requested a part, and a part must not pass for the whole. So is
    304 in answer to an unconditional request.
    """
    if status in _REDIRECTS:
        return _redirect(status, url, location)
    if status == 304 and is_conditional:
        return StatusVerdict("not_modified")
    reason = f"http_{status}"
    if status in _WITHOUT_CONTENT:
        return StatusVerdict("skipped", reason, "the server has no content here")
    if 200 <= status < 300 and status != 206:
        return StatusVerdict("fetched")
    outcome: Outcome = "gone" if status in _GONE else "failed"
    return StatusVerdict(outcome, reason, f"the server answered {status}")


def _redirect(status: int, url: str, location: bytes | None) -> StatusVerdict:
    if location is None:
        return StatusVerdict("failed", "bad_redirect", f"{status} without a Location")
    reference = _text(location)
    target = resolve(reference, url) if reference.strip() else None
    if target is None or not is_http(target):
        detail = f"{status} to {reference[:200]!r}, which is no http or https URL"
        return StatusVerdict("failed", "bad_redirect", detail)
    target = without_credentials(target)
    return StatusVerdict("redirected", f"http_{status}", f"{status} to {target}", target)


def _text(value: bytes) -> str:
    """Decode a header value: ASCII by the standard, UTF-8 or Latin-1 in the wild."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")


def is_field_value(value: str | None) -> TypeGuard[str]:
    """Return whether a validator can be sent back: visible ASCII and blanks, and not too long."""
    return value is not None and _FIELD_VALUE.fullmatch(value) is not None


def first_header(headers: RawHeaders, name: bytes) -> bytes | None:
    """Return the first value of a header; ``name`` is in lower case."""
    return next((value for key, value in headers if key.lower() == name), None)


def retry_after_s(headers: RawHeaders, now: float) -> float | None:
    """Return the seconds to wait by a Retry-After header, None without a valid one.

    A date (RFC 9110, 10.2.3) is read against the server's own clock where its Date header shows it,
    else against ``now``, in Unix seconds; one in the past gives 0.
    """
    value = (first_header(headers, b"retry-after") or b"").decode("latin-1").strip()
    if value.isascii() and value.isdigit():
        return min(float(value), _LONGEST_DELAY_S)
    at = parse_date(value)
    if at is None:
        return None
    at_server = parse_date((first_header(headers, b"date") or b"").decode("latin-1"))
    return max(0.0, at - (now if at_server is None else at_server))


def parse_date(value: str) -> float | None:
    """Parse an HTTP date in any of its three formats as Unix seconds (RFC 9110, 5.6.7)."""
    try:
        parsed = parsedate_tz(value)
        # Without a zone, as in the asctime format, it is UTC.
        return None if parsed is None else float(timegm(parsed[:9]) - (parsed[9] or 0))
    except (ValueError, OverflowError):
        return None


def media_type(content_type: str) -> str | None:
    """Return ``type/subtype`` in lower case; None if it is missing or names no type."""
    name = content_type.partition(";")[0].strip().lower()
    major, slash, minor = name.partition("/")
    return name if slash and major.strip("* ") and minor.strip("* ") else None


def is_page_type(name: str) -> bool:
    """Return whether a lower-case media type is one that a page, a feed or a document may have."""
    return (
        name in _PAGE_TYPES
        or name.endswith("+json")
        or (name.startswith("text/") and name not in _NO_PAGE_TYPES)
    )


def looks_binary(head: bytes) -> bool:
    """Return whether the first bytes of an unlabelled body are not text in any encoding."""
    if head.startswith(_BYTE_ORDER_MARKS):
        return False
    sample = head[:SNIFFED_BYTES]
    return len(sample.translate(None, _BINARY)) < len(sample)
