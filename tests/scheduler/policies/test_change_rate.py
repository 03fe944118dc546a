import doctest

import numpy as np
import pytest
from hypothesis import given

from freshet.scheduler.policies import uniform
from freshet.scheduler.policies.uniform import ChangeRateCrawl
from freshet.scheduler.sources import SourceTable
from tests.scheduler.policies.tables import BUDGETS, host_totals, source_tables


def test_the_example_in_the_documentation_is_right() -> None:
    assert doctest.testmod(uniform).failed == 0


@given(source_tables(), BUDGETS)
def test_rates_are_in_proportion(table: SourceTable, budget: float) -> None:
    plan = ChangeRateCrawl().rates(table, budget)
    assert plan.crawl_rate.sum() + plan.left_over == pytest.approx(budget, rel=1e-12)
    weight = np.where(table.importance > 0, table.change_rate, 0.0)
    assert not plan.crawl_rate[weight == 0].any()
    level = plan.crawl_rate[weight > 0] / weight[weight > 0]
    np.testing.assert_allclose(level, level.max(initial=0.0), rtol=1e-10)


@given(source_tables(hosts=True), BUDGETS)
def test_capacities_are_kept(table: SourceTable, budget: float) -> None:
    plan = ChangeRateCrawl().rates(table, budget)
    assert (host_totals(table, plan.crawl_rate) <= table.host_capacity * (1 + 1e-9)).all()
    assert plan.crawl_rate.sum() + plan.left_over == pytest.approx(budget, rel=1e-9)


def test_it_crawls_by_the_clock_in_either_way() -> None:
    table = SourceTable.of([1.0, 1.0], [1.0, 3.0], complete_observations=[True, False])
    assert not ChangeRateCrawl().rates(table, 1.0).on_signals.any()
    assert ChangeRateCrawl().rates(table, 1.0).crawling == "poisson"
    assert ChangeRateCrawl("periodic").rates(table, 1.0).crawling == "periodic"


def test_nothing_to_crawl_leaves_the_budget_over() -> None:
    assert ChangeRateCrawl().rates(SourceTable.of([], []), 2.0).left_over == 2
    assert ChangeRateCrawl().rates(SourceTable.of([0.0], [1.0]), 2.0).left_over == 2


def test_bad_options_and_budgets_are_refused() -> None:
    with pytest.raises(ValueError, match="crawling: is 'daily'; accepted"):
        ChangeRateCrawl("daily")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="budget: is 0"):
        ChangeRateCrawl().rates(SourceTable.of([1.0], [1.0]), 0.0)
