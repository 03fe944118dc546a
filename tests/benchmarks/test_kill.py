"""The judge of the kills finds what it is there to find."""

from collections.abc import Iterable
from pathlib import Path

from tests.benchmarks.exchanges import Exchange
from tests.benchmarks.kill import Invocation, acknowledged_in, requests_repeated


def requests(*at: tuple[float, str]) -> list[Exchange]:
    return [Exchange("h", path, start, start, start, 200) for start, path in at]


def invocations(*settled: Iterable[str]) -> list[Invocation]:
    """One every ten seconds, all of one run."""
    return [
        Invocation((0, 1), 10.0 * n, frozenset(f"http://h:1{path}" for path in paths))
        for n, paths in enumerate(settled)
    ]


def test_a_page_that_was_in_flight_at_a_kill_may_be_asked_for_again() -> None:
    log = requests((1, "/a"), (2, "/b"), (11, "/b"))
    found = requests_repeated(invocations([], ["/a"]), log, 1)
    assert found["in_flight_at_kills"] == 1
    assert found["after_commit"] == found["twice_by_one_process"] == 0


def test_a_page_asked_for_after_its_commit_is_found() -> None:
    log = requests((1, "/a"), (11, "/a"))
    assert requests_repeated(invocations([], ["/a"]), log, 1)["after_commit"] == 1


def test_a_page_asked_for_twice_by_one_process_is_found() -> None:
    log = requests((1, "/a"), (2, "/a"))
    assert requests_repeated(invocations([]), log, 1)["twice_by_one_process"] == 1


def test_only_whole_lines_of_the_log_acknowledge(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        '{"event": "observed", "url": "http://h/", "at": 1.5}\n'
        '{"event": "crawling", "pages": 1}\n'
        'a warning\n{"event": "observed", "url": "http://h/a", "at": 2',
        "utf-8",
    )
    assert acknowledged_in(log) == {("http://h/", 1.5)}
