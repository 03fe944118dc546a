"""Openings teach how fast the items of a source fade, and what one is worth."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from freshet.scheduler.arrays import Bools, Floats, Ints
from freshet.scheduler.ephemeral.openings import NOTHING, learned

SET = 0.25


class Showings(NamedTuple):
    page_id: Ints
    age: Floats
    view: Floats
    opened: Bools


def simulated(
    rng: np.random.Generator, half_life: Floats, items: int, appeal: Floats | float = 0.3
) -> Showings:
    """Five showings of each item of the sources 10, 11, …, at ages up to six days, at any place.

    Items differ in their appeal, of which ``appeal`` is the mean.
    """
    sources, means = len(half_life), np.broadcast_to(appeal, len(half_life))[:, None]
    theta = rng.beta(3 * means, 3 * (1 - means), (sources, items))
    age = rng.uniform(0, 6, (sources, items, 5))
    view = 1 / rng.integers(1, 11, age.shape)
    chance = view * theta[..., None] * 0.5 ** (age / half_life[:, None, None])
    source = np.broadcast_to(np.arange(10, 10 + sources)[:, None, None], age.shape)
    return Showings(
        source.ravel(), age.ravel(), view.ravel(), rng.random(age.size) < chance.ravel()
    )


@pytest.mark.parametrize("half_life", [0.1, 0.5, 3.0])
def test_a_half_life_is_found_whatever_was_set(half_life: float) -> None:
    rng = np.random.default_rng(1)
    # Some 150 openings.
    items = round(2_500 / (1 + half_life / 0.5))
    found = [
        learned(*simulated(rng, np.full(1, half_life), items), half_life=SET).half_life[0]
        for _ in range(20)
    ]
    error = np.log(np.array(found) / half_life)
    assert abs(error.mean()) < 0.1
    assert error.std() < 0.25


def test_sources_with_few_openings_are_drawn_to_the_others_and_these_to_what_is_set() -> None:
    rng = np.random.default_rng(2)
    errors, alone = [], []
    for _ in range(10):
        half_life = 1.0 * np.exp(0.5 * rng.standard_normal(12))
        shown = simulated(rng, half_life, 30)
        errors.append(np.log(learned(*shown, half_life=SET).half_life / half_life))
        for source in range(10, 22):
            one = Showings(*(column[shown.page_id == source] for column in shown))
            if one.opened.any():
                by_itself = learned(*one, half_life=SET).half_life[0]
                alone.append(np.log(by_itself / half_life[source - 10]))
    assert np.sqrt(np.mean(np.square(errors))) < 0.8 * np.sqrt(np.mean(np.square(alone)))


def test_a_single_source_has_the_largest_posterior() -> None:
    rng = np.random.default_rng(3)
    shown = simulated(rng, np.array([0.7]), 60)
    opened, n = shown.opened, int(shown.opened.sum())

    def lost(half_life: float, usual: float) -> float:
        decay = np.log(2) / half_life
        fell = decay * shown.age[opened].sum()
        among = n * np.log((shown.view * np.exp(-decay * shown.age)).sum())
        return float(fell + among - 2 * (np.log(decay) - decay * usual / np.log(2)))

    usual = found = SET
    for _ in range(60):
        found = minimize_scalar(lost, args=(usual,), bounds=(1e-2, 20), method="bounded").x
        weight = n / (n + 2)
        usual = np.exp((2 * np.log(SET) + weight * np.log(found)) / (2 + weight))
    assert learned(*shown, half_life=SET).half_life[0] == pytest.approx(found, rel=1e-3)


def test_what_is_opened_more_often_of_as_much_interest_is_worth_more() -> None:
    rng = np.random.default_rng(4)
    shown = simulated(rng, np.array([0.2, 2.0, 2.0]), 2_000, appeal=np.array([0.3, 0.3, 0.1]))
    worth = learned(*shown, half_life=SET).value
    # An item that fades fast is not worth less when it appears for being opened less in all.
    assert worth[0] / worth[1] == pytest.approx(1.0, abs=0.2)
    assert worth[2] / worth[1] == pytest.approx(1 / 3, abs=0.06)


def test_showings_when_it_was_old_of_which_none_was_opened_make_the_half_life_short() -> None:
    young, old = np.full(20, 0.1), np.full(20, 2.0)
    age, opened = np.concatenate([young, old]), np.repeat([True, False], 20)
    both = learned(np.full(40, 7), age, np.ones(40), opened, half_life=1.0)
    # Without them, an age at which all was opened tells nothing.
    without = learned(np.full(20, 7), young, np.ones(20), np.ones(20, np.bool_), half_life=1.0)
    assert both.half_life[0] < 0.7
    assert without.half_life[0] == pytest.approx(1.0)


def test_without_openings_nothing_is_learnt() -> None:
    shown = Showings(np.array([3]), np.array([1.0]), np.ones(1), np.zeros(1, np.bool_))
    assert learned(*shown, half_life=SET) is NOTHING
    half_life, worth, opens = NOTHING.of(np.array([3, 4]))
    assert np.isnan([half_life, opens]).all()
    assert worth.tolist() == [1.0, 1.0]


@given(st.data())
def test_what_is_learnt_is_finite_and_does_not_depend_on_the_order(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 12))
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    page, opened = rng.integers(1, 4, n), rng.random(n) < 0.5
    age, view = rng.choice([0.0, 1e-6, 0.3, 900.0], n), rng.choice([1e-3, 1.0], n)
    found = learned(page, age, view, opened, half_life=SET)
    assert np.isfinite(found.half_life).all()
    assert ((found.half_life > 0) & (found.value > 0)).all() if opened.any() else found is NOTHING
    some = rng.permutation(n)
    again = learned(page[some], age[some], view[some], opened[some], half_life=SET)
    assert again.half_life == pytest.approx(found.half_life, rel=1e-6)
    assert again.value == pytest.approx(found.value, rel=1e-6)
