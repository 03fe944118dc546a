"""Columns that grow."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.arrays import Column


@given(st.lists(st.lists(st.floats(-1e9, 1e9), max_size=40), max_size=8))
def test_rows_are_those_that_were_appended(batches: list[list[float]]) -> None:
    column, expected = Column[np.float64](np.float64), []
    for batch in batches:
        column.extend(batch)
        column.append(1)
        expected += [*batch, 0.0]
        assert column.rows.tolist() == expected
        assert len(column) == len(expected)


def test_rows_of_several_numbers() -> None:
    column = Column[np.float32](np.float32, width=3)
    column.append(20)
    column.rows[19] = 7.0
    column.append(200)
    assert column.rows.shape == (220, 3)
    assert column.rows[19].tolist() == [7.0, 7.0, 7.0]
    assert not column.rows[20:].any()
