"""Conditional requests: whether what the client has is still current."""

from __future__ import annotations

import re
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

_TAG = re.compile(r'(?:W/)?("[^"]*")')


@dataclass(frozen=True, slots=True)
class Conditions:
    """The values of If-None-Match and If-Modified-Since, None where absent."""

    none_match: str | None = None
    modified_since: str | None = None


UNCONDITIONAL = Conditions()


def is_current(conditions: Conditions, etag: str | None, last_modified_at: float | None) -> bool:
    """Whether the answer is 304 (RFC 9110, section 13.2.2).

    If-None-Match goes first and is compared weakly (section 13.1.2); If-Modified-Since
    counts only in its absence, and a date that cannot be read does not count (13.1.3).
    """
    if conditions.none_match is not None:
        if conditions.none_match.strip() == "*":
            return True
        return etag is not None and _opaque(etag) in _TAG.findall(conditions.none_match)
    if conditions.modified_since is None or last_modified_at is None:
        return False
    try:
        since = parsedate_to_datetime(conditions.modified_since).timestamp()
    except ValueError:
        return False
    return last_modified_at <= since


def _opaque(etag: str) -> str:
    return etag.removeprefix("W/")
