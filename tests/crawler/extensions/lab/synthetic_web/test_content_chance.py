from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.extensions.lab.synthetic_web.content import DAY_S, generator, poisson_times


def test_a_generator_is_known_by_its_key_alone() -> None:
    assert generator(1, "news", "x").random() == generator(1, "news", "x").random()
    assert generator(1, "news", "x").random() != generator(1, "news", "y").random()


@given(st.integers(0, 10**6), st.floats(0, 50), st.integers(0, 10**9), st.floats(0, 20))
def test_arrivals_rise_in_whole_seconds_within_the_interval(
    seed: int, rate: float, start: int, days: float
) -> None:
    end_at = start + days * DAY_S
    times = poisson_times(generator(seed), rate, start, end_at)
    assert list(times) == sorted(set(times))
    assert all(start < at < end_at and at == int(at) for at in times)


def test_a_rate_of_zero_has_no_arrivals() -> None:
    assert poisson_times(generator(1), 0.0, 0.0, 10 * DAY_S) == ()


def test_the_number_of_arrivals_is_about_rate_times_days() -> None:
    # 2,000 expected with a standard deviation of 45.
    times = poisson_times(generator(1), 20.0, 0.0, 100 * DAY_S)
    assert 1800 < len(times) < 2200
