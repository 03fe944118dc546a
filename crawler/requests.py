"""The requests that the frontier hands out; ``queue`` is the key of the host queue.

An API request is for no page (a hub, a key file). It is polite and counted in the budget like any
request; its subscriber handles the response first, and the entries that result are committed with
it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from freshet.storage.records import DueUrl, Entry, FetchResult


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request for a due URL."""

    due: DueUrl
    queue: str


@dataclass(frozen=True, slots=True)
class RobotsRequest:
    """A request for a host's robots.txt; ``url`` is a redirect's target after the first hop."""

    host_id: int
    origin: str
    url: str
    queue: str
    redirects: int = 0


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """A request for a page that cannot exist on its host."""

    host_id: int
    url: str
    queue: str


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request for no page; a ``form`` is posted.

    ``handle`` takes the response and its time, and returns the entries to write.
    """

    url: str
    queue: str
    handle: Callable[[FetchResult, float], Sequence[Entry]]
    form: str | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """A due URL that robots.txt forbids."""

    due: DueUrl
    rule: str


FrontierRequest = PageRequest | RobotsRequest | ProbeRequest | ApiRequest | Refusal
