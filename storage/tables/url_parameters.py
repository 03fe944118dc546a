"""Parts of URLs that make copies on a host: a page that is known under one URL has no others.

They are rows of the table ``trap`` of the kind :data:`.url_patterns.BY_PART`: ``shape`` is the
name of a :class:`~freshet.storage.identity.UrlVariant` behind :data:`ANYWHERE`, ``copies`` counts
the pairs that showed it, ``refused`` the URLs held back, and ``closed_at`` is NULL once a pair has
differed.

*Invariant.* Of URLs that are equal without such parts at least one is not held back, and has not
failed while others were left. Consequence: a wrong conclusion costs the difference between pages,
and never a page without a similar one. One in twenty of the URLs held back is requested anyway, and
fewer where there are more of them than pages; if one differs, all of them are.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from sqlite3 import Connection
from typing import Final

from freshet.storage.database import as_json
from freshet.storage.entries import ParameterFinding
from freshet.storage.identity import without
from freshet.storage.records import DueUrl, Target, Visit
from freshet.storage.tables import frontier, url_patterns
from freshet.storage.tables.pages import Admitted
from freshet.storage.tables.url_patterns import BY_PART, HostPages

ANYWHERE: Final = "/…"
#: Hosts that are held.
_HOSTS: Final = 4_096
#: URLs held back for each known page, and at least, from which on the sample is thinned: words to
#: highlight give a page more URLs than a session does, and no more evidence.
_HELD_EACH: Final = 1.25
_LEAST_HELD: Final = 60
#: Kinds of pages without content: another URL may have it.
_FAILED: Final = {"failed", "refused", "gone"}


@dataclass(slots=True)
class _Host:
    """The parts of a host's URLs that make copies, each with the URLs held back.

    ``known`` has a held-back page, or 0, by the hashes of URLs without these parts. ``standing``
    has the page that represents each of them.
    """

    refused: dict[str, int]
    known: dict[int, int]
    standing: dict[int, int] = field(default_factory=dict)

    def know(self, page_id: int, url: str, *, may_leave: bool, is_held: bool) -> None:
        """Add a stored page; it may represent others if it may be held back."""
        rest, key = without(url, self.refused)
        if is_held:
            self.known[hash(rest)] = page_id
        else:
            self.known.setdefault(hash(rest), 0)
        if key is not None and may_leave:
            self.standing[hash(rest)] = page_id

    def holds(self, page_id: int, rest: str, key: str) -> bool:
        """Hold back a page that another one represents, unless it is sampled; return whether."""
        thinned = max(_LEAST_HELD, int(_HELD_EACH * len(self.known)))
        if url_patterns.is_sampled(page_id, self.refused[key], thinned):
            return False
        self.refused[key] += 1
        self.known[hash(rest)] = page_id
        return True


def _linked(targets: Iterable[Target]) -> Collection[str]:
    """Return the URLs to which links lead; others are seeds, or redirects."""
    return {url for url, _, _, _, depth, redirects, *_ in targets if depth and not redirects}


class UrlParameters:
    """The parts that make copies, for the writer of one run; it alone calls the methods."""

    def __init__(self) -> None:
        self._hosts: dict[int, _Host] = {}
        self._superseded: set[int] = set()

    def forget(self) -> None:
        """Drop the cache: the transaction failed."""
        self._hosts.clear()
        self._superseded.clear()

    def _let_in(self, host: _Host, page: Admitted, rest: str, key: str | None) -> None:
        """Note a page that is fetched; one without the parts supersedes one that has them."""
        if key is not None:
            host.standing[hash(rest)] = page.page_id
        elif other := host.standing.pop(hash(rest), 0):
            self._superseded.add(other)
        host.known.setdefault(hash(rest), 0)

    def bound(
        self, db: Connection, admitted: Sequence[Admitted], targets: Sequence[Target]
    ) -> dict[int, str]:
        """Return the new pages to hold back, with the kind; count them."""
        linked = _linked(targets)
        new = {page.page_id for page in admitted}
        self._load(db, {page.host_id for page in admitted}, new)
        held: dict[int, str] = {}
        counts: list[tuple[int, str]] = []
        for page in admitted:
            host = self._hosts[page.host_id]
            if not host.refused:
                continue
            rest, key = without(page.url, host.refused)
            if key is None or hash(rest) not in host.known or page.url not in linked:
                self._let_in(host, page, rest, key)
            elif host.holds(page.page_id, rest, key):
                counts.append((page.host_id, key))
                held[page.page_id] = BY_PART
        _count(db, counts)
        return held

    def weigh(
        self, db: Connection, visits: Sequence[Visit], effect: tuple[HostPages, HostPages]
    ) -> tuple[HostPages, HostPages]:
        """Learn from these visits, which are recorded.

        Return the ``effect`` with the pages that enter the frontier, and those that leave it.
        """
        released, withdrawn = effect
        # URLs that were in flight when their part was found to make copies.
        passed = url_patterns.let_pass(db, [v.due.page_id for v in visits], BY_PART)
        self._discount(db, [(host_id, url) for host_id, url, _ in passed])
        for host_id, page_id in self._supersede(db):
            _add(withdrawn, host_id, [page_id])
        for visit in visits:
            host_id, at = visit.due.host_id, visit.observation.at
            for finding in visit.parameters:
                change, pages = (
                    (self._close, withdrawn) if finding.makes_copies else (self._open, released)
                )
                _add(pages, host_id, change(db, finding, at))
            if visit.observation.kind in _FAILED:
                _add(released, host_id, self._next_after(db, visit.due, at))
        return effect

    def _supersede(self, db: Connection) -> list[tuple[int, int]]:
        """Hold back the URLs of pages that are known under a plain one now, with their hosts."""
        if not self._superseded:
            return []
        sql = f"SELECT p.host_id, p.id, p.url {_UNVISITED} AND p.id IN "
        chosen = as_json(list(self._superseded))
        rows = db.execute(f"{sql} (SELECT value FROM json_each(?))", (chosen,)).fetchall()
        self._superseded.clear()
        left: list[tuple[int, int]] = []
        for host_id, page_id, url in rows:
            host = self._hosts[host_id]
            rest, key = without(url, host.refused)
            if key is not None and host.holds(page_id, rest, key):
                _count(db, [(host_id, key)])
                left.append((host_id, page_id))
        url_patterns.withdraw(db, [page_id for _, page_id in left], BY_PART)
        return left

    def _next_after(self, db: Connection, due: DueUrl, at: float) -> list[int]:
        """Release a page in place of one that has failed."""
        self._load(db, [due.host_id])
        host = self._hosts[due.host_id]
        rest, _ = without(due.url, host.refused)
        page_id = host.known.pop(hash(rest), 0)
        if not page_id:
            return []
        host.known[hash(rest)] = 0
        return self._release(db, [page_id], at)

    def _load(
        self, db: Connection, host_ids: Collection[int], but: Collection[int] = frozenset()
    ) -> None:
        """Read the stored pages of these hosts, except for these pages."""
        if len(self._hosts) > _HOSTS:
            self._hosts.clear()
        new = [each for each in host_ids if each not in self._hosts]
        if not new:
            return
        self._hosts |= {each: _Host({}, {}) for each in new}
        rows = db.execute(
            "SELECT host_id, shape, refused FROM json_each(?) AS k CROSS JOIN trap "
            "ON host_id = k.value WHERE kind = ? AND closed_at IS NOT NULL",
            (as_json(new), BY_PART),
        ).fetchall()
        for host_id, shape, refused in rows:
            self._hosts[host_id].refused[shape.removeprefix(ANYWHERE)] = refused
        for host_id in {row[0] for row in rows}:
            for page_id, url, may_leave, is_held in _pages(db, host_id):
                if page_id not in but:
                    self._hosts[host_id].know(page_id, url, may_leave=may_leave, is_held=is_held)

    def _close(self, db: Connection, found: ParameterFinding, at: float) -> list[int]:
        """Hold back the unvisited URLs that another page represents; return these pages."""
        db.execute(
            "INSERT INTO trap (host_id, shape, kind, admitted, copies, closed_at) "
            "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET admitted = excluded.admitted, "
            "copies = excluded.copies, closed_at = coalesce(closed_at, excluded.closed_at)",
            (found.host_id, ANYWHERE + found.name, BY_PART, found.pairs, found.pairs, at),
        )
        self._hosts.pop(found.host_id, None)
        self._load(db, [found.host_id])
        host = self._hosts[found.host_id]
        known, waiting = set[int](), list[tuple[int, str, str]]()
        for page_id, url, may_leave, is_held in _pages(db, found.host_id):
            rest, key = without(url, host.refused)
            if key is not None and may_leave:
                waiting.append((page_id, rest, key))
            elif not is_held:
                known.add(hash(rest))
        left: list[int] = []
        for page_id, rest, key in waiting:
            if hash(rest) in known and host.holds(page_id, rest, key):
                left.append(page_id)
                _count(db, [(found.host_id, key)])
            if hash(rest) not in known:
                host.standing[hash(rest)] = page_id
            known.add(hash(rest))
        url_patterns.withdraw(db, left, BY_PART)
        return left

    def _open(self, db: Connection, found: ParameterFinding, at: float) -> list[int]:
        """Release the URLs of a part that makes copies no more; return them."""
        closed = db.execute(
            "UPDATE trap SET closed_at = NULL, refused = 0 WHERE host_id = ? AND shape = ? "
            "AND kind = ? AND closed_at IS NOT NULL RETURNING 1",
            (found.host_id, ANYWHERE + found.name, BY_PART),
        ).fetchall()
        if not closed:
            return []
        self._hosts.pop(found.host_id, None)
        sql = "SELECT id, url FROM page WHERE host_id = ? AND held_back = ?"
        held = db.execute(sql, (found.host_id, BY_PART)).fetchall()
        its = [page_id for page_id, url in held if without(url, [found.name])[1] is not None]
        return self._release(db, its, at)

    def _release(self, db: Connection, page_ids: Sequence[int], at: float) -> list[int]:
        """Put the held-back pages among these into the frontier; return all."""
        passed = url_patterns.let_pass(db, page_ids, BY_PART)
        frontier.add(db, page_ids, at, "discovery")
        self._discount(db, [(host_id, url) for host_id, url, _ in passed])
        return list(page_ids)

    def _discount(self, db: Connection, pages: Sequence[tuple[int, str]]) -> None:
        """Count these pages, by host and URL, no longer as held back."""
        self._load(db, {host_id for host_id, _ in pages})
        keys = ((host_id, without(url, self._hosts[host_id].refused)[1]) for host_id, url in pages)
        _count(db, [(host_id, key) for host_id, key in keys if key is not None], -1)


def _add(pages: HostPages, host_id: int, its: Sequence[int]) -> None:
    if its:
        pages[host_id] = pages.get(host_id, frozenset()).union(its)


def _count(db: Connection, counts: Iterable[tuple[int, str]], number: int = 1) -> None:
    """Add to the numbers of URLs held back, by host and part."""
    shapes = ((host_id, ANYWHERE + key, number) for host_id, key in counts)
    url_patterns.count_refused(db, shapes, BY_PART)


#: Pages that wait for their first visit, and are not seeds.
_UNVISITED: Final = (
    "FROM page AS p JOIN frontier AS f ON f.page_id = p.id "
    "WHERE p.last_at IS NULL AND p.depth > 0 AND p.redirects = 0 AND p.held_back IS NULL"
)


def _pages(db: Connection, host_id: int) -> Iterator[tuple[int, str, bool, bool]]:
    """Yield the pages of a host that may represent others, visited pages first.

    The fields are its id, its URL, whether it waits for its first visit and is not a seed, and
    whether it is held back for another one.
    """
    rows = db.execute(
        f"SELECT p.id, p.url, p.id IN (SELECT p.id {_UNVISITED} AND p.host_id = :host), "
        "  p.held_back IS NOT NULL FROM page AS p "
        "WHERE p.host_id = :host AND p.role = 'page' AND ifnull(p.held_back, :kind) = :kind "
        "AND (p.last_kind IS NULL OR p.last_kind IN ('new', 'changed', 'unchanged')) "
        "ORDER BY p.last_at IS NULL, p.id",
        {"host": host_id, "kind": BY_PART},
    )
    for page_id, url, may_leave, is_held in rows:
        yield page_id, url, bool(may_leave), bool(is_held)
