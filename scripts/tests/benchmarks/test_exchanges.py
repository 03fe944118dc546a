"""The figures of a server's log, on logs whose figures can be told by hand."""

from pathlib import Path

import pytest

from scripts.benchmarks.exchanges import (
    Exchange,
    by_host,
    gaps_s,
    overall_utilisation,
    read_log,
    utilisation,
)


def exchange(start: float, end: float, host: str = "a") -> Exchange:
    return Exchange(host, "/", start, end, end, 200)


def test_gaps_run_from_the_end_of_an_exchange_to_the_start_of_the_next() -> None:
    hosts = by_host([exchange(3.0, 4.0), exchange(0.0, 1.0), exchange(0.5, 0.7, "b")])
    assert gaps_s(hosts["a"]) == [2.0]
    assert gaps_s(hosts["b"]) == []


def test_overlapping_exchanges_have_a_negative_gap() -> None:
    assert gaps_s([exchange(0.0, 2.0), exchange(1.5, 3.0)]) == [-0.5]


def test_a_host_asked_as_often_as_its_delay_allows_is_fully_used() -> None:
    busy = [exchange(1.5 * n, 1.5 * n + 0.5) for n in range(10)]
    assert utilisation([busy], 1.0) == pytest.approx(1.0)
    assert overall_utilisation(busy, 1, 1.0) == pytest.approx(1.0)


def test_a_host_asked_every_other_time_is_half_used() -> None:
    lazy = [exchange(3.0 * n, 3.0 * n + 0.5) for n in range(10)]
    assert utilisation([lazy], 1.0) == pytest.approx(0.5)


def test_an_idle_host_counts_in_the_overall_figure() -> None:
    busy = [exchange(1.5 * n, 1.5 * n + 0.5) for n in range(10)]
    assert overall_utilisation(busy, 2, 1.0) == pytest.approx(0.5)


def test_a_line_that_is_being_written_is_left_out(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text('["a", "/", 0.0, 1.0, 1.0, 200]\n["a", "/", 2.0', "utf-8")
    assert read_log(log) == [exchange(0.0, 1.0)]
