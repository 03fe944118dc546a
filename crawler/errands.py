"""What the frontier sends out: one exchange each, or the refusal of one. Pure values."""

from __future__ import annotations

from dataclasses import dataclass

from freshet.storage.records import DueUrl


@dataclass(frozen=True, slots=True)
class PageErrand:
    """Fetch a due URL."""

    due: DueUrl
    lane: str


@dataclass(frozen=True, slots=True)
class RobotsErrand:
    """Fetch a host's robots.txt; ``url`` is a redirect's target after the first hop."""

    host_id: int
    origin: str
    url: str
    lane: str
    redirects: int = 0


@dataclass(frozen=True, slots=True)
class Refusal:
    """A due URL that robots.txt forbids: nothing is sent."""

    due: DueUrl
    rule: str


@dataclass(frozen=True, slots=True)
class ProbeErrand:
    """Ask a host for a page that cannot exist."""

    host_id: int
    url: str
    lane: str


@dataclass(frozen=True, slots=True)
class CallErrand:
    """Ask for what is no page; with a ``form``, post it. ``number`` is the asker's own."""

    number: int
    url: str
    lane: str
    form: str | None = None


Errand = PageErrand | RobotsErrand | ProbeErrand | CallErrand | Refusal
