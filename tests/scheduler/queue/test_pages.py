"""When a page may be asked for again."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from freshet.scheduler.queue.pages import PageTable, presumed_pace, spelling
from freshet.storage.records import Alias, DueUrl, Observation, Rejected, Visit

DAY_S = 86_400.0
URL = "http://a.example/"


def failed(day: float, *, retry_at: float | None, charged: bool) -> Visit:
    due = DueUrl(7, "http://a.example/", "http://a.example/", 1, 0.0)
    observation = Observation(7, day * DAY_S, "failed")
    return Visit(due, observation, retry_at=retry_at, charged=charged)


def rejected(day: float, seen: Rejected) -> Visit:
    return replace(failed(day, retry_at=None, charged=True), rejected=seen)


def page_table() -> PageTable:
    pages = PageTable()
    pages.add(np.array([7], np.int64), urls=[URL], importance=np.ones(1), most=np.full(1, np.inf))
    return pages


def test_a_page_keeps_its_place_while_its_host_is_down() -> None:
    pages = page_table()
    for day in range(20):
        pages.settle(0, failed(day, retry_at=day * DAY_S, charged=False))
        assert pages.may_be_requested(float(day))[0]
    pages.settle(0, failed(20.0, retry_at=None, charged=True))
    assert not pages.may_be_requested(20.0)[0]
    assert pages.may_be_requested(20.0 + 1.01 / 24)[0]


@pytest.mark.parametrize("charged", [True, False])
def test_a_page_that_fails_for_good_waits_ever_longer(charged: bool) -> None:
    pages, day, waits = page_table(), 0.0, []
    for _ in range(8):
        pages.settle(0, failed(day, retry_at=None, charged=charged))
        waits.append(float(pages["not_before"][0]) - day)
        day += waits[-1]
    assert waits[:3] == pytest.approx([1 / 24, 4 / 24, 16 / 24])
    assert max(waits) == pytest.approx(30.0)


@pytest.mark.parametrize("first", [1 / 24, 2 / 24, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 7.0])
def test_the_interval_of_a_block_page_doubles_while_its_bytes_are_the_same(first: float) -> None:
    pages, day, waits = page_table(), first, []
    since = Rejected(b"digest", "soft_404", 0.0)
    pages.settle(0, rejected(0.0, since))
    for _ in range(9):
        pages.settle(0, rejected(day, since))
        waits.append(float(pages["not_before"][0]) - day)
        day += waits[-1]
    for earlier, later in pairwise([first, *waits]):
        assert later == pytest.approx(min(2 * earlier, 30.0))


def test_a_block_page_with_other_bytes_may_be_passing() -> None:
    pages = page_table()
    for day in range(3):
        pages.settle(0, rejected(float(day), Rejected(b"%d" % day, "captcha", day * DAY_S)))
        assert pages["failures"][0] == day + 1
    assert pages.may_be_requested(2.0 + 16.1 / 24)[0]


def test_a_restart_does_not_shorten_the_interval_of_a_block_page() -> None:
    pages, since = page_table(), Rejected(b"digest", "soft_404", 0.0)
    for day in (0.0, 4.0, 12.0):
        pages.settle(0, rejected(day, since))
    rows = pages.written(slice(0, 1))
    assert rows["not_before"][0] == pages["not_before"][0] == pytest.approx(28.0)


def test_a_sitemap_that_was_never_read_is_worth_ten_pages() -> None:
    pages = PageTable()
    pages.add(
        np.arange(3), urls=[URL] * 3, importance=np.ones(3), most=np.full(3, np.inf),
        list=np.array([False, True, True]), captured=np.array([False, False, True]),
    )  # fmt: skip
    page, sitemap, read = pages.weighted(np.full(3, 0.5), 2.0).tolist()
    assert sitemap == pytest.approx(10 * page)
    assert read == 0.5


def sites(**columns: list[float]) -> PageTable:
    """Pages of one host, found on day 0 and never captured, unless said otherwise."""
    pages, n = PageTable(), len(next(iter(columns.values())))
    plain = {"importance": [1.0] * n, "most": [np.inf] * n}
    given = {name: np.array(values) for name, values in (plain | columns).items()}
    pages.add(np.arange(n), urls=[URL] * n, **given)
    return pages


def test_another_spelling_of_a_held_page_is_taken_for_its_alias() -> None:
    held, gone = "https://h.example/a/", "https://h.example/gone"
    others = ["http://h.example/a", "https://www.h.example/a/index.html", "https://h.example/a/b"]
    urls = [held, gone, *others, f"{gone}/", "https://h.example/", "https://www.h.example/"]
    pages = sites(
        spelling=[spelling(url) for url in urls], captured=[1, 1, 0, 0, 0, 0, 1, 0],
        gone=[0, 1, 0, 0, 0, 0, 0, 0],
    )  # fmt: skip
    worth = pages.weighted(np.zeros(8), 60.0)
    # What takes the place of a page that is gone is a new one; and a host shows its root at once.
    assert pages["empty"].tolist() == [False, False, True, True, False, False, False, False]
    assert worth[2:4].max() < 0.01 * worth[4]
    # What a sitemap says of it is said of the held page.
    assert pages.meant(np.arange(8))[0].tolist() == [0, 1, 0, 0, 4, 5, 6, 7]
    pages["captured"][0], pages["away"][0] = False, True
    assert pages.weighted(np.zeros(8), 60.0)[2] == pytest.approx(worth[4], rel=0.1)


def test_a_dead_link_that_is_admitted_again_is_worth_what_a_new_one_is() -> None:
    pages = sites(gone=[2, 0], absent=[0.0, np.inf], asked=[1.0, 0.0], captured=[0, 0])
    dead, new = pages.weighted(np.zeros(2), 60.0)
    assert dead < 0.01 * new
    pages.admit_again([0])
    again, other = pages.weighted(np.zeros(2), 60.0)
    assert again == other == new


def test_a_new_link_that_is_dead_is_tried_once_more_where_sites_link_early() -> None:
    # Two hosts, each with a link that was dead once, one that was so twice, and a page that went.
    pages = sites(
        host=[0, 0, 0, 1, 1, 1], gone=[1, 2, 2, 1, 2, 2], captured=[0, 0, 1, 0, 0, 1],
        absent=[0.0] * 6, asked=[1.0] * 6,
    )  # fmt: skip
    worth = pages.weighted(np.zeros(6), 31.0)
    late = 0.5 / 20_003 * 30**2 / 2
    assert worth[[1, 2, 4, 5]] == pytest.approx([late] * 4, rel=1e-2)
    assert worth[0] == worth[3] == pytest.approx(late + 0.5 / (1 + 20) * 29, rel=1e-2)
    # On the first host it leads to content at the second try.
    found = Observation(0, 31.0 * DAY_S, "new")
    pages.settle(0, Visit(DueUrl(0, "http://a.example/", "http://a.example/", 1, 0.0), found))
    pages.add(
        np.array([6]), urls=[URL], host=np.array([0]), importance=np.ones(1),
        most=np.full(1, np.inf), gone=np.array([1]), asked=np.ones(1),
    )  # fmt: skip
    pages["absent"][6] = 0.0
    worth = pages.weighted(np.zeros(7), 31.0)
    assert worth[6] == pytest.approx(1.5 / (1 + 1 + 20) * 29, rel=0.02)
    assert worth[3] == pytest.approx(late + 0.5 / (1 + 20) * 29, rel=1e-2)


@pytest.mark.parametrize(
    ("to", "counts"),
    [("http://a.example/b/", False), (None, False), ("https://other.example/b", True)],
)
def test_a_url_that_leads_to_another_host_tells_of_its_neighbours_and_others_do_not(
    to: str | None, counts: bool
) -> None:
    pages = PageTable()
    pages.add(np.arange(2), urls=[f"{URL}b", f"{URL}c"], absent=np.full(2, np.inf))
    found = Observation(0, DAY_S, "redirected")
    alias = None if to is None else Alias(to, "permanent")
    pages.settle(0, Visit(DueUrl(0, f"{URL}b", f"{URL}b", 1, 0.0), found, alias=alias))
    assert (pages.existence.of_new(np.array([1]))[0] < 0.7 - 1e-9) == counts


def test_seeds_and_what_they_link_to_change_often_and_dated_pages_seldom() -> None:
    site = "https://h.example"
    paces = [presumed_pace(f"{site}/about", depth) for depth in range(6)]
    assert paces == [3.0, 1.8, 1.0, 0.6, 0.6, 0.6]
    dated = ("/2024/05/", "/news/2024-05-01.html", "/docs/1.4/", "/docs/v2.0.1/x", "/item-12345")
    assert [presumed_pace(site + path, 2) for path in dated] == [0.25] * 5
    others = ("/", "/v2/", "/chapter-12", "/a.html", "/section/123")
    assert [presumed_pace(site + path, 2) for path in others] == [1.0] * 5


def test_lists_count_where_a_page_is_held() -> None:
    pages = sites(
        host=[0, 0, 0, 1, 1, 2], list=[0, 1, 1, 1, 1, 0], captured=[1, 0, 1, 0, 1, 1],
    )  # fmt: skip
    assert pages.lists().tolist() == [1, 2]
