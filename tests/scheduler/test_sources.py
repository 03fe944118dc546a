import dataclasses

import numpy as np
import pytest

from freshet.scheduler.sources import SourceTable


def test_what_is_left_out_is_the_plain_case() -> None:
    table = SourceTable.of([1, 2], [0.1, 0.2])
    assert len(table) == 2
    assert not table.complete_observations.any()
    assert table.host.tolist() == [0, 0]
    assert table.host_capacity.tolist() == [np.inf]
    plain = (table.last_crawl, table.pending_signals, table.signal_rate, table.signal_precision)
    assert not any(column.any() for column in plain)


def test_complete_observations_are_signals_without_fault() -> None:
    table = SourceTable.of([1, 1], [0.5, 0.5], complete_observations=[True, False])
    assert table.signal_rate.tolist() == [0.5, 0]
    assert table.signal_precision.tolist() == [1, 0]


def test_no_source_is_a_table() -> None:
    table = SourceTable.of([], [], host=np.zeros(0, int))
    assert len(table) == 0
    assert table.host_capacity.tolist() == []


def test_rows_are_taken_in_order_and_as_copies() -> None:
    table = SourceTable.of([1, 2, 3], [4, 5, 6], host=[0, 1, 1], host_capacity=[7, 8])
    taken = table.take(np.array([2, 0]))
    assert taken.importance.tolist() == [3, 1]
    assert taken.host.tolist() == [1, 0]
    assert taken.host_capacity.tolist() == [7, 8]
    taken.last_crawl[0] = 9
    assert table.last_crawl.tolist() == [0, 0, 0]


def test_every_column_is_taken() -> None:
    table = SourceTable.of([1, 2], [3, 4])
    taken = table.take(np.array([1]))
    lengths = {
        field.name: len(getattr(taken, field.name))
        for field in dataclasses.fields(taken)
        if field.name != "host_capacity"
    }
    assert set(lengths.values()) == {1}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"importance": [1, -1]}, "importance: row 1 is -1.0"),
        ({"change_rate": [np.nan, 1]}, "change_rate: row 0 is nan"),
        ({"change_rate": [1]}, "change_rate: has 1 rows; accepted are 2"),
        ({"complete_observations": [1, 0]}, "complete_observations: has dtype int64"),
        ({"host": [0, 5], "host_capacity": [1]}, "host: row 1 is 5; accepted is an integer code"),
        ({"host_capacity": [1]}, "host: is missing"),
        ({"host": [0, 0], "host_capacity": [0]}, "host_capacity: row 0 is 0.0"),
        ({"last_crawl": [0, np.inf]}, "last_crawl: row 1 is inf"),
        ({"pending_signals": [0.5, 0]}, "pending_signals: row 0 is 0.5"),
        ({"signal_precision": [0, 2]}, "signal_precision: row 1 is 2.0"),
        (
            {"signal_rate": [0, 4], "signal_precision": [0, 0.5]},
            "signal_rate: row 1 is 4.0, with 2.0 true changes; accepted is at most",
        ),
    ],
)
def test_a_bad_column_is_named_with_its_row(columns: dict[str, object], message: str) -> None:
    given = {"importance": [1, 1], "change_rate": [1, 1]} | columns
    with pytest.raises(ValueError, match=message):
        SourceTable.of(**given)  # type: ignore[arg-type]
