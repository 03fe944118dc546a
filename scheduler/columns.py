"""A column of rows that come and never go."""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

T = TypeVar("T", bound=np.generic)

_FIRST = 16


class Column(Generic[T]):
    """An array of n rows, to which more are appended at a cost that does not grow with n.

    >>> column = Column[np.float64](np.float64)
    >>> column.extend([1.0, 2.0])
    >>> column.rows[0] = 3.0
    >>> column.rows.tolist()
    [3.0, 2.0]
    """

    __slots__ = ("_n", "_room")

    def __init__(self, dtype: DTypeLike, *, width: int | None = None) -> None:
        """``width`` numbers a row; None: one."""
        shape = (_FIRST,) if width is None else (_FIRST, width)
        self._room: NDArray[T] = np.zeros(shape, dtype)
        self._n = 0

    def __len__(self) -> int:
        return self._n

    @property
    def rows(self) -> NDArray[T]:
        """(n,) or (n, width), to be written into; a view that later rows are not in."""
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
            room = np.zeros(
                (max(self._n, 2 * len(self._room)), *self._room.shape[1:]), self._room.dtype
            )
            room[: len(self._room)] = self._room
            self._room = room


def rows_among(
    ascending: NDArray[np.integer], wanted: NDArray[np.integer]
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Where those of ``wanted``, (m,), stand that are among these numbers, and which they are.

    >>> rows, known = rows_among(np.array([2, 5, 9]), np.array([9, 4, 2]))
    >>> rows.tolist(), known.tolist()
    ([2, 0], [True, False, True])
    """
    place = np.searchsorted(ascending, wanted)
    known = place < len(ascending)
    known[known] = ascending[place[known]] == wanted[known]
    return place[known], known
