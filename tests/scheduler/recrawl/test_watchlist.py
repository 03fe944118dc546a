"""When a page may be asked for again."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler.recrawl.watchlist import Watchlist
from storage.records import DueUrl, Kind, Observation, Visit

DAY_S = 86_400.0


def failed(day: float, *, retry_at: float | None, charged: bool) -> Visit:
    due = DueUrl(7, "http://a.example/", "http://a.example/", 1, 0.0)
    observation = Observation(7, day * DAY_S, Kind.FAILED)
    return Visit(due, observation, retry_at=retry_at, charged=charged)


def watchlist() -> Watchlist:
    pages = Watchlist()
    pages.add(np.array([7], np.int64), importance=np.ones(1), most=np.full(1, np.inf))
    return pages


def test_a_page_keeps_its_place_while_its_host_is_down() -> None:
    pages = watchlist()
    for day in range(20):
        pages.settle(0, failed(day, retry_at=day * DAY_S, charged=False))
        assert pages.may_be_asked(float(day))[0]
    pages.settle(0, failed(20.0, retry_at=None, charged=True))
    assert not pages.may_be_asked(20.0)[0]
    assert pages.may_be_asked(20.0 + 1.01 / 24)[0]


@pytest.mark.parametrize("charged", [True, False])
def test_a_page_that_fails_for_good_waits_ever_longer(charged: bool) -> None:
    pages, day, waits = watchlist(), 0.0, []
    for _ in range(8):
        pages.settle(0, failed(day, retry_at=None, charged=charged))
        waits.append(float(pages["not_before"][0]) - day)
        day += waits[-1]
    assert waits[:3] == pytest.approx([1 / 24, 4 / 24, 16 / 24])
    assert max(waits) == pytest.approx(30.0)


def test_a_sitemap_that_was_never_read_is_worth_ten_pages() -> None:
    pages = Watchlist()
    pages.add(
        np.arange(3), importance=np.ones(3), most=np.full(3, np.inf),
        sitemap=np.array([False, True, True]), captured=np.array([False, False, True]),
    )  # fmt: skip
    page, sitemap, read = pages.weighted(np.full(3, 0.5), 2.0).tolist()
    assert sitemap == pytest.approx(10 * page)
    assert read == 0.5
