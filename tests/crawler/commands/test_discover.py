"""`freshet discover` chooses the pages that reveal a site's new ones."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from crawler.commands.main import app
from tests.storage.small_store import SmallStore, small_store

DAY_S = 86_400.0
WEEKS = 6


@pytest.fixture
def store(tmp_path: Path) -> SmallStore:
    return asyncio.run(small_store(tmp_path / "crawl.db"))


def fill(store: SmallStore, weeks: int = WEEKS) -> None:
    """A site that is recrawled each week.

    `/news` links to two new pages a week, its mirror to the same; each of these leads to a third.
    """
    store.run(0.0)
    store.host()
    pages = [add(store, path, 0.0) for path in ("/", "/news", "/mirror", "/quiet", "/still")]
    for week in range(1, weeks + 1):
        at = week * 7 * DAY_S
        for page in pages[:5]:
            store.observe(page, at, "changed")
        new = [add(store, f"/{week}/{name}", at) for name in ("a", "b", "behind")]
        for target in new[:2]:
            store.link(pages[1], target, at)
            store.link(pages[2], target, at)
        store.link(new[0], new[2], at)
        pages += new


def add(store: SmallStore, path: str, at: float) -> int:
    page = store.page(path, found_at=at, version_id=1, checked_at=at)
    store.observe(page, at, "new")
    return page


def discover(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["discover", *map(str, arguments)])


def test_the_pages_that_reveal_the_new_ones_are_chosen(store: SmallStore) -> None:
    fill(store)
    result = discover("one.example", "--db", store.path, "--budget", 1, "--json")
    assert result.exit_code == 0, result.output
    found: Any = json.loads(result.stdout, parse_constant=pytest.fail)
    assert (found["pages"], found["new"], found["orphans"]) == (23, 18, 0)
    assert found["new_per_day"] == pytest.approx(3 / 7)
    (chosen,) = found["cover"]
    assert chosen["url"] == "http://one.example/news"
    assert chosen["share"] == pytest.approx(1.0)
    assert chosen["looked_at"] == WEEKS * 7 * DAY_S
    assert found["past"]["od_win"] == {
        "coverage": 1.0,
        "overhead": pytest.approx(1 / 3),
        "depth": 1,
    }
    assert found["past"]["greedy, knowing"]["coverage"] == 1.0


def test_pages_that_reveal_the_same_are_shown_as_alike(store: SmallStore) -> None:
    fill(store)
    found = json.loads(discover("one.example", "--db", store.path, "--json").stdout)
    assert [page["url"][-7:] for page in found["cover"]] == ["le/news", "/mirror"]
    assert len({page["cluster"] for page in found["cover"]}) == 1
    one = json.loads(
        discover("one.example", "--db", store.path, "--json", "--algorithm", "cliq_1").stdout
    )
    assert [page["url"][-5:] for page in one["cover"]] == ["/news"]


def test_the_tables_say_what_was_found_and_at_what_price(store: SmallStore) -> None:
    fill(store)
    result = discover("http://one.example/anything", "--db", store.path)
    assert result.exit_code == 0, result.output
    for words in (
        "23 pages, 18 of them found in 6 steps of 7 days",
        "/mirror",
        "cliq_win",
        "100.0 %",
    ):
        assert words in result.stdout


def test_a_site_without_a_history_is_no_error(store: SmallStore) -> None:
    fill(store, weeks=0)
    result = discover("one.example", "--db", store.path)
    assert result.exit_code == 0
    assert "no step behind the first crawl" in result.stdout
    assert json.loads(discover("one.example", "--db", store.path, "--json").stdout)["cover"] == []


def test_a_site_with_no_page_that_had_content_is_no_error(store: SmallStore) -> None:
    store.run(0.0)
    store.host()
    result = discover("one.example", "--db", store.path)
    assert result.exit_code == 0
    assert "no page of it has had content yet" in result.stdout


def test_what_is_not_known_is_said_in_one_line(store: SmallStore) -> None:
    for arguments, code, words in (
        (("two.example",), 1, "knows no site two.example"),
        (("one.example", "--algorithm", "best"), 2, "there are od_win"),
        (("http://[",), 2, "http://["),
    ):
        result = discover(*arguments, "--db", store.path)
        assert result.exit_code == code, result.output
        assert words in result.stderr
        assert result.stderr.count("\n") == 1
