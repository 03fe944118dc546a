"""What grows with the number of shards and pages; JSON on stdout. See docs/SCALE.md.

``coordinator``: the real one, with so many shards of very unequal demand that each report once a
minute, at a second of its own. One in a hundred is killed an hour and comes back after some
minutes; at the end of the second hour the coordinator is, and is back after one. Told are CPU time
and bytes, the requests of each hour by the budget, and the most that all shares summed to.
``curves``: what a shard's own demand curve costs it.

``outbox``: pages of other shards that one store finds, told by the real ``Shard.tell`` and admitted
by a second store, which stands for all others: CPU time and bytes a page by the number of shards,
and the time from the commit to the deletion from the outbox, with a latency each way.

``masses``: PageRank of a made graph by rounds of exchange: how far the shares of pages in the
importance of their sites are from those of one store. ``exchange``: what it costs a store.
``calls``: what Ray takes for a call of an actor on this machine.

``--store FILE``: bytes a page with content of that store, by what they hold.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sqlite3
import tracemalloc
from collections.abc import Iterator
from contextlib import closing, suppress
from heapq import heapify, heappop, heappush
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import monotonic, process_time
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from freshet.crawler.admission.admit import Admission, Scope
from freshet.crawler.admission.traps import TrapLimits
from freshet.crawler.extensions.shards import shard as running
from freshet.crawler.extensions.shards.shard import Coordinator, Shard
from freshet.crawler.run.pagerank import MASS, hashes, outflow, pagerank, ranked
from freshet.scheduler.arrays import Floats
from freshet.scheduler.solve.budget import Hosts
from freshet.scheduler.solve.demand import IntervalDemand
from freshet.scheduler.solve.shared_price import PRICES, DemandCurve
from freshet.storage.database import Database, open_store, reading
from freshet.storage.records import StoreUpdate, Targets
from freshet.storage.shards import Shards
from freshet.storage.tables import outgoing, runs
from freshet.storage.writer import VisitTables
from scripts.benchmarks import command
from scripts.benchmarks.shards import population

_MINUTE_S, _HOUR_S, _DAY_S = 60.0, 3_600.0, 86_400.0
#: Of the shards, so many are killed an hour; minutes until one is back, on the mean.
_KILLED, _BACK_MINUTES = 0.01, 3.0
#: As a shard does that had no answer.
_AGAIN_S = 2.0
_HOSTS, _LATENCY_S = 2_000, 0.002
_SHARES = (0.05, 0.2, 0.5)
_ROUNDS = (0, 1, 2, 3, 7, 14)


# -- coordinator -------------------------------------------------------------


def messages(shards: int, rng: np.random.Generator) -> list[bytes]:
    """The demand of shards whose sizes spread over three decades."""
    table, site = population(20_000, 1)
    curves = list[Floats]()
    for part in range(32):
        rows = np.flatnonzero(site % 32 == part)
        demand = IntervalDemand(table.importance[rows], table.change_rate[rows])
        curves.append(DemandCurve.of(demand).rates / len(rows))
    sizes = rng.lognormal(12.0, 1.5, shards)
    return [DemandCurve(size * curves[k % 32]).message() for k, size in enumerate(sizes)]


def curves() -> dict[str, float]:
    """Milliseconds in which a shard with so many pages makes its demand curve, by what it knows."""
    found, rng = dict[str, float](), np.random.default_rng(2)
    for pages in (10_000, 100_000, 1_000_000):
        demand = IntervalDemand(rng.lognormal(0.0, 1.0, pages), rng.lognormal(-2.0, 1.0, pages))
        hosts = Hosts(rng.integers(0, pages // 500, pages), np.full(pages // 500, 1e4))
        began = process_time()
        DemandCurve.of(demand, hosts)
        found[f"{pages}"] = round(1e3 * (process_time() - began))
    return found


class Simulated:
    """Shards that report to a coordinator, some of which are killed; times in seconds."""

    def __init__(self, shards: int, hours: int) -> None:
        self.rng = np.random.default_rng(1)
        self.demand = messages(shards, self.rng)
        total = np.sum([DemandCurve.read(message).rates for message in self.demand], axis=0)
        self.budget = float(total[len(PRICES) // 2]) / 3
        self.coordinator: Coordinator | None = Coordinator(self.budget, shards, 0.0)
        self.share, self.since = np.zeros(shards), np.zeros(shards)
        self.up, self.spent = np.ones(shards, np.bool_), np.zeros(hours + 1)
        self.cpu, self.reports, self.most = 0.0, 0, 0.0
        kills = self.rng.uniform(0, hours * _HOUR_S, int(shards * _KILLED * hours))
        self.events: list[tuple[float, str, int]] = [
            *((float(at), "report", k)
              for k, at in enumerate(self.rng.uniform(0, _MINUTE_S, shards))),
            *((float(at), "kill", int(self.rng.integers(shards))) for at in kills),
            *((hour * _HOUR_S, "settle", k)
              for hour in range(1, hours + 1) for k in range(shards)),
            (2 * _HOUR_S, "away", 0), (2 * _HOUR_S + _MINUTE_S, "there", 0),
        ]  # fmt: skip
        heapify(self.events)

    def run(self, until: float) -> None:
        """Go through all events."""
        while self.events and self.events[0][0] <= until:
            now, what, shard = heappop(self.events)
            if what == "away":
                self.coordinator = None
            elif what == "there":
                self.coordinator = Coordinator(self.budget, len(self.share), now)
            else:
                hour = int(self.since[shard] // _HOUR_S)
                self.spent[hour] += self.share[shard] * (now - self.since[shard]) / _DAY_S
                self.since[shard] = now
                self._happens(what, shard, now)

    def _happens(self, what: str, shard: int, now: float) -> None:
        if what == "kill" and self.up[shard]:
            self.up[shard], self.share[shard] = False, 0.0
            back = now + _MINUTE_S * self.rng.exponential(_BACK_MINUTES)
            heappush(self.events, (float(back), "back", shard))
        elif what == "back":
            self.up[shard] = True
            heappush(self.events, (now, "report", shard))
        elif what == "report" and self.up[shard]:
            soon = running.REPORTED_S if self.report(shard, now) else _AGAIN_S
            heappush(self.events, (now + soon, "report", shard))

    def report(self, shard: int, now: float) -> bool:
        """Report, and go by the answer; return whether there was one."""
        if self.coordinator is None:
            return False
        began = process_time()
        share = float(self.share[shard]) or None
        answer = self.coordinator.report(shard, self.demand[shard], share, now)
        self.cpu, self.reports = self.cpu + process_time() - began, self.reports + 1
        if answer is not None:
            self.share[shard] = answer[1]
            self.most = max(self.most, float(self.share.sum()))
        return answer is not None


def coordinated(shards: int, hours: int) -> dict[str, object]:
    """What the coordinator takes, and how well the budget is kept."""
    simulated = Simulated(shards, hours)
    tracemalloc.start()
    coordinator = Coordinator(simulated.budget, shards, 0.0)
    for shard in range(shards):
        coordinator.report(shard, simulated.demand[shard], None, 0.0)
    memory = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    simulated.run(hours * _HOUR_S)
    spent = simulated.spent[:hours] / (simulated.budget / 24)
    return {
        "shards": shards,
        "cpu_ms_a_shard_and_minute": round(1e3 * simulated.cpu / simulated.reports, 3),
        # Shard and share go there, price and share come back.
        "bytes_a_minute": shards * (len(simulated.demand[0]) + 8 + 8 + 16),
        "memory_mb": round(memory / 1e6, 2),
        "spent_by_hour": [round(float(each), 5) for each in spent],
        "most_shares_at_once": round(simulated.most / simulated.budget, 6),
    }


# -- outbox ------------------------------------------------------------------


class Store:
    """A store, and what admits pages to it."""

    def __init__(self, database: Database, run: int, *, ours: bool) -> None:
        self.database, self.tables = database, VisitTables(run)
        scope = Scope("domain", ["http://h0.example/"])
        self.admission = Admission(scope, TrapLimits(), is_ours=lambda _: ours)

    @classmethod
    async def made(cls, path: Path, *, ours: bool) -> Store:
        """A new store, to which all pages belong that it is told of, or none."""
        database = await open_store(path)
        run = await database.write(lambda db: runs.start(db, 0.0, "{}"))
        return cls(database, run, ours=ours)

    async def close(self) -> int:
        """Close; return how many pages there were."""
        rows = await self.database.reader.execute_fetchall("SELECT count(*) FROM page")
        await self.database.close()
        return int(next(iter(rows))[0])


class Post:
    """Carries messages to a store, with a latency each way; what comes meanwhile is one commit."""

    def __init__(self, to: Store) -> None:
        self._to, self._lock, self._waiting = to, asyncio.Lock(), list[StoreUpdate]()
        self.cpu, self.messages, self.bytes = 0.0, 0, 0

    async def send(self, _shard: int, message: bytes) -> bool:
        """Admit the pages as :meth:`Shard.take` does."""
        await asyncio.sleep(_LATENCY_S)
        began, targets = process_time(), Targets()
        for url, fetch_url, role, depth, redirects in json.loads(message):
            self._to.admission.add(
                targets, url, fetch_url, depth=depth, role=role, redirects=redirects
            )
        self._waiting.append(StoreUpdate(0.0, targets=targets))
        self.cpu += process_time() - began
        self.messages, self.bytes = self.messages + 1, self.bytes + len(message)
        async with self._lock:
            if self._waiting:
                batch, self._waiting, began = self._waiting, [], process_time()
                await self._to.tables.write(self._to.database, batch)
                self.cpu += process_time() - began
        await asyncio.sleep(_LATENCY_S)
        return True


async def acknowledged(store: Store) -> float:
    """Wait until nothing is left to tell; return how many seconds that took."""
    began = monotonic()
    while await outgoing.waiting(store.database.reader, 0, 1):  # noqa: ASYNC110 - as others see it
        await asyncio.sleep(0.02)
    return monotonic() - began


async def told(pages: int, shards: int, folder: Path) -> dict[str, object]:
    """Tell of so many pages, found 100 at a time, and admit them."""
    here = await Store.made(folder / f"here{shards}.db", ours=False)
    there = await Store.made(folder / f"there{shards}.db", ours=True)
    shard, post, committed = Shard(Shards(folder, shards), 0), Post(there), asyncio.Event()
    shard.running = cast(Any, SimpleNamespace(database=here.database, committed=committed))
    domains = [f"http://h{k}.example" for k in range(_HOSTS)]
    others = [each for each in domains if shard.of(each) != 0]
    telling = asyncio.create_task(shard.tell(post.send))
    began, finding, delays = process_time(), 0.0, list[float]()
    for first in range(0, pages, 100):
        targets = Targets()
        for k in range(first, first + 100):
            at = others[k * 7919 % len(others)]
            url = f"{at}/section{k % 13}/some-article-about-it-{k}.html"
            here.admission.add(targets, url, url, depth=1)
        since = process_time()
        await here.tables.write(here.database, [StoreUpdate(0.0, targets=targets)])
        finding += process_time() - since
        committed.set()
        if first < 500:
            delays.append(await acknowledged(here))
    await acknowledged(here)
    cpu = {"find": finding, "admit": post.cpu}
    cpu["tell"] = process_time() - began - sum(cpu.values())
    telling.cancel()
    with suppress(asyncio.CancelledError):
        await telling
    assert (await here.close(), await there.close()) == (pages, pages)
    return {
        "shards": shards, "pages": pages, "pages_a_message": round(pages / post.messages, 1),
        "bytes_a_page": round(post.bytes / pages),
        "cpu_ms_a_page": {name: round(1e3 * value / pages, 3) for name, value in cpu.items()},
        "bytes_a_row": round((folder / f"here{shards}.db").stat().st_size / pages),
        "seconds_until_acknowledged": round(median(delays), 2),
    }  # fmt: skip


# -- calls -----------------------------------------------------------------------


class _Answers:
    """An actor that takes messages, and does nothing with them."""

    async def take(self, _message: bytes) -> float:
        """Return the CPU time of this process."""
        return process_time()


async def _called() -> dict[str, object]:
    """Milliseconds of a call of an actor: alone, and CPU time where many are under way."""
    import ray

    made: Any = ray.remote(_Answers).options(num_cpus=0)
    actor, message = made.remote(), bytes(300)
    await actor.take.remote(message)
    alone = list[float]()
    for _ in range(200):
        began = monotonic()
        await actor.take.remote(message)
        alone.append(monotonic() - began)
    callee, caller = await actor.take.remote(message), process_time()
    for _ in range(40):
        await asyncio.gather(*(actor.take.remote(message) for _ in range(50)))
    caller, callee = process_time() - caller, await actor.take.remote(message) - callee
    return {"ms_alone": round(1e3 * median(alone), 2), "caller_cpu_ms": round(caller / 2, 2),
            "callee_cpu_ms": round(callee / 2, 2)}  # fmt: skip


def called() -> dict[str, object]:
    """What a call costs, with a local Ray; nothing without the extra."""
    try:
        from freshet.crawler.extensions.shards.ray_actors import connected
    except ImportError:
        return {}
    with TemporaryDirectory() as folder, connected(None, Path(folder)):
        return asyncio.run(_called())


# -- masses ------------------------------------------------------------------


def exchanged(pages: int, shards: int, crossing: float) -> dict[str, object]:
    """Rounds on a graph of sites; links to other sites are ``crossing`` of all."""
    rng = np.random.default_rng(3)
    weight = 1 / np.arange(1.0, pages // 50 + 1)
    site = np.sort(rng.choice(len(weight), pages, p=weight / weight.sum()))
    first, size = np.searchsorted(site, site), np.bincount(site)[site]
    source = np.repeat(np.arange(pages), rng.poisson(10, pages) + 1)
    # Squares of even numbers: the first pages of a site have the most links.
    inside = first[source] + (rng.random(len(source)) ** 2 * size[source]).astype(np.int64)
    far = rng.integers(pages, size=len(source))
    outside = first[far] + (rng.random(len(source)) ** 3 * size[far]).astype(np.int64)
    target = np.where(rng.random(len(source)) < crossing, outside, inside)
    own = rng.permutation(len(weight))[site] % shards
    leaves = own[source] != own[target]
    # All shards at once: a page stands once more in each shard that links to it.
    pairs, copy = np.unique((own[source] * pages + target)[leaves], return_inverse=True)
    led = target.copy()
    led[leaves] = pages + copy
    wanted = _shares(pagerank(np.ones(pages), source, target), site)
    inflow, errors = np.zeros(pages, np.float64), dict[str, list[float]]()
    for number in range(max(_ROUNDS) + 1):
        given = np.append(1 + inflow, np.zeros(len(pairs)))
        mass = pagerank(given, source, led)
        if number in _ROUNDS:
            off = np.abs(_shares(mass[:pages], site) / wanted - 1)
            errors[f"{number}"] = [float(f"{x:.1e}") for x in (off.mean(), np.quantile(off, 0.99))]
        inflow[:] = np.bincount(pairs % pages, mass[pages:], minlength=pages)
    return {
        "pages": pages, "shards": shards, "leaving": round(float(leaves.mean()), 3),
        "told_a_page": round(len(pairs) / pages, 2),
        "error_by_rounds_mean_and_99th_percentile": errors,
    }  # fmt: skip


def _shares(mass: Floats, site: np.ndarray[Any, np.dtype[np.int64]]) -> Floats:
    return np.asarray(mass / (np.bincount(site, mass) / np.bincount(site).clip(1))[site])


#: Odd ids are own pages, even ones pages of another shard; each own page has ten links.
_GRAPH = """
INSERT INTO host (id, origin) VALUES (1, 'http://h0.example');
WITH RECURSIVE n(k) AS (VALUES (1) UNION ALL SELECT k + 1 FROM n WHERE k < 2 * {pages})
INSERT INTO page (id, url, fetch_url, host_id, depth, found_at, found_run_id, held_back)
SELECT k, format('http://h%d.example/section/some-article-about-it-%d.html', k / 500, k), '', 1, 1,
    0, 1, CASE k % 2 WHEN 0 THEN 'shard' END FROM n;
WITH RECURSIVE n(k) AS (VALUES (0) UNION ALL SELECT k + 1 FROM n WHERE k < 10 * {pages})
INSERT OR IGNORE INTO link (src_id, dst_id, position, rel, anchor, first_seen_at, last_seen_at)
SELECT 1 + 2 * (k / 10), 1 + abs(random()) % (2 * {pages}), 0, '', '', 0, 0 FROM n
WHERE k < 10 * {pages};
"""


async def stored(pages: int, path: Path) -> dict[str, object]:
    """CPU seconds of telling and weighing, with as many pages of other shards as own ones."""
    database = (await Store.made(path, ours=True)).database
    await database.close()
    with closing(sqlite3.connect(path)) as db:
        db.executescript(_GRAPH.format(pages=pages))
        urls = [row[0] for row in db.execute("SELECT url FROM page WHERE id % 4 = 1")]
        inflow = np.empty(len(urls), MASS)
        inflow["page"], inflow["mass"] = hashes(urls), 0.5
        outgoing.take_inflow(db, 1, inflow.tobytes())
        db.commit()
    async with reading(path) as reader:
        began = process_time()
        told = await outflow(reader, lambda url: len(url) % 2)
        telling = process_time() - began
        await ranked(reader)
        weighing = process_time() - began - telling
    return {"pages": pages, "links": 10 * pages, "told_cpu_s": round(telling, 2),
            "weighed_cpu_s": round(weighing, 2), "bytes": sum(map(len, told.values())),
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}  # fmt: skip


# -- bytes -------------------------------------------------------------------

_HOLDS = {
    "bodies": ("body",), "versions": ("version",), "links": ("link", "offsite_link"),
    "search": ("search_",), "pages": ("page", "host", "robots", "seed", "frontier"),
    "visits": ("observation", "churn", "change", "claim"), "near_duplicates": ("lsh",),
    "learnt": ("snapshot", "estimate", "memory"),
}  # fmt: skip


def weighed(store: Path) -> dict[str, object]:
    """Bytes a page with content, by what they hold, and rows."""
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as db:
        rows = db.execute(
            "SELECT coalesce(m.tbl_name, s.name), sum(s.pgsize) FROM dbstat AS s "
            "LEFT JOIN sqlite_master AS m ON m.name = s.name GROUP BY 1"
        ).fetchall()
        counts = {
            table: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("page", "link", "offsite_link", "observation")
        }
        (pages,) = db.execute("SELECT count(*) FROM page WHERE version_id NOT NULL").fetchone()
    found = dict.fromkeys([*_HOLDS, "other"], 0)
    for table, size in rows:
        found[next(_of(table), "other")] += size
    return {"pages_with_content": pages, "rows": counts,
            "bytes_a_page": {name: round(size / pages) for name, size in found.items()},
            "all": round(sum(found.values()) / pages)}  # fmt: skip


def _of(table: str) -> Iterator[str]:
    return (name for name, starts in _HOLDS.items() if table.startswith(starts))


def main() -> None:
    """The command."""
    parser = command.arguments(__doc__)
    parser.add_argument("--shards", type=int, default=1_000, help="that report")
    parser.add_argument("--hours", type=int, default=3, help="that they report for")
    parser.add_argument("--pages", type=int, default=100_000, help="of the graph")
    parser.add_argument("--store", type=Path, metavar="FILE", help="instead: weigh this store")
    given = parser.parse_args()
    if given.store is not None:
        command.finish(weighed(given.store), given.output)
        return
    with command.workspace() as folder:
        exchange = asyncio.run(stored(given.pages, folder / "masses.db"))
        outbox = [asyncio.run(told(4_000, shards, folder)) for shards in (2, 100, given.shards)]
    command.say("outbox done")
    masses = [exchanged(given.pages, 8, share) for share in _SHARES]
    masses.append(exchanged(given.pages, given.shards, _SHARES[1]))
    command.say("masses done")
    coordinator = [coordinated(n, given.hours) for n in (100, given.shards)]
    command.finish(
        {
            "coordinator": coordinator,
            "outbox": outbox,
            "masses": masses,
            "exchange": exchange,
            "calls": called(),
            "curves": curves(),
        },
        given.output,
    )
