"""What others say of when pages changed. Pure values; never mixed with own observations.

Others take them from :mod:`freshet.storage.records`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray


class ClaimKind(StrEnum):
    """Who says it: a sitemap, a feed, the header of an answer, a hub, or whoever pings."""

    SITEMAP = "sitemap"
    FEED = "feed"
    LAST_MODIFIED = "last_modified"
    WEBSUB = "websub"
    PING = "ping"


CLAIM_KINDS: Final = tuple(ClaimKind)  # in the order of their codes in columns


@dataclass(frozen=True, slots=True)
class Claim:
    """The page at ``url`` (canonical) changed last at some time in [``since``, ``until``].

    Unix seconds; they are equal where the source is exact. Raises ValueError for times that are
    not finite or not in order.
    """

    url: str
    since: float
    until: float

    def __post_init__(self) -> None:
        if not -inf < self.since <= self.until < inf:
            raise ValueError(f"no time is in [{self.since}, {self.until}]: {self.url}")


@dataclass(frozen=True, slots=True, eq=False)
class Claims:
    """m claims, in the order in which they were received.

    Attributes:
        source_id: (m,), id in table ``claim_source``.
        kind: (m,), place of the source's kind in :data:`CLAIM_KINDS`.
        page_id: (m,), the page as which the claimed URL stands: its target, where it has moved
            there for good.
        since, until: (m,), Unix seconds by our clock, between which the page changed last; not
            after ``received_at``.
        received_at: (m,), Unix seconds.
    """

    source_id: NDArray[np.int64]
    kind: NDArray[np.int8]
    page_id: NDArray[np.int64]
    since: NDArray[np.float64]
    until: NDArray[np.float64]
    received_at: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.source_id)


NO_CLAIMS: Final = Claims(
    np.empty(0, np.int64),
    np.empty(0, np.int8),
    np.empty(0, np.int64),
    np.empty(0, np.float64),
    np.empty(0, np.float64),
    np.empty(0, np.float64),
)
