"""The pages that are kept fresh, and which of them may be asked for now. Pure; days are Unix days.

A page is *captured* once there is a copy. Until then it is worth its importance times the days
since it was found: what the index of the harmonic and the binary cost come to for a page that
has certainly changed since.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from scheduler.arguments import Bools, Floats
from scheduler.sources import Rows
from storage.records import Kind, Visit

_DAY_S: Final = 86_400.0
#: A page that is refused, skipped or leads elsewhere is asked for again after so many days.
_ELSEWHERE_DAYS: Final = 30.0
#: The first wait after the tries of a page have failed, and how it grows.
_FAILED_DAYS: Final = 1 / 24
_FAILED_FACTOR: Final = 4.0
#: Each time in a row that a page is gone, a look at it is worth so much less.
_GONE_FACTOR: Final = 0.5
_MOST_TIMES: Final = 30
_MOMENT_DAYS: Final = 1e-6
#: What a day of an overdue page is worth: more than all else.
_OVERDUE: Final = 1e200

_ROW: Final = np.dtype(
    [
        ("page_id", np.int64),
        ("host", np.intp),
        ("importance", np.float64),
        ("since", np.float64),
        ("captured", np.bool_),
        ("gone", np.int16),
        ("failures", np.int16),
        ("not_before", np.float64),
        ("least", np.float64),
        ("most", np.float64),
        ("taken", np.bool_),
    ]
)


class Watchlist:
    """Columns that grow, by name: ``watchlist["host"]`` is (n,), to be written into by its owner.

    ``host`` are integer codes; ``since`` is when the copy was last known to be right, or the page
    found; from one look to the next there are at least ``least`` days, and if it can be at most
    ``most``; ``gone`` and ``failures`` count in a row; ``taken`` pages are being asked for, and
    nothing is asked for again before ``not_before``.
    """

    def __init__(self) -> None:
        self._rows = np.zeros(64, _ROW)
        self._n = 0
        self._row_of: dict[int, int] = {}

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, name: str) -> NDArray[np.generic]:
        return self._rows[name][: self._n]

    def row(self, page_id: int) -> int | None:
        """The row of a page, if it is watched."""
        return self._row_of.get(page_id)

    def add(self, page_id: NDArray[np.int64], **columns: NDArray[np.generic]) -> Rows:
        """Append pages that are not watched yet; the rows, (m,)."""
        rows = np.arange(self._n, self._n + len(page_id))
        while self._n + len(page_id) > len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
        added = self._rows[rows[0] : rows[0] + len(rows)] if len(rows) else self._rows[:0]
        added["page_id"] = page_id
        for name, values in columns.items():
            added[name] = values
        self._row_of.update(zip(page_id.tolist(), rows.tolist(), strict=True))
        self._n += len(rows)
        return rows

    def may_be_asked(self, now: float) -> Bools:
        """(n,), whether a page is neither being asked for nor to be left alone."""
        may: Bools = ~self._rows["taken"][: self._n]
        rows = self._rows[: self._n]
        may &= rows["not_before"] <= now
        may &= (rows["since"] + rows["least"] <= now) | ~rows["captured"]
        return may

    def weighted(self, worth: Floats, now: float) -> Floats:
        """(n,), what a look is worth: ``worth`` (n,) where captured, less where gone."""
        rows = self._rows[: self._n]
        # What was found this moment is worth more than nothing.
        waited = np.maximum(now - rows["since"], _MOMENT_DAYS)
        found: Floats = np.where(rows["captured"], worth, rows["importance"] * waited)
        found *= _GONE_FACTOR ** rows["gone"]
        overdue = rows["captured"] & (rows["since"] + rows["most"] <= now)
        found[overdue] = _OVERDUE * (now - rows["since"][overdue])
        return found

    def drop(self, rows: Rows) -> None:
        """Never ask for these again, unless they are admitted anew."""
        self._rows["not_before"][rows] = inf

    def admit_again(self, page_ids: Iterable[int]) -> None:
        """What was dropped of these may be asked for again."""
        rows = [row for page_id in page_ids if (row := self.row(page_id)) is not None]
        dropped = np.array(rows, np.intp)
        dropped = dropped[np.isinf(self._rows["not_before"][dropped])]
        self._rows["not_before"][dropped] = -inf

    def settle(self, row: int, visit: Visit) -> None:
        """Take in what a visit of this page says of when it may be asked for again."""
        found, page = visit.observation, self._rows[row : row + 1]
        at = found.at / _DAY_S
        page["taken"] = False
        match found.kind:
            case Kind.NEW | Kind.CHANGED | Kind.UNCHANGED:
                page["captured"], page["since"] = True, at
                page["gone"] = page["failures"] = 0
                page["not_before"] = -inf
            case Kind.GONE:
                page["gone"] = np.minimum(page["gone"] + 1, _MOST_TIMES)
                page["since"], page["failures"] = at, 0
            case Kind.FAILED:
                # A host that is down is no fault of the page that asked it.
                if visit.charged or visit.retry_at is None:
                    page["failures"] = np.minimum(page["failures"] + 1, _MOST_TIMES)
                page["not_before"] = self._tried_again(visit, int(page["failures"][0]))
            case _:
                page["not_before"] = at + _ELSEWHERE_DAYS

    @staticmethod
    def _tried_again(visit: Visit, failures: int) -> float:
        if visit.retry_at is not None:
            return visit.retry_at / _DAY_S
        wait = min(_FAILED_DAYS * _FAILED_FACTOR ** (failures - 1), _ELSEWHERE_DAYS)
        return visit.observation.at / _DAY_S + wait
