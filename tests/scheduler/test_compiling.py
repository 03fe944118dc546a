from collections.abc import Callable

import numpy as np
import pytest

from freshet.scheduler import arrays
from freshet.scheduler.arrays import Floats


def total(column: Floats) -> float:
    result = 0.0
    for value in column:
        result += value
    return result


def test_few_rows_are_not_worth_the_compiler() -> None:
    assert not arrays.worthwhile(arrays.WORTHWHILE_ROWS - 1)


def test_many_rows_are_compiled() -> None:
    assert arrays.worthwhile(arrays.WORTHWHILE_ROWS)


@arrays.part
def squared(x: float) -> float:
    return x * x


def squares(column: Floats) -> float:
    result = 0.0
    for value in column:
        result += squared(value)
    return result


def test_a_loop_may_call_parts_that_are_compiled() -> None:
    assert arrays.compiled(squares)(np.arange(4.0)) == 14.0


def test_a_compiled_loop_gives_what_the_loop_gives() -> None:
    column = np.arange(1000) / 7
    assert arrays.compiled(total)(column) == pytest.approx(total(column), rel=1e-14)


def test_a_loop_is_compiled_once() -> None:
    assert arrays.compiled(total) is arrays.compiled(total)


def test_where_nothing_can_be_kept_on_disk_the_loop_is_compiled_all_the_same() -> None:
    # A function without a file is one for which there is no cache directory.
    names: dict[str, Callable[[float], float]] = {}
    exec("def twice(x): return 2 * x", names)
    assert arrays.compiled(names["twice"])(4.0) == 8
