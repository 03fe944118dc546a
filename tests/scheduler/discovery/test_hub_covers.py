"""Where an algorithm chooses the hub pages, visits to others are worth nothing for new links."""

from collections.abc import Sequence
from typing import get_args

import numpy as np
import pytest

from freshet.scheduler.discovery.hub_covers import AREAS, Discovery, HubCovers
from freshet.scheduler.queue.new_pages import HubPages
from freshet.scheduler.queue.pages import PageTable

FRONT, FEED, ARCHIVE, QUIET = range(4)
#: Of new pages, one a week: the pages that reveal each.
REVEALED = [(FRONT, FEED), (FRONT, FEED), (FRONT,), (ARCHIVE,), (FRONT, FEED)]


def site(revealed: Sequence[Sequence[int]]) -> tuple[PageTable, HubPages]:
    """Return a site of four pages that were visited on day 50, and of new pages that came since."""
    pages, hubs = PageTable(), HubPages()
    n = 4 + len(revealed)
    found_at = np.concatenate([np.zeros(4), 7.0 * np.arange(1, len(revealed) + 1)])
    urls = [f"http://a.example/{row}" for row in range(n)]
    none, zeros = np.zeros(n, np.bool_), np.zeros(n)
    rows = pages.add(
        np.arange(n), urls=urls, host=np.zeros(n, np.intp), importance=np.ones(n), least=zeros,
        most=np.full(n, np.inf), area=np.zeros(n, np.intp), half_life=np.full(n, np.nan),
        spelling=np.arange(n), since=np.full(n, 50.0), asked=np.full(n, 50.0),
        captured=~none, absent=np.full(n, np.inf), away=none, leads_to=np.full(n, -1),
        for_good=none, had=zeros, gone=np.zeros(n, np.int16), found_at=found_at,
        not_before=np.full(n, -np.inf), list=none,
    )  # fmt: skip
    hubs.watch(rows, np.zeros(n, np.intp), urls, found_at)
    for number, by in enumerate(revealed):
        at = float(found_at[4 + number])
        for each in by:
            hubs.shown(each, at - 7.0, at, 4 + number, at)
    return pages, hubs


def worthwhile(discovery: Discovery, revealed: Sequence[Sequence[int]] = REVEALED) -> set[int]:
    """Return the pages whose visits are worth something for new links."""
    pages, hubs = site(revealed)
    return set(np.flatnonzero(hubs.revealing(pages, 60.0, discovery).value).tolist())


@pytest.mark.parametrize(
    ("discovery", "chosen"),
    [
        # A cover of all needs two pages; what the last week needs is one.
        ("cov_win", {FRONT, ARCHIVE}),
        ("greedy", {FRONT}),
        ("od_win", {FRONT, FEED}),
        ("cliq_win", {FRONT, FEED}),
    ],
)
def test_an_algorithm_chooses_as_many_pages_as_a_cover_has(
    discovery: Discovery, chosen: set[int]
) -> None:
    assert worthwhile(discovery) == chosen
    assert worthwhile(AREAS) == set(range(4 + len(REVEALED)))


@pytest.mark.parametrize("discovery", get_args(Discovery))
def test_where_nothing_was_revealed_every_page_may_be_tried(discovery: Discovery) -> None:
    assert worthwhile(discovery, []) == {FRONT, FEED, ARCHIVE, QUIET}


def test_a_page_that_is_gone_is_not_chosen() -> None:
    pages, hubs = site(REVEALED)
    pages["gone"][FRONT] = 1
    assert set(np.flatnonzero(hubs.revealing(pages, 60.0, "cov_win").value)) == {FEED, ARCHIVE}


def test_a_choice_holds_for_a_day_and_while_nothing_more_is_known() -> None:
    covers, site_of = HubCovers(), np.zeros(6, np.intp)

    def chosen(by: list[int], now: float) -> list[int]:
        item = np.arange(len(by)) + 4
        days = np.arange(1, len(by) + 1).astype(np.float64) * 7.0
        pairs = (np.zeros(len(by), np.intp), days, item, np.array(by))
        return np.flatnonzero(covers.chosen("cov_win", pairs, site_of, now)).tolist()

    assert chosen([FRONT], 1.0) == [FRONT]
    assert chosen([FRONT, FEED], 1.5) == [FRONT]
    assert chosen([FRONT, FEED], 2.0) == [FRONT, FEED]
