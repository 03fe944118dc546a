import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.evaluate.changes import members, offsets_of, places


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
