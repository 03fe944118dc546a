"""A large store with all that a dashboard shows, made in minutes and without a crawl.

Hosts are of very unequal size (Zipf). Each page is visited so many times in ``DAYS``, all in turn;
changes are Poisson with rates that spread over decades, a fiftieth of the pages goes, some visits
fail. The first pages have versions and bodies; all have links, an estimate, and words in their
URL and title. The store is filled as one of the schema before 24 and then migrated.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import zstandard

from freshet.storage.database import APPLICATION_ID, open_store
from freshet.storage.extensions import migrations
from scripts.benchmarks import command

DAYS = 40
DAY_S = 86_400.0
_BEFORE = 23
_VERSIONED = 3_000
_LINKS = 5
_WORDS = (
    "river bridge budget council market garden winter school theatre library harbour festival "
    "election hospital railway museum football orchestra weather recipe"
).split()


def make(path: Path, pages: int, observations: int, hosts: int) -> dict[str, float]:
    """Make the store; return seconds of its parts."""
    spent, began = dict[str, float](), time.perf_counter()
    db = sqlite3.connect(path, isolation_level=None)
    for pragma in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -400000"):
        db.execute(f"PRAGMA {pragma}")
    for number, name, sql in migrations():
        if number <= _BEFORE:
            db.executescript(sql)
            db.execute("INSERT INTO migration VALUES (?, ?, ?)", (number, name, time.time()))
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {_BEFORE}")
    kept = "SELECT name, sql, type FROM sqlite_master WHERE type IN ('index', 'trigger') AND sql"
    kept += " IS NOT NULL AND tbl_name IN ('observation', 'link', 'page')"
    made = db.execute(kept).fetchall()
    for name, _, kind in made:
        db.execute(f"DROP {kind} {name}")
    db.execute("BEGIN")
    _fill(db, pages, observations, hosts)
    for _, sql, _ in made:
        db.execute(sql)
    db.execute("COMMIT")
    db.close()
    spent["fill_s"] = round(time.perf_counter() - began, 1)
    began = time.perf_counter()
    asyncio.run(_migrate(path))
    spent["migration_s"] = round(time.perf_counter() - began, 1)
    db = sqlite3.connect(path)
    with db:
        db.execute(
            "INSERT OR REPLACE INTO site_outlook SELECT host_id, ?, count(*) FILTER "
            "(WHERE last_kind <> 'gone'), 0, count(*) FILTER (WHERE last_kind = 'gone'), "
            "0.05 + (host_id * 37 % 100) / 200.0, count(*) / 4.0, 40000.0, count(*) / 4.0 > 40000 "
            "FROM page GROUP BY host_id",
            (time.time(),),
        )
    db.close()
    return spent


async def _migrate(path: Path) -> None:
    await (await open_store(path)).close()


def _fill(db: sqlite3.Connection, pages: int, observations: int, hosts: int) -> None:
    rng, end = np.random.default_rng(1), time.time() - 60.0
    begin, turns = end - DAYS * DAY_S, observations // pages
    db.execute("INSERT INTO crawl_run (id, started_at, state, fetches, settings) "
               "VALUES (1, ?, 'running', ?, '{}')", (begin, observations))  # fmt: skip
    weight = 1 / np.arange(1.0, hosts + 1)
    host = rng.choice(hosts, pages, p=weight / weight.sum()) + 1
    host[:hosts] = np.arange(1, hosts + 1)
    db.executemany(
        "INSERT INTO host (id, origin, queue, exchanges, last_exchange_at, delay_s) "
        "VALUES (?, ?, ?, ?, ?, 1.0)",
        ((n, f"https://{_WORDS[n % 20]}{n}.example", f"{_WORDS[n % 20]}{n}.example", count, end)
         for n, count in enumerate(np.bincount(host, minlength=hosts + 1).tolist()) if n),
    )  # fmt: skip
    db.execute("INSERT INTO robots (host_id, standing, fetched_at, body) "
               "SELECT id, 'allow_all', ?, x'' FROM host", (end,))  # fmt: skip
    last = np.zeros(pages, np.int64)
    rate = np.exp(rng.normal(np.log(0.02), 1.5, pages))
    goes = np.where(rng.random(pages) < 0.02, rng.integers(1, turns + 1, pages), turns + 1)
    place = rng.permutation(pages)
    versions, number = list[tuple[int, int, float]](), np.zeros(_VERSIONED, np.int64)
    command.say(f"{pages:,} pages of {hosts:,} hosts, {observations:,} observations")
    order = np.argsort(place)
    for turn in range(turns):
        at = begin + (turn + np.sort(place) / pages) * DAYS * DAY_S / turns
        kind = _kinds(rng, rate, turn, goes, DAYS / turns)
        last = kind
        mine = kind[order]
        version = list[int | None]([None]) * pages
        for row in np.flatnonzero((order < _VERSIONED) & (mine < 3)).tolist():
            if mine[row] < 2:
                versions.append((len(versions) + 1, int(order[row]) + 1, float(at[row])))
                number[order[row]] = len(versions)
            version[row] = int(number[order[row]])
        db.executemany(
            "INSERT INTO observation (page_id, run_id, at, kind, rung, status, reason, "
            "resemblance, blocks_added, blocks_removed, duration_s, size_bytes, version_id) "
            "VALUES (?, 1, ?, ?, ?, ?, ?, ?, ?, ?, 0.1, 20000, ?)",
            ((page, then, *_RESULTS[code], number) for page, then, code, number in zip(
                (order + 1).tolist(), at.tolist(), mine.tolist(), version, strict=True)),
        )  # fmt: skip
        command.say(f"  turn {turn + 1} of {turns}")
    _pages(db, host, last, begin, end, number)
    _contents(db, versions)
    _links(db, rng, pages, end)
    _beliefs(db, rate, begin, end)


#: By code: kind, rung, status, reason, resemblance, blocks added and removed.
_RESULTS = (
    ("new", None, 200, None, None, None, None), ("changed", "blocks", 200, None, 0.8, 3, 2),
    ("unchanged", "304", 304, None, None, None, None), ("gone", None, 404, "http_404", *[None] * 3),
    ("failed", None, 503, "http_503", *[None] * 3), ("refused", None, None, "robots", *[None] * 3),
    ("redirected", None, 301, "permanent", *[None] * 3),
)  # fmt: skip


def _kinds(
    rng: np.random.Generator, rate: np.ndarray, turn: int, goes: np.ndarray, days: float
) -> np.ndarray:
    drawn = rng.random(len(rate))
    kind = np.where(drawn < -np.expm1(-rate * days), 1, 2) if turn else np.zeros(len(rate), int)
    odd = rng.random(len(rate))
    for least, code in ((0.985, 4), (0.997, 5), (0.999, 6)):
        kind = np.where((odd > least) & (turn > 0), code, kind)
    return np.where(goes <= turn, 3, kind)


def _title(page: int) -> str:
    return f"{_WORDS[page % 20]} {_WORDS[page // 20 % 20]} {page}".capitalize()


def _pages(
    db: sqlite3.Connection,
    host: np.ndarray,
    last: np.ndarray,
    begin: float,
    end: float,
    number: np.ndarray,
) -> None:
    of = [""] + [row[0] for row in db.execute("SELECT origin FROM host ORDER BY id")]
    rows = (
        (n, url := f"{of[h]}/{_WORDS[n % 7]}/{_WORDS[n % 20]}-{n}.html", url, h, begin,
         _RESULTS[code][0], end - n % 1000, end - n % 1000, _RESULTS[code][2], n.to_bytes(16),
         n.to_bytes(16), _title(n), int(number[n - 1]) if n <= _VERSIONED else None)
        for n, (h, code) in enumerate(zip(host.tolist(), last.tolist(), strict=True), 1)
    )  # fmt: skip
    db.executemany(
        "INSERT INTO page (id, url, fetch_url, host_id, depth, found_at, found_run_id, last_kind, "
        "last_at, checked_at, status, body_digest, text_digest, title, language, version_id) "
        "VALUES (?, ?, ?, ?, 1, ?, 1, ?, ?, ?, ?, ?, ?, ?, 'en', ?)",
        rows,
    )
    # A crawl has all of it before it, but for what three hosts leave to the next one.
    db.execute("INSERT INTO frontier (page_id, host_id, priority, due_at, reason, deferred) SELECT "
               "id, host_id, 1, ?, 'refresh', iif(host_id IN (3, 5, 8), 'http_503', NULL) "
               "FROM page", (begin,))  # fmt: skip
    db.execute("INSERT INTO seed (text, url, page_id, added_at) SELECT url, url, id, ? FROM page "
               "WHERE id <= (SELECT count(*) FROM host)", (begin,))  # fmt: skip


def _contents(db: sqlite3.Connection, versions: Sequence[tuple[int, int, float]]) -> None:
    pack = zstandard.ZstdCompressor(3).compress
    for version, page, at in versions:
        digest = (version | 1 << 64).to_bytes(16)
        told = " ".join(_WORDS[(page * k + version) % 20] for k in range(1, 40))
        body = "".join(f"<p>{told} {version} {k}.</p>" for k in range(10))
        body = f"<title>{_title(page)}</title><main><h1>{_title(page)}</h1>{body}</main>"
        db.execute("INSERT INTO body VALUES (?, ?, ?, ?)",
                   (digest, at, len(body), pack(body.encode())))  # fmt: skip
        db.execute("INSERT INTO version (id, page_id, at, body_digest, text_digest, content_type) "
                   "VALUES (?, ?, ?, ?, ?, 'text/html; charset=utf-8')",
                   (version, page, at, digest, digest))  # fmt: skip
    db.execute(
        "INSERT INTO change (page_id, kind, at, version_id, observation_id, title) "
        "SELECT p.id, 'changed', v.at, v.id, (SELECT max(id) FROM observation WHERE "
        "id <= 0), p.title FROM page AS p JOIN version AS v ON v.id = p.version_id ORDER BY v.at"
    )


def _links(db: sqlite3.Connection, rng: np.random.Generator, pages: int, end: float) -> None:
    for first in range(1, pages + 1, 100_000):
        some = range(first, min(first + 100_000, pages + 1))
        to = np.sort(rng.integers(1, pages + 1, (len(some), _LINKS)), axis=1)
        db.executemany(
            "INSERT OR IGNORE INTO link VALUES (?, ?, ?, '', 'a link to it', ?, ?, NULL)",
            ((src, dst, k, end, end) for src, row in zip(some, to.tolist(), strict=True)
             for k, dst in enumerate(row) if dst != src),
        )  # fmt: skip


def _beliefs(db: sqlite3.Connection, rate: np.ndarray, begin: float, end: float) -> None:
    def estimates() -> Iterator[tuple[object, ...]]:
        for page, each in enumerate(rate.tolist(), 1):
            due = end + 3_600.0 * (page % 200)
            yield (page, end, end - DAY_S, each, each / 3, each * 3, each, 1.0, 0.0, None, each,
                   page % 1000 == 0, 0.01, None, None, None, due, due, 1.0)  # fmt: skip

    db.executemany(f"INSERT INTO estimate VALUES ({', '.join('?' * 19)})", estimates())
    count, budget = len(rate), len(rate) / 4
    first = int(end // 3_600 * 3_600)
    db.executemany(
        "INSERT INTO outlook (at, run_id, began_at, fetches, budget, policy, flowed, forgone, "
        "watched, captured, waiting, gone, stale, harmonic, price, daily, weekly, monthly, yearly, "
        "rarer, clocked, next_at) VALUES (:at, 1, :begin, :fetches, :budget, 'site_clock', "
        ":fetches, 0, :count, :captured, 0, :gone, 0.1, 0.12, 2.5, :class, :class, :class, :class, "
        ":class, 0.3, :at)",
        ({"at": first - 3_600 * hour, "begin": begin, "fetches": int(budget * (DAYS - hour / 24)),
          "budget": budget, "count": count, "captured": int(0.98 * count),
          "gone": int(0.02 * count), "class": count // 5} for hour in reversed(range(30 * 24))),
    )  # fmt: skip
    db.execute("INSERT INTO capped_queue SELECT ?, queue, 40000.0, 50000.0, exchanges FROM host "
               "WHERE id < 4", (first,))  # fmt: skip
