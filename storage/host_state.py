"""What is remembered of hosts: politeness, robots.txt, and what their headers are worth.

Others take them from :mod:`freshet.storage.records`.
"""

from __future__ import annotations

from dataclasses import dataclass

from freshet.storage.words import RobotsStanding


@dataclass(frozen=True, slots=True)
class RobotsRecord:
    """One origin's robots.txt as last fetched; ``body`` is already cut to the limit.

    ``stale_since`` is set while an older copy is used because the file is unreachable.
    """

    standing: RobotsStanding
    fetched_at: float
    body: bytes = b""
    reason: str | None = None
    stale_since: float | None = None


@dataclass(frozen=True, slots=True)
class HostState:
    """What politeness must remember of one host across runs."""

    host_id: int
    lane: str
    last_exchange_at: float
    delay_s: float
    failures: int = 0
    parked_until: float | None = None
    parked_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Host:
    """A host (scheme, name and port) as the frontier takes it from the store."""

    host_id: int
    origin: str
    state: HostState | None = None
    robots: RobotsRecord | None = None


@dataclass(frozen=True, slots=True)
class HeaderSigns:
    """What the headers of one answer show of its host.

    ``skew_s`` is by how much the host's clock is ahead of ours as measured until now, None
    where nothing was measured. ``modified_now`` says whether Last-Modified was the time of the
    answer; ``etag_moved`` whether the ETag is another one, ``text_moved`` whether the page
    has changed: None where there is nothing to compare.
    """

    skew_s: float | None = None
    modified_now: bool | None = None
    etag_moved: bool | None = None
    text_moved: bool | None = None
