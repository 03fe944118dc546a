"""Table dictionary: what bodies of a host are packed with beside themselves."""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from random import Random

import pytest
import zstandard

from freshet.crawler.visit import Packer
from freshet.storage import forgetting
from freshet.storage.errors import StoreError
from freshet.storage.queries import page
from freshet.storage.records import Digests, Visit
from freshet.storage.tables import observations
from freshet.storage.tables.observations import dictionary_id
from tests.storage.crawl_store import SITE, START, CrawlStore, captured, crawl_store

FRAME = "".join(
    f"<li><a href='/chapter/{n}'>Chapter {n} of this manual</a> on {n * n % 97} things</li>"
    for n in range(40)
)


def body_of(number: int) -> bytes:
    """A page that has its frame with all others in common, and 40 words of its own."""
    chance = Random(number)
    own = " ".join(f"{chance.getrandbits(32):08x}" for _ in range(40))
    return f"<html><nav>{FRAME}</nav><p>{own}</p></html>".encode()


class Stored:
    def __init__(self, store: CrawlStore) -> None:
        self.store = store

    async def dictionary(self, host_id: int) -> zstandard.ZstdCompressionDict | None:
        return await observations.newest_dictionary(self.store.database.reader, host_id)


def packer(store: CrawlStore) -> Packer:
    return Packer(Stored(store), store.tables.dictionaries.made)


async def visit(store: CrawlStore, packing: Packer, number: int) -> Visit:
    due, body = await store.taken(f"/{number}"), body_of(number)
    seen = captured(due, str(number))
    assert seen.capture is not None
    digest = blake2b(body, digest_size=16).digest()
    packed = await packing.pack(due.host_id, body)
    kept = replace(seen.capture, digests=Digests(digest, digest), size_bytes=len(body), body=packed)
    return replace(seen, capture=kept)


async def crawl(store: CrawlStore, numbers: Sequence[int]) -> None:
    """Captures of so many pages, each in a transaction of its own."""
    packing = packer(store)
    await store.admit(*(f"/{n}" for n in numbers))
    for n in numbers:
        await store.apply(await visit(store, packing, n))


async def bodies(store: CrawlStore) -> dict[str, bytes | None]:
    rows = await store.rows("SELECT p.url, v.id FROM version AS v JOIN page AS p ON p.id = page_id")
    return {url: await page.body(store.database.reader, version) for url, version in rows}


async def ids(store: CrawlStore) -> list[int]:
    """With what the bodies are packed, in the order of their pages."""
    sql = "SELECT zstd FROM body JOIN version ON digest = body_digest ORDER BY page_id"
    return [dictionary_id(row[0]) for row in await store.rows(sql)]


async def test_what_follows_sixty_bodies_of_a_host_is_packed_with_their_dictionary(
    store: CrawlStore,
) -> None:
    await crawl(store, range(70))
    ((key, origin, count),) = await store.rows("SELECT id, origin, bodies FROM dictionary")
    assert (origin, count) == (SITE, 60)
    assert await ids(store) == [0] * 60 + [key] * 10
    assert await bodies(store) == {f"{SITE}/{n}": body_of(n) for n in range(70)}
    sizes = [len(row[0]) for row in await store.rows("SELECT zstd FROM body ORDER BY stored_at")]
    assert 3 * max(sizes[60:]) < 2 * min(sizes[:60])


async def test_four_times_as_many_bodies_make_another_one(store: CrawlStore) -> None:
    await crawl(store, range(250))
    counts = await store.rows("SELECT bodies FROM dictionary ORDER BY bodies")
    assert counts == [(60,), (240,)]
    assert len(set(await ids(store))) == 3
    assert await bodies(store) == {f"{SITE}/{n}": body_of(n) for n in range(250)}


async def test_a_new_run_counts_on_and_packs_with_what_there_is(store: CrawlStore) -> None:
    await crawl(store, range(60))
    await store.new_run(START + 1)
    await crawl(store, range(60, 239))
    assert await store.value("SELECT count(*) FROM dictionary") == 1
    assert 0 not in (await ids(store))[60:]
    await crawl(store, [300])
    assert await store.value("SELECT max(bodies) FROM dictionary") == 240


async def test_nothing_is_packed_with_what_is_not_in_the_store(
    store: CrawlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await crawl(store, range(59))
    await store.admit("/59")
    due = await visit(store, packer(store), 59)
    with monkeypatch.context() as patched:
        patched.setattr(observations, "append_audit", _failing)
        with pytest.raises(RuntimeError, match="no room"):
            await store.apply(due)
    assert store.tables.dictionaries.made == {}
    assert await store.value("SELECT count(*) FROM dictionary") == 0
    assert dictionary_id(await packer(store).pack(due.due.host_id, b"words " * 99)) == 0


def _failing(*_: object) -> None:
    raise RuntimeError("no room")


@pytest.mark.parametrize("size", [1, 400_000])
async def test_bodies_of_any_length_are_packed_with_it(store: CrawlStore, size: int) -> None:
    await crawl(store, range(60))
    await store.admit("/more")
    packed = await packer(store).pack((await store.taken("/more")).host_id, size * b"x")
    words = await observations.dictionary(store.database.reader, dictionary_id(packed))
    assert words is not None
    assert observations.unpacked(packed, size, words) == size * b"x"


async def test_bodies_that_cannot_be_read_make_none(store: CrawlStore) -> None:
    await crawl(store, range(59))
    await store.database.write(lambda db: db.execute("UPDATE body SET zstd = x'00'"))
    await crawl(store, [59, 60])
    assert await store.value("SELECT count(*) FROM dictionary") == 0


async def test_a_body_without_its_dictionary_is_damaged(store: CrawlStore) -> None:
    await crawl(store, range(61))
    await store.database.write(lambda db: db.execute("DELETE FROM dictionary"))
    version = await store.value("SELECT max(id) FROM version")
    with pytest.raises(StoreError, match="is damaged"):
        await page.body(store.database.reader, version)


async def test_unused_ones_are_deleted(store: CrawlStore) -> None:
    await crawl(store, range(250))
    used = set(await ids(store))
    await store.database.write(observations.drop_unused)
    assert {row[0] for row in await store.rows("SELECT id FROM dictionary")} == used - {0}
    await store.database.write(lambda db: db.execute("DELETE FROM body"))
    await store.database.write(observations.drop_unused)
    assert await store.value("SELECT count(*) FROM dictionary") == 0


@pytest.mark.parametrize("doomed", [3, 65])
async def test_a_forgotten_page_is_in_no_dictionary_and_the_others_are_read_on(
    tmp_path: Path, doomed: int
) -> None:
    async with crawl_store(tmp_path / "crawl.db") as store:
        await crawl(store, range(70))
        found = await forgetting.forgettable(store.database.reader, urls=[f"{SITE}/{doomed}"])
        await forgetting.forget(store.database, found, START, refused=False, origins={SITE})
        assert await store.value("SELECT count(*) FROM dictionary") == 0
        assert set(await ids(store)) == {0}
        left = {f"{SITE}/{n}": body_of(n) for n in range(70) if n != doomed}
        assert await bodies(store) == left


async def test_dictionaries_of_other_hosts_stay(store: CrawlStore) -> None:
    await crawl(store, range(70))
    before = await ids(store)
    await store.admit("https://other.example/")
    found = await forgetting.forgettable(store.database.reader, urls=["https://other.example/"])
    origins = {"https://other.example"}
    await forgetting.forget(store.database, found, START, refused=False, origins=origins)
    assert await ids(store) == before


def test_what_is_no_frame_needs_no_dictionary() -> None:
    with pytest.raises(zstandard.ZstdError):
        dictionary_id(b"packed")
