"""What pages weigh: the list's word, divided by depth or links, shared by copies, ruled over."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest

from freshet.crawler.run.importance import ImportanceData, weigh
from freshet.storage.database import reading
from freshet.storage.records import StoredSeed
from tests.storage.small_store import HOST, SmallStore

OTHER = "https://other.example"


@pytest.fixture
def store(site: SmallStore) -> SmallStore:
    """A site of importance 3: /, that all link, /a and /b below it, and /c below these."""
    site.host("http://www.one.example")
    site.host(OTHER)
    home, a = site.page("/"), site.page("/a", depth=1)
    b, c = site.page("http://www.one.example/b", host=2, depth=1), site.page("/c", depth=2)
    site.page(f"{OTHER}/", host=3)
    for src, dst in ((home, a), (home, b), (a, home), (b, home), (a, c), (c, home)):
        site.link(src, dst, 1.0)
    site.insert("seed", text="one.example", url=f"{HOST}/", importance=3.0, added_at=0.0)
    return site


def weighing(store: SmallStore, by: str) -> ImportanceData:
    async def read() -> ImportanceData:
        async with reading(store.path) as connection:
            return await weigh(connection, by)

    return asyncio.run(read())


URLS = [f"{HOST}/", f"{HOST}/a", "http://www.one.example/b", f"{HOST}/c", f"{OTHER}/"]
PLACES = [HOST, "http://www.one.example", OTHER]


def weights(found: ImportanceData, *, new: str | None = None) -> list[float]:
    urls = URLS if new is None else [*URLS, new]
    host = np.array([0, 0, 1, 0, 2, 0][: len(urls)])
    of_all: list[float] = found.importances(
        np.arange(1, len(urls) + 1), urls, host, PLACES
    ).tolist()
    return of_all


def test_by_the_list_all_pages_of_a_site_weigh_the_same(store: SmallStore) -> None:
    assert weights(weighing(store, "list")) == [3.0, 3.0, 3.0, 3.0, 1.0]


def test_constant_asks_nobody(store: SmallStore) -> None:
    assert weights(weighing(store, "constant")) == [1.0] * 5


def test_a_page_weighs_half_as_much_for_each_link_and_the_list_is_the_mean(
    store: SmallStore,
) -> None:
    found = weights(weighing(store, "depth"))
    assert found == pytest.approx([3 / 2.25 * 4 * w for w in (1, 0.5, 0.5, 0.25)] + [1.0])
    assert sum(found[:4]) == pytest.approx(4 * 3.0)


def test_by_pagerank_links_divide_a_site_and_the_list_is_the_mean(store: SmallStore) -> None:
    home, a, b, c, other = weights(weighing(store, "pagerank"))
    assert home > a == b > c
    assert home + a + b + c == pytest.approx(4 * 3.0)
    assert other == pytest.approx(1.0)


def show(store: SmallStore, page: int, *, views: float, opens: int) -> None:
    store.insert("past_openings", page_id=page, views=views, opens=opens)


DIVIDING = ["depth", "pagerank", "opened"]


@pytest.mark.parametrize("by", DIVIDING)
def test_a_page_found_since_counts_as_the_median_of_its_section(store: SmallStore, by: str) -> None:
    docs = [store.page(f"/docs/{n}", depth=n) for n in range(2, 5)]
    for n, page in enumerate(docs):
        show(store, page, views=10.0, opens=4 * n)
        store.link(1, page, 1.0)
    store.link(docs[0], docs[1], 1.0)
    store.link(docs[1], docs[2], 1.0)
    urls = [f"{HOST}/docs/{n}" for n in range(2, 5)] + [f"{HOST}/docs/new", f"{HOST}/new"]
    others = ["https://one.example/docs/x", "https://one.example/few/x", "https://far.example/"]
    places = [HOST, "http://www.one.example", "https://one.example", "https://far.example"]
    ids = np.array([*docs, 90, 91, 92, 93, 94, 1, 2, 3, 4])
    host = np.array([0, 0, 0, 0, 0, 2, 2, 3, 0, 0, 1, 0])
    found = weighing(store, by).importances(ids, urls + others + URLS[:4], host, places)
    known = [*found[:3], *found[8:]]
    assert found[[3, 5]] == pytest.approx(np.median(found[:3]))
    assert found[4] == pytest.approx(np.median(found[8:]))
    # The site is known, but not the section; or neither is.
    assert found[6] == pytest.approx(np.median(known))
    assert found[7] == 1.0
    assert sum(known) == pytest.approx(7 * 3.0)
    assert len(set(found[:3].round(9))) == 3


DAY_S = 86_400.0


def month(store: SmallStore, found_at: float, by: str, visited: float = 60.0) -> list[float]:
    """Return the weights of three pages with a link, and of one without that was found then."""
    for n in range(3):
        store.link(1, store.page(f"/docs/{n}", depth=1, checked_at=visited * DAY_S), 1.0)
    deep = store.page("/docs/deep", depth=9, found_at=found_at * DAY_S)
    urls, ids = [f"{HOST}/docs/{name}" for name in (0, 1, 2, "deep")], np.arange(deep - 3, deep + 1)
    found = weighing(store, by).importances(ids, urls, np.zeros(4, np.intp), [HOST])
    everything = np.append(found, weights(weighing(store, by))[:4])
    assert everything.mean() == pytest.approx(3.0)
    return [float(each) for each in found]


@pytest.mark.parametrize("by", ["depth", "pagerank"])
def test_links_do_not_count_against_a_page_in_its_first_month(store: SmallStore, by: str) -> None:
    *others, deep = month(store, 40.0, by)
    assert deep == pytest.approx(np.median(others))


@pytest.mark.parametrize("by", ["depth", "pagerank"])
@pytest.mark.parametrize(("found_at", "visited"), [(25.0, 60.0), (5.0, 20.0)])
def test_afterwards_they_do_and_so_they_do_of_what_was_there_at_first(
    store: SmallStore, by: str, found_at: float, visited: float
) -> None:
    *others, deep = month(store, found_at, by, visited)
    assert deep < min(others)


def test_a_young_page_that_many_link_to_keeps_that(store: SmallStore) -> None:
    *others, deep = month(store, 40.0, "pagerank")
    for page in range(1, 5):
        store.link(page, 9, 1.0)
    found = weighing(store, "pagerank").importances(
        np.array([9]), [f"{HOST}/docs/deep"], np.zeros(1, np.intp), [HOST]
    )
    assert found[0] > max(*others, deep)


def test_by_opens_what_is_opened_more_often_of_as_many_views_weighs_more(store: SmallStore) -> None:
    for page, opens in ((1, 9), (2, 3), (4, 0)):
        show(store, page, views=20.0, opens=opens)
    home, a, b, c, other = weights(weighing(store, "opened"))
    # Nobody has seen /b: what is known of it is the mean of its section.
    assert home > b > a > c > 0
    assert home + a + b + c == pytest.approx(4 * 3.0)
    assert other == pytest.approx(1.0)


def test_where_nothing_was_ever_opened_all_pages_of_a_site_weigh_the_same(
    store: SmallStore,
) -> None:
    assert weights(weighing(store, "opened"), new=f"{HOST}/new") == [3.0, 3.0, 3.0, 3.0, 1.0, 3.0]
    show(store, 1, views=5.0, opens=0)
    assert weights(weighing(store, "opened")) == [3.0, 3.0, 3.0, 3.0, 1.0]


@pytest.mark.parametrize("by", DIVIDING)
def test_a_sitemap_weighs_as_much_as_the_mean_of_its_site(store: SmallStore, by: str) -> None:
    store.page("/sitemap.xml", role="sitemap")
    assert weights(weighing(store, by), new=f"{HOST}/sitemap.xml")[5] == 3.0


@pytest.mark.parametrize("by", [*DIVIDING, "list", "constant"])
def test_a_start_page_keeps_its_weight_beside_its_near_duplicates(
    store: SmallStore, by: str
) -> None:
    found = replace(weighing(store, by), representatives={2: 1, 3: 1})
    home = weights(replace(found, representatives={}))[0]
    assert weights(found)[:3] == pytest.approx([home, home / 3, home / 3])


def test_only_pages_whose_group_is_another_may_weigh_otherwise(store: SmallStore) -> None:
    before = replace(weighing(store, "list"), representatives={2: 1, 3: 1, 7: 6})
    after = replace(before, representatives={2: 1, 4: 1, 7: 6, 9: 8})
    assert after.touched(before) == before.touched(after) == [1, 2, 3, 4, 8, 9]
    assert before.touched(before) == []
    assert replace(after, seeds=[]).touched(before) is None
    assert replace(after, by="constant").touched(before) is None
    ranked = weighing(store, "pagerank")
    assert ranked.touched(ranked) is None


def test_a_half_life_is_that_of_the_page_of_its_line_also_where_it_has_moved() -> None:
    lines = [
        StoredSeed("a", "https://a.example", None, 1.0, 12.0, 1),
        StoredSeed("b", "https://b.example", None, 1.0, 6.0, 2, "https://b.example/new", 7),
        StoredSeed("c", "https://c.example", None, seed_id=3),
    ]
    urls = [
        "https://a.example/", "https://a.example/x", "https://b.example/moved",
        "https://c.example/",
    ]  # fmt: skip
    found = ImportanceData("list", lines).half_lives(np.array([1, 2, 7, 9]), urls)
    assert found.tolist() == pytest.approx([0.5, np.nan, 0.25, np.nan], nan_ok=True)
    assert np.isnan(ImportanceData("list", lines[2:]).half_lives(np.array([1]), urls[:1])).all()
