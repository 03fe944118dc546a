"""Checks of numbers that come from outside: one clear error, nothing clipped.

Every message names the argument, the first row that is wrong (counted from 0) with its
value, and what is accepted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]

#: Rows that are looked at together: what is read stays in the processor's cache.
_CHUNK = 1 << 15


def non_negative(name: str, values: ArrayLike, length: int | None = None) -> Floats:
    """``values`` as one column of finite numbers of at least 0; not copied if it is one already.

    Raises:
        ValueError: if it is not one-dimensional, not of ``length``, not numbers, or has a
            row that is NaN, negative or infinite.
    """
    column = _column(name, values, length)
    # The bits of a finite number of at least 0, read as an integer, are below those of
    # infinity; a sign, an infinity or a NaN lifts them above. One comparison instead of three.
    _each_row(name, column, _is_finite_and_non_negative, "a finite number of at least 0")
    return column


def positive(name: str, values: ArrayLike, length: int | None = None) -> Floats:
    """``values`` as one column of numbers above 0; ``inf`` is accepted, as "no limit".

    Raises:
        ValueError: as for :func:`non_negative`.
    """
    column = _column(name, values, length)
    _each_row(name, column, lambda chunk: chunk > 0, "a number above 0")
    return column


def share(name: str, values: ArrayLike, length: int | None = None) -> Floats:
    """``values`` as one column of numbers from 0 to 1.

    Raises:
        ValueError: as for :func:`non_negative`.
    """
    column = _column(name, values, length)
    _each_row(name, column, lambda chunk: (chunk >= 0) & (chunk <= 1), "a number from 0 to 1")
    return column


def finite(name: str, values: ArrayLike, length: int | None = None) -> Floats:
    """``values`` as one column of finite numbers, negative ones included.

    Raises:
        ValueError: as for :func:`non_negative`.
    """
    column = _column(name, values, length)
    _each_row(name, column, np.isfinite, "a finite number")
    return column


def counts(name: str, values: ArrayLike, length: int | None = None) -> Ints:
    """``values`` as one column of whole numbers of at least 0.

    Raises:
        ValueError: as for :func:`non_negative`.
    """
    column = non_negative(name, values, length)
    _each_row(name, column, lambda chunk: chunk == np.floor(chunk), "a whole number")
    return column.astype(np.int64)


def flags(name: str, values: ArrayLike, length: int) -> Bools:
    """``values`` as one column of truth values.

    Raises:
        ValueError: if it is not one-dimensional, not of ``length``, or not bool.
    """
    array = np.asarray(values)
    if array.dtype != np.bool_ and array.size:
        raise ValueError(f"{name}: has dtype {array.dtype}; accepted are truth values (bool)")
    _shaped(name, array, length)
    return array.astype(np.bool_, copy=False)


def codes(name: str, values: ArrayLike, length: int, below: int | None = None) -> NDArray[np.intp]:
    """``values`` as one column of integer codes from 0, all less than ``below``.

    Raises:
        ValueError: if it is not one-dimensional, not of ``length``, not integers, or has a
            row out of range.
    """
    array = np.asarray(values)
    if not np.issubdtype(array.dtype, np.integer) and array.size:
        raise ValueError(f"{name}: has dtype {array.dtype}; accepted are integer codes from 0")
    _shaped(name, array, length)
    column = array.astype(np.intp, copy=False)
    if not column.size:
        return column
    if column.min() < 0 or (below is not None and column.max() >= below):
        good = (column >= 0) & (True if below is None else column < below)
        limit = "" if below is None else f" to {below - 1}"
        _refuse(name, column, int(np.argmin(good)), f"an integer code from 0{limit}")
    return column


def budget(name: str, value: float) -> float:
    """A number of crawls per day, above 0 and finite.

    Raises:
        ValueError: if it is anything else.
    """
    if isinstance(value, bool) or not math.isfinite(value) or value <= 0:
        raise ValueError(f"{name}: is {value!r}; accepted is a finite number above 0")
    return float(value)


def amount(name: str, value: float) -> float:
    """One finite number of at least 0.

    Raises:
        ValueError: if it is anything else.
    """
    if isinstance(value, bool) or not math.isfinite(value) or value < 0:
        raise ValueError(f"{name}: is {value!r}; accepted is a finite number of at least 0")
    return float(value)


def one_of(name: str, value: str, accepted: Sequence[str]) -> str:
    """A word out of those ``accepted``.

    Raises:
        ValueError: if it is another.
    """
    if value not in accepted:
        raise ValueError(f"{name}: is {value!r}; accepted are {', '.join(accepted)}")
    return value


def _column(name: str, values: ArrayLike, length: int | None) -> Floats:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: holds something that is no number ({error})") from error
    _shaped(name, array, length)
    return np.ascontiguousarray(array)


def _shaped(name: str, array: NDArray[np.generic], length: int | None) -> None:
    if array.ndim != 1:
        raise ValueError(f"{name}: has {array.ndim} dimensions; accepted is one column")
    if length is not None and len(array) != length:
        raise ValueError(f"{name}: has {len(array)} rows; accepted are {length}, one a source")


def _is_finite_and_non_negative(chunk: Floats) -> Bools:
    # Minus zero is zero: it alone fails the comparison of bits without being wrong.
    bits_of_infinity = np.uint64(0x7FF0_0000_0000_0000)
    good: Bools = chunk.view(np.uint64) < bits_of_infinity
    return good if good.all() else good | (chunk == 0)


def _each_row(name: str, column: Floats, is_good: Callable[[Floats], Bools], accepted: str) -> None:
    for start in range(0, len(column), _CHUNK):
        good = is_good(column[start : start + _CHUNK])
        if not good.all():
            _refuse(name, column, start + int(np.argmin(good)), accepted)


def _refuse(name: str, column: NDArray[np.generic], row: int, accepted: str) -> None:
    raise ValueError(f"{name}: row {row} is {column[row]}; accepted is {accepted}")
