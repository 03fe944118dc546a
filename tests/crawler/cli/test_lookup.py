"""A URL is found however a person types it, and its neighbours if it is not."""

from pathlib import Path

import pytest
import typer

from freshet.crawler.read import documents
from freshet.crawler.run import terminal
from freshet.storage.queries.page import snapshot
from tests.storage.small_store import HOST, small_store


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        ("HTTP://One.Example:80/a#part", ["http://one.example/a"]),
        ("https://one.example/?utm_source=x&q=1", ["https://one.example/?q=1"]),
        ("one.example", ["https://one.example/", "http://one.example/"]),
        ("localhost:8080/a", ["https://localhost:8080/a", "http://localhost:8080/a"]),
    ],
)
def test_a_url_is_made_canonical_and_https_comes_before_http(text: str, urls: list[str]) -> None:
    assert terminal.spellings(text) == urls


@pytest.mark.parametrize("text", ["", "ftp://one.example/", "two words", "http://", "/etc/hosts"])
def test_what_is_no_url_is_wrong_usage_in_one_line(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as caught:
        terminal.spellings(text)
    assert caught.value.exit_code == 2
    assert capsys.readouterr().err.count("\n") == 1


async def test_the_nearest_urls_are_at_most_three_and_of_either_scheme(tmp_path: Path) -> None:
    store = await small_store(tmp_path / "crawl.db")
    store.run(0.0)
    store.host()
    for path in ("/news/2024/", "/news/2025/", "/news/", "/about", "/zoo"):
        store.page(path)
    async with snapshot(store.path) as connection:
        near = await documents.nearest(connection, "https://one.example/news/2026/")
        assert await documents.nearest(connection, "https://elsewhere.example/news/") == []
    assert sorted(near) == [f"{HOST}/news/", f"{HOST}/news/2024/", f"{HOST}/news/2025/"]


def test_an_unknown_url_is_one_line_with_or_without_neighbours() -> None:
    assert documents.unknown("a.example", []) == (
        "a.example is not known, nor any other URL on that host; `freshet crawl a.example` adds it"
    )
    assert documents.unknown("a.example/x", ["https://a.example/y"]) == (
        "a.example/x is not known; the nearest on that host: https://a.example/y"
    )
