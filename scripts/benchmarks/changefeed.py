"""A consumer that copies a whole store by its changefeed, with documents: CPU time and memory.

The store is made of the synthetic calm site's pages. The consumer reads it twice: at first each
document is made from its bytes, then it comes out of the cache.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from time import monotonic
from typing import Any

import zstandard

from freshet.storage.database import open_store
from scripts.benchmarks import command
from scripts.benchmarks.changefeed_waiting import waited
from scripts.benchmarks.memory_watch import MemoryWatch
from scripts.benchmarks.site_contents import Calm

_ORIGIN = "http://calm.example"
_AT = 1.8e9


def filled(store: Path, calm: Calm) -> int:
    """Make a store of all pages of a site, each visited once; return the bytes of the bodies."""
    asyncio.run(_made(store))
    total = 0
    with closing(sqlite3.connect(store)) as db, db:
        db.execute(
            "INSERT INTO crawl_run (started_at, state, settings) VALUES (?, 'ended', '{}')", (_AT,)
        )
        db.execute("INSERT INTO host (origin) VALUES (?)", (_ORIGIN,))
        for n in range(1, calm.pages + 1):
            body = calm.body(n - 1)
            total += len(body)
            digest, url = n.to_bytes(16, "big"), _ORIGIN + calm.path(n - 1)
            db.execute(
                "INSERT INTO page (url, fetch_url, host_id, depth, found_at, found_run_id, "
                "last_kind, last_at, checked_at, body_digest, version_id) "
                "VALUES (?, ?, 1, 1, ?, 1, 'new', ?, ?, ?, ?)",
                (url, url, _AT, _AT, _AT, digest, n),
            )
            db.execute(
                "INSERT INTO version (page_id, at, body_digest, content_type) "
                "VALUES (?, ?, ?, 'text/html; charset=utf-8')", (n, _AT, digest),
            )  # fmt: skip
            packed = zstandard.compress(body, 3)
            db.execute("INSERT INTO body VALUES (?, ?, ?, ?)", (digest, _AT, len(body), packed))
            db.execute(
                "INSERT INTO observation (page_id, run_id, at, kind, duration_s, version_id) "
                "VALUES (?, 1, ?, 'new', 0.1, ?)", (n, _AT, n),
            )  # fmt: skip
            db.execute(
                "INSERT INTO change (page_id, kind, at, version_id, observation_id) "
                "VALUES (?, 'new', ?, ?, ?)", (n, _AT, n, n),
            )  # fmt: skip
    return total


async def _made(store: Path) -> None:
    await (await open_store(store)).close()


def copied(store: Path) -> dict[str, Any]:
    """Read the whole changefeed with documents, as a consumer does through a pipe."""
    program = str(Path(sys.executable).with_name("freshet"))
    words = [program, "changefeed", "--db", str(store), "--include-docs"]
    before, began = os.times(), monotonic()
    documents = size = 0
    with (
        subprocess.Popen(words, stdout=subprocess.PIPE) as process,
        MemoryWatch(process.pid) as watch,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            documents += b'"doc"' in line
            size += len(line)
    after = os.times()
    cpu_s = after.children_user + after.children_system
    cpu_s -= before.children_user + before.children_system
    resident = [sample.resident / 1e6 for sample in watch.samples]
    half = resident[len(resident) // 2 :] or [0.0]
    return {
        "documents": documents,
        "megabytes": round(size / 1e6, 1),
        "cpu_s": round(cpu_s, 2),
        "documents_per_cpu_s": round(documents / cpu_s),
        "seconds": round(monotonic() - began, 1),
        "peak_mb": round(max(resident, default=0.0), 1),
        "grown_in_second_half_mb": round(half[-1] - half[0], 1),
    }


def main() -> None:
    """The command ``scripts/bench changefeed``."""
    parser = command.arguments(__doc__)
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument(
        "--waiting", type=int, nargs="?", const=1_000, metavar="N", help="instead, so many readers"
    )
    parser.add_argument("--bytes", type=int, nargs=2, default=(6_000, 20_000), help="of a page")
    chosen = parser.parse_args()
    with command.workspace() as directory:
        store = directory / "store.db"
        least, most = chosen.bytes
        calm = Calm(chosen.pages, min_bytes=least, max_bytes=most)
        size = filled(store, calm)
        command.say(f"{chosen.pages} pages, {size / 1e6:.0f} MB")
        if chosen.waiting is not None:
            command.finish(waited(store, chosen.waiting), chosen.output)
            return
        result = {"pages": chosen.pages, "bodies_mb": round(size / 1e6, 1)}
        command.finish(
            result | {"made": copied(store), "from_the_cache": copied(store)}, chosen.output
        )
