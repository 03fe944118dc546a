"""A folder of shards: which of them a domain belongs to, and what its file says."""

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.storage.database import SHARDS_FILE, open_store
from freshet.storage.errors import StoreError
from freshet.storage.shards import Shards
from freshet.storage.stores import is_folder, open_stores
from freshet.storage.tables.runs import lease_of, take_lease

DOMAINS = [f"site{i}.example" for i in range(4_000)]


@given(st.text(max_size=40), st.integers(1, 999))
def test_one_shard_more_moves_a_domain_to_the_new_one_or_nowhere(name: str, count: int) -> None:
    before = Shards(Path(), count).of(name)
    after = Shards(Path(), count + 1).of(name)
    assert 0 <= before < count
    assert after in {before, count}


@pytest.mark.parametrize("count", [2, 8, 64])
def test_shards_have_domains_evenly(count: int) -> None:
    held = Counter(map(Shards(Path(), count).of, DOMAINS))
    mean = len(DOMAINS) / count
    assert max(abs(held[shard] - mean) for shard in range(count)) < 5 * mean**0.5


def test_what_is_written_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "crawl"
    assert not is_folder(folder)
    Shards(folder, 3, epoch=7).write()
    assert is_folder(folder)
    assert Shards.read(folder) == Shards(folder, 3, 7)
    assert [path.name for path in Shards.read(folder).paths()] == ["0000.db", "0001.db", "0002.db"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it needs epoch, format, hash, shards"),
        ('format = 2\nepoch = 1\nshards = 2\nhash = "jump-blake2b"', "reads format 1"),
        ('format = 1\nepoch = 1\nshards = 0\nhash = "jump-blake2b"', "shards = 0: accepted is 1"),
        ('format = 1\nepoch = true\nshards = 2\nhash = "jump-blake2b"', "epoch = True"),
        ("format =", "shards.toml: "),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / SHARDS_FILE).write_text(text)
    with pytest.raises(StoreError, match=r"shards\.toml") as caught:
        Shards.read(tmp_path)
    assert said in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No such file"):
        Shards.read(tmp_path)


async def test_who_took_a_shard_last_may_write_it_and_nobody_else(tmp_path: Path) -> None:
    database = await open_store(tmp_path / "0003.db")
    try:
        assert await database.write(lease_of) is None
        database.lease = await database.write(lambda db: take_lease(db, 3))
        assert await database.write(lease_of) == (3, 1)
        # As a process that opens a copy, or on a disk whose locks are lost.
        with closing(sqlite3.connect(database.path)) as other, other:
            assert take_lease(other, 3) == 2
        with pytest.raises(StoreError, match="another process has taken over this shard"):
            await database.write(lambda db: db.execute("DELETE FROM outgoing"))
    finally:
        await database.close()


async def test_a_shard_that_is_down_is_named_and_the_others_answer(tmp_path: Path) -> None:
    made = Shards(tmp_path, 2)
    made.write()
    stores = open_stores(tmp_path)

    async def name(path: Path) -> str:
        if not path.exists():
            raise StoreError(f"{path}: there is no such file")
        return path.name

    with pytest.raises(
        StoreError, match=r"0000\.db: there is no .*; .*/0001\.db: there is no such"
    ):
        await stores.each(name)
    made.path(1).touch()
    made.path(0).symlink_to(tmp_path / "elsewhere")
    assert await stores.each(name) == {1: "0001.db"}
    assert f"0000.db: it was moved to {tmp_path}/elsewhere: bring it back" in stores.down[0]
    file = open_stores(made.path(1))
    assert await file.each(name) == {0: "0001.db"}
    with pytest.raises(StoreError, match="no such file"):
        await open_stores(tmp_path / "none.db").each(name)


async def test_a_folder_is_no_file(tmp_path: Path) -> None:
    Shards(tmp_path, 2).write()
    with pytest.raises(StoreError, match=r"works on one shard .* such as .*0000\.db"):
        await open_store(tmp_path)
