import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.estimate.evidence import Evidence, evidence_of
from freshet.storage.entries import KINDS

DAY = 86_400.0


def told(*observations: tuple[int, float, str]) -> Evidence:
    """From (page, day, kind)."""
    return evidence_of(
        [page for page, _, _ in observations],
        [day * DAY for _, day, _ in observations],
        [KINDS.index(kind) for _, _, kind in observations],
    )


def rows(columns: Evidence) -> list[tuple[int, float, float, int]]:
    days = (column.round(9).tolist() for column in (columns.at, columns.span))
    return list(zip(columns.source.tolist(), *days, columns.changes.tolist(), strict=True))


def test_captures_that_follow_one_another_are_intervals() -> None:
    histories = told((0, 1, "new"), (0, 3, "unchanged"), (0, 8, "changed"), (1, 9, "new"))
    assert rows(histories) == [(0, 3, 2, 0), (0, 8, 5, 1)]
    assert not histories.counted.any()


@pytest.mark.parametrize("kind", ["gone", "redirected"])
def test_a_page_that_was_not_there_starts_anew(kind: str) -> None:
    histories = told(
        (0, 1, "new"), (0, 2, "unchanged"), (0, 3, kind), (0, 4, "changed"), (0, 6, "unchanged")
    )
    assert rows(histories) == [(0, 2, 1, 0), (0, 6, 2, 0)]


def test_spans_keep_their_precision_far_from_1970() -> None:
    histories = told((0, 20_000, "new"), (0, 20_000 + 1 / DAY, "changed"))
    assert histories.span[0] == pytest.approx(1 / DAY, rel=1e-6)


OBSERVATIONS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 5).map(float), st.sampled_from(KINDS)), max_size=30
).map(lambda observations: sorted(observations, key=lambda o: o[0]))


def by_the_book(observations: list[tuple[int, float, str]]) -> list[tuple[int, float, float, int]]:
    """One observation after the other."""
    intervals = []
    last: dict[int, float | None] = {}
    for page, day, kind in observations:
        if kind in {"gone", "redirected"}:
            last[page] = None
        elif kind in {"new", "unchanged", "changed"}:
            before = last.get(page)
            if kind != "new" and before is not None and day > before:
                intervals.append((page, day, day - before, int(kind == "changed")))
            last[page] = day
    return intervals


@given(OBSERVATIONS)
def test_columns_tell_what_one_observation_after_the_other_tells(
    observations: list[tuple[int, float, str]],
) -> None:
    assert rows(told(*observations)) == by_the_book(observations)


@pytest.mark.parametrize(
    ("page", "at", "kind", "message"),
    [
        ([1, 0], [0, 1], [0, 0], "page: row 1 is 0; accepted is 1 or more"),
        ([0, 0], [0, math.nan], [0, 0], "at: row 1 is nan; accepted is a finite number"),
        ([0, 0], [0, 1], [0, 8], "kind: row 1 is 8; accepted is an integer code from 0 to 7"),
        ([0], [0, 1], [0, 0], "page: has 1 rows; accepted are 2"),
    ],
)
def test_bad_columns_are_told(
    page: list[int], at: list[float], kind: list[int], message: str
) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        evidence_of(page, at, kind)
