"""What visits are expected to reveal, by the new pages that came before."""

from collections import Counter
from math import exp, inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.discovery.hub_yield import NEWEST, PageSnapshot, Precedents

NOW = 40.0


def standing(since: list[float], **columns: list[float]) -> PageSnapshot:
    """Pages of one site that were found on day 0 and are all captured, unless said otherwise."""
    n = len(since)
    plain = {"site": [0] * n, "importance": [1.0] * n, "found_at": [0.0] * n, "captured": [1] * n}
    said = plain | columns
    return PageSnapshot(
        np.array(said["site"], np.intp), np.array(said["importance"]),
        np.array(said["found_at"]), np.array(since), np.array(said["captured"], np.bool_),
    )  # fmt: skip


def known(
    pages: PageSnapshot, revealed: dict[int, list[int]], newest: int = NEWEST
) -> Precedents:  # fmt: skip
    """The pages in order, and which were revealed by which."""
    found = Precedents(newest)
    columns = zip(pages.site.tolist(), pages.found_at.tolist(), strict=True)
    for row, (site, at) in enumerate(columns):
        found.admit(row, site, at)
    for row, revealers in revealed.items():
        for by in revealers:
            found.reveal(row, by)
    return found


def test_a_look_takes_what_two_pages_reveal_from_both() -> None:
    # Front page, feed, archive; two pages came on different days, one revealed by the first two.
    pages = standing([30.0, 38.0, 30.0, 39.0, 39.0], found_at=[0.0, 0.0, 0.0, 10.0, 20.0])
    found = known(pages, {3: [0, 1], 4: [2]}).value(pages, NOW)
    none = known(pages, {}).value(pages, NOW)
    days = 365 * (1 - exp(-NOW / 365)) + 7
    both, archived = exp(-30 / 365) / days, exp(-20 / 365) / days
    assert found.per_day == pytest.approx(both + archived)
    assert found.unknown == pytest.approx(2 * both + 10 * archived)
    # What every page may reveal beside that grows with what the site brings.
    assert (found.pages >= none.pages).all()
    assert found.pages[0] - found.pages[2] == pytest.approx(2 * both - 10 * archived)
    assert found.value[0] - found.value[2] == pytest.approx((2**2 * both - 10**2 * archived) / 2)


def test_a_site_with_more_news_than_are_remembered_brings_as_many_a_day() -> None:
    a_day, days = 50, 20
    new = a_day * days
    found_at = [0.0] + [NOW - days + n / a_day for n in range(new)]
    pages = standing([NOW - 1] + [NOW] * new, found_at=found_at)
    found = known(pages, {row: [0] for row in range(1, new + 1)}).value(pages, NOW)
    # The newest 200 came in four days; beside them a week without any is taken to have been.
    assert found.per_day == pytest.approx(200 / (4 + 7), rel=0.01)


def test_a_site_that_is_rebuilt_brings_as_much_as_ten_pages() -> None:
    new = 200
    pages = standing([30.0] + [39.0] * new, found_at=[0.0] + [10.0] * new)
    rebuilt = known(pages, {row: [0] for row in range(1, new + 1)}).value(pages, NOW)
    # The first page of the site was displaced, of the others a twentieth of the site counts.
    days = 365 * (1 - exp(-NOW / 365)) + 7
    most = max(10, (new + 1) / 20)
    assert rebuilt.per_day == pytest.approx(most * exp(-30 / 365) / days)


def test_a_page_that_moves_takes_along_what_it_reveals() -> None:
    pages = standing([30.0, 30.0, 39.0], found_at=[0.0, 0.0, 10.0])
    found = known(pages, {2: [0]})
    found.move(0, 1)
    assert found.revealers(2) == (1,)
    value = found.value(pages, NOW)
    assert value.pages[1] > value.pages[0]


@st.composite
def histories(draw: st.DrawFn) -> tuple[PageSnapshot, list[tuple[int, int]]]:
    n = draw(st.integers(1, 12))
    day = st.integers(0, 20).map(float)
    found_at = sorted(draw(st.lists(day, min_size=n, max_size=n)))
    waits = draw(st.lists(day, min_size=n, max_size=n))
    site = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    weight = draw(st.lists(st.integers(1, 5).map(float), min_size=n, max_size=n))
    captured = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    since = [at + wait for at, wait in zip(found_at, waits, strict=True)]
    page = st.integers(0, n - 1)
    pairs = draw(st.lists(st.tuples(page, page), max_size=30, unique=True))
    pages = standing(
        since, found_at=found_at, site=[float(s) for s in site], importance=weight,
        captured=[float(c) for c in captured],
    )  # fmt: skip
    return pages, pairs


def test_what_is_too_late_waits_for_what_will_be() -> None:
    # Page 0 brought two pages and was visited yesterday, page 1 brought one, a month ago.
    pages = standing([39.0, 10.0, 40.0, 40.0, 40.0], found_at=[0.0, 0.0, 8.0, 8.0, 8.0])
    found = known(pages, {2: [0], 3: [0], 4: [1]})
    within = found.value(pages, NOW, 7.0)
    assert within.value[1] > within.value[0]
    # A longer wait costs no more.
    later = found.value(pages, NOW + 5.0, 7.0)
    assert later.value[1] < within.value[1]
    assert found.value(pages, NOW + 5.0).value[1] > found.value(pages, NOW).value[1]
    # When both are late, the page that brings more goes first.
    both = found.value(pages, NOW + 6.0, 7.0)
    assert both.value[0] > both.value[1]
    assert (both.pages == found.value(pages, NOW + 6.0).pages).all()


@given(histories(), st.integers(1, 4), st.sampled_from([3.0, 7.0, inf]))
def test_as_the_definition_says_word_for_word(
    history: tuple[PageSnapshot, list[tuple[int, int]]], newest: int, limit: float
) -> None:
    pages, pairs = history
    found = known(pages, {}, newest)
    for row, by in pairs:
        found.reveal(row, by)
    worth, expected, unknown, per_day = by_definition(pages, pairs, newest, limit)
    value = found.value(pages, NOW, limit)
    assert value.value == pytest.approx(worth)
    assert value.pages == pytest.approx(expected)
    assert (value.unknown, value.per_day) == pytest.approx((unknown, per_day))


def by_definition(
    pages: PageSnapshot, pairs: list[tuple[int, int]], newest: int, limit: float
) -> tuple[list[float], list[float], float, float]:
    n, site = len(pages.site), pages.site.tolist()
    began = {}
    for s in site:
        rows = [row for row in range(n) if site[row] == s]
        began[s] = pages.found_at[rows[max(0, len(rows) - newest - 1)]]
    days = {s: 365 * (1 - exp(-(NOW - began[s]) / 365)) + 7 for s in site}
    batch = Counter(zip(site, pages.found_at.tolist(), strict=True))
    rate = {}
    for row in range(n):
        mine = [other for other in range(row + 1, n) if site[other] == site[row]]
        if len(mine) < newest and pages.captured[row]:
            most = max(10.0, site.count(site[row]) / 20)
            share = min(1.0, most / batch[site[row], pages.found_at[row]])
            age = NOW - pages.found_at[row]
            rate[row] = share * exp(-age / 365) / days[site[row]]
    revealers = {y: {x for z, x in pairs if z == y and pages.captured[x]} for y in rate}
    waits = {y: NOW - max((pages.since[x] for x in by), default=inf) for y, by in revealers.items()}
    worth, expected = [0.0] * n, [0.0] * n
    for x in range(n):
        if not pages.captured[x]:
            continue
        held = sum(bool(c) and s == site[x] for c, s in zip(pages.captured, site, strict=True))
        new = sum(r for y, r in rate.items() if site[y] == site[x] and revealers[y])
        new *= days[site[x]]
        per_page = (new + 1) / (days[site[x]] + 30) / held
        again = 0.5 / (0.5 / per_page + pages.since[x] - pages.found_at[x])
        wait = NOW - pages.since[x]
        worth[x] = pages.importance[x] * again * delayed(wait, limit)
        expected[x] = again * wait
        for y, by in revealers.items():
            if x in by:
                worth[x] += pages.importance[y] * rate[y] * delayed(waits[y], limit)
                expected[x] += rate[y] * waits[y]
    known_rates = [(rate[y], waits[y]) for y, by in revealers.items() if by]
    unknown = sum(r * wait for r, wait in known_rates)
    return worth, expected, unknown, sum(r for r, _ in known_rates)


def delayed(wait: float, limit: float) -> float:
    return wait**2 / 2 if wait < limit else limit**2 / 2 + 4 * limit**2


def test_what_a_first_crawl_found_says_nothing_of_new_pages() -> None:
    # A first crawl of a hundred pages, which took a minute; nothing came in the 40 days since.
    found_at = [k / 144_000 for k in range(101)]
    pages = standing([at + 0.001 for at in found_at], found_at=found_at)
    value = known(pages, {}).value(pages, NOW)
    days = 365 * (1 - exp(-NOW / 365)) + 7
    # One page more in a month is expected of the whole site, not a hundred.
    most = 0.5 / (days + 30) * NOW
    assert value.pages.sum() < 2 * most < 1.0
