"""Which origins pages led to, and since when."""

from pathlib import Path

import pytest

from freshet.storage.queries import link_columns, page
from tests.storage.small_store import small_store


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://a.example/path//more?x=/", "https://a.example"),
        ("http://a.example:8080/", "http://a.example:8080"),
        ("https://a.example", "https://a.example"),
    ],
)
async def test_an_origin_is_what_stands_before_the_path(
    url: str, origin: str, tmp_path: Path
) -> None:
    store = await small_store(tmp_path / "crawl.db")
    store.run(0.0)
    store.host()
    store.link(store.page("/"), url, 3.0)
    async with page.snapshot(store.path) as connection:
        assert await link_columns.read_offsite(connection, [1]) == [(1, origin, 3.0)]
        assert await link_columns.first_seen(connection) == {origin: 3.0}


async def test_of_many_links_to_an_origin_the_first_counts_also_one_that_went(
    tmp_path: Path,
) -> None:
    store = await small_store(tmp_path / "crawl.db")
    store.run(0.0)
    store.host()
    store.host("http://two.example")
    one, two = store.page("/"), store.page("http://two.example/", host=2)
    store.link(one, "https://a.example/1", 5.0)
    store.link(one, "https://a.example/2", 4.0, gone_at=6.0)
    store.link(two, "https://a.example/1", 2.0)
    async with page.snapshot(store.path) as connection:
        assert await link_columns.read_offsite(connection, [1]) == [(one, "https://a.example", 4.0)]
        assert await link_columns.first_seen(connection) == {"https://a.example": 2.0}
        assert await link_columns.read_offsite(connection, []) == []
