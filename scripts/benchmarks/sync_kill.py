"""kill -9 of a daemon and of ``freshet sync``, at random moments, for each kind of target.

The daemon keeps a synthetic web fresh whose days pass in seconds, ``freshet sync`` follows it with
a model that writes down what it was asked for. Kills meet the daemon, the other or both. After each
kill the target is read; in the end the last run catches up, and the target must be what
``freshet export chunks`` prints of the store, row for row, with the vector of each.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any, Final, TypeAlias

import apsw
import duckdb
import sqlite_vec

from scripts.benchmarks import command
from scripts.benchmarks.changefeed_kill import (
    LATEST_S,
    SETTINGS,
    await_entry,
    end,
    newest,
    run_freshet,
)
from scripts.benchmarks.crawling import started
from scripts.benchmarks.living_web import LivingWeb, Load, living, new_store

#: Where the model writes down what it was asked for.
_ASKED: Final = "SYNC_KILL_ASKED"
_DIMENSIONS: Final = 16
_KILLS_PER_STORE: Final = 25
_SHOWN: Final = (
    "id", "page_url", "url", "title", "language", "position", "previous", "next", "markdown",
)  # fmt: skip
#: By id: the fields of a passage, and its vector.
Rows: TypeAlias = dict[str, tuple[tuple[Any, ...], tuple[float, ...]]]


def embed(texts: list[str]) -> list[tuple[float, ...]]:
    """Return vectors, and note for which texts before they are returned."""
    with Path(os.environ[_ASKED]).open("a", encoding="utf-8") as log:
        log.writelines(f"{_digest(text).hex()}\n" for text in texts)
    return [vector(text) for text in texts]


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "replace"), digest_size=_DIMENSIONS).digest()


def vector(text: str) -> tuple[float, ...]:
    """Return the vector of a text: the octets of its digest."""
    return tuple(map(float, _digest(text)))


# -- targets -----------------------------------------------------------------


def _of_sqlite(place: Path) -> Rows:
    db = apsw.Connection(str(place))
    db.enable_load_extension(True)
    db.load_extension(sqlite_vec.loadable_path())
    names = ", ".join(f"c.{name}" for name in _SHOWN)
    sql = (
        f"SELECT {names}, vec_to_json(v.embedding) FROM chunk AS c FULL JOIN vector AS v USING (id)"
    )
    there = db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'vector'").get
    found = [*db.execute(sql)] if there else []
    db.close()
    return {row[0]: (tuple(row[:-1]), tuple(json.loads(row[-1]))) for row in found}


def _of_parquet(place: Path) -> Rows:
    if not [*place.glob("current/*.parquet")]:
        return {}
    with duckdb.connect() as db:
        names = ", ".join(_SHOWN)
        found = db.execute(f"SELECT {names}, embedding FROM '{place}/current/*.parquet'").fetchall()
    if len({row[0] for row in found}) < len(found):
        raise RuntimeError(f"{place}: a passage stands twice")
    return {row[0]: (tuple(row[:-1]), tuple(row[-1])) for row in found}


class Receiver:
    """A program that takes passages over HTTP, as the guide says."""

    def __init__(self) -> None:
        """Hold nothing yet."""
        self.place: dict[str, Any] | None = None
        self.pages: dict[str, tuple[int, list[dict[str, Any]]]] = {}

    def take(self, told: dict[str, Any]) -> None:
        """Take a message whole."""
        generation = told["place"]["generation"]
        if told.get("finish"):
            self.pages = {url: it for url, it in self.pages.items() if it[0] >= generation}
        for each in told.get("pages", ()):
            self.pages[each["url"]] = generation, each["chunks"]
        self.place = told["place"]

    def rows(self) -> Rows:
        """Return what it holds."""
        return {
            it["id"]: (tuple(it[name] for name in _SHOWN), tuple(it["embedding"]))
            for _, chunks in self.pages.values()
            for it in chunks
        }


@contextmanager
def _receiving() -> Iterator[tuple[str, Receiver]]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(200 if receiver.place else 404)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            try:
                told = json.loads(body)
            except ValueError:
                # The sender was killed.
                return
            receiver.take(told)
            self._answer(200)

        def _answer(self, status: int) -> None:
            body = json.dumps({"place": receiver.place}).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def _target(kind: str, folder: Path) -> Iterator[tuple[str, Callable[[], Rows]]]:
    """Yield the address of a new target, and what reads it."""
    place = folder / "target"
    if kind == "http":
        with _receiving() as (url, receiver):
            yield url, receiver.rows
    else:
        read = {"sqlite-vec": _of_sqlite, "parquet": _of_parquet}[kind]
        yield f"{kind}:{place}", lambda: read(place) if place.exists() else {}


KINDS: Final = ("sqlite-vec", "parquet", "http")

# -- kills -------------------------------------------------------------------


@dataclass(slots=True)
class Findings:
    """What went wrong, which is nothing, and how much there was to go wrong.

    ``embedded_again`` were in the target when they were embedded, ``lost_in_flight`` were embedded
    and not yet written when a kill came.
    """

    kills: int = 0
    of_daemon: int = 0
    of_sync: int = 0
    passages: int = 0
    embedded: int = 0
    embedded_again: int = 0
    lost_in_flight: int = 0
    rows_differ: int = 0
    vectors_differ: int = 0
    problems: list[str] = field(default_factory=list)


class Trials:
    """Kills daemons and synchronisations to targets of one kind, and compares what they leave."""

    def __init__(self, web: LivingWeb, directory: Path, seed: int) -> None:
        """Kill in ``directory``."""
        self._web, self._directory, self._rng = web, directory, Random(seed)
        self.findings = Findings()

    def run(self, kind: str, kills: int) -> None:
        """Kill so many times; each target is compared in the end."""
        self.findings = Findings()
        while self.findings.kills < kills:
            store = new_store(self._directory, SETTINGS)
            os.environ[_ASKED] = str(asked := store.with_name("asked"))
            asked.touch()
            with _target(kind, store.parent) as (address, rows):
                with self._web.daemon(store) as first:
                    await_entry(store, first, after=0)
                    first.wait(LATEST_S)
                    end(first)
                for _ in range(min(_KILLS_PER_STORE, kills - self.findings.kills)):
                    self._kill(store, address, rows)
                self._compare(store, address, rows)
            command.say(f"{kind}: {self.findings}")

    def _kill(self, store: Path, address: str, rows: Callable[[], Rows]) -> None:
        whom, held = self._rng.choice(("daemon", "sync", "both")), _embedded(rows)
        asked_before = len(_asked(store))
        following = started(_sync(store, address), store.parent / "sync")
        with self._web.daemon(store) as daemon, following as it:
            await_entry(store, daemon, after=newest(store))
            daemon.wait(self._rng.uniform(0, LATEST_S))
            if whom != "sync":
                daemon.kill()
            if whom != "daemon":
                it.kill()
            # Who was not meant goes on for a moment.
            (daemon if whom == "sync" else it).wait(0.3)
            end(daemon)
            it.kill()
            said = it.errors.read_text("utf-8")
        if "freshet:" in said:
            self.findings.problems.append(said[-300:])
        self.findings.kills += 1
        self.findings.of_daemon += whom != "sync"
        self.findings.of_sync += whom != "daemon"
        asked = _asked(store)[asked_before:]
        self.findings.embedded += len(asked)
        self.findings.embedded_again += len(asked) - len(set(asked) - held)
        self.findings.lost_in_flight += len(set(asked) - _embedded(rows))

    def _compare(self, store: Path, address: str, rows: Callable[[], Rows]) -> None:
        run_freshet(*_sync(store, address)[1:], "--once")
        lines = run_freshet("export", "chunks", "--format", "jsonl", "--db", store).splitlines()
        truth = {it["id"]: it for it in map(json.loads, lines)}
        found = rows()
        expected = {name: tuple(it[key] for key in _SHOWN) for name, it in truth.items()}
        held = {name: row for name, (row, _) in found.items()}
        self.findings.passages += len(found)
        self.findings.rows_differ += len(
            {name for name in expected.keys() | held.keys() if expected.get(name) != held.get(name)}
        )
        for name, it in truth.items():
            above = f"{it['headings']}\n\n" if it["headings"] else ""
            if name in found and found[name][1] != vector(above + it["markdown"]):
                self.findings.vectors_differ += 1


def _embedded(rows: Callable[[], Rows]) -> set[str]:
    """Return the digests of the texts whose vectors a target has."""
    return {bytes(map(int, vector)).hex() for _, vector in rows().values()}


def _asked(store: Path) -> list[str]:
    return store.with_name("asked").read_text("utf-8").splitlines()


def _sync(store: Path, address: str) -> list[str]:
    freshet = str(Path(sys.executable).with_name("freshet"))
    words = [freshet, "sync", address, "--db", str(store)]
    return [*words, "--embed", "scripts.benchmarks.sync_kill:embed"]


def measure(kills: int, seed: int, directory: Path, kinds: Sequence[str] = KINDS) -> dict[str, Any]:
    """Kill so many times for each kind of target."""
    started_at, found = monotonic(), dict[str, Any]()
    os.environ["PYTHONPATH"] = str(Path(__file__).parents[2])
    with living(Load(), directory / "exchanges.log") as web:
        trials = Trials(web, directory, seed)
        for kind in kinds:
            trials.run(kind, kills)
            found[kind] = asdict(trials.findings)
    return found | {"seconds": round(monotonic() - started_at, 1)}
