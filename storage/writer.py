"""The one writer task: a bounded queue in, batched transactions, acknowledgements out.

Invariant: an entry is acknowledged after the transaction that holds it has committed.
Consequence: kill -9 loses nothing that was counted, shown or logged.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from itertools import chain
from sqlite3 import Connection, DataError, IntegrityError, InterfaceError, ProgrammingError
from typing import TypeVar

from freshet.storage.database import Database
from freshet.storage.entries import Claims, HostState, Kind, Retraction
from freshet.storage.errors import StoreError
from freshet.storage.extensions import Recording
from freshet.storage.records import (
    Acknowledged,
    Churn,
    Entry,
    Observation,
    StoreUpdate,
    Target,
    Targets,
    Visit,
    WriterHost,
)
from freshet.storage.tables import (
    changefeed,
    claims,
    frontier,
    hosts,
    links,
    observations,
    pages,
    runs,
    url_patterns,
)
from freshet.storage.tables.url_parameters import UrlParameters
from freshet.storage.tables.url_patterns import CopyRule

# -- visits: a batch's changes, table by table, in one transaction -----------

#: Largest number of visits that one visit may correct: the evidence may be wrong.
MOST_TAKEN_BACK = 3
#: Largest number of URLs remembered as settled, at about 150 bytes each; longer ones are not kept.
_REMEMBERED = 16_384
_LONG_CHARS = 512


class VisitTables:
    """Writes the batches of one run; holds the caches of the single writer.

    ``recorders`` write the rows of extensions for a batch. ``met`` counts how often each limit was
    reached; increases are stored.

    Attributes:
        settled: URLs of pages in the store that later links do not change: they were admitted and
            not held back. Nearly all links of a crawl lead to such URLs, and admission does not
            send them again. A URL is added only after its commit, in the event loop, so a link
            sent without its target always finds the target in the store.
        dictionaries: makes the dictionaries with which bodies are compressed.
    """

    def __init__(
        self,
        run_id: int,
        rule: CopyRule | None = None,
        recorders: Sequence[Recording] = (),
        met: Counter[str] | None = None,
    ) -> None:
        self.recorders = recorders
        self._met = Counter[str]() if met is None else met
        self._met_before = Counter(self._met)
        self._newly_met = Counter[str]()
        self._run_id = run_id
        self._rule = rule or CopyRule()
        self._parameters = UrlParameters()
        self._host_ids: dict[str, int] = {}
        self.settled: set[str] = set()
        self.dictionaries = observations.Dictionaries()
        self._settling: set[str] = set()
        #: Pages to which other pages redirect or redirected; None: not read yet.
        self._final: set[int] | None = None
        #: By page: withdrawals of captures that have not arrived yet, as visits may be reordered.
        self._retractions: dict[int, Retraction] = {}
        self._committed: dict[int, Retraction] = {}

    async def write(self, database: Database, entries: Sequence[Entry]) -> list[Acknowledged]:
        """Commit a batch, in one call on the writer's thread, and return the acknowledgements.

        Raises:
            StoreError: the batch was not written, and its cached data is dropped.
        """
        is_as_before = dict.__eq__(self._met, self._met_before)
        self._newly_met = Counter() if is_as_before else self._met - self._met_before
        try:
            acknowledged = await database.write(partial(self.apply, entries=entries))
        except BaseException:
            self._forget()
            raise
        self._committed = dict(self._retractions)
        if self._newly_met:
            self._met_before += self._newly_met
        if len(self.settled) > _REMEMBERED:
            self.settled.clear()
        self.settled.update([url for url in self._settling if len(url) <= _LONG_CHARS])
        self._settling.clear()
        self.dictionaries.committed()
        return acknowledged

    def apply(self, db: Connection, entries: Sequence[Entry]) -> list[Acknowledged]:
        """Write a batch; return the acknowledgements to be sent after the commit."""
        visits = [e for e in entries if isinstance(e, Visit)]
        now = max([entry.at for entry in entries])
        due = self._admit(db, entries)
        links.record(db, visits)
        appeared = links.append(db, visits)
        again = links.shown_again(db, visits)
        frontier.add(db, set(chain.from_iterable(again.values())), now, "discovery")
        observations.append_bodies(db, visits)
        self.dictionaries.follow(db, visits, now)
        if self._final is None:
            self._final = pages.final_pages(db)
        self._final |= pages.record(db, visits)
        observations.append(db, self._run_id, visits)
        observations.append_audit(db, visits)
        observations.record(db, visits)
        _amend(db, visits)
        kept = claims.append(db, entries)
        hosts.count(db, visits)
        again = {**again, **_settle(db, visits, now)}
        revealed = {
            entry.due.page_id: [page.page_id for page in its]
            for entry, its in zip(entries, due, strict=True)
            if isinstance(entry, Visit)
        }
        copies = url_patterns.weigh(db, visits, self._run_id, self._rule, revealed)
        weighed = self._parameters.weigh(db, visits, copies)
        self._record_hosts(db, entries)
        hosts.save_not_content(db, visits)
        _move_roots(db, visits)
        runs.count_fetches(db, self._run_id, sum([e.fetches for e in entries]))
        runs.count_bounds(db, self._run_id, self._newly_met)
        for note in (e for e in entries if isinstance(e, StoreUpdate)):
            self._record_note(db, note)
        acknowledged = [
            self._ended(db, entry, its, appeared, again)
            for entry, its in zip(entries, due, strict=True)
        ]
        self._tell(db, visits, now)
        return _with(*weighed, kept, acknowledged)

    def _ended(
        self,
        db: Connection,
        entry: Entry,
        due: Sequence[pages.Admitted],
        appeared: Mapping[int, Churn],
        again: Mapping[int, Mapping[int, int]],
    ) -> Acknowledged:
        """Return the acknowledgement of an entry, with the pages that are due by it."""
        supplied = {page.host_id for page in due}
        found = [page.page_id for page in due]
        if not isinstance(entry, Visit):
            return Acknowledged(entry, frozenset(supplied), tuple(found))
        page_id = entry.due.page_id
        if page_id in again:
            supplied.update(again[page_id].values())
            found += again[page_id]
        return Acknowledged(
            entry,
            frozenset(supplied),
            tuple(found),
            retracted=self._take_back(db, entry),
            churn=appeared.get(page_id),
        )

    def _tell(self, db: Connection, visits: Sequence[Visit], now: float) -> None:
        """Update the changefeed and the tables of extensions."""
        documents = changefeed.touched(db, visits)
        changefeed.tell(db, documents, now)
        changefeed.restate(db, visits)
        for each in self.recorders:
            each.record(db, visits, documents, now)

    def may_be_final(self, page_id: int) -> bool:
        """Return whether another page may redirect to this one."""
        return self._final is None or page_id in self._final

    def _forget(self) -> None:
        """Drop data cached since the last commit, after a failed transaction."""
        self._host_ids.clear()
        self._settling.clear()
        self.dictionaries.forget()
        self._retractions = dict(self._committed)
        self._parameters.forget()
        for each in self.recorders:
            each.rolled_back()

    def _admit(self, db: Connection, entries: Sequence[Entry]) -> list[list[pages.Admitted]]:
        """Add the targets of a batch as pages; return the pages due now, by entry."""
        due: list[list[pages.Admitted]] = [[] for _ in entries]
        found, place = list[tuple[Target, float]](), dict[str, int]()
        for number, entry in enumerate(entries):
            new = self._unsettled(entry.targets) if entry.targets else ()
            found += [(target, entry.at) for target in new]
            place |= {target[0]: number for target in new}
        for page in self._new_pages(db, found) if found else ():
            due[place[page.url]].append(page)
        at = dict[int, float]()
        for entry, its in zip(entries, due, strict=True):
            its.extend(self._turned_round(db, entry))
            at |= {page.page_id: entry.at for page in its}
        frontier.discover(db, at)
        return due

    def _turned_round(self, db: Connection, entry: Entry) -> list[pages.Admitted]:
        """Return the page to which a visit redirects, if that page was an alias of this one."""
        if not isinstance(entry, Visit) or entry.alias is None:
            return []
        return pages.turned_round(db, entry.due.page_id, entry.alias.url, self._run_id)

    def _unsettled(self, targets: Targets) -> list[Target]:
        """Return the targets of an entry that may be new to the store; mark them as settling."""
        known, settling = self.settled, self._settling
        new = [row for row in targets if row[0] not in known and row[0] not in settling]
        settling.update([row[0] for row in new if row[6] is None or row[6] == pages.FOREIGN])
        return new

    def _take_back(self, db: Connection, visit: Visit) -> tuple[tuple[Kind, str], ...]:
        """Withdraw a few captures that this or an earlier visit showed not to be content."""
        awaited = self._retractions.pop(visit.due.page_id, None)
        found, left = [], MOST_TAKEN_BACK
        for retraction in (*visit.retractions, *([awaited] if awaited else [])):
            if left == 0:
                break
            was, count = observations.take_back(db, retraction, visit.observation.at, left)
            left -= count
            if retraction.at is None:
                continue
            if was is not None:
                found.append((was, retraction.reason))
            elif not observations.any_at(db, retraction.page_id, retraction.at):
                self._retractions[retraction.page_id] = retraction
        return tuple(found)

    def _new_pages(
        self, db: Connection, found: Sequence[tuple[Target, float]]
    ) -> list[pages.Admitted]:
        """Add new targets as pages; return the pages to be crawled."""
        targets = [target for target, _ in found]
        if unknown := {target[2] for target in targets}.difference(self._host_ids):
            self._host_ids |= hosts.ensure(db, unknown)
        admitted = pages.admit(db, found, self._host_ids, self._run_id)
        admitted = pages.refuse(db, admitted)
        trapped = self._parameters.bound(db, admitted, targets)
        others = [page for page in admitted if page.page_id not in trapped]
        trapped |= url_patterns.bound(db, others, targets)
        for kind in set(trapped.values()):
            pages.hold_back(db, [p for p, k in trapped.items() if k == kind], kind)
        return [page for page in admitted if page.page_id not in trapped]

    def _record_note(self, db: Connection, note: StoreUpdate) -> None:
        if note.robots is not None:
            hosts.save_robots(db, *note.robots)
        for seed_id, url in note.seeds:
            runs.settle(db, seed_id, url)
        if note.outlook is not None:
            runs.append(db, self._run_id, note.outlook)
        runs.append_sites(db, note.sites)
        observations.write(db, note.estimates)
        if note.change is not None:
            note.change(db)

    def _record_hosts(self, db: Connection, entries: Sequence[Entry]) -> None:
        states: dict[int, HostState] = {}
        exchanges: dict[int, int] = {}
        for entry in entries:
            if entry.host is not None:
                states[entry.host.host_id] = entry.host
                before = exchanges.get(entry.host.host_id, 0)
                exchanges[entry.host.host_id] = before + entry.fetches
        hosts.save_states(db, [(s, exchanges[i]) for i, s in states.items()])
        hosts.save_repeats(db, entries)


def _settle(db: Connection, visits: Sequence[Visit], now: float) -> dict[int, dict[int, int]]:
    """Settle visits; return by visited page the pages that are due again, with their hosts.

    A page is due again if a redirect led back to it. It may have been settled in this batch, or its
    request may be under way.
    """
    stays = frontier.settle(db, visits)
    returned = pages.returned_to(db, {v.due.page_id: v.alias for v in visits if v.alias})
    frontier.return_to(db, set(chain.from_iterable(returned.values())), now)
    return {page_id: {page_id: host} for page_id, host in stays.items()} | returned


def _amend(db: Connection, visits: Sequence[Visit]) -> None:
    """Store the corrections that these visits make to the verdicts of earlier visits."""
    for visit in visits:
        for amendment in visit.amendments:
            observations.amend(db, visit.due.page_id, amendment, visit.at)


def _move_roots(db: Connection, visits: Sequence[Visit]) -> None:
    """Move seeds to the new URLs of their sites."""
    for visit in visits:
        if visit.new_root is not None:
            runs.move(db, visit.due.page_id, visit.new_root)


def _with(
    released: Mapping[int, frozenset[int]],
    withdrawn: Mapping[int, frozenset[int]],
    kept: Claims,
    acknowledged: list[Acknowledged],
) -> list[Acknowledged]:
    """Return the acknowledgements; the last one has the batch's patterns and claims."""
    if not released and not withdrawn and not len(kept):
        return acknowledged
    *others, last = acknowledged
    whole = replace(
        last,
        supplied=last.supplied | released.keys(),
        pages=(*last.pages, *sorted(chain.from_iterable(released.values()))),
        withdrawn=tuple(withdrawn.items()),
        claims=kept,
    )
    return [*others, whole]


log = logging.getLogger(__name__)

#: Longest time for which a batch grows, and the time for one that is wanted soon, in seconds.
_GROWS_S = 0.5
_SOON_S = 0.1

#: Errors of SQLite that are the fault of a value.
_OF_THE_ENTRY = (DataError, IntegrityError, InterfaceError, ProgrammingError)


def _failed(visit: Visit, why: str) -> Visit:
    """Return the visit as an internal failure, because another attempt would fail as well."""
    o = visit.observation
    failure = Observation(
        o.page_id, o.at, "failed", reason="internal", detail=why, duration_s=o.duration_s
    )
    return Visit(visit.due, failure, role=visit.due.role, fetches=visit.fetches, host=visit.host)


T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Writer:
    """Gathers entries into transactions of at most ``batch``; a full queue blocks senders.

    A transaction of one visit costs as much as one of three. Therefore a batch grows until it is
    full, until a task waits for it, or for half a second; for a tenth of a second if it is wanted
    soon. If one entry cannot be written, the others still are.
    """

    database: Database
    tables: VisitTables
    host: WriterHost
    _: KW_ONLY
    batch: int
    _entries: list[Entry] = field(default_factory=list, init=False)
    _is_ending: bool = field(default=False, init=False)
    _is_wanted: bool = field(default=False, init=False)
    _is_overdue: bool = field(default=False, init=False)
    # Set when the first entry of a batch has arrived, when the batch is to be written, and when it
    # has room.
    _begun: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _due: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _roomy: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    async def submit(self, entry: Entry) -> None:
        """Add an entry to the batch; wait while the batch is full."""
        while len(self._entries) >= self.batch:
            self._roomy.clear()
            await self._roomy.wait()
        self._entries.append(entry)
        if len(self._entries) == 1:
            self._begun.set()
        if len(self._entries) == self.batch:
            self._due.set()

    def hurry(self, *, soon: bool = False) -> None:
        """Request that submitted entries be written at once, or ``soon``."""
        self._is_wanted = True
        if self._entries and (self._is_overdue or not soon):
            self._due.set()

    async def run(self) -> None:
        """Write until :meth:`finish`; raise StoreError if the store fails."""
        while self._entries or not self._is_ending:
            await self._begun.wait()
            await self._grow(_SOON_S)
            if not (self._is_wanted or self._due.is_set()):
                self._is_overdue = True
                await self._grow(_GROWS_S - _SOON_S)
            entries, self._entries = self._entries, []
            self._is_wanted = self._is_overdue = False
            self._roomy.set()
            if not self._is_ending:
                self._begun.clear()
                self._due.clear()
            if entries:
                await self._write(entries)
        self._is_ending = False
        self._begun.clear()
        self._due.clear()

    async def _grow(self, seconds: float) -> None:
        """Wait for more entries, or until the batch is due."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._due.wait()

    def finish(self) -> None:
        """Request that :meth:`run` writes the submitted entries and returns."""
        self._is_ending = True
        self._begun.set()
        self._due.set()

    async def _write(self, entries: list[Entry]) -> None:
        """Write a batch; if that fails because of an entry, write the entries one by one."""
        try:
            acknowledged = await self._endured(entries)
        except Exception as error:
            if isinstance(error, StoreError) and not isinstance(error.__cause__, _OF_THE_ENTRY):
                raise
            if len(entries) > 1:
                for entry in entries:
                    await self._write([entry])
                return
            acknowledged = await self._endured_without(entries[0], error)
        self.host.committed(acknowledged)

    async def _endured_without(self, entry: Entry, error: Exception) -> list[Acknowledged]:
        """Write an unwritable visit as a failure; of an unwritable note, only its requests."""
        why = repr(error.__cause__ or error)
        if isinstance(entry, Visit):
            log.error(
                "the visit to %s cannot be stored (%s); it counts as failed", entry.due.url, why
            )
            return await self._endured([_failed(entry, why)])
        log.error("a note of the crawler cannot be stored (%s); it is dropped", why)
        rest = await self._endured([StoreUpdate(entry.at, fetches=entry.fetches, host=entry.host)])
        # The sender waits for the acknowledgement of the original entry.
        return [replace(each, entry=entry) for each in rest]

    async def _endured(self, entries: list[Entry]) -> list[Acknowledged]:
        return await self.host.endure(partial(self._committed, entries))

    async def _committed(self, entries: list[Entry]) -> list[Acknowledged]:
        await self.host.secure()
        return await self.tables.write(self.database, entries)
