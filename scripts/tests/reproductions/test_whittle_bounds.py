from itertools import combinations, product

import numpy as np
import pytest

from freshet.scheduler.ephemeral.policies import dual, relaxed, whittle_by_age
from freshet.scheduler.ephemeral.sources import EphemeralSources
from scripts.reproductions.whittle_bounds import descend, optimum, replicated
from scripts.reproductions.whittle_periods import run
from tests.scheduler.ephemeral.tables import TABLE_1, random_sources


def best_schedule(table: EphemeralSources, count: int, longest: int) -> float:
    """The best of all schedules that repeat after at most ``longest`` periods."""
    return max(
        cycle_average(table, schedule)
        for length in range(1, longest + 1)
        for schedule in product(combinations(range(len(table)), count), repeat=length)
    )


def cycle_average(table: EphemeralSources, schedule: tuple[tuple[int, ...], ...]) -> float:
    length, total = len(schedule), 0.0
    for row in range(len(table)):
        times = [t for t, choice in enumerate(schedule) if row in choice]
        if times:
            gaps = np.diff([*times, times[0] + length])
            mu = table.decay[row]
            total += table.ceiling[row] * float((1 - np.exp(-mu * gaps)).sum())
    return total / length


def test_the_programme_finds_what_brute_force_over_schedules_finds() -> None:
    rng = np.random.default_rng(11)
    for _ in range(3):
        table = random_sources(3, rng, slowest=0.5)
        found = optimum(table, 1, 16, tolerance=1e-6)
        brute = best_schedule(table, 1, 7)
        # No schedule is better, and the best needs few periods.
        assert brute <= found.high * (1 + 1e-9)
        assert brute == pytest.approx(found.low, rel=3e-3)


def test_the_index_policy_is_within_half_a_per_cent_of_the_optimum_on_average() -> None:
    rng = np.random.default_rng(5)
    gaps = []
    for number in range(16):
        n = 3 + number % 2
        count = int(rng.integers(1, n))
        table = random_sources(n, rng, slowest=0.25)
        high = min(optimum(table, count, 14).high, relaxed(table, count).bound)
        mean = run(table, whittle_by_age(table), count, 300, warm_up=100).mean
        gaps.append(1 - mean / high)
    assert min(gaps) > -2e-3
    assert np.mean(gaps) < 0.005
    assert max(gaps) < 0.03


def test_the_example_with_two_crawls_a_period_is_crawled_optimally() -> None:
    found = optimum(TABLE_1, 2, 12)
    assert found.low <= found.high <= relaxed(TABLE_1, 2).bound
    assert run(TABLE_1, whittle_by_age(TABLE_1), 2, 84, warm_up=84).mean == pytest.approx(
        found.low, rel=1e-3
    )


def test_bad_values_are_refused_in_a_line() -> None:
    with pytest.raises(ValueError, match="count: is 5; accepted is from 1 to 4"):
        optimum(TABLE_1, 5, 4)
    with pytest.raises(ValueError, match="oldest: is 1"):
        optimum(TABLE_1, 1, 1)


@pytest.mark.parametrize(("budget", "within"), [(1, 0.1), (2, 0.02)])
def test_online_descent_comes_to_a_price_of_the_exact_dual(budget: int, within: float) -> None:
    prices = descend(TABLE_1, budget, 6000)
    bound = relaxed(TABLE_1, budget).bound
    late = float(prices[-3000:].mean())
    assert dual(TABLE_1, budget, late) == pytest.approx(bound, rel=within / 10)
    assert late == pytest.approx(relaxed(TABLE_1, budget).price, rel=within)


def test_the_gap_to_the_bound_falls_as_sources_are_replicated() -> None:
    # Copies that begin together stay together, and gain nothing: they begin at random.
    rng, beginnings, replicas = *map(np.random.default_rng, (7, 8)), (1, 10, 50)
    gaps = []
    for _ in range(6):
        table = random_sources(4, rng, slowest=0.3)
        for times in replicas:
            many = replicated(table, times)
            start = beginnings.integers(1, 9, len(many)).astype(float)
            found = run(many, whittle_by_age(many), times, 300, warm_up=200, since_crawl=start)
            gaps.append(1 - found.mean / relaxed(many, times).bound)
    once, ten, fifty = np.reshape(gaps, (6, 3)).mean(axis=0)
    assert once > 1.2 * ten > 1.2 * fifty
    assert fifty < 1e-3
