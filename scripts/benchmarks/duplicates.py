"""Near-duplicates at scale: the LSH index of a store with so many sketches."""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Any

import numpy as np

from freshet.crawler.compare.near_duplicates import BUCKET_SIZE, bucket_keys
from freshet.crawler.reduce.sketch import PERMUTATIONS, Sketch, sketch
from freshet.storage.database import open_store, reading
from freshet.storage.tables import near_duplicates
from scripts.benchmarks import command
from scripts.benchmarks.memory_watch import MemoryWatch

_BLOCKS = 20
_BATCH = 10_000
#: One page in ten is a copy of an earlier one, with so many of its minima replaced.
_COPIES = 10
_REPLACED = (0, 2, 6)

_VERB = (
    "import typer; from freshet.crawler.cli import duplicates as d; typer.run(d.duplicates_command)"
)

_Row = tuple[int, bytes]


def fill(store: Path, count: int) -> int:
    """A store with so many pages of one version each; the number of copies among them."""
    asyncio.run(_create(store))
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("INSERT INTO crawl_run VALUES (1, 0, 1, 'ended', 0, '{}')")
        connection.execute("INSERT INTO host (id, origin) VALUES (1, 'https://a.example')")
        for rows in _batches(count):
            _insert(connection, rows)
            connection.commit()
    return count // _COPIES


async def _create(store: Path) -> None:
    await (await open_store(store)).close()


def _batches(count: int) -> Iterator[list[_Row]]:
    """Page ids and sketches; every tenth page is a copy of the one before it."""
    generator = np.random.default_rng(1)
    page = sketch([f"a block of text, number {n}" for n in range(_BLOCKS)])
    for start in range(0, count, _BATCH):
        n = min(_BATCH, count - start)
        minima = generator.integers(0, 1 << 32, (n, PERMUTATIONS), dtype=np.uint32)
        for i in range(_COPIES - 1, n, _COPIES):
            replaced = _REPLACED[i // _COPIES % len(_REPLACED)]
            minima[i, replaced:] = minima[i - 1, replaced:]
        digests = [generator.bytes(16) for _ in range(n)]
        yield [
            (start + i + 1, replace(page, minima=minima[i], text_digest=digests[i]).to_bytes())
            for i in range(n)
        ]


def _insert(connection: sqlite3.Connection, rows: list[_Row]) -> None:
    ids = [{"id": page_id} for page_id, _ in rows]
    connection.executemany(
        "INSERT INTO page (id, url, fetch_url, host_id, depth, found_at, found_run_id, last_kind, "
        "text_digest, version_id) VALUES (:id, 'https://a.example/' || :id, '', 1, 1, 0, 1, 'new', "
        "x'00', :id)",
        ids,
    )
    connection.executemany(
        "INSERT INTO version (id, page_id, at, body_digest, text_digest, sketch) "
        "VALUES (?, ?, 0, x'00', x'00', ?)",
        [(page_id, page_id, sketch) for page_id, sketch in rows],
    )
    connection.executemany(
        "INSERT INTO observation (id, page_id, run_id, at, kind, duration_s, version_id) "
        "VALUES (:id, :id, 1, 0, 'new', 0, :id)",
        ids,
    )


def build(store: Path) -> dict[str, Any]:
    """The index as ``freshet duplicates --update`` builds it, in a process of its own."""
    before, start = _bytes(store), perf_counter()
    arguments = ["--db", str(store), "--update", "--json", "--limit", "1"]
    with (
        subprocess.Popen(
            [sys.executable, "-c", _VERB, *arguments], stdout=subprocess.PIPE
        ) as process,
        MemoryWatch(process.pid) as watch,
    ):
        told = process.communicate()[0]
    if process.returncode:
        raise SystemExit(f"freshet duplicates ended with {process.returncode}")
    state = json.loads(told)["state"]
    return {
        "seconds": round(perf_counter() - start, 1),
        "peak_mb": watch.peaks(),
        "index_mb": round((_bytes(store) - before) / 1e6, 1),
        "groups": state["groups"],
        "duplicates": state["duplicates"],
    }


def _bytes(store: Path) -> int:
    """The size of the store without what its log holds."""
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return store.stat().st_size


async def query(store: Path, queries: int) -> dict[str, Any]:
    """Milliseconds to find the candidates of one sketch, one query after the other."""
    times = []
    chance = random.Random(1)
    async with reading(store) as reader:
        parameters = await near_duplicates.parameters(reader)
    if parameters is None:
        raise SystemExit("the index is empty")
    banding = parameters.bands, parameters.band_rows
    with closing(sqlite3.connect(store)) as connection:
        ((pages,),) = connection.execute("SELECT max(id) FROM page")
        for page_id in chance.sample(range(1, pages + 1), queries):
            (sketch,) = near_duplicates.sketches(connection, [page_id]).values()
            start = perf_counter()
            keys = bucket_keys(Sketch.from_bytes(sketch), banding)
            near_duplicates.buckets(connection, keys, BUCKET_SIZE)
            times.append(1e3 * (perf_counter() - start))
    return {
        "threshold": parameters.threshold,
        "bands": parameters.bands,
        "rows": parameters.band_rows,
        "query_ms": {
            "median": round(median(times), 3),
            "p99": round(quantiles(times, n=100)[-1], 3),
        },
    }


def main() -> None:
    """The command ``scripts/bench duplicates``."""
    parser = command.arguments(__doc__)
    parser.add_argument("--sketches", type=int, default=1_000_000, help="pages in the store")
    parser.add_argument("--queries", type=int, default=1_000, help="queries that are timed")
    chosen = parser.parse_args()
    with command.workspace() as directory:
        store = directory / "store.db"
        copies = fill(store, chosen.sketches)
        command.say(f"{chosen.sketches} sketches, {copies} of them copies")
        built = build(store)
        command.say(f"index: {built}")
        asked = asyncio.run(query(store, min(chosen.queries, chosen.sketches)))
        command.finish(
            {"sketches": chosen.sketches, "copies": copies, "index": built} | asked, chosen.output
        )
