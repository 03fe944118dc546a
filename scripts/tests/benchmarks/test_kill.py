"""The judge of the kills finds what it is there to find."""

from collections.abc import Iterable
from math import inf
from pathlib import Path

from scripts.benchmarks.alert_kill import Findings, Receiver, Taking, Trials
from scripts.benchmarks.exchanges import Exchange
from scripts.benchmarks.kill import Invocation, acknowledged_in, requests_repeated
from scripts.benchmarks.living_web import LivingWeb


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
        '{"message": "observed", "url": "http://h/", "at": "1970-01-01T00:00:01.500000Z"}\n'
        '{"message": "crawling", "pages": 1}\n'
        'a warning\n{"message": "observed", "url": "http://h/a", "at": "197',
        "utf-8",
    )
    assert acknowledged_in(log) == {("http://h/", 1.5)}


def repeats(*takings: tuple[int, int, float]) -> Findings:
    """Of one message, taken from these processes, of which the first was killed at 5."""
    receiver = Receiver("r", errors=0.0, hangs=0.0, seed=1)
    receiver.taken_at["m"] = [Taking(*each) for each in takings]
    trials = Trials(LivingWeb({}, Path()), [receiver], Path(), 1)
    trials.killed_at += [5.0, 9.0, inf]
    trials.judge_repeats(receiver)
    return trials.findings


def test_every_message_that_is_taken_again_is_explained() -> None:
    answered = repeats((0, 4, 4.9), (1, 7, 7.0))
    assert (answered.answered_before_kill, answered.window_s) == (1, 0.1)
    assert repeats((0, 4, 5.1), (1, 7, 7.0)).under_way_at_kill == 1
    assert repeats((0, 1, 1.1), (0, 3, 3.6)).timed_out == 1
    assert repeats((0, 1, 1.1), (0, 2, 2.6)).unexplained == 1
    assert repeats((2, 11, 11.1), (2, 11, 11.3)).unexplained == 1
