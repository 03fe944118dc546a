"""Which format a list is in, by what it begins with."""

from __future__ import annotations

import re
from enum import StrEnum

from freshet.crawler.importing.entries import Unreadable
from freshet.crawler.parsing.sitemaps import looks_like_sitemap

#: So many bytes of the beginning are looked at.
SNIFFED_BYTES = 4_096

_ZIP = b"PK\x03\x04"
_GZIP = b"\x1f\x8b"
_MARK = b"\xef\xbb\xbf"
_OPML = re.compile(rb"<opml[\s>]", re.IGNORECASE)
_JOB = re.compile(
    rb"^(?:- )?[\"']?(?:url|navigate|command|shell|name|kind)[\"']?\s*:", re.MULTILINE
)
_URL = re.compile(rb"\A(?:\s|#[^\n]*\n)*+(?:source:)?https?://", re.IGNORECASE)


class Format(StrEnum):
    """The lists that are read."""

    AUTO = "auto"
    CHANGEDETECTION = "changedetection"
    URLWATCH = "urlwatch"
    OPML = "opml"
    SITEMAP = "sitemap"


def is_zip(head: bytes) -> bool:
    """Whether a file begins like a ZIP."""
    return head.startswith(_ZIP)


def recognised(head: bytes) -> Format:
    """The format of a file that begins like this.

    Raises:
        Unreadable: it is none of them.
    """
    start = head.removeprefix(_MARK).lstrip()
    if is_zip(head) or start.startswith(b"{") or _URL.match(start):
        return Format.CHANGEDETECTION
    if looks_like_sitemap(head) or head.startswith(_GZIP):
        return Format.SITEMAP
    if start.startswith(b"<") and _OPML.search(start):
        return Format.OPML
    if _JOB.search(start) and not start.startswith(b"<"):
        return Format.URLWATCH
    names = ", ".join(list(Format)[1:])
    raise Unreadable(f"in none of the formats that are known ({names}); --format names one")
