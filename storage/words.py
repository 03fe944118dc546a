"""The short words that the store keeps and that cross packages: kinds, rungs, roles."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Reason(StrEnum):
    """Why a URL is due."""

    REFRESH = "refresh"
    DISCOVERY = "discovery"
    SIGNAL = "signal"
    AUDIT = "audit"


class Role(StrEnum):
    """What a URL is to the crawl; only ``PAGE`` counts as a page."""

    PAGE = "page"
    SITEMAP = "sitemap"
    FEED = "feed"


class Outcome(StrEnum):
    """How an exchange with a server ended."""

    FETCHED = "fetched"
    NOT_MODIFIED = "not_modified"
    REDIRECTED = "redirected"
    GONE = "gone"
    REFUSED = "refused"
    SKIPPED = "skipped"
    FAILED = "failed"


class Kind(StrEnum):
    """What an observation found; DESIGN: a failed fetch never erases history."""

    NEW = "new"
    UNCHANGED = "unchanged"
    CHANGED = "changed"
    REDIRECTED = "redirected"
    GONE = "gone"
    REFUSED = "refused"
    SKIPPED = "skipped"
    FAILED = "failed"


KINDS: Final = tuple(Kind)  # in the order of their codes in columns


class Rung(StrEnum):
    """The rung of the change-detection ladder that decided.

    Below ``BLOCKS`` the blocks differ, but only such as differ at every visit
    (``VOLATILE``), belong to the site's template (``FRAME``), or alternate between earlier
    versions (``FLIP``).
    """

    NOT_MODIFIED = "304"
    BODY = "body"
    TEXT = "text"
    VOLATILE = "volatile"
    FRAME = "frame"
    FLIP = "flip"
    BLOCKS = "blocks"


#: The reason of a ``new`` observation of a page that was seen before, whose text is taken from the
#: bytes in another way by now: what it says differs from before, whether it changed or not.
REBASED: Final = "text_version"


class RobotsStanding(StrEnum):
    """What is known of an origin's robots.txt (RFC 9309, section 2.3.1)."""

    PARSED = "parsed"
    ALLOW_ALL = "allow_all"
    UNREACHABLE = "unreachable"


class AliasKind(StrEnum):
    """How a URL turned out to be another name of a page."""

    PERMANENT = "permanent"
    TEMPORARY = "temporary"
    REFRESH = "refresh"
