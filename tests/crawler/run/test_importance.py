"""A page is as important as the seed in whose part of the web it lies."""

from collections.abc import Sequence

import numpy as np
import pytest

from freshet.crawler.run.capacities import numbered
from freshet.crawler.run.importance import ImportanceData, shared
from freshet.crawler.urls import origin
from freshet.storage.records import StoredSeed


def seed(url: str, importance: float, root_url: str | None = None) -> StoredSeed:
    return StoredSeed(url, url, None, importance, root_url=root_url)


def found(urls: Sequence[str], *seeds: StoredSeed) -> list[float]:
    host, origins = numbered(str(origin(url)) for url in urls)
    return list(
        ImportanceData("list", seeds).importances(np.arange(len(urls)), urls, host, origins)
    )


def test_a_seed_speaks_for_its_whole_site_and_1_is_for_the_others() -> None:
    urls = [
        "https://a.example/x", "http://www.a.example/", "https://b.example/",
        "https://c.a.example/",
    ]  # fmt: skip
    assert found(urls, seed("https://a.example/start", 5.0)) == [5.0, 5.0, 1.0, 1.0]


def test_of_several_the_one_with_the_longest_directory_counts() -> None:
    seeds = (
        seed("https://a.example/", 2.0),
        seed("https://a.example/docs/index.html?lang=en", 3.0),
        seed("https://a.example/docs/api/", 4.0),
    )
    urls = ["/docsx", "/docs/", "/docs/a/b?c=/", "/docs/api/f", "/docs/api", "/?q=/docs/"]
    assert found([f"https://a.example{path}" for path in urls], *seeds) == [
        2.0, 3.0, 3.0, 4.0, 3.0, 2.0,
    ]  # fmt: skip


def test_a_seed_speaks_for_itself_before_all_others() -> None:
    seeds = (seed("https://a.example/p/1", 2.0), seed("https://a.example/p/2?q=x", 3.0))
    urls = ["/p/1", "/p/2?q=x", "/p/2", "/p/1/deeper"]
    assert found([f"https://a.example{path}" for path in urls], *seeds) == [2.0, 3.0, 2.0, 2.0]


def test_where_no_directory_holds_a_page_the_first_of_the_list_counts() -> None:
    seeds = (seed("https://a.example/x/", 2.0), seed("https://a.example/y/", 3.0))
    assert found(["https://a.example/", "https://a.example/y/1"], *seeds) == [2.0, 3.0]


def test_a_seed_that_moved_speaks_for_where_it_stands_now() -> None:
    moved = seed("https://old.example/", 7.0, root_url="https://new.example/")
    assert found(["https://new.example/a", "https://old.example/a"], moved) == [7.0, 1.0]


def test_no_pages_have_no_importance() -> None:
    assert found([], seed("https://a.example/", 2.0)) == []


def test_a_representative_keeps_its_importance_and_its_near_duplicates_get_parts_of_it() -> None:
    importance, page_id = np.array([4.0, 1.0, 9.0, 2.0]), np.array([10, 11, 12, 13])
    divided = shared(importance, page_id, {11: 10, 13: 10, 99: 12})
    assert divided.tolist() == pytest.approx([4.0, 4 / 3, 9.0, 4 / 3])


@pytest.mark.parametrize("copies", [1, 2, 3, 4, 9, 30, 1_000])
@pytest.mark.parametrize("place", ["first", "last"])
def test_however_many_near_duplicates_a_page_has_it_weighs_as_without_them(
    copies: int, place: str
) -> None:
    page_id, own = np.arange(copies + 2), np.linspace(0.5, 2.0, copies + 2)
    first, others = (0, page_id[1:-1]) if place == "first" else (copies, page_id[:-2])
    found = shared(own, page_id, dict.fromkeys(others.tolist(), first))
    assert (found[first], found[-1]) == (own[first], own[-1])
    # They are still visited now and then, and together weigh less than another page.
    assert (found[others] > 0).all()
    assert found[others].sum() < own[first]


@pytest.mark.parametrize("copies", [1, 4, 30])
def test_what_is_only_a_copy_itself_represents_the_others_with_no_more_than_they_have(
    copies: int,
) -> None:
    page_id = np.arange(copies + 1)
    found = shared(np.full(copies + 1, 3.0), page_id, dict.fromkeys(page_id.tolist(), 0))
    assert found.tolist() == pytest.approx([3.0 / (copies + 1)] * (copies + 1))


def test_without_duplicates_and_where_the_representative_is_gone_each_page_counts() -> None:
    importance, page_id = np.array([4.0, 1.0]), np.array([10, 11])
    assert shared(importance, page_id, {}).tolist() == [4.0, 1.0]
    assert shared(importance, page_id, {10: 7}).tolist() == [4.0, 1.0]
