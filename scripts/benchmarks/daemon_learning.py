"""What learning and replanning cost a daemon of very many pages, and what fetching feels of it.

A store with so many pages, 500 a host, each visited several times, is opened by the agenda of a
daemon as it is. What is measured: a visit to its start (the law of the visits is that of pages
that change at Poisson times, those of a host also together now and then), the CPU of one valuation
(learning from what came and looking over all pages), and how late the event loop is meanwhile, at
most: so much later may a fetch begin.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from random import Random
from time import perf_counter, process_time

import numpy as np

from freshet.crawler.importance import areas
from freshet.scheduler.agenda.rankers import ranker_of
from freshet.scheduler.agenda.recrawl import RecrawlAgenda
from freshet.scheduler.agenda.terms import Terms, TermsOf
from freshet.scheduler.arrays import Ints
from freshet.storage.database import open_store
from scripts.benchmarks import command

_OF_A_HOST = 500
_LOOKS = 4
_BEGIN = 1_800_000_000.0
_DAY_S = 86_400.0
_TICK_S = 0.002
_ROUNDS = 5


def measured(pages: int, policy: str, directory: Path) -> dict[str, object]:
    """The figures, in JSON values."""
    path = directory / "many.db"
    visits = asyncio.run(_filled(path, pages))
    return {"pages": pages, "hosts": -(-pages // _OF_A_HOST), "policy": policy} | asyncio.run(
        _kept(path, pages, visits, policy)
    )


async def _filled(path: Path, pages: int) -> int:
    """A store of so many pages; how many visits to them it holds."""
    await (await open_store(path)).close()
    rng = np.random.default_rng(1)
    rate = np.exp(rng.normal(np.log(0.02), 1.5, pages))
    connection = sqlite3.connect(path)
    hosts = -(-pages // _OF_A_HOST)
    command.say(f"filling a store with {pages:,} pages of {hosts:,} hosts")
    with connection:
        connection.execute(
            "INSERT INTO crawl_run (id, started_at, state, settings) "
            "VALUES (1, ?, 'running', '{}')",
            (_BEGIN,),
        )
        connection.executemany(
            "INSERT INTO host (id, origin) VALUES (?, ?)",
            ((n + 1, f"https://h{n}.example") for n in range(hosts)),
        )
        connection.executemany(
            "INSERT INTO page (id, url, fetch_url, host_id, depth, found_at, found_run_id, "
            "last_kind, last_at, checked_at) "
            "VALUES (?1, ?2, ?2, ?3, 1, ?4, 1, 'unchanged', ?5, ?5)",
            (
                (n + 1, f"https://h{n // _OF_A_HOST}.example/{n % 7}/p{n}.html",
                 n // _OF_A_HOST + 1, _BEGIN, _at(_LOOKS - 1, n, pages))
                for n in range(pages)
            ),
        )  # fmt: skip
        for turn in range(_LOOKS):
            changed = rng.random(pages) < -np.expm1(-rate * 5)
            kinds = ["changed" if differs else "unchanged" for differs in changed.tolist()]
            connection.executemany(
                "INSERT INTO observation (page_id, run_id, at, kind, duration_s) "
                "VALUES (?, 1, ?, ?, 0.1)",
                ((n + 1, _at(turn, n, pages), kinds[n] if turn else "new") for n in range(pages)),
            )
    connection.close()
    return pages * _LOOKS


def _at(turn: int, page: int, pages: int) -> float:
    """All pages are visited in turn, hosts alternating, every five days."""
    return _BEGIN + (turn + (page * 7919 % pages) / pages) * 5 * _DAY_S


async def _kept(path: Path, pages: int, visits: int, policy: str) -> dict[str, object]:
    database = await open_store(path)
    ranker = ranker_of(policy, pages / 5)
    now = _BEGIN + (_LOOKS * 5 + 1) * _DAY_S
    agenda = RecrawlAgenda(database.reader, ranker, _terms_of(), Random(1), many=20_000)
    hosts = -(-pages // _OF_A_HOST)
    command.say("opening it, which learns")
    opened, cpu = perf_counter(), process_time()
    await agenda.open()
    start_s, start_cpu_s = perf_counter() - opened, process_time() - cpu
    rounds = [await _round(agenda, hosts, now + 61.0 * turn) for turn in range(_ROUNDS)]
    await agenda.rest()
    await database.close()
    return {
        "visits": visits,
        "start_s": round(start_s, 1),
        "start_cpu_us_a_look": round(1e6 * start_cpu_s / visits, 1),
        "replan_cpu_s": round(max(spent for spent, _ in rounds[1:]), 3),
        "goal_replan_cpu_s": 2.0,
        "late_ms": round(1e3 * max(late for _, late in rounds[1:]), 1),
        "goal_late_ms": 50.0,
    }


def _terms_of() -> TermsOf:
    area_of = areas()

    def terms(_page_id: Ints, urls: Sequence[str], _origins: Sequence[str]) -> Terms:
        n = len(urls)
        none = np.zeros(n)
        never = none.astype(np.bool_)
        return Terms(area_of(urls), np.ones(n), never, none, none + np.inf, none + np.nan)

    return terms


async def _round(agenda: RecrawlAgenda, hosts: int, now: float) -> tuple[float, float]:
    """One replanning while a fetch would like to begin every two milliseconds."""
    woken = asyncio.Event()
    agenda.wake = woken.set
    late, ended = 0.0, asyncio.Event()

    async def fetch() -> None:
        nonlocal late
        while not ended.is_set():
            due = perf_counter() + _TICK_S
            await asyncio.sleep(_TICK_S)
            late = max(late, perf_counter() - due)

    fetching = asyncio.create_task(fetch())
    await asyncio.sleep(5 * _TICK_S)
    cpu = process_time()
    await agenda.replenish(now)
    await woken.wait()
    await agenda.replenish(now)
    spent = process_time() - cpu
    ended.set()
    await fetching
    # What was brought in is asked for, so that the next round has as much to bring.
    ready = frozenset(range(1, hosts + 1))
    while agenda.next(ready, now) is not None:
        pass
    return spent, late
