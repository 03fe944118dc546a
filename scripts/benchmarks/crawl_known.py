"""What a crawl costs into a store that knows many other pages, beside one into an empty store.

The other pages are of other hosts, have a version and a body each, and are not due: they are out of
scope. What the store keeps was deleted as the settings say, and its near-duplicates were grouped.
"""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from scripts.benchmarks import command, large_store
from scripts.benchmarks.crawl_competitors import Concurrency, freshet, prepared, run
from scripts.benchmarks.crawl_figures import spread
from scripts.benchmarks.crawl_nginx import Served
from scripts.benchmarks.crawl_tree import Tree

_HOSTS, _VISITS = 200, 2
_BODY_BYTES = 1_000
_PROGRAM = "from freshet.crawler.cli import run; run()"
_FILL = f"""
BEGIN;
CREATE TEMP TABLE bare AS SELECT id, randomblob(16) AS digest FROM page
WHERE id NOT IN (SELECT page_id FROM version);
INSERT INTO body SELECT digest, 0, {4 * _BODY_BYTES}, randomblob({_BODY_BYTES}) FROM bare;
INSERT INTO version (page_id, at, body_digest, text_digest, content_type)
SELECT id, 0, digest, digest, 'text/html' FROM bare;
UPDATE page SET held_back = 'scope', version_id =
    (SELECT max(id) FROM version WHERE page_id = page.id);
INSERT OR IGNORE INTO change (page_id, kind, at, version_id, title)
SELECT id, 'new', last_at, version_id, title FROM page;
DELETE FROM frontier;
DELETE FROM seed;
UPDATE crawl_run SET state = 'ended', ended_at = started_at;
INSERT OR REPLACE INTO lsh SELECT 1, 0.9, 9, 14, max(id) FROM observation;
COMMIT;
"""


def store_of(known: int, path: Path) -> Path:
    """Make the store."""
    large_store.make(path, known, _VISITS * known, _HOSTS)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript(_FILL)
    clean = [sys.executable, "-c", _PROGRAM, "gc", "--db", str(path)]
    subprocess.run(clean, check=True, stdout=subprocess.DEVNULL)
    return path


def measure(
    tree: Tree, served: Served, concurrency: Concurrency, rounds: int, known: int, directory: Path
) -> dict[str, object]:
    """Crawl into both stores, in turn; CPU time in units of the empty one's of the same round."""
    store = store_of(known, directory / "known.db")
    ratios, cpu_s = list[float](), dict[str, list[float]]({"empty": [], "known": []})
    for number in range(rounds):
        taken = dict[str, float]()
        for which in (("empty", "known"), ("known", "empty"))[number % 2]:
            place = directory / f"{which}-{number}"
            crawler = freshet(place, prepared(place, served), concurrency)
            if which == "known":
                shutil.copyfile(store, place / "store.db")
            measured = run(crawler, served, directory / f"{which}.log")
            command.say(f"round {number + 1}, {which}: {measured.cpu_s:.2f} CPU-s")
            taken[which] = measured.cpu_s
            cpu_s[which].append(measured.cpu_s)
            shutil.rmtree(place)
        ratios.append(taken["known"] / taken["empty"])
    return {
        "tree": tree.summary(),
        "known_pages": known,
        "rounds": rounds,
        "cpu_s": {which: spread(values) for which, values in cpu_s.items()},
        "known / empty": spread(ratios, 3),
    }
