"""kill -9 of a daemon and of a consumer of its changefeed, at random moments.

The daemon keeps a synthetic web fresh whose days pass in seconds. The consumer keeps a mirror: each
entry and its cursor in one transaction. Kills meet the daemon, the consumer or both; between them
the store is compacted, and once put back to a backup. In the end the consumer catches up, and its
mirror must be what the store holds, byte for byte, and what plain SQL says that it should hold.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import AbstractContextManager, closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

from scripts.benchmarks import command
from scripts.benchmarks.crawling import CrawlProcess, started
from scripts.benchmarks.living_web import UNSLOWED, LivingWeb, Load, living, new_store

SETTINGS = f"[change]\nprobe = false\n[store]\nbodies_per_page = 1\nbody_age_days = 1\n{UNSLOWED}"
LATEST_S = 3.0
_STARTS_WITHIN_S = 60.0
_KILLS_PER_STORE = 20
#: Of the kills of a store: after these it is compacted, backed up, and put back to that backup.
_COMPACTED, _BACKED_UP, _PUT_BACK = 6, 9, 14
_START_ANEW = "start anew"
_MIRROR = (
    "CREATE TABLE IF NOT EXISTS doc (id TEXT PRIMARY KEY, doc TEXT);"
    "CREATE TABLE IF NOT EXISTS told (cursor TEXT, id TEXT, again INTEGER);"
    "CREATE TABLE IF NOT EXISTS place (one INTEGER PRIMARY KEY CHECK (one = 1), cursor TEXT);"
)
#: What should be told, without the tables of the changefeed: the last findings that say anything.
#: A change that proves to be noise later has been told all the same.
_TRUTH = """
    SELECT p.url, coalesce((SELECT hex(v.body_digest) FROM finding AS f JOIN version AS v
        ON v.id = f.version_id WHERE f.page_id = p.id AND f.kind <> 'failed'
        AND (f.kind IN ('new', 'changed') OR f.first_kind IN ('new', 'changed'))
        ORDER BY f.at DESC, f.id DESC LIMIT 1),
        -- A page that has moved and has not changed since.
        (SELECT hex(body_digest) FROM version WHERE id = p.version_id))
    FROM page AS p WHERE p.role = 'page' AND NOT p.noindex AND (
        SELECT kind FROM finding WHERE page_id = p.id AND (kind IN ('new', 'changed', 'unchanged',
        'gone') OR kind = 'redirected' AND status IN (301, 308) AND reason <> 'respelled'
        OR kind = 'refused' AND reason = 'robots') ORDER BY at DESC, id DESC LIMIT 1
    ) IN ('new', 'changed', 'unchanged')
"""


@dataclass(slots=True)
class Findings:
    """What went wrong, which is nothing, and how much there was to go wrong."""

    kills: int = 0
    of_daemon: int = 0
    of_consumer: int = 0
    entries: int = 0
    told_twice: int = 0
    older_after_newer: int = 0
    started_anew: int = 0
    documents: int = 0
    deletions: int = 0
    mirror_differs: int = 0
    store_differs: int = 0
    problems: list[str] = field(default_factory=list)


def consume(store: Path, mirror: Path, feed: str) -> None:
    """Keep a mirror in step, as a program in any language would: lines in, transactions out."""
    with closing(sqlite3.connect(mirror, isolation_level=None)) as db:
        db.executescript(_MIRROR)
        while not _followed(store, db, feed):
            db.execute("BEGIN")
            for table in ("doc", "place"):
                db.execute(f"DELETE FROM {table}")
            db.execute("INSERT INTO told VALUES (?, NULL, 0)", (_START_ANEW,))
            db.execute("COMMIT")


def _followed(store: Path, db: sqlite3.Connection, feed: str) -> bool:
    """Follow until the end; False if the store wants the mirror to be started anew."""
    (since,) = db.execute("SELECT cursor FROM place").fetchone() or ("0",)
    words = [str(Path(sys.executable).with_name("freshet")), "changefeed", "--db", str(store)]
    words += ["--since", since, "--include-docs", "--feed", feed]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as told:
        assert told.stdout is not None
        assert told.stderr is not None
        for line in told.stdout:
            entry = json.loads(line)
            if "seq" in entry:
                _apply(db, entry)
        errors = told.stderr.read()
    if told.returncode and _START_ANEW not in errors:
        raise RuntimeError(errors)
    return told.returncode == 0


def _apply(db: sqlite3.Connection, entry: dict[str, Any]) -> None:
    cursor, name = entry["seq"], entry["id"]
    db.execute("BEGIN")
    again = db.execute("SELECT count(*) FROM told WHERE cursor = ?", (cursor,)).fetchone()[0]
    db.execute("INSERT INTO told VALUES (?, ?, ?)", (cursor, name, again))
    if entry.get("deleted"):
        db.execute("DELETE FROM doc WHERE id = ?", (name,))
    else:
        doc = json.dumps(entry["doc"], ensure_ascii=False)
        db.execute("INSERT OR REPLACE INTO doc VALUES (?, ?)", (name, doc))
    db.execute("INSERT OR REPLACE INTO place VALUES (1, ?)", (cursor,))
    db.execute("COMMIT")


class Trials:
    """Kills daemons and consumers, and compares what they leave."""

    def __init__(self, web: LivingWeb, directory: Path, seed: int) -> None:
        self._web = web
        self._directory = directory
        self._rng = Random(seed)
        self.findings = Findings()

    def run(self, kills: int) -> None:
        """Kill so many times; each store's mirror is compared in the end."""
        while self.findings.kills < kills:
            store = new_store(self._directory, SETTINGS)
            with self._web.daemon(store) as first:
                await_entry(store, first, after=0)
                first.wait(LATEST_S)
                end(first)
            for n in range(min(_KILLS_PER_STORE, kills - self.findings.kills)):
                self._kill(store)
                self._keep_up(store, n)
            self._compare(store)
            command.say(f"{self.findings.kills} kills, {self.findings.mirror_differs} differ")

    def _kill(self, store: Path) -> None:
        whom = self._rng.choice(("daemon", "consumer", "both"))
        with self._web.daemon(store) as daemon, _consumer(store, "continuous") as consumer:
            await_entry(store, daemon, after=newest(store))
            daemon.wait(self._rng.uniform(0, LATEST_S))
            if whom != "consumer":
                daemon.kill()
            if whom != "daemon":
                consumer.kill()
            # Who was not meant goes on for a moment.
            (daemon if whom == "consumer" else consumer).wait(0.3)
            end(daemon)
            consumer.kill()
        self.findings.kills += 1
        self.findings.of_daemon += whom != "consumer"
        self.findings.of_consumer += whom != "daemon"

    def _keep_up(self, store: Path, n: int) -> None:
        backup = store.with_name("backup.db")
        match n:
            case _ if n == _COMPACTED:
                config = store.with_name("freshet.toml")
                run_freshet("gc", "--vacuum", "--db", store, "--config", config)
            case _ if n == _BACKED_UP:
                run_freshet("backup", backup, "--db", store, "--force")
            case _ if n == _PUT_BACK:
                run_freshet("restore", backup, "--db", store, "--force")

    def _compare(self, store: Path) -> None:
        with _consumer(store, "normal") as consumer:
            consumer.wait()
            if consumer.process.returncode:
                self.findings.problems.append(consumer.errors.read_text("utf-8")[-500:])
        whole = {}
        for line in run_freshet("changefeed", "--db", store, "--include-docs").splitlines():
            entry = json.loads(line)
            if "doc" in entry:
                whole[entry["id"]] = json.dumps(entry["doc"], ensure_ascii=False)
        found = self.findings
        with closing(sqlite3.connect(store.with_name("mirror.db"))) as db:
            mirror = dict(db.execute("SELECT id, doc FROM doc"))
            told = db.execute("SELECT cursor, id, again FROM told ORDER BY rowid").fetchall()
        with closing(sqlite3.connect(store)) as db:
            truth = {url: digest.lower() for url, digest in db.execute(_TRUTH) if digest}
        held = {name: json.loads(doc)["digest"] for name, doc in mirror.items()}
        found.documents += len(mirror)
        found.mirror_differs += len(mirror.items() ^ whole.items())
        found.store_differs += len(held.items() ^ truth.items())
        found.problems += [
            f"{name}: mirror {held.get(name)}, store {truth.get(name)}"
            for name in sorted(held.keys() | truth.keys())
            if held.get(name) != truth.get(name)
        ]
        last: dict[str, int] = {}
        for cursor, name, again in told:
            if cursor == _START_ANEW:
                found.started_anew += 1
                last.clear()
                continue
            number = int(cursor.split("-")[1])
            found.entries += 1
            found.told_twice += bool(again)
            found.older_after_newer += number < last.get(name, 0)
            last[name] = number
        found.deletions += len(last.keys() - mirror.keys())


def _consumer(store: Path, feed: str) -> AbstractContextManager[CrawlProcess]:
    words = [sys.executable, "-m", "scripts.benchmarks.changefeed_kill"]
    mirror = store.with_name("mirror.db")
    return started([*words, str(store), str(mirror), feed], store.parent / "consumer")


def newest(store: Path) -> int:
    """Return the number of the last change, 0 without a store."""
    if not store.exists():
        return 0
    with closing(sqlite3.connect(store)) as db:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'change'").fetchone():
            return 0
        return int(db.execute("SELECT coalesce(max(seq), 0) FROM change").fetchone()[0])


def await_entry(store: Path, daemon: CrawlProcess, after: int) -> None:
    give_up_at = monotonic() + _STARTS_WITHIN_S
    while newest(store) <= after and monotonic() < give_up_at:
        if daemon.wait(0.05):
            raise RuntimeError(daemon.errors.read_text("utf-8")[-500:])


def end(process: CrawlProcess) -> None:
    if not process.wait(0):
        process.process.terminate()
        process.wait()


def run_freshet(*words: object) -> str:
    command_line = [str(Path(sys.executable).with_name("freshet")), *map(str, words)]
    done = subprocess.run(command_line, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command_line}: {done.stderr[-2000:]}")
    return done.stdout


def measure(kills: int, seed: int, directory: Path) -> dict[str, Any]:
    """Kill, and compare the mirrors with the stores."""
    started_at = monotonic()
    with living(Load(), directory / "exchanges.log") as web:
        trials = Trials(web, directory, seed)
        trials.run(kills)
    return asdict(trials.findings) | {"seconds": round(monotonic() - started_at, 1)}


if __name__ == "__main__":
    consume(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
