"""What was fetched when, judged by hand-worked numbers."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.extensions.lab.daemon_trial import (
    FoundPages,
    TruePage,
    discovery,
    freshness,
    held,
)

DAY_S = 86_400.0


def page(
    *changes: float, born: float = 0.0, died: float = inf, importance: float = 1.0
) -> TruePage:
    return TruePage(importance, born * DAY_S, died * DAY_S, [at * DAY_S for at in changes])


def days(*at: float) -> list[float]:
    return [day * DAY_S for day in at]


def test_a_copy_is_stale_from_the_first_change_to_the_next_look() -> None:
    found = freshness([(page(2.0, 4.0), days(0.0, 5.0))], 0.0, 10 * DAY_S)
    assert found is not None
    assert found.binary == pytest.approx(3 / 10)
    assert found.fresh == pytest.approx(7 / 10)
    assert found.harmonic == pytest.approx((3 + 1 / 2) / 10)
    assert found.age_days == pytest.approx((5**2 / 2 + 5**2 / 2) / 10)
    assert found.stale_days == pytest.approx(3 / 2)


def test_only_the_measured_days_count_but_what_was_missed_before_them_does() -> None:
    found = freshness([(page(1.0), days(0.0))], 6 * DAY_S, 10 * DAY_S)
    assert found is not None
    assert found.binary == pytest.approx(1)
    assert found.age_days == pytest.approx(8)
    assert found.stale_days == pytest.approx(7)


def test_a_copy_of_a_page_that_died_is_stale_until_that_is_seen() -> None:
    found = freshness([(page(died=4.0), days(0.0, 6.0, 8.0))], 0.0, 10 * DAY_S)
    assert found is not None
    assert found.binary == pytest.approx(2 / 6)


def test_means_are_weighted_with_importance_and_pages_without_a_copy_are_none_of_them() -> None:
    changed, still = page(5.0, importance=3.0), page(importance=1.0)
    visited = [(changed, days(0.0)), (still, days(0.0)), (page(1.0), [])]
    found = freshness(visited, 0.0, 10 * DAY_S)
    assert found is not None
    assert found.binary == pytest.approx(3 * 5 / 40)
    assert freshness([(page(), [])], 0.0, DAY_S) is None


def test_a_look_before_the_birth_found_nothing() -> None:
    born = [(page(born=3.0), days(1.0, 4.5)), (page(born=3.0), days(1.0)), (page(), days(0.0))]
    assert discovery(born, 0.0, 10 * DAY_S) == FoundPages(2, 1, 1.5, 1.5, 2**-6 / 2)
    assert discovery(born, 0.0, 4 * DAY_S) == FoundPages(2, 0, None, None, 0.0)
    assert discovery(born, 5 * DAY_S, 10 * DAY_S) == FoundPages(0, 0, None, None, None)
    assert held(born, 4 * DAY_S) == 1
    assert held(born, 5 * DAY_S) == 2


def test_a_new_page_is_worth_half_of_what_it_was_for_every_six_hours_that_it_waited() -> None:
    waited = [(page(born=1.0), days(1.0 + hours / 24)) for hours in (0.0, 6.0, 12.0)]
    found = discovery([*waited, (page(born=1.0), [])], 0.0, 10 * DAY_S)
    assert found.utility == pytest.approx((1 + 1 / 2 + 1 / 4 + 0) / 4)


@given(
    st.lists(st.floats(0.0, 20.0), max_size=8),
    st.lists(st.floats(0.0, 20.0), min_size=1, max_size=8),
    st.floats(0.0, 19.0),
)
def test_the_harmonic_cost_lies_between_the_binary_one_and_the_number_missed(
    changes: list[float], visits: list[float], begin: float
) -> None:
    found = freshness([(page(*sorted(changes)), days(*sorted(visits)))], begin * DAY_S, 20 * DAY_S)
    if found is not None:
        assert 0 <= found.binary <= 1 + 1e-9
        assert found.binary <= found.harmonic + 1e-9
        assert found.harmonic <= sum(1 / n for n in range(1, len(changes) + 1)) + 1e-9
        assert 0 <= found.stale_days <= found.age_days / max(found.binary, 1e-9) + 1e-6
