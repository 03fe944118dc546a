"""Looks spread over the week: what they reveal, what is counted, and who is told what."""

from __future__ import annotations

import os
from math import inf
from pathlib import Path

import numpy as np
import pytest

from scripts.reproductions import courses
from scripts.reproductions import discovery_online as online
from scripts.reproductions.courses import Course, Links, soonest
from scripts.reproductions.discovery_online import PRECEDENTS, UNIFORM, UNTOLD, Score
from scripts.reproductions.discovery_recorded import watched
from scripts.reproductions.growing_site import Growth, growing_site

_FOLDER = os.environ.get("FRESHET_EVOLUTION_DIR")
#: From page, to page, from day, to day.
_Link = tuple[int, int, float, float]


def course(days: float, born: list[float], links: list[_Link], gone: dict[int, float]) -> Course:
    ends = np.array([gone.get(page, inf) for page in range(len(born))])
    source, target, begin, end = np.array(links).T
    return Course(
        "site", days, np.array(born), ends, source.astype(int), target.astype(int), begin, end
    )


def weekly_index(weeks: int, *, lives: float = inf) -> Course:
    """Page 0 links to a new page on the second day of every week, page 1 never to any."""
    born = [0.0, 0.0, *(7.0 * week + 1 for week in range(weeks))]
    links = [(0, page, at, inf) for page, at in enumerate(born) if page > 1]
    return course(7.0 * weeks, born, links, {n: born[n] + lives for n in range(2, len(born))})


def test_a_look_reveals_what_is_linked_now_and_what_is_behind_new_pages() -> None:
    # 0 leads to 1 (new), that to 2 (new) and from day 5 on to 3; 4 came and is gone on day 2.
    site = course(
        28, [0, 1, 1, 5, 1], [(0, 1, 1, inf), (1, 2, 1, inf), (1, 3, 5, inf), (0, 4, 1, inf)],
        {4: 2.0},
    )  # fmt: skip
    found = online.unknown(site)
    assert online.visit(Links(site), found, 0, 3.0) == {0: [1], 1: [2], 2: []}
    assert found.tolist() == [0.0, 3.0, 3.0, inf, inf]
    # Page 1 is known by now: a visit to what leads there does not fetch it again.
    assert online.visit(Links(site), found, 0, 6.0) == {0: [1]}
    assert found[3] == inf
    online.visit(Links(site), found, 1, 6.5)
    assert found[3] == 6.5
    assert online.visit(Links(site), found, 4, 6.5) == {4: None}


def test_who_looks_all_the_time_finds_what_anybody_can_find() -> None:
    # 2 is linked late, 3 only by a page that is not there any more, 4 by nobody, 5 through 2.
    site = course(
        28, [0, 0, 1, 9, 1, 1], [(0, 2, 4, inf), (1, 3, 9, inf), (2, 5, 1, inf)], {1: 8.0}
    )
    assert soonest(site, Links(site)).tolist() == [0.0, 0.0, 4.0, inf, inf, 4.0]


def test_what_counts_is_of_the_weeks_judged_and_may_be_found_in_time() -> None:
    born = [0.0] * 8 + [3.0, 45.0, 46.0, 47.0, 66.0]
    links = [(0, page, born[page], inf) for page in (8, 9, 12)] + [(0, 10, 54.0, inf)]
    site = course(70, born, [*links, (0, 11, 47.0, inf)], {11: 47.5})
    counted = courses.judged(site, Links(site), 6, 0.5)
    # 8 came too early, 10 was linked a week after it came, 12 too late; 11 is there for a morning.
    assert np.flatnonzero(counted).tolist() == [9, 11]
    assert not courses.judged(site, Links(site), 6, 0.2).any()


def test_looks_count_that_are_in_time_and_all_that_cost() -> None:
    site = online.site_of(weekly_index(12))
    always = [np.array([0])] * site.weeks
    # The week's page is found at the start of the next, six days old.
    assert online.in_order(site, always, 1) == Score(5, 5, 6)
    # A visit in vain costs as much; every other week is too late for three of five.
    both = [np.array([0, 1])] * site.weeks
    assert online.in_order(site, both, 2) == Score(5, 5, 12)
    seldom = [np.array([week % 2]) for week in range(site.weeks)]
    assert online.in_order(site, seldom, 1) == Score(5, 2, 6)


def test_looks_in_order_are_spread_unless_all_are_at_once() -> None:
    site = online.site_of(weekly_index(12, lives=3.0))
    late = [np.array([1, 0])] * site.weeks
    # On day 3.5 of each week a page that came on day 1 is there; on day 0 that of the last is not.
    assert online.in_order(site, late, 2).found == 5
    assert online.in_order(site, late, 2, is_spread=False).found == 0


def test_no_page_that_was_told_is_still_to_be_found() -> None:
    site = online.site_of(weekly_index(12))
    for name in online.WEEKLY.values():
        chosen = online.covers(site, name, 3)
        # The first page is seen on day 7 and told on day 14.
        assert [each.tolist() for each in chosen[:3]] == [[], [], [0]]
    turns = online.in_turn(site, 2)
    assert [each.tolist() for each in turns[:4]] == [[0, 1], [0, 1], [2, 0], [1, 2]]


def test_precedents_learn_the_index_told_or_by_themselves() -> None:
    scores = online.compared(weekly_index(30))
    for budget in online.BUDGETS:
        assert scores[PRECEDENTS][budget].coverage == 1
        assert scores[PRECEDENTS][budget].visits == 24 * budget
    # Some visits explore.
    assert 0.9 < scores[UNTOLD][3].coverage < 1
    assert scores[UNIFORM][1].coverage < 0.3
    assert online.lead(scores, 1) == 0
    assert not online.is_dearer(scores, 1)
    # OD-WIN knows one page, and looks once a week, however often it may.
    assert online.is_dearer(scores, 28)


def test_weekly_histories_are_seen_again_when_spread_over_their_weeks() -> None:
    history = growing_site("site", Growth(pages=200, steps=12), np.random.default_rng(2))
    site = courses.spread(history, np.random.default_rng(3))
    seen, pages = courses.snapshots(site)
    assert pages.tolist() == list(range(history.born.size))
    assert (seen.steps, seen.born.tolist()) == (history.steps, history.born.tolist())
    again, once = seen.recrawls(), history.recrawls()
    assert [each.covered(range(each.old)).sum() for each in again] == [
        each.covered(range(each.old)).sum() for each in once
    ]


@pytest.mark.skipif(_FOLDER is None, reason="FRESHET_EVOLUTION_DIR names no recorded sites")
def test_where_pages_are_short_lived_looks_again_find_more() -> None:
    sites = {each.name: each for each in watched(Path(_FOLDER or ""))}
    scores = online.compared(sites["httpwg"])
    assert min(online.lead(scores, budget) for budget in online.BUDGETS) >= 0
    assert online.lead(scores, 7) > 0.3
    assert not online.is_dearer(scores, 3)
