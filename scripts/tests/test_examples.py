"""The examples of the Python API: an index is in step with a site, whenever it was killed."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
import tantivy

import freshet
from freshet.crawler.extensions.lab.synthetic_web.web import WebSpec, mixed
from scripts.examples import tantivy_index
from scripts.synthetic_server import serve
from tests.integration.quick import QUICK

DAY_S = 86_400.0


class Killed(BaseException):
    """The end of a program at a moment of our choice."""


async def crawled(folder: Path) -> list[Path]:
    found = []
    async with serve(mixed(WebSpec(hosts=4, pages_per_host=20, seed=3))) as server:
        sites = [server.url(name) for name in ("news", "wiki")]
        for n in range(3):
            await freshet.crawl(sites, store=folder / "crawl.db", settings=QUICK)
            server.clock.advance(15 * DAY_S)
            (folder / f"{n}.db").write_bytes((folder / "crawl.db").read_bytes())
            found.append(folder / f"{n}.db")
    return found


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Copies of one store after each of three crawls, between which pages go, move and change."""
    found = asyncio.run(crawled(tmp_path_factory.mktemp("states")))
    with freshet.Store(found[-1]) as store:
        assert {"new", "changed", "gone", "moved"} <= {c.kind for c in store.changefeed(docs=False)}
    return found


def pages(store: freshet.Store) -> dict[str, freshet.StoredDocument]:
    """The documents of the pages that exist, by URL."""
    return {each.id: each.doc for each in store.changefeed() if each.doc is not None}


def indexed(index: tantivy.Index) -> dict[str, str]:
    """The titles of the pages in the index, by URL."""
    index.reload()
    searcher = index.searcher()
    hits = searcher.search(tantivy.Query.all_query(), 10_000).hits
    found = [searcher.doc(address).to_dict() for _, address in hits]
    assert len({each["url"][0] for each in found}) == len(found)
    return {each["url"][0]: each["title"][0] for each in found}


class DyingStore:
    """A store whose reader is killed at the n-th change."""

    def __init__(self, store: freshet.Store, n: int) -> None:
        self._store = store
        self._n = n

    def changefeed(self, since: str | None, **others: Any) -> Iterator[freshet.Change]:
        for n, change in enumerate(self._store.changefeed(since, **others)):
            if n == self._n:
                raise Killed
            yield change


def test_a_tantivy_index_follows_a_site_also_when_it_is_killed(
    states: list[Path], tmp_path: Path
) -> None:
    index = tantivy_index.open_index(folder := tmp_path / "index")
    for state in states:
        with freshet.Store(state) as store:
            with pytest.raises(Killed):
                tantivy_index.keep_in_step(DyingStore(store, 7), folder)  # type: ignore[arg-type]
            # A kill after the commit: the cursor is that of the run before.
            before = place.read_text() if (place := folder / "cursor").exists() else "0"
            tantivy_index.keep_in_step(store, folder)
            place.write_text(before)
            tantivy_index.keep_in_step(store, folder)
            assert indexed(index) == {url: it.title or "" for url, it in pages(store).items()}
            assert place.read_text() == list(store.changefeed(docs=False))[-1].seq
    searcher = index.searcher()
    hits = searcher.search(index.parse_query("archive", ["title"]), 3).hits
    assert all("archive" in searcher.doc(address)["title"][0].lower() for _, address in hits)
    assert len(hits) == 3


def test_a_cursor_of_another_store_empties_the_index(states: list[Path], tmp_path: Path) -> None:
    index = tantivy_index.open_index(folder := tmp_path / "index")
    other = tmp_path / "other.db"
    with freshet.Store(states[-1]) as store:
        tantivy_index.keep_in_step(store, folder)
    other.write_bytes(states[0].read_bytes())
    with apsw.Connection(str(other)) as connection:
        connection.execute("UPDATE changefeed SET epoch = '0123456789abcdef'")
    with freshet.Store(other) as store:
        tantivy_index.keep_in_step(store, folder)
        assert indexed(index).keys() == pages(store).keys()
