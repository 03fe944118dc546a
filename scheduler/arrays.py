"""Checked input columns, growable columns, and arrays in scratch files.

Every check raises ValueError if a column is not one-dimensional, is not of its ``length``, is not
numeric or has a wrong row, or if a single value is wrong. The error names the argument, the first
wrong row (counted from 0) with its value, and the accepted values. Values are never clipped.
"""

import math
import mmap
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from tempfile import TemporaryFile
from typing import IO, Any, Final, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
#: Arrays by name.
Arrays: TypeAlias = Mapping[str, NDArray[Any]]

#: Rows checked together: they stay in the processor's cache.
_CHUNK = 1 << 15


def non_negative(name: str, values: ArrayLike, length: int | None = None) -> Floats:
    """Return ``values`` as a column of finite numbers of at least 0, copied only if needed."""
    column = _column(name, values, length)
    # The bits of a finite number of at least 0, read as an integer, are below the bits of infinity.
    # A sign, an infinity or a NaN lifts them above. One comparison instead of three.
    _each_row(name, column, _is_finite_and_non_negative, "a finite number of at least 0")
    return column


def positive(name: str, values: ArrayLike, length: int | None = None) -> Floats:
    """Return ``values`` as a column of numbers above 0; ``inf`` is accepted, as "no limit"."""
    column = _column(name, values, length)
    _each_row(name, column, lambda chunk: chunk > 0, "a number above 0")
    return column


def share(name: str, values: ArrayLike, length: int | None = None) -> Floats:
    """Return ``values`` as a column of numbers from 0 to 1."""
    column = _column(name, values, length)
    _each_row(name, column, lambda chunk: (chunk >= 0) & (chunk <= 1), "a number from 0 to 1")
    return column


def finite(name: str, values: ArrayLike, length: int | None = None) -> Floats:
    """Return ``values`` as a column of finite numbers, negative ones included."""
    column = _column(name, values, length)
    _each_row(name, column, np.isfinite, "a finite number")
    return column


def counts(name: str, values: ArrayLike, length: int | None = None) -> Ints:
    """Return ``values`` as a column of whole numbers of at least 0."""
    column = non_negative(name, values, length)
    _each_row(name, column, lambda chunk: chunk == np.floor(chunk), "a whole number")
    return column.astype(np.int64)


def flags(name: str, values: ArrayLike, length: int) -> Bools:
    """Return ``values`` as a column of truth values."""
    array = np.asarray(values)
    if array.dtype != np.bool_ and array.size:
        raise ValueError(f"{name}: has dtype {array.dtype}; accepted are truth values (bool)")
    _shaped(name, array, length)
    return array.astype(np.bool_, copy=False)


def codes(name: str, values: ArrayLike, length: int, below: int | None = None) -> NDArray[np.intp]:
    """Return ``values`` as a column of integer codes from 0, all less than ``below``."""
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
    """Return a number of crawls per day, above 0 and finite."""
    if isinstance(value, bool) or not math.isfinite(value) or value <= 0:
        raise ValueError(f"{name}: is {value!r}; accepted is a finite number above 0")
    return float(value)


def amount(name: str, value: float) -> float:
    """Return one finite number of at least 0."""
    if isinstance(value, bool) or not math.isfinite(value) or value < 0:
        raise ValueError(f"{name}: is {value!r}; accepted is a finite number of at least 0")
    return float(value)


def one_of(name: str, value: str, accepted: Sequence[str]) -> str:
    """Return ``value`` if it is one of the ``accepted`` words."""
    if value not in accepted:
        raise ValueError(f"{name}: is {value!r}; accepted are {', '.join(accepted)}")
    return value


def _column(name: str, values: ArrayLike, length: int | None) -> Floats:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: holds something that is not a number ({error})") from error
    _shaped(name, array, length)
    return np.ascontiguousarray(array)


def _shaped(name: str, array: NDArray[np.generic], length: int | None) -> None:
    if array.ndim != 1:
        raise ValueError(f"{name}: has {array.ndim} dimensions; accepted is one column")
    if length is not None and len(array) != length:
        raise ValueError(f"{name}: has {len(array)} rows; accepted are {length}, one per source")


def _is_finite_and_non_negative(chunk: Floats) -> Bools:
    # Minus zero is valid, but fails the comparison of bits.
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


# -- columns --

T = TypeVar("T", bound=np.generic)

_FIRST = 16


class Column(Generic[T]):
    """An array of n rows; the cost of appending more does not grow with n.

    >>> column = Column[np.float64](np.float64)
    >>> column.extend([1.0, 2.0])
    >>> column.rows[0] = 3.0
    >>> column.rows.tolist()
    [3.0, 2.0]
    """

    __slots__ = ("_n", "_room")

    def __init__(self, dtype: DTypeLike, *, width: int | None = None) -> None:
        """Make an empty column of ``width`` numbers a row; None: one."""
        shape = (_FIRST,) if width is None else (_FIRST, width)
        self._room: NDArray[T] = np.zeros(shape, dtype)
        self._n = 0

    def __len__(self) -> int:
        return self._n

    @property
    def rows(self) -> NDArray[T]:
        """Return the writable rows (n,) or (n, width), a view without rows appended later."""
        return self._room[: self._n]

    def extend(self, values: ArrayLike) -> None:
        """Append rows with these values."""
        added = np.asarray(values, self._room.dtype)
        self.append(len(added))
        self._room[self._n - len(added) : self._n] = added

    def append(self, count: int) -> None:
        """Append rows of zeros."""
        self._n += count
        if self._n > len(self._room):
            self.reserve(max(self._n, 2 * len(self._room)))

    def reserve(self, count: int) -> None:
        """Make room for this number of rows in all."""
        room = np.zeros((max(count, self._n), *self._room.shape[1:]), self._room.dtype)
        room[: len(self._room)] = self._room[: len(room)]
        self._room = room


# -- arrays in a file --

_SEGMENT: Final = 1 << 26
_ALIGNED: Final = 64
_LASTING: Final = "/var/tmp"  # noqa: S108 - for files without names


class ScratchArrays:
    """Arrays in unnamed files, which the system can move out of memory when it needs the space.

    The files are on disk (in ``TMPDIR``, or else ``/var/tmp``) and are deleted with the process.
    """

    def __init__(self) -> None:
        self._segments: list[tuple[IO[bytes], mmap.mmap]] = []
        self._used = _SEGMENT

    def moved(self, array: NDArray[T]) -> NDArray[T]:
        """Return a copy of this array in a file, or an empty or very large array unchanged.

        Raises:
            OSError: if the disk is full.
        """
        room = array.nbytes + -array.nbytes % _ALIGNED
        if not array.size or room > _SEGMENT:
            return array
        if self._used + room > _SEGMENT:
            self._grow()
        file, segment = self._segments[-1]
        # A write to the file is cheaper than a page fault for each new page of memory.
        os.pwrite(file.fileno(), np.ascontiguousarray(array).data, self._used)
        place = np.frombuffer(segment, array.dtype, array.size, self._used)
        self._used += room
        return place.reshape(array.shape)

    def _grow(self) -> None:
        # Where /tmp is in memory, files there would save no memory.
        is_there = "TMPDIR" not in os.environ and os.access(_LASTING, os.W_OK)
        file = TemporaryFile(dir=_LASTING if is_there else None)  # noqa: SIM115 - stays open
        # A full disk raises an error here and not at a later write to an array.
        if sys.platform == "linux":
            os.posix_fallocate(file.fileno(), 0, _SEGMENT)
        else:
            file.write(bytes(_SEGMENT))
            file.flush()
        self._segments.append((file, mmap.mmap(file.fileno(), _SEGMENT)))
        self._used = 0

    def release(self) -> None:
        """Take the arrays out of this process's memory until they are used again."""
        for _, segment in self._segments:
            with suppress(OSError):
                segment.madvise(mmap.MADV_DONTNEED)

    def __del__(self) -> None:
        for file, _ in self._segments:
            file.close()


def rows_among(
    ascending: NDArray[np.integer], wanted: NDArray[np.integer]
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return positions (k,) in ``ascending`` of the ``wanted`` (m,) in it, and a mask (m,).

    >>> rows, known = rows_among(np.array([2, 5, 9]), np.array([9, 4, 2]))
    >>> rows.tolist(), known.tolist()
    ([2, 0], [True, False, True])
    """
    place = np.searchsorted(ascending, wanted)
    known = place < len(ascending)
    known[known] = ascending[place[known]] == wanted[known]
    return place[known], known
