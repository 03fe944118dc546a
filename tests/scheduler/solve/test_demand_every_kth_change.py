import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.solve.budget import Hosts
from freshet.scheduler.solve.demand import whole_changes
from freshet.scheduler.sources import SourceTable
from tests.scheduler.policies.tables import host_totals

TOLD = {"complete_observations": np.array([True, True])}


def hosts_of(table: SourceTable) -> Hosts:
    return Hosts(table.host, table.host_capacity)


@given(st.integers(0, 2**32 - 1), st.floats(0.05, 3.0))
def test_every_source_waits_for_whole_changes_within_budget_and_capacities(
    seed: int, share: float
) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 25))
    mu, delta = 10 ** rng.uniform(-1, 1, (2, n))
    table = SourceTable.of(
        mu, delta, complete_observations=np.full(n, True), host=rng.integers(0, 3, n),
        host_capacity=rng.choice([0.3, 5.0, np.inf], 3),
    )  # fmt: skip
    budget = share * float(delta.sum())
    every, _, host_price = whole_changes(table, budget, hosts_of(table))
    assert (every >= 1).all()
    assert (every == np.floor(every)).all()
    rates = delta / every
    assert rates.sum() <= budget * (1 + 1e-9)
    assert (host_totals(table, rates) <= table.host_capacity * (1 + 1e-9)).all()
    # At its host's price nobody waits for fewer changes than it would choose, nor for two more.
    wanted = np.maximum(np.ceil(host_price[table.host] * delta / mu - 1e-6), 1.0)
    assert (every <= wanted + 1e-6 * wanted + 1).all()


def test_a_large_budget_answers_every_change() -> None:
    table = SourceTable.of([1.0, 2.0], [1.0, 3.0], **TOLD)
    every, price, _ = whole_changes(table, 10.0, hosts_of(table))
    assert every.tolist() == [1.0, 1.0]
    assert price == 0


def test_half_the_changes_of_equal_sources_are_every_second_one() -> None:
    table = SourceTable.of([1.0, 1.0], [2.0, 2.0], **TOLD)
    assert whole_changes(table, 2.0, hosts_of(table))[0].tolist() == [2.0, 2.0]


def test_what_is_left_goes_to_whom_it_suffices_for() -> None:
    """At a budget of 1.5 one of two can have every change, the other every second one."""
    table = SourceTable.of([1.0, 1.0], [1.0, 1.0], **TOLD)
    assert sorted(whole_changes(table, 1.5, hosts_of(table))[0].tolist()) == [1.0, 2.0]


def test_without_signals_there_is_nothing_to_choose() -> None:
    table = SourceTable.of([1.0, 1.0], [1.0, 1.0])
    every, price, _ = whole_changes(table, 1.0, hosts_of(table))
    assert every.tolist() == [1.0, 1.0]
    assert price == pytest.approx(0.0)
