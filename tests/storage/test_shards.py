"""A folder of shards: which of them a domain belongs to, and what its file says."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.storage.database import StoreError
from freshet.storage.shards import FILE, Shards, is_sharded

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
    assert not is_sharded(folder)
    Shards(folder, 3, epoch=7).write()
    assert is_sharded(folder)
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
    (tmp_path / FILE).write_text(text)
    with pytest.raises(StoreError, match=r"shards\.toml") as caught:
        Shards.read(tmp_path)
    assert said in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No such file"):
        Shards.read(tmp_path)
