"""Parts of URLs that make copies on a host: a page that is known under one URL has no others.

They are rows of the table ``trap`` of the kind :data:`.url_patterns.BY_PART`: ``shape`` is the
name of a :class:`~freshet.storage.identity.Variant` behind :data:`ANYWHERE`, ``copies`` counts the
pairs that showed it, ``refused`` the URLs held back, and ``closed_at`` is NULL once a pair has
differed.

*Invariant.* Of URLs that are equal without such parts at least one is not held back, and has not
failed while others were left. Consequence: a wrong conclusion costs the difference between pages,
and no page that nothing resembles. One in twenty of the URLs held back is requested anyway, and
fewer where there are more of them than pages; if one differs, all of them are.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Final

from freshet.storage.database import as_json
from freshet.storage.entries import ParameterFinding
from freshet.storage.identity import without
from freshet.storage.records import DueUrl, Targets, Visit
from freshet.storage.tables import frontier
from freshet.storage.tables.pages import Admitted
from freshet.storage.tables.url_patterns import BY_PART, HostPages, is_sampled

ANYWHERE: Final = "/…"
#: Hosts that are held.
_HOSTS: Final = 4_096
#: URLs held back for each known page, and at least, from which on the sample is thinned: words to
#: highlight give a page more URLs than a session does, and no more evidence.
_HELD_EACH: Final = 1.25
_LEAST_HELD: Final = 60
#: Of a page that is none: another URL may have it.
_FAILED: Final = {"failed", "refused", "gone"}
_ALL: Final = 1 << 62


@dataclass(slots=True)
class _Host:
    """The parts of a host's URLs that make copies, each with the URLs held back.

    ``known`` has the pages by the hashes of their URLs without these parts: one that is held back,
    0 for none.
    """

    refused: dict[str, int]
    known: dict[int, int]

    def samples(self, page_id: int, key: str) -> bool:
        """Return whether a page that would be held back is requested."""
        thinned = max(_LEAST_HELD, int(_HELD_EACH * len(self.known)))
        return is_sampled(page_id, self.refused[key], thinned)


class UrlParameters:
    """The parts that make copies, for the writer of one run; it alone calls the methods."""

    def __init__(self) -> None:
        self._hosts: dict[int, _Host] = {}

    def forget(self) -> None:
        """Drop what is held: the transaction failed."""
        self._hosts.clear()

    def bound(
        self, db: Connection, admitted: Sequence[Admitted], targets: Targets
    ) -> dict[int, str]:
        """Return those of these new pages to be held back, with the kind; count them."""
        told = zip(targets.urls, targets.depths, targets.redirects, strict=True)
        linked = {url for url, depth, redirects in told if depth and not redirects}
        new = {page.page_id for page in admitted}
        self._load(db, {page.host_id for page in admitted}, new)
        held: dict[int, str] = {}
        counts: list[tuple[int, str, int]] = []
        for page in admitted:
            host = self._hosts[page.host_id]
            if not host.refused:
                continue
            url, key = without(page.url, host.refused)
            if key is None or hash(url) not in host.known or page.url not in linked:
                host.known.setdefault(hash(url), 0)
            elif not host.samples(page.page_id, key):
                host.refused[key] += 1
                host.known[hash(url)] = page.page_id
                counts.append((page.host_id, key, 1))
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
        self._let_pass(db, [v.due.page_id for v in visits])
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

    def _next_after(self, db: Connection, due: DueUrl, at: float) -> list[int]:
        """Release a page in place of one that has failed."""
        self._load(db, [due.host_id])
        host = self._hosts[due.host_id]
        rest, _ = without(due.url, host.refused)
        page_id = host.known.pop(hash(rest), 0)
        if not page_id:
            return []
        host.known[hash(rest)] = 0
        sql = "SELECT id, url FROM page WHERE id = ? AND held_back = ?"
        return self._release(db, due.host_id, db.execute(sql, (page_id, BY_PART)).fetchall(), at)

    def _load(
        self, db: Connection, host_ids: Collection[int], but: Collection[int] = frozenset()
    ) -> None:
        """Read what is stored of these hosts, but for these pages."""
        if len(self._hosts) > _HOSTS:
            self._hosts.clear()
        new = [each for each in host_ids if each not in self._hosts]
        self._hosts |= {each: _Host({}, {}) for each in new}
        rows = db.execute(
            "SELECT host_id, shape, refused FROM json_each(?) AS k CROSS JOIN trap "
            "ON host_id = k.value WHERE kind = ? AND closed_at IS NOT NULL",
            (as_json(new), BY_PART),
        ).fetchall()
        for host_id, shape, refused in rows:
            self._hosts[host_id].refused[_key(shape)] = refused
        for host_id in {row[0] for row in rows}:
            host = self._hosts[host_id]
            for page_id, url, _, is_held in _pages(db, host_id):
                if page_id not in but:
                    rest, _ = without(url, host.refused)
                    host.known[hash(rest)] = page_id if is_held else 0

    def _close(self, db: Connection, found: ParameterFinding, at: float) -> list[int]:
        """Hold back the unvisited URLs that another page stands for; return these pages."""
        db.execute(
            "INSERT INTO trap (host_id, shape, kind, admitted, copies, closed_at) "
            "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET admitted = excluded.admitted, "
            "copies = excluded.copies, closed_at = coalesce(closed_at, excluded.closed_at)",
            (found.host_id, ANYWHERE + found.name, BY_PART, found.pairs, found.pairs, at),
        )
        self._hosts.pop(found.host_id, None)
        self._load(db, [found.host_id])
        host = self._hosts[found.host_id]
        known: set[int] = set()
        left: list[int] = []
        for page_id, url, may_leave, _ in _pages(db, found.host_id):
            rest, key = without(url, host.refused)
            is_copy = key is not None and may_leave and hash(rest) in known
            known.add(hash(rest))
            if is_copy and key is not None and not host.samples(page_id, key):
                host.refused[key] += 1
                host.known[hash(rest)] = page_id
                left.append(page_id)
                _count(db, [(found.host_id, key, 1)])
        sql = "UPDATE page SET held_back = ? WHERE id IN (SELECT value FROM json_each(?))"
        db.execute(sql, (BY_PART, as_json(left)))
        sql = "DELETE FROM frontier WHERE page_id IN (SELECT value FROM json_each(?))"
        db.execute(sql, (as_json(left),))
        return left

    def _open(self, db: Connection, found: ParameterFinding, at: float) -> list[int]:
        """Release the URLs of a part that makes copies no more; return them."""
        closed = db.execute(
            "UPDATE trap SET closed_at = NULL WHERE host_id = ? AND shape = ? AND kind = ? "
            "AND closed_at IS NOT NULL RETURNING 1",
            (found.host_id, ANYWHERE + found.name, BY_PART),
        ).fetchall()
        if not closed:
            return []
        self._hosts.pop(found.host_id, None)
        self._load(db, [found.host_id])
        sql = "SELECT id, url FROM page WHERE host_id = ? AND held_back = ?"
        held = db.execute(sql, (found.host_id, BY_PART)).fetchall()
        _count(db, [(found.host_id, found.name, -_ALL)])
        its = [row for row in held if without(row[1], [found.name])[1] is not None]
        return self._release(db, found.host_id, its, at)

    def _release(
        self, db: Connection, host_id: int, held: Sequence[tuple[int, str]], at: float
    ) -> list[int]:
        """Put these pages, held back until now, into the frontier; return them."""
        page_ids = [page_id for page_id, _ in held]
        sql = "UPDATE page SET held_back = NULL WHERE id IN (SELECT value FROM json_each(?))"
        db.execute(sql, (as_json(page_ids),))
        frontier.add(db, page_ids, at, "discovery")
        host = self._hosts[host_id]
        keys = (without(url, host.refused)[1] for _, url in held)
        _count(db, [(host_id, key, -1) for key in keys if key is not None])
        return page_ids

    def _let_pass(self, db: Connection, page_ids: Collection[int]) -> None:
        """Release the visited URLs that were in flight when their part was found to make copies."""
        rows = db.execute(
            "UPDATE page SET held_back = NULL WHERE id IN (SELECT value FROM json_each(?)) "
            "AND held_back = ? RETURNING host_id, url",
            (as_json(list(page_ids)), BY_PART),
        ).fetchall()
        self._load(db, {row[0] for row in rows})
        keys = ((host_id, without(url, self._hosts[host_id].refused)[1]) for host_id, url in rows)
        _count(db, [(host_id, key, -1) for host_id, key in keys if key is not None])


def _add(pages: HostPages, host_id: int, its: Sequence[int]) -> None:
    if its:
        pages[host_id] = pages.get(host_id, frozenset()).union(its)


def _key(shape: str) -> str:
    return shape.removeprefix(ANYWHERE)


def _count(db: Connection, counts: Iterable[tuple[int, str, int]]) -> None:
    """Add to the numbers of URLs held back."""
    sql = (
        "UPDATE trap SET refused = max(refused + ?, 0) WHERE host_id = ? AND shape = ? AND kind = ?"
    )
    db.executemany(sql, [(n, host_id, ANYWHERE + key, BY_PART) for host_id, key, n in counts])


def _pages(db: Connection, host_id: int) -> Iterator[tuple[int, str, bool, bool]]:
    """Yield the pages of a host that may stand for others: those that were visited come first.

    Behind its id and URL it is told whether a page waits for its first visit, and is no seed, and
    whether it is held back for another one.
    """
    rows = db.execute(
        "SELECT p.id, p.url, p.last_at IS NULL AND p.depth > 0 AND p.redirects = 0 "
        "  AND f.page_id IS NOT NULL, p.held_back IS NOT NULL "
        "FROM page AS p LEFT JOIN frontier AS f ON f.page_id = p.id "
        "WHERE p.host_id = ? AND p.role = 'page' AND ifnull(p.held_back, ?) = ? "
        "AND (p.last_kind IS NULL OR p.last_kind IN ('new', 'changed', 'unchanged')) "
        "ORDER BY p.last_at IS NULL, p.id",
        (host_id, BY_PART, BY_PART),
    )
    for page_id, url, may_leave, is_held in rows:
        yield page_id, url, bool(may_leave), bool(is_held)
