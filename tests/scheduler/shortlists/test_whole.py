import numpy as np
import pytest

from freshet.scheduler.policies.greedy_index import GreedyIndex
from freshet.scheduler.shortlists import jitter
from freshet.scheduler.shortlists.whole import COLUMNS, Whole
from freshet.scheduler.sources import SourceTable


def table_of(n: int) -> SourceTable:
    rng = np.random.default_rng(n)
    return SourceTable.of(
        *(10 ** rng.uniform(-1, 1, (2, n))),
        host=rng.integers(0, 7, n),
        last_crawl=-rng.exponential(1.0, n),
    )


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_the_worth_of_many_chunks_is_the_index_times_the_noise(noise: float) -> None:
    n = 70_000
    table = table_of(n)
    whole = Whole(table, GreedyIndex().index, noise, 5)
    expected = GreedyIndex().index(table, 2.0)
    if noise:
        expected = expected * jitter.factors(noise, 5, np.arange(n), table.last_crawl)
        assert whole.noise_of(69_999) == whole.part(np.array([69_999])).noise
    np.testing.assert_array_equal(whole.worth(2.0), expected)


def test_the_sources_of_a_host_are_found() -> None:
    table = table_of(500)
    whole = Whole(table, GreedyIndex().index, 0.0, 0)
    assert whole.of_host(3).tolist() == np.flatnonzero(table.host == 3).tolist()


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_parts_are_put_together_in_the_order_of_rows(noise: float) -> None:
    whole = Whole(table_of(100), GreedyIndex().index, noise, 0)
    rows = np.array([3, 20, 50, 99])
    joined = whole.part(rows[[1, 2]]).with_others(whole.part(rows[[0, 3]]))
    expected = whole.part(rows)
    assert joined.rows.tolist() == rows.tolist()
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(joined.table, name), getattr(expected.table, name))
    np.testing.assert_array_equal(whole.worth_of(joined, 1.0), whole.worth_of(expected, 1.0))


def test_a_part_is_a_copy_and_its_first_sources_share_it() -> None:
    whole = Whole(table_of(10), GreedyIndex().index, 0.0, 0)
    part = whole.part(np.arange(4))
    part.first(2).table.importance[0] = 77.0
    assert part.table.importance[0] == 77
    assert whole.table.importance[0] != 77
