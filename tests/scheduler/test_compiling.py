from collections.abc import Callable

import numpy as np
import pytest

from freshet.scheduler import compiling
from freshet.scheduler.arguments import Floats


def total(column: Floats) -> float:
    result = 0.0
    for value in column:
        result += value
    return result


def test_few_rows_are_not_worth_the_compiler() -> None:
    assert not compiling.worthwhile(compiling.WORTHWHILE_ROWS - 1)


def test_many_rows_are_compiled() -> None:
    assert compiling.worthwhile(compiling.WORTHWHILE_ROWS)


@compiling.part
def squared(x: float) -> float:
    return x * x


def squares(column: Floats) -> float:
    result = 0.0
    for value in column:
        result += squared(value)
    return result


def test_a_loop_may_call_parts_that_are_compiled() -> None:
    assert compiling.compiled(squares)(np.arange(4.0)) == 14.0


def test_a_compiled_loop_gives_what_the_loop_gives() -> None:
    column = np.arange(1000) / 7
    assert compiling.compiled(total)(column) == pytest.approx(total(column), rel=1e-14)


def test_a_loop_is_compiled_once() -> None:
    assert compiling.compiled(total) is compiling.compiled(total)


def test_where_nothing_can_be_kept_on_disk_the_loop_is_compiled_all_the_same() -> None:
    # A function without a file is one for which there is no cache directory.
    names: dict[str, Callable[[float], float]] = {}
    exec("def twice(x): return 2 * x", names)
    assert compiling.compiled(names["twice"])(4.0) == 8
