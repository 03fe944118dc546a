"""Words that the store keeps and that cross packages: kinds, rungs, roles."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Reason(StrEnum):
    """Reason why a URL is due."""

    REFRESH = "refresh"
    DISCOVERY = "discovery"
    SIGNAL = "signal"
    AUDIT = "audit"


class Role(StrEnum):
    """Role of a URL in the crawl; only ``PAGE`` counts as a page."""

    PAGE = "page"
    SITEMAP = "sitemap"
    FEED = "feed"


class Outcome(StrEnum):
    """End of a request."""

    FETCHED = "fetched"
    NOT_MODIFIED = "not_modified"
    REDIRECTED = "redirected"
    GONE = "gone"
    REFUSED = "refused"
    SKIPPED = "skipped"
    FAILED = "failed"


class Kind(StrEnum):
    """Result of an observation. A failed fetch never erases history."""

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

    Below ``BLOCKS`` the blocks differ, but these differ at every visit (``VOLATILE``), belong to
    the site's template (``FRAME``), or alternate between earlier versions (``FLIP``).
    """

    NOT_MODIFIED = "304"
    BODY = "body"
    TEXT = "text"
    VOLATILE = "volatile"
    FRAME = "frame"
    FLIP = "flip"
    BLOCKS = "blocks"


#: Reason of a ``new`` observation of a known page whose text another extraction took: the texts
#: cannot be compared.
REBASED: Final = "text_version"


class RobotsStanding(StrEnum):
    """Knowledge of an origin's robots.txt (RFC 9309, section 2.3.1)."""

    PARSED = "parsed"
    ALLOW_ALL = "allow_all"
    UNREACHABLE = "unreachable"


class AliasKind(StrEnum):
    """Redirect by which a URL is another name of a page."""

    PERMANENT = "permanent"
    TEMPORARY = "temporary"
    REFRESH = "refresh"
