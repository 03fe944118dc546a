"""Numbers behind the figures of a comparison."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.extensions.lab.charts import thinned
from freshet.scheduler.queue.audit import wilson


def test_wilson_gives_the_interval_of_the_textbook() -> None:
    # 8 of 10: Agresti and Coull, The American Statistician 52 (1998).
    assert wilson(0.8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)


@given(st.integers(1, 500), st.data())
def test_wilson_contains_the_share_within_zero_and_one(of: int, data: st.DataObject) -> None:
    came = data.draw(st.integers(0, of))
    low, high = wilson(came / of, of)
    assert 0.0 <= low <= came / of + 1e-12
    assert came / of - 1e-12 <= high <= 1.0


@given(st.integers(1, 700))
def test_thinned_days_are_at_most_120_means(days: int) -> None:
    daily = np.repeat(np.arange(days, dtype=np.float64)[:, None], 3, axis=1)
    at, means = thinned(daily, 10.0)
    assert len(at) == len(means) <= 120
    # The mean of consecutive numbers is their middle.
    whole = days // len(at) if days % len(at) == 0 else -(-days // 120)
    assert means[0] == pytest.approx((min(whole, days) - 1) / 2)
    assert at[0] == 10.0 + whole / 2


def test_thinned_leaves_out_days_without_a_figure() -> None:
    daily = np.full((240, 3), np.nan)
    daily[0] = 4.0
    _, means = thinned(daily, 0.0)
    assert means[0, 0] == 4.0
    assert np.isnan(means[1:]).all()
