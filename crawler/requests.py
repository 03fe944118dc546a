"""The requests that the frontier hands out; ``lane`` is the key of the host queue.

An API request is for no page (a hub, a key file). It is polite and counted in the budget like any
request; its subscriber handles the response first, and the entries that result are committed with
it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count

from freshet.storage.records import DueUrl, Entry, FetchResult


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request for a due URL."""

    due: DueUrl
    lane: str


@dataclass(frozen=True, slots=True)
class RobotsRequest:
    """A request for a host's robots.txt; ``url`` is a redirect's target after the first hop."""

    host_id: int
    origin: str
    url: str
    lane: str
    redirects: int = 0


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """A request for a page that cannot exist on its host."""

    host_id: int
    url: str
    lane: str


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request for no page, numbered by :class:`ApiRequests`; a ``form`` is posted."""

    number: int
    url: str
    lane: str
    form: str | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """A due URL that robots.txt forbids."""

    due: DueUrl
    rule: str


FrontierRequest = PageRequest | RobotsRequest | ProbeRequest | ApiRequest | Refusal

#: Takes a response and its time, and returns the entries to write.
AnswerHandler = Callable[[FetchResult, float], Sequence[Entry]]


class ApiRequests:
    """API requests that wait in the frontier or are under way; ``queue`` takes a new one."""

    def __init__(self, queue: Callable[[ApiRequest], None]) -> None:
        self._queue = queue
        self._handlers: dict[int, AnswerHandler] = {}
        self._numbers = count(1)

    def __len__(self) -> int:
        return len(self._handlers)

    def place(self, lane: str, url: str, handle: AnswerHandler, *, form: str | None = None) -> None:
        """Queue a GET, or a POST of the ``form``, on the host queue of this key."""
        number = next(self._numbers)
        self._handlers[number] = handle
        self._queue(ApiRequest(number, url, lane, form))

    def answered(self, request: ApiRequest, result: FetchResult, now: float) -> Sequence[Entry]:
        """Pass a response to its handler, and return the entries to write."""
        return self._handlers.pop(request.number)(result, now)
