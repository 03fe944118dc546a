"""Tables ``crawl_run`` (one row a crawl, over all its invocations), ``seed``, ``lease``, outlooks.

And ``site_setting``: settings of sites, and wishes, that were made in a browser. A wish (``visit``)
holds until its page has been visited since. Each shard has all rows.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from sqlite3 import Connection
from typing import Final, Literal, NamedTuple, TypeAlias

from aiosqlite import Connection as Reader

from freshet.storage.database import columns_of, row_to, values_of
from freshet.storage.entries import CappedQueue, DiscoveryShares, Outlook, SiteOutlook
from freshet.storage.records import StoredSeed

VISIT: Final = "visit"
_MET: Final = (
    "key = 'visit' AND EXISTS (SELECT 1 FROM page WHERE url = match AND last_at >= site_setting.at)"
)


class SiteSetting(NamedTuple):
    """A key of ``[[sites]]`` where a URL matches, its ``value`` in JSON, and when it was set."""

    match: str
    key: str
    value: str
    at: float


def put_site_setting(db: Connection, it: SiteSetting) -> None:
    """Set a key, or take it back if the value is empty; wishes that have been met go."""
    db.execute(f"DELETE FROM site_setting WHERE (match, key) = (?, ?) OR {_MET}", it[:2])
    if it.value:
        db.execute("INSERT INTO site_setting VALUES (?, ?, ?, ?)", it)


async def site_settings(db: Reader) -> list[SiteSetting]:
    """Return the stored settings of sites, and the requests that were not fulfilled yet."""
    sql = f"SELECT match, key, value, at FROM site_setting WHERE NOT ({_MET}) ORDER BY match, key"
    return [SiteSetting(*row) for row in await db.execute_fetchall(sql)]


def put_wished_first(db: Connection, now: float) -> None:
    """Make the requested pages due in this run, before all others."""
    db.execute(
        "INSERT INTO frontier (page_id, host_id, priority, due_at, reason) "
        "SELECT p.id, p.host_id, -1, ?, 'signal' FROM site_setting JOIN page AS p ON p.url = match "
        f"WHERE key = 'visit' AND NOT ({_MET}) AND p.held_back IS NULL "
        "ON CONFLICT DO UPDATE SET priority = -1, due_at = min(due_at, excluded.due_at)",
        (now,),
    )


#: State of a run; the next invocation finishes all but ``ended`` ones.
RunState: TypeAlias = Literal["running", "ended", "interrupted", "limit"]


@dataclass(frozen=True, slots=True)
class CrawlRun:
    """A crawl run. ``fetches`` counts all requests, robots.txt and redirects included.

    It has reached no host ``no_network_since`` that time; None: it does, or has ended.
    """

    run_id: int
    started_at: float
    ended_at: float | None
    state: RunState
    fetches: int
    no_network_since: float | None = None


async def latest(db: Reader) -> CrawlRun | None:
    """Return the run that was started last, or None in a new store."""
    since = "(SELECT since FROM no_network AS n WHERE n.run_id = crawl_run.id)"
    columns = columns_of(CrawlRun, run_id="id", no_network_since=since)
    sql = f"SELECT {columns} FROM crawl_run ORDER BY id DESC LIMIT 1"
    return next(map(row_to(CrawlRun), await db.execute_fetchall(sql)), None)


async def began_at(db: Reader, run_id: int) -> float:
    """Return when a run began, in Unix seconds. Raises LookupError for an unknown run."""
    rows = await db.execute_fetchall("SELECT started_at FROM crawl_run WHERE id = ?", (run_id,))
    for row in rows:
        return float(row[0])
    raise LookupError(run_id)


async def settings_of_latest(db: Reader) -> str | None:
    """Return the settings (JSON) of the run started last, or None in a new store."""
    rows = await db.execute_fetchall("SELECT settings FROM crawl_run ORDER BY id DESC LIMIT 1")
    return next((str(row[0]) for row in rows), None)


async def latest_scope(db: Reader) -> str | None:
    """Return the scope of the run started last, or None in a new store."""
    sql = "SELECT settings ->> '$.crawl.scope' FROM crawl_run ORDER BY id DESC LIMIT 1"
    return next((row[0] for row in await db.execute_fetchall(sql)), None)


async def archive_folders(db: Reader) -> set[str]:
    """Return the folders to which runs of the store wrote archives."""
    sql = "SELECT DISTINCT settings ->> '$.archive.dir' FROM crawl_run"
    return {row[0] for row in await db.execute_fetchall(sql) if row[0]}


def start(db: Connection, now: float, settings: str) -> int:
    """Begin a run and return its id. ``settings`` is a JSON object, kept as a record."""
    sql = "INSERT INTO crawl_run (started_at, state, settings) VALUES (?, ?, ?) RETURNING id"
    return int(db.execute(sql, (now, "running", settings)).fetchone()[0])


def record_settings(db: Connection, run_id: int, settings: str) -> None:
    """Replace the recorded settings (a JSON object) of a run."""
    db.execute("UPDATE crawl_run SET settings = ? WHERE id = ?", (settings, run_id))


def reopen(db: Connection, run_id: int) -> None:
    """Resume a run that did not end (or, when forced, one that did)."""
    db.execute("UPDATE crawl_run SET state = 'running', ended_at = NULL WHERE id = ?", (run_id,))
    note_network(db, run_id, None)


def close(db: Connection, run_id: int, state: RunState, now: float) -> None:
    """Record a run's state; only ``ended`` sets ``ended_at``."""
    ended_at = now if state == "ended" else None
    sql = "UPDATE crawl_run SET state = ?, ended_at = ? WHERE id = ?"
    db.execute(sql, (state, ended_at, run_id))
    note_network(db, run_id, None)


def note_network(db: Connection, run_id: int, since: float | None) -> None:
    """Record since when a run reaches no host, None if it does again."""
    db.execute("DELETE FROM no_network")
    if since is not None:
        db.execute("INSERT INTO no_network VALUES (?, ?)", (run_id, since))


def count_fetches(db: Connection, run_id: int, fetches: int) -> None:
    """Add requests to a run's total."""
    db.execute("UPDATE crawl_run SET fetches = fetches + ? WHERE id = ?", (fetches, run_id))


def count_bounds(db: Connection, run_id: int, met: Mapping[str, int]) -> None:
    """Add to how often a run met each bound."""
    sql = "INSERT INTO bound VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET met = met + excluded.met"
    db.executemany(sql, [(run_id, name, times) for name, times in met.items()])


async def bounds(db: Reader, run_id: int) -> dict[str, int]:
    """Return how often a run met each bound, the most frequent first."""
    sql = "SELECT name, met FROM bound WHERE run_id = ? ORDER BY met DESC, name"
    return {row[0]: row[1] for row in await db.execute_fetchall(sql, (run_id,))}


async def is_first(db: Reader, run_id: int) -> bool:
    """Return whether a run is the first one."""
    rows = await db.execute_fetchall("SELECT count(*) FROM crawl_run WHERE id < ?", (run_id,))
    return not next(iter(rows))[0]


# -- seeds: the site list, and where the scope of each seed has moved --------

_AT_ONCE: Final = 1_000
_MOVE: Final = "UPDATE seed SET root_url = :url, page_id = (SELECT id FROM page WHERE url = :url)"


def add(db: Connection, seeds: Sequence[StoredSeed], now: float) -> None:
    """Add seeds; a known one takes the values of its new line."""
    db.executemany(
        "INSERT INTO seed (text, url, fallback_url, importance, half_life_hours, added_at) "
        "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (url) DO UPDATE SET text = excluded.text, "
        "importance = excluded.importance, half_life_hours = excluded.half_life_hours",
        [(s.text, s.url, s.fallback_url, s.importance, s.half_life_hours, now) for s in seeds],
    )


async def load(db: Reader) -> list[StoredSeed]:
    """Return all seeds of the store, in the order of the list."""
    sql = f"SELECT {columns_of(StoredSeed, seed_id='id')} FROM seed ORDER BY id"
    rows, found = list(await db.execute_fetchall(sql)), list[StoredSeed]()
    for first in range(0, len(rows), _AT_ONCE):
        found += map(row_to(StoredSeed), rows[first : first + _AT_ONCE])
        # Others have a turn between.
        await asyncio.sleep(0)
    return found


def settle(db: Connection, seed_id: int, url: str) -> None:
    """Record the URL at which a seed is crawled from now on."""
    db.execute(f"{_MOVE} WHERE id = :seed", {"url": url, "seed": seed_id})


def move(db: Connection, page_id: int, url: str) -> None:
    """Move all seeds at a page that redirected to its new URL."""
    db.execute(f"{_MOVE} WHERE page_id = :page", {"url": url, "page": page_id})


# -- outlooks and capped host queues: forecasts of a daemon ------------------

_DAY_S: Final = 86_400.0
#: Outlooks that are older are thinned to the last of each day.
_ALL_S: Final = 31 * _DAY_S
_APART: Final = {"changing", "capped", "discovered"}
_PLAIN: Final = tuple(each.name for each in fields(Outlook) if each.name not in _APART)
_DISCOVERED: Final = tuple(field.name for field in fields(DiscoveryShares))
_CLASSES: Final = ("daily", "weekly", "monthly", "yearly", "rarer")
_VALUES: Final = ", ".join((*_PLAIN, *_CLASSES, *_DISCOVERED))


@dataclass(frozen=True, slots=True)
class RunProgress:
    """Progress of a run: ``fetches`` of all its invocations, ``flowed`` in this one."""

    at: float
    run_id: int
    began_at: float
    fetches: int
    flowed: float


def append(db: Connection, run_id: int, it: Outlook) -> None:
    """Store an outlook of a run, after its requests have been counted, and thin old ones."""
    db.execute("DELETE FROM capped_queue WHERE outlook_at = ?", (it.at,))
    db.execute(
        f"INSERT OR REPLACE INTO outlook (run_id, fetches, {_VALUES}) VALUES "
        f"(?, (SELECT fetches FROM crawl_run WHERE id = ?){', ?' * _VALUES.count(',')}, ?)",
        (
            run_id,
            run_id,
            *(getattr(it, name) for name in _PLAIN),
            *it.changing,
            *(getattr(it.discovered, name) for name in _DISCOVERED),
        ),
    )
    db.executemany(
        "INSERT INTO capped_queue VALUES (?, ?, ?, ?, ?)",
        [(it.at, *values_of(queue)) for queue in it.capped],
    )
    ended = (it.at - _ALL_S) // _DAY_S * _DAY_S
    old = (
        "SELECT at FROM outlook AS early WHERE at < ? AND EXISTS (SELECT 1 FROM outlook AS late "
        f"WHERE late.at > early.at AND late.at < (CAST(early.at / {_DAY_S} AS INT) + 1) * {_DAY_S})"
    )
    db.execute(f"DELETE FROM capped_queue WHERE outlook_at IN ({old})", (ended,))
    db.execute(f"DELETE FROM outlook WHERE at IN ({old})", (ended,))


def append_sites(db: Connection, sites: Sequence[SiteOutlook]) -> None:
    """Replace the forecasts of these sites."""
    sql = f"INSERT OR REPLACE INTO site_outlook VALUES (?{', ?' * (len(fields(SiteOutlook)) - 1)})"
    db.executemany(sql, map(values_of, sites))


async def latest_outlook(db: Reader, run_id: int) -> Outlook | None:
    """Return the last outlook of a run, or None."""
    sql = f"SELECT {_VALUES} FROM outlook WHERE run_id = ? ORDER BY at DESC LIMIT 1"
    queues = (
        f"SELECT {columns_of(CappedQueue)} FROM capped_queue WHERE outlook_at = ? "
        "ORDER BY wanted - most DESC, queue"
    )
    for row in await db.execute_fetchall(sql, (run_id,)):
        return Outlook(
            **{name: row[name] for name in _PLAIN},
            changing=tuple(row[name] for name in _CLASSES),
            capped=tuple(map(row_to(CappedQueue), await db.execute_fetchall(queues, (row["at"],)))),
            discovered=DiscoveryShares(**{name: row[name] for name in _DISCOVERED}),
        )
    return None


async def spendings(db: Reader, since: float) -> list[RunProgress]:
    """Return the progress of runs at all outlooks since a time, the earliest first."""
    sql = "SELECT at, run_id, began_at, fetches, flowed FROM outlook WHERE at >= ? ORDER BY at"
    return [RunProgress(**row) for row in await db.execute_fetchall(sql, (since,))]


async def upcoming(db: Reader, outlook: Outlook) -> str | None:
    """Return the URL of the page to be visited next, or None."""
    rows = await db.execute_fetchall("SELECT url FROM page WHERE id = ?", (outlook.next_page_id,))
    return next((str(row[0]) for row in rows), None)


class Lease(NamedTuple):
    """The number of a shard, in its store, and how often it has been taken."""

    shard: int
    epoch: int


def lease_of(connection: Connection) -> Lease | None:
    """Return the lease of a shard's store, None in a store that is not a shard."""
    row = connection.execute("SELECT shard, epoch FROM lease").fetchone()
    return None if row is None else Lease(*row)


def take_lease(connection: Connection, shard: int) -> int:
    """Take a shard, so that its former owner cannot commit any more; return the new epoch."""
    sql = "INSERT INTO lease VALUES (1, ?, 1) ON CONFLICT DO UPDATE SET epoch = epoch + 1"
    connection.execute(sql, (shard,))
    return int(connection.execute("SELECT epoch FROM lease").fetchone()[0])
