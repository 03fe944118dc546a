"""A folder of shards answers as one store that holds the same pages, also while a shard is down."""

import asyncio
import csv
import io
import json
import pickle
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from random import getrandbits
from urllib.parse import quote

import aiohttp
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

import freshet as program
from freshet.crawler.errors import UnknownPage
from freshet.crawler.extensions.search import tables
from freshet.crawler.extensions.search.index import FollowingIndex
from freshet.crawler.extensions.search.searching import Query, search
from freshet.crawler.read.changefeed import Changefeed
from freshet.crawler.read.library import Library, Read, T
from freshet.crawler.reduce.parser_process import Parser
from freshet.storage.backup import back_up
from freshet.storage.errors import CursorGone, StoreError
from freshet.storage.records import Digests, StoreUpdate
from freshet.storage.shards import Shards
from freshet.storage.tables.changefeed import packed, unpacked
from tests.console import as_json, freshet, shown
from tests.crawler.read.test_api import serving
from tests.crawler.service.described import undescribed
from tests.storage.crawl_store import START, CrawlStore, captured, crawl_store, redirected, targets
from tests.storage.tables.test_changefeed import VISITS, what_happens
from tests.storage.versioned_store import html

COUNT = 3
URLS = [f"https://site{n}.example/{n % 3}" for n in range(12)]
#: Of another shard than the page that it redirects to.
OLD = "https://site1.example/old"
WORDS = ["common lake", "common sea sea", "lake", "sea of common words and more", "dead lock here"]


def shard_of(url: str) -> int:
    return Shards(Path(), COUNT).of(url.split("/")[2])


class Sent(Library):
    """Sends reads and answers as to another process; shards that are ``gone`` are down."""

    def __init__(self, path: Path, gone: Sequence[int] = ()) -> None:
        super().__init__(path, Parser())
        self.gone = set(gone)

    async def _answer(self, read: Read[T], path: Path) -> T | UnknownPage:
        if path.stem.isdecimal() and int(path.stem) in self.gone:
            raise StoreError("it is away")
        answer: T | UnknownPage = await super()._answer(pickle.loads(pickle.dumps(read)), path)
        return answer if isinstance(answer, UnknownPage) else pickle.loads(pickle.dumps(answer))


@asynccontextmanager
async def sharded(folder: Path, *, indexed: bool = True) -> AsyncIterator[list[CrawlStore]]:
    Shards(folder, COUNT).write()
    async with AsyncExitStack() as opened:
        found = []
        for path in Shards(folder, COUNT).paths():
            found.append(await opened.enter_async_context(crawl_store(path)))
            if indexed:
                await found[-1].database.write(tables.create)
                found[-1].tables.recorders = [FollowingIndex(None)]
        yield found


async def shows(store: CrawlStore, url: str, said: str, at: float) -> None:
    await store.admit(url, at=at)
    await store.new_run(at, recheck_before=at + 1)
    body = html(f"The page says {said} in a sentence.", "And this.")
    known = blake2b(body, digest_size=16).digest()
    seen = captured(await store.taken(url, at), at=at)
    assert seen.capture is not None
    capture = replace(
        seen.capture, digests=Digests(known, known), size_bytes=len(body), title=said,
        body=zstandard.compress(body), content_type="text/html", words=f"{said}\n\n{said}",
    )  # fmt: skip
    await store.apply(replace(seen, capture=capture))


@pytest.fixture
async def both(tmp_path: Path) -> tuple[Path, Path]:
    """A folder and a file with the same pages; the folder knows some from other shards, too."""
    folder, file = tmp_path / "crawl", tmp_path / "crawl.db"
    async with sharded(folder) as shards, crawl_store(file) as one:
        await one.database.write(tables.create)
        one.tables.recorders = [FollowingIndex(None)]
        for n, url in enumerate(URLS):
            said = f"{WORDS[n % len(WORDS)]} {'x ' * n}".strip()
            for store in (one, shards[shard_of(url)]):
                await shows(store, url, said, START + n)
            stub = StoreUpdate(START + n, targets=targets(url, held_back="shard"))
            await shards[(shard_of(url) + 1) % COUNT].apply(stub)
        for store in (one, shards[shard_of(OLD)]):
            await store.admit(OLD)
            held = None if store is one else "shard"
            moved = redirected(await store.taken(OLD), URLS[0], at=START + 20)
            await store.apply(replace(moved, targets=targets(URLS[0], held_back=held)))
    return folder, file


def down(folder: Path, shard: int) -> Path:
    path = Shards(folder, COUNT).path(shard)
    return path.rename(path.with_suffix(".away"))


# -- the changefeed ----------------------------------------------------------


@pytest.mark.long
@given(
    st.lists(
        st.tuples(
            st.sampled_from(URLS[:5]),
            st.sampled_from(VISITS),
            st.sampled_from((1, 2, 3, 9)),
            st.sets(st.integers(0, COUNT - 1), max_size=COUNT - 1),
        ),
        max_size=20,
    )
)
@settings(max_examples=30, deadline=None)
def test_a_copy_is_what_the_shards_hold(history: list[tuple[str, str, int, set[int]]]) -> None:
    """Whatever happens, however little is asked, and whichever shards are down meanwhile."""
    asyncio.run(_mirrored(history))


async def _mirrored(history: list[tuple[str, str, int, set[int]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with sharded(Path(folder), indexed=False) as stores:
            due = {}
            for url in URLS[:5]:
                store = stores[shard_of(url)]
                await store.admit(url)
                due[url] = await store.taken(url)
            mirror, cursor, feed = dict[str, str](), "0", Changefeed(Sent(Path(folder)))
            end = [(URLS[0], "failed", 100, set[int]())]
            for n, (url, action, limit, gone) in enumerate((*history, *end)):
                await stores[shard_of(url)].apply(what_happens(due[url], action, n))
                feed.library.gone = gone  # type: ignore[attr-defined]
                found, cursor = await feed.read(cursor, limit)
                assert len(found) <= limit
                for it in found:
                    mirror.pop(it.id, None)
                    if not it.deleted:
                        mirror[it.id] = it.kind
            rows = [
                row for store in stores
                for row in await store.rows(
                    "SELECT url, kind FROM change JOIN page ON page.id = page_id "
                    "WHERE kind <> 'noise' AND change.version_id IS NOT NULL"
                )
            ]  # fmt: skip
            assert (mirror, feed.down) == (dict(rows), {})


@given(st.dictionaries(st.integers(0, 999), st.integers(0, 2**50)), st.integers(0, 999))
def test_a_cursor_holds_the_places_of_all_shards(places: dict[int, int], turn: int) -> None:
    known = {shard: f"{shard:016x}-{seq}" for shard, seq in places.items()}
    text = packed(known, turn)
    assert unpacked(text) == (known, turn)
    assert " " not in text
    for broken in (text + "!", text[1:], text[:-5], "s", "é"):
        with pytest.raises(ValueError, match="is no cursor"):
            unpacked(broken)


def test_a_cursor_is_short_where_shards_are_few() -> None:
    many = {n: f"{getrandbits(64):016x}-{10**6 + n}" for n in range(1_000)}
    assert len(packed({n: many[n] for n in range(4)}, 0)) < 150
    assert len(packed(many, 0)) < 30_000
    assert unpacked(packed(many, 999)) == (many, 999)


async def test_a_limit_is_shared_by_all_shards(tmp_path: Path) -> None:
    feed = Changefeed(Sent(tmp_path))
    async with sharded(tmp_path, indexed=False) as stores:
        for n, url in enumerate(URLS):
            await shows(stores[shard_of(url)], url, "x", START + n)
        told, _ = await feed.read("0", 3)
        assert {shard_of(it.id) for it in told} == set(range(COUNT))
        first, one = await feed.read("0", 1)
        second, _ = await feed.read(one, 1)
        assert shard_of(first[0].id) != shard_of(second[0].id)
        seqs = [it.seq for it in (await feed.read("0"))[0]]
        rest, _ = await feed.read(seqs[4])
        assert len(rest) == len(URLS) - 5


async def test_cursors_hold_while_shards_come_and_go(tmp_path: Path) -> None:
    feed = Changefeed(library := Sent(tmp_path))
    async with sharded(tmp_path, indexed=False) as stores:
        for n, url in enumerate(URLS):
            await shows(stores[shard_of(url)], url, "x", START + n)
        library.gone = {1}
        there, cursor = await feed.read("0")
        assert feed.down == {1: "it is away"}
        assert {shard_of(it.id) for it in there} == {0, 2}
        library.gone = set()
        missed, cursor = await feed.read(cursor)
        assert {shard_of(it.id) for it in missed} == {1}
        assert (await feed.read((await feed.read("now", 0))[1], 5))[0] == []
        # Shard 2 is merged into others, and later comes back as another store.
        Shards(tmp_path, 2, epoch=2).write()
        assert (await feed.read(cursor))[0] == []
        _, fewer = await feed.read(cursor)
        await feed.read(fewer)
        Shards(tmp_path, COUNT, epoch=3).write()
        waits = asyncio.create_task(feed.awaited(cursor, 20.0))
        await asyncio.sleep(0.3)
        assert not waits.done()
        await shows(stores[2], URLS[0], "y", START + 99)
        assert len((await waits)[0]) == 1
        library.gone = {0, 1, 2}
        with pytest.raises(StoreError, match="it is away"):
            await feed.read(cursor, 1)
        library.gone = set()
        single = str((await Changefeed(Sent(tmp_path / "0000.db")).read("0"))[1])
        with pytest.raises(CursorGone, match="of a store in one file"):
            await feed.read(single)
    back_up(
        tmp_path / "0001.db", copy := tmp_path / "copy.db", replace=False, progress=lambda *_: None
    )
    copy.replace(tmp_path / "0001.db")
    with pytest.raises(CursorGone, match="before it was restored"):
        await feed.read(cursor)


# -- search ------------------------------------------------------------------


@pytest.mark.parametrize(
    "typed",
    [
        "common",
        "lake common",
        "sea -lake",
        '"dead lock" lake',
        "sea words mo*",
        "x site:site7.example",
    ],
)
async def test_a_search_finds_the_same_in_the_same_order(
    both: tuple[Path, Path], typed: str
) -> None:
    query, results = Query.parse(typed, START), []
    for path in both:
        found, counts, gone = await search(Sent(path), query, 5, offset=1)
        assert (counts, gone) == ((len(URLS), len(URLS)), {})
        results.append(found)
    shards, one = results
    assert [it.url for it in shards] == [it.url for it in one]
    assert [it.score for it in shards] == pytest.approx([it.score for it in one], abs=2e-4)
    assert [it.snippet for it in shards] == [it.snippet for it in one]


# -- the API, the class, and verbs -------------------------------------------


async def test_the_api_names_a_shard_that_is_down(both: tuple[Path, Path]) -> None:
    folder, file = both
    on = {"presentation__record": True, "presentation__links": True}
    async with (
        serving(folder, **on) as url,
        serving(file, **on) as other,
        aiohttp.ClientSession() as client,
    ):

        async def ask(path: str, base: str = url, status: int = 200):  # type: ignore[no-untyped-def]
            async with client.get(base + path, allow_redirects=False) as response:
                assert response.status == status, await response.text()
                kind, text = response.content_type, await response.text()
                assert undescribed(path.partition("?")[0], status, kind, text) == []
                return json.loads(text) if kind == "application/json" and text else response

        listed: list[object] = []
        after: str | None = ""
        while after is not None:
            told = await ask(f"/v1/pages?limit=5&after={quote(after, safe='')}")
            listed, after = listed + told["pages"], told["after"]
        assert listed == (await ask("/v1/pages", other))["pages"]
        page = f"/v1/pages/{quote(URLS[0], safe='')}"
        assert await ask(page) == await ask(page, other)
        await ask("/v1/pages/https%3A%2F%2Fsite0.example%2Fnone", status=404)
        await ask("/v1/pages/https%3A%2F%2F", status=400)
        feed = await ask("/v1/changefeed?include_docs=true")
        assert {it["id"] for it in feed["results"]} == set(URLS)
        assert all(it["doc"]["markdown"] for it in feed["results"])
        assert (await ask(f"/v1/changefeed?since={feed['last_seq']}"))["results"] == []
        await ask("/v1/changefeed?since=s!", status=400)
        results = (await ask("/v1/search?q=common"))["results"]
        assert (await ask(results[2]["open"], status=302)).headers["Location"] == results[2]["url"]
        await ask("/o/0123456789abcdef", status=404)
        assert (await ask("/v1/changefeed.atom")).headers.get("Freshet-Down") is None
        gone = shard_of(URLS[0])
        down(folder, gone)
        why = f"{Shards(folder, COUNT).path(gone)}: there is no such file: bring it back"
        refused = await ask(page, status=503)
        assert f"shard {gone} is down: {why}" in refused["reason"]
        for path in ("/v1/pages", "/v1/changefeed", "/v1/search?q=common"):
            assert why in (await ask(path))["down"][str(gone)]
        assert (await ask("/v1/changefeed.atom")).headers["Freshet-Down"] == str(gone)
        await ask("/o/0123456789abcdef", status=503)


def test_programs_read_a_folder(both: tuple[Path, Path]) -> None:
    folder, file = both
    with program.Store(folder) as shards, program.Store(file) as one:
        for url in (*URLS, OLD):
            assert shards.page(url) == one.page(url)
            assert len(shards.history(url)) == 1
        assert shard_of(OLD) != shard_of(shards.page(OLD).url)
        with pytest.raises(UnknownPage):
            shards.page(f"{URLS[0]}/none")
        assert {it.id for it in shards.changefeed()} == set(URLS)
        assert [it.url for it in shards.search("sea")] == [it.url for it in one.search("sea")]
        down(folder, 0)
        shards.search("sea")
        assert list(shards.down) == [0]


def test_verbs_answer_for_all_shards(
    both: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, file = both
    monkeypatch.setenv("FRESHET_PRESENTATION__RECORD", "true")
    args = ("changes", "--all", "--since", "2027-01-01", "--limit", "5")
    told, one = as_json(*args, "--db", folder), as_json(*args, "--db", file)
    assert told.pop("down") == {}
    for each in told["changes"] + one["changes"]:
        each.pop("version_id")
    assert told == one
    for table in ("pages", "observations", "links", "estimates"):
        rows, those = (
            list(csv.DictReader(io.StringIO(shown("export", table, "--db", path))))
            for path in (folder, file)
        )
        if table == "observations":
            assert {int(row.pop("shard")) for row in rows} == set(range(COUNT))
            for row in rows + those:
                row.pop("run")
        assert sorted(map(str, rows)) == sorted(map(str, those))
    for verb in ("history", "text"):
        assert shown(verb, OLD, "--db", folder) == shown(verb, OLD, "--db", file)
    *lines, last = map(json.loads, shown("changefeed", "--db", folder).splitlines())
    assert ({it["id"] for it in lines}, last["down"]) == (set(URLS), {})
    found = as_json("search", "sea", "--db", folder)["results"]
    assert shown("open", "2", "--print", "--db", folder).strip() == found[1]["url"]
    lists = file.with_name("lists")
    lists.write_text(json.dumps({"shown": [*URLS[:4], "https://no.example/"], "opened": URLS[:2]}))
    for counts in ((1, 0), (0, 1)):
        told = as_json("opened", "--from", lists, "--db", folder)
        assert (told["lists"], told["known_before"]) == counts
        assert told["unknown_urls"] == 1
    down(folder, 2)
    for command in (
        ("changes",),
        ("export",),
        ("changefeed",),
        ("search", "sea"),
        ("open", "1", "--print"),
    ):
        result = freshet(*command, "--db", folder)
        assert "shard 2: " in result.stderr, command
        assert "unless it is new or elsewhere; the others answer" in " ".join(result.stderr.split())
