import numpy as np
import pytest
from hypothesis import given

from freshet.scheduler.policies.uniform import ChangeRateCrawl, UniformCrawl
from freshet.scheduler.sources import SourceTable
from tests.scheduler.policies.tables import BUDGETS, source_tables

Policy = type[ChangeRateCrawl] | type[UniformCrawl]
both = pytest.mark.parametrize("policy", [ChangeRateCrawl, UniformCrawl])


@both
@given(source_tables(), BUDGETS)
def test_rates_are_in_proportion(policy: Policy, table: SourceTable, budget: float) -> None:
    plan = policy().rates(table, budget)
    assert plan.crawl_rate.sum() + plan.left_over == pytest.approx(budget, rel=1e-12)
    rate = table.change_rate if policy is ChangeRateCrawl else np.sign(table.change_rate)
    weight = np.where(table.importance > 0, rate, 0.0)
    assert not plan.crawl_rate[weight == 0].any()
    level = plan.crawl_rate[weight > 0] / weight[weight > 0]
    np.testing.assert_allclose(level, level.max(initial=0.0), rtol=1e-10)


@both
def test_it_crawls_by_the_clock_in_either_way(policy: Policy) -> None:
    table = SourceTable.of([1.0, 1.0], [1.0, 3.0], complete_observations=[True, False])
    assert not policy().rates(table, 1.0).on_signals.any()
    assert policy().rates(table, 1.0).crawling == "poisson"
    assert policy("periodic").rates(table, 1.0).crawling == "periodic"


@both
def test_bad_options_are_refused(policy: Policy) -> None:
    with pytest.raises(ValueError, match="crawling: is 'daily'; accepted"):
        policy("daily")  # type: ignore[arg-type]
