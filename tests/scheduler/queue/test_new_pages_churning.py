"""Which pages' links churn, and how fast new ones come."""

import numpy as np
import pytest

from freshet.scheduler.ephemeral.sources import Arrivals
from freshet.scheduler.queue.new_pages import Churning, rate_of_silent

#: (day, the visit before, appeared, dropped, stayed): two items a visit, a quarter of a day apart.
STEADY = [(0.25 * n, 0.25 * (n - 1), 2, 2, 4) for n in range(1, 13)]


Look = tuple[float, float, int, int, int]


def known_of(*visits: Look, row: int = 0) -> Churning:
    known = Churning()
    for at, _, *links in visits:
        known.saw(row, at, 0.0, (links[0], links[1], links[2]))
    return known


def churning(*visits: Look, until: float | None = None) -> bool:
    since = np.array([visits[-1][0] if until is None else until])
    _, _, (found,) = known_of(*visits).rates(since)
    return bool(found)


def test_links_that_come_steadily_while_old_ones_drop_off_churn() -> None:
    assert churning(*STEADY)
    assert not churning(*STEADY[:3])


@pytest.mark.parametrize(
    ("why", "visits"),
    [
        ("an archive keeps what it has", [(*each[:3], 0, 9) for each in STEADY]),
        ("a list that shows others each time keeps none", [(*each[:4], 0) for each in STEADY]),
        ("what is rewritten shows much at once", [*STEADY, (3.25, 3.0, 90, 90, 1)]),
        ("less than one a day", [(9.0 * n, 9.0 * (n - 1), 2, 2, 4) for n in range(1, 13)]),
    ],
)
def test_what_is_no_churn(why: str, visits: list[Look]) -> None:
    assert not churning(*visits), why


def test_what_has_fallen_silent_churns_no_more() -> None:
    assert churning(*STEADY, until=3.5)
    assert not churning(*STEADY, until=40.0)


def test_the_rate_is_that_of_the_arrivals_also_of_looks_that_found_nothing() -> None:
    known, arrivals = known_of(*STEADY), Arrivals()
    for *_, count, _, _ in STEADY:
        arrivals = arrivals.after(count, 0.25)
    _, (rate,), _ = known.rates(np.array([3.0]))
    assert rate == pytest.approx(arrivals.rate)
    _, (later,), _ = known.rates(np.array([23.0]))
    assert later == pytest.approx(arrivals.after(0, 20.0).rate)


def test_where_nothing_stayed_more_may_have_come() -> None:
    full, whole = (known_of(*STEADY[:6], (2.5, 1.5, 10, 10, stayed)) for stayed in (0, 1))
    since = np.array([2.5])
    assert full.rates(since)[1][0] > whole.rates(since)[1][0]


def test_a_page_that_moves_takes_along_what_is_known() -> None:
    known = known_of(*STEADY, row=1)
    known.inherit(1, 0)
    row, _, churns = known.rates(np.array([3.0, 0.0]))
    assert (row.tolist(), churns.tolist()) == ([0], [True])


def test_what_is_silent_is_learnt_to_be_silent() -> None:
    arrivals = Arrivals()
    for _ in range(8):
        arrivals = arrivals.after(0, 0.25)
    assert rate_of_silent(np.array([2.0, 0.0])) == pytest.approx([arrivals.rate, Arrivals().rate])
