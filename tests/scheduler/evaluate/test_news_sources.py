import numpy as np
import pytest

from freshet.scheduler.evaluate.news import ITEMS, news_sources

SOURCES = news_sources(200_000, np.random.default_rng(1))


def test_sources_publish_as_the_feeds_that_were_watched_for_eight_months() -> None:
    a_feed_and_day = 10_794_285 / 8_155 / (365.25 * 8 / 12)
    assert SOURCES.arrival_rate.mean() == pytest.approx(a_feed_and_day, rel=0.03)
    busiest = np.sort(SOURCES.arrival_rate)[-int(0.17 * len(SOURCES)) :]
    assert busiest.sum() / SOURCES.arrival_rate.sum() == pytest.approx(0.97, abs=0.002)
    assert SOURCES.arrival_rate.max() == 1_000


def test_items_fade_within_hours_to_days_and_are_worth_one_on_average() -> None:
    hours = 24 * np.log(2) / SOURCES.decay
    assert hours.mean() == pytest.approx(36, rel=0.02)
    assert np.median(hours) == pytest.approx(24, rel=0.02)
    assert (hours.min(), hours.max()) == pytest.approx((1, 24 * 14))
    assert SOURCES.mean_utility.mean() == pytest.approx(1, rel=0.02)
    assert ITEMS.draws(100_000, np.random.default_rng(1)).mean() == pytest.approx(1, rel=0.02)


def test_rates_half_lives_and_utilities_are_independent() -> None:
    columns = np.log([SOURCES.arrival_rate, SOURCES.decay, SOURCES.mean_utility])
    assert np.abs(np.corrcoef(columns) - np.eye(3)).max() < 0.01


def test_the_same_seed_gives_the_same_sources_and_there_may_be_one() -> None:
    one, same = (news_sources(1, np.random.default_rng(4)) for _ in range(2))
    assert (one.arrival_rate, one.decay) == (same.arrival_rate, same.decay)
    assert len(one) == 1
    assert one.cost.tolist() == [1.0]
