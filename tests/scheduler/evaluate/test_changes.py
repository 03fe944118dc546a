import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.evaluate import changes
from freshet.scheduler.evaluate.changes import (
    ChangeTimes,
    drift,
    members,
    offsets_of,
    places,
    together,
)
from freshet.scheduler.sources import SourceTable

SPECIFICATIONS = ["poisson", "bursts", "drift", "together", "bursts:mean_size=2,spread_days=0.1"]


def drawn(specification: str, rate: float, n: int, days: float, seed: int = 1) -> ChangeTimes:
    table = SourceTable.of(np.ones(n), np.full(n, rate))
    return changes.load(specification)(table, days, np.random.default_rng(seed))


def daily(times: ChangeTimes, n: int, days: int) -> np.ndarray:
    """Changes by source and day."""
    source = np.repeat(np.arange(n), np.diff(times.offsets))
    counts = np.zeros((n, days), int)
    np.add.at(counts, (source, times.at.astype(int)), 1)
    return counts


@given(
    st.lists(st.lists(st.integers(0, 9), max_size=5), min_size=1, max_size=4),
    st.integers(-1, 10),
    st.integers(-1, 10),
)
def test_counts_are_those_of_the_half_open_interval(
    times: list[list[int]], after: int, until: int
) -> None:
    columns = [sorted(each) for each in times]
    offsets = np.cumsum([0, *map(len, columns)])
    found = ChangeTimes(offsets, np.array([t for each in columns for t in each], float))
    rows = np.arange(len(columns))
    expected = [sum(after < t <= until for t in each) for each in columns]
    ends = np.full(len(rows), float(after)), np.full(len(rows), float(until))
    assert found.count(rows, *ends).tolist() == expected


@pytest.mark.parametrize("specification", SPECIFICATIONS)
def test_times_ascend_within_the_days(specification: str) -> None:
    times = drawn(specification, 2.0, 50, 10.5)
    source = np.repeat(np.arange(50), np.diff(times.offsets))
    assert (np.lexsort((times.at, source)) == np.arange(len(times.at))).all()
    assert times.at.min() >= 0
    assert times.at.max() <= 10.5


@pytest.mark.parametrize("specification", SPECIFICATIONS)
def test_the_mean_rate_is_kept_from_the_first_day_to_the_last(specification: str) -> None:
    n, days = 20_000, 20
    per_day = daily(drawn(specification, 0.5, n, days), n, days).mean(axis=0)
    assert per_day.mean() == pytest.approx(0.5, rel=0.04)
    assert per_day[0] == pytest.approx(0.5, rel=0.12)
    assert per_day[-1] == pytest.approx(0.5, rel=0.12)


@pytest.mark.parametrize("specification", SPECIFICATIONS)
def test_the_same_seed_draws_the_same_changes(specification: str) -> None:
    one, other = (drawn(specification, 1.0, 100, 5, seed=3) for _ in range(2))
    assert (one.at == other.at).all()
    assert (
        len(drawn(specification, 1.0, 100, 5, seed=4).at) != len(one.at)
        or (drawn(specification, 1.0, 100, 5, seed=4).at != one.at).any()
    )


@pytest.mark.parametrize("specification", SPECIFICATIONS)
def test_sources_that_never_change_and_no_sources_are_possible(specification: str) -> None:
    assert len(drawn(specification, 0.0, 10, 5).at) == 0
    assert drawn(specification, 1.0, 0, 5).offsets.tolist() == [0]


def test_poisson_counts_have_the_variance_of_their_mean() -> None:
    counts = daily(drawn("poisson", 2.0, 5_000, 4), 5_000, 4)
    assert counts.var() == pytest.approx(2.0, rel=0.05)


def test_bursts_are_clumsier_than_poisson() -> None:
    counts = daily(drawn("bursts", 0.5, 20_000, 30), 20_000, 30)
    # Within a burst of geometric size and mean 5 there are on average 2·5·4/5 pairs a change.
    assert counts.sum(axis=1).var() / counts.sum(axis=1).mean() == pytest.approx(9.0, rel=0.1)


def test_drifting_rates_are_alike_on_neighbouring_days_and_not_far_apart() -> None:
    n, days = 20_000, 60
    times = drift(sigma=1.0, half_life_days=5.0)(
        SourceTable.of(np.ones(n), np.full(n, 3.0)), days, np.random.default_rng(1)
    )
    counts = daily(times, n, days)
    near = np.corrcoef(counts[:, 20], counts[:, 21])[0, 1]
    far = np.corrcoef(counts[:, 0], counts[:, 59])[0, 1]
    assert near > 0.6
    assert abs(far) < 0.05


def test_a_group_changes_together() -> None:
    n = 2_000
    table = SourceTable.of(np.ones(n), np.full(n, 0.5))
    times = together(share=0.8, size=20)(table, 50, np.random.default_rng(1))
    _, multiplicity = np.unique(times.at, return_counts=True)
    common = multiplicity[multiplicity > 1].sum() / multiplicity.sum()
    assert common == pytest.approx(0.8, abs=0.02)
    assert multiplicity.max() == 20


@pytest.mark.parametrize(
    ("specification", "message"),
    [
        ("poison", "process: is 'poison'; accepted are poisson, bursts, drift, together"),
        ("bursts:size=2", "process bursts: option 'size=2' is not known; accepted are mean_size=…"),
        ("bursts:mean_size=0", "process bursts: mean_size: is 0.0; accepted is a finite number"),
        ("bursts:spread_days=0", "process bursts: spread_days: is 0.0; accepted"),
        ("drift:half_life_days=x", "process drift: half_life_days is 'x'; accepted is a number"),
        ("together:share=2", "process together: share: is 2.0; accepted"),
        ("together:size=0", "process together: size: is 0; accepted is a number of at least 1"),
    ],
)
def test_what_is_not_accepted_is_told(specification: str, message: str) -> None:
    with pytest.raises(ValueError, match="process") as caught:
        changes.load(specification)
    assert str(caught.value).startswith(message)


@given(st.lists(st.lists(st.floats(-5, 5), max_size=6), min_size=1, max_size=8), st.floats(-6, 6))
def test_places_are_found_in_every_stretch_as_by_a_search_in_each(
    stretches: list[list[float]], wanted: float
) -> None:
    ordered = [sorted(each) for each in stretches]
    at = np.array([value for each in ordered for value in each])
    offsets = offsets_of(np.array([len(each) for each in ordered]))
    found = places(at, offsets[:-1], offsets[1:], np.full(len(ordered), wanted))
    expected = [
        start + np.searchsorted(np.array(each), wanted, side="right")
        for start, each in zip(offsets.tolist(), ordered, strict=False)
    ]
    assert found.tolist() == expected


def test_members_lists_the_rows_of_each_stretch() -> None:
    assert members(np.array([4, 0, 9]), np.array([2, 3, 0])).tolist() == [4, 5, 0, 1, 2]


def test_offsets_are_running_sums_from_0() -> None:
    assert offsets_of(np.array([2, 0, 3])).tolist() == [0, 2, 2, 5]
