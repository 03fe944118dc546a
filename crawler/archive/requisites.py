"""Requisites of archived pages (style sheets, images, fonts, scripts), fetched after them.

A requisite is a due URL that is not a page. It takes the same way through host queues, robots.txt,
the address guard and the fetcher; the store keeps only its host.

*Invariant.* The requisites and bytes for one page are bounded, and so is the number that waits for
all pages. Consequence: pages that need each other's style sheets without end cost no more than
others. Requisites that were archived recently are not requested again.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Final, NamedTuple, Protocol

from freshet.crawler.archive.writer import ArchiveWriter
from freshet.crawler.fetch.bounds import REQUISITE_BYTES, REQUISITES_WAITING, LruCache, meet
from freshet.crawler.fetch.responses import media_type
from freshet.crawler.frontier.frontier import RequisiteUrl
from freshet.crawler.frontier.politeness import answer_of
from freshet.crawler.reduce.charset import decode
from freshet.crawler.reduce.requisites import css_references, resolved
from freshet.crawler.signals.listings import off_loop
from freshet.crawler.urls import canonical, origin
from freshet.storage import value
from freshet.storage.entries import Host
from freshet.storage.records import Acknowledged, Agenda, DueUrl, FetchResult, Observation

#: URLs that are remembered as asked for.
_REMEMBERED: Final = 65_536
#: Style sheets that import each other.
_MOST_DEPTH: Final = 5
#: Requests that may follow one another without a page between them.
_BURST: Final = 100.0
#: Hosts that are looked at for one that is ready, before a page is chosen.
_LOOKED_AT: Final = 64
_CSS: Final = "text/css"
_TROUBLE: Final = frozenset({"throttled", "down", "failed"})


@dataclass(slots=True, eq=False)
class _Room:
    """Room for the remaining requisites of one page of the origin ``home``."""

    home: str
    requests: int
    left_bytes: int = REQUISITE_BYTES


@value(frozen=True, slots=True)
class Requisite(RequisiteUrl):
    """A file that an archived page needs; ``depth`` counts style sheets.

    *Invariant.* Only the page's origin chooses URLs that are requested with our secrets.
    """

    _: KW_ONLY
    room: _Room = field(repr=False)


class _Found(NamedTuple):
    """URLs that a page needs; ``is_foreign``: another origin has named them."""

    room: _Room
    urls: Sequence[str]
    depth: int
    redirects: int
    is_foreign: bool


class RequisiteStore(Protocol):
    """The store, as the agenda of requisites asks for it."""

    async def refused(self, urls: Collection[str], /) -> Collection[str]:
        """Return the URLs that the user's rules refuse."""

    async def hosts_of(self, origins: Collection[str], /) -> Sequence[Host]:
        """Return the hosts of origins."""


@dataclass(slots=True, kw_only=True, eq=False)
class Requisites:
    """A queue of requisites around the queue of pages; both take turns.

    Requisites get at most ``share`` of the requests while pages are due, and always with
    ``lasting``. A page may have ``per_page`` of them. What was asked for within
    ``age_s`` is not needed, nor what ``is_never``; the last time is remembered here and in the
    archive. While ``alone`` no page is chosen.

    Attributes:
        left: those that wait or are under way.
        asked: their requests so far.
        counts: how they ended, and ``bytes``.
    """

    agenda: Agenda
    archive: ArchiveWriter
    per_page: int
    share: float
    age_s: float
    attempts: int
    max_redirects: int
    lasting: bool
    is_never: Callable[[str], bool]
    store: RequisiteStore
    alone: bool = field(default=False, init=False)
    left: int = field(default=0, init=False)
    asked: int = field(default=0, init=False)
    counts: Counter[str] = field(default_factory=Counter, init=False)
    _credit: float = field(default=0.0, init=False)
    _found: list[_Found] = field(default_factory=list, init=False)
    _asked_at: LruCache[str, float] = field(
        default_factory=lambda: LruCache(_REMEMBERED), init=False
    )
    _host_ids: dict[str, int] = field(default_factory=dict, init=False)
    #: Without empty entries, in the order of their turns.
    _queues: OrderedDict[int, deque[Requisite]] = field(default_factory=OrderedDict, init=False)
    _supplied: set[int] = field(default_factory=set, init=False)

    @property
    def busy(self) -> bool:
        """Return whether some wait, are under way, or were just found."""
        return bool(self.left or self._found)

    # -- needs -------------------------------------------------------------------

    def need(self, urls: Sequence[str], of: str) -> None:
        """Add the requisites of an archived page."""
        if urls:
            room = _Room(str(origin(of)), self.per_page)
            self._found.append(_Found(room, urls, 0, 0, is_foreign=False))

    async def took(self, due: Requisite, result: FetchResult) -> None:
        """Record the end of a request: the needs of a style sheet, or another try."""
        due.room.left_bytes -= len(result.wire_body)
        self.counts["bytes"] += len(result.wire_body)
        outcome = str(result.outcome)
        match result.outcome:
            case "fetched":
                await self._read_style(due, result)
            case "redirected" if result.location and due.redirects < self.max_redirects:
                needed = resolved([result.location], due.url)
                self._found.append(
                    _Found(due.room, needed, due.depth, due.redirects + 1, due.is_anonymous)
                )
            case "not_modified":
                outcome = "unchanged"
            case _:
                outcome = "failed"
                if self._tries_again(due, result):
                    return
        self.counts[outcome] += 1
        self.left -= 1

    async def _read_style(self, due: Requisite, result: FetchResult) -> None:
        """Add the requisites of a style sheet."""
        label = result.header("Content-Type") or ""
        if media_type(label) == _CSS and due.depth < _MOST_DEPTH:
            work = partial(_needed_by, result.body, label, due.url)
            needed = await off_loop(len(result.body), work)
            self._found.append(_Found(due.room, needed, due.depth + 1, 0, due.is_anonymous))

    def _tries_again(self, due: Requisite, result: FetchResult) -> bool:
        """Queue a request that failed for a passing trouble once more, if it has tries left."""
        is_passing = answer_of(result.status, result.reason) in _TROUBLE
        if not is_passing or due.attempt + 1 >= self.attempts:
            return False
        self._put(replace(due, attempt=due.attempt + 1))
        return True

    def denied(self, due: Requisite, why: Observation) -> None:
        """Note that robots.txt forbids one, or its host was given up."""
        self.archive.unasked(due, why, "requisite")
        self.counts["disallowed" if why.kind == "refused" else "failed"] += 1
        self.left -= 1
        self.asked -= 1

    async def _place(self, now: float) -> Sequence[Host]:
        """Queue the requisites that were found; return new hosts."""
        wanted = self._wanted(now)
        known = await self.archive.asked(wanted) if wanted else {}
        for url, (at, _) in known.items():
            self._asked_at[url] = at
        places = await self._places([url for url in wanted if self._is_old(url, now)])
        unknown = set(places.values()) - self._host_ids.keys()
        hosts = await self.store.hosts_of(unknown) if unknown else ()
        self._host_ids |= {host.origin: host.host_id for host in hosts}
        for url, place in places.items():
            room = wanted[url].room
            if not self._has_room(room, place):
                continue
            room.requests -= 1
            self._asked_at[url] = now
            due = self._due(url, place, wanted[url], now)
            # A style sheet is read again for its requisites.
            if url in known and ".css" not in url:
                due = replace(due, validators=known[url][1])
            self._put(due)
            self.left += 1
        return hosts

    def _due(self, url: str, place: str, found: _Found, now: float) -> Requisite:
        """Return the due URL of something that was found, of an origin."""
        return Requisite(
            page_id=0, url=url, fetch_url=url, host_id=self._host_ids[place], due_at=now,
            depth=found.depth, redirects=found.redirects, owner=self, room=found.room,
            is_anonymous=found.is_foreign or place != found.room.home,
        )  # fmt: skip

    def _wanted(self, now: float) -> dict[str, _Found]:
        """Take the requisites that were found; return those not requested recently."""
        found, self._found = self._found, []
        wanted: dict[str, _Found] = {}
        for each in found:
            new = (it for it in each.urls if it not in wanted and self._is_old(it, now))
            wanted |= dict.fromkeys(new, each)
        return wanted

    async def _places(self, urls: Sequence[str]) -> Mapping[str, str]:
        """Return the URLs that the user's rules allow, each with its origin."""
        names = {url: canonical(url) for url in urls}
        refused = await self.store.refused(names.values()) if urls else ()
        allowed = [url for url in urls if names[url] not in refused and not self.is_never(url)]
        return {url: str(origin(url)) for url in allowed}

    def _has_room(self, room: _Room, place: str) -> bool:
        """Return whether one more may wait, of a page and in all; count it if it may not."""
        if room.requests > 0 and self.left < REQUISITES_WAITING:
            return True
        meet("requisites of a page" if room.requests <= 0 else "requisites", place)
        self.counts["left out"] += 1
        return False

    def _is_old(self, url: str, now: float) -> bool:
        """Return whether a URL was not asked for of late."""
        at = self._asked_at.use(url)
        return at is None or now - at >= self.age_s

    def _put(self, due: Requisite) -> None:
        self._queues.setdefault(due.host_id, deque()).append(due)
        self._supplied.add(due.host_id)

    def counted(self) -> dict[str, int]:
        """Return how many ended how, and with how many bytes; 0 are left out."""
        return {**self.counts, **({"not fetched": self.left} if self.left else {})}

    # -- the agenda --------------------------------------------------------------

    def next(self, ready: Collection[int], now: float) -> DueUrl | None:
        """Take a requisite if it is its turn, else the next page."""
        due: DueUrl | None = None
        if self._credit >= 1 and (due := self._next(ready, _LOOKED_AT)):
            self._credit -= 1
            return due
        if not self.alone:
            # Hosts that are ready for their requisites alone are none of the pages'.
            those = dict.fromkeys(filter(self.agenda.waiting, ready)) if self._queues else ready
            due = self.agenda.next(those, now)
        if due is not None:
            gain = _BURST if self.share >= 1 else self.share / (1 - self.share)
            self._credit = min(self._credit + gain, _BURST)
            return due
        return None if self.lasting else self._next(ready, len(self._queues))

    def _next(self, ready: Collection[int], most: int) -> Requisite | None:
        """Take a requisite of one of the next ``most`` hosts that is ready."""
        for host_id in [host_id for host_id, _ in zip(self._queues, range(most), strict=False)]:
            self._queues.move_to_end(host_id)
            if host_id in ready and (due := self._take(host_id)):
                return due
        return None

    def _take(self, host_id: int) -> Requisite | None:
        """Take the first requisite of a host with room in the budget of its page."""
        queue = self._queues[host_id]
        found = None
        while queue and found is None:
            due = queue.popleft()
            if due.room.left_bytes > 0:
                found = due
                self.asked += 1
            else:
                meet("bytes of a page's requisites", due.url)
                self._asked_at.pop(due.url, None)
                self.counts["left out"] += 1
                self.left -= 1
        if not queue:
            del self._queues[host_id]
        return found

    def put_back(self, due: DueUrl) -> None:
        """Take back a URL that has not been visited."""
        if isinstance(due, Requisite):
            self.asked -= 1
            self._put(due)
        else:
            self.agenda.put_back(due)

    def waiting(self, host_id: int) -> bool:
        """Return whether a due URL of this host can be taken now."""
        return host_id in self._queues or self.agenda.waiting(host_id)

    def done(self, acknowledged: Acknowledged) -> None:
        """Pass an entry to the queue of pages."""
        self.agenda.done(acknowledged)

    @property
    def hungry(self) -> bool:
        """Return whether something was found, or the agenda of the pages is hungry."""
        return bool(self._found or self._supplied) or self.agenda.hungry

    def overdue_at(self) -> float:
        """Return when a page is overdue."""
        return self.agenda.overdue_at()

    def target_of(self, host_id: int) -> int | None:
        """Return the host to which a host has only redirected, or None."""
        return self.agenda.target_of(host_id)

    def take_probe(self, host_id: int) -> bool:
        """Return whether a host may be asked for a URL that cannot exist, and count the request."""
        return self.agenda.take_probe(host_id)

    def wakes_at(self) -> float | None:
        """Return when the next page falls due."""
        return self.agenda.wakes_at()

    async def replenish(self, now: float) -> tuple[Sequence[Host], Sequence[int]]:
        """Load pages, and queue the requisites that were found."""
        hosts, host_ids = await self.agenda.replenish(now)
        new = await self._place(now) if self._found else ()
        supplied, self._supplied = self._supplied, set()
        return [*hosts, *new], [*host_ids, *supplied]


def _needed_by(body: bytes, content_type: str, url: str) -> tuple[str, ...]:
    """Return the URLs that a style sheet needs."""
    return resolved(css_references(decode(body, content_type)[0]), url)
