import doctest
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.evaluate import world
from freshet.scheduler.evaluate.world import split, ticks


def test_the_examples_in_the_documentation_are_right() -> None:
    assert doctest.testmod(world).failed == 0


@given(st.floats(0.0, 50.0), st.floats(0.1, 50.0), st.floats(0.05, 3.0))
def test_parts_follow_one_another_and_are_never_longer_than_asked(
    begin: float, length: float, part: float
) -> None:
    parts = list(split(begin, begin + length, part))
    assert parts[0][0] == begin
    assert parts[-1][1] == begin + length
    assert all(one[1] == other[0] for one, other in pairwise(parts))
    assert all(end - start <= part * (1 + 1e-5) for start, end in parts)


@given(st.floats(0.5, 500.0), st.integers(1, 40))
def test_every_moment_of_a_crawl_falls_into_one_part_only(budget: float, whole: int) -> None:
    together = ticks(budget, 0.0, float(whole))
    pieces = [moment for part in split(0.0, float(whole), 1.0) for moment in ticks(budget, *part)]
    assert pieces == pytest.approx(together)
    assert len(together) == pytest.approx(budget * whole, abs=1)
