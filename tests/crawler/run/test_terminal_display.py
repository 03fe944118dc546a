"""What people see: times, sizes and lines that no stranger's text can disturb."""

import re
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from freshet.crawler.frontier.clock import iso
from freshet.crawler.run import terminal as terminal_crawler

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "now"), (0.9, "now"), (-0.9, "now"), (-1, "1 s ago"), (59.9, "in 59 s"), (60, "in 1 min"),
     (-3_599, "59 min ago"), (3_600, "in 1 h"), (-2 * 86_400 + 1, "47 h ago"),
     (2 * 86_400, "in 2 d"), (-4_000 * 86_400, "4,000 d ago")],
)  # fmt: skip
def test_a_time_is_told_in_its_largest_unit(seconds: float, words: str) -> None:
    assert terminal_crawler.relative(NOW + seconds, NOW) == words


def test_a_moment_is_local_to_the_second_and_relative() -> None:
    shown = terminal_crawler.moment(NOW - 7_200.4, NOW)
    assert re.fullmatch(r"2027-01-1\d \d\d:\d\d:\d\d \(2 h ago\)", shown)


@given(st.floats(allow_nan=False))
def test_no_time_is_beyond_the_calendar(at: float) -> None:
    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(", terminal_crawler.moment(at, NOW))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", iso(at))


@given(st.text())
def test_no_words_can_steer_the_terminal_or_break_the_line(words: str) -> None:
    assert terminal_crawler.plain(words).isprintable()


def test_words_keep_their_letters_and_lose_their_controls() -> None:
    assert terminal_crawler.plain("  naïve\n\t日本 ") == "naïve 日本"
    assert terminal_crawler.plain("\x1b]0;owned\x07") == "�]0;owned�"


def test_facts_that_are_none_are_left_out_with_their_title(
    capsys: pytest.CaptureFixture[str],
) -> None:
    terminal_crawler.show_facts("Here", {"one": 1_000, "none": None, "two": "[bold]b[/bold]"})
    terminal_crawler.show_facts("Nothing", {"none": None})
    assert capsys.readouterr().out == "\nHere\none  1,000\ntwo  [bold]b[/bold]\n"


def test_a_list_is_cut_at_its_limit_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [("a", 5), ("b", 1_000), ("c", 3)]
    terminal_crawler.show_list("Letters", ("name", "n"), rows, 2)
    terminal_crawler.show_list("None", ("name", "n"), [])
    assert capsys.readouterr().out == (
        "\nLetters\nname      n\na         5\nb     1,000\n… and 1 more\n"
    )


def test_off_a_terminal_no_line_is_cut_or_folded(capsys: pytest.CaptureFixture[str]) -> None:
    url = "https://example.org/" + "x" * 3_000
    terminal_crawler.show_list("URLs", ("url",), [(url,)])
    terminal_crawler.show_facts("URL", {"is": url})
    assert capsys.readouterr().out.count(url) == 2


def test_parts_that_are_missing_are_not_joined() -> None:
    assert terminal_crawler.joined(("a", None, "", "b")) == "a, b"
    assert terminal_crawler.joined((None,)) is None


def test_on_a_narrow_terminal_no_time_is_torn_and_nothing_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Console(file=StringIO(), force_terminal=True, no_color=True, width=50)
    monkeypatch.setattr(terminal_crawler, "out", terminal)
    moment, reason = terminal_crawler.moment(NOW, NOW + 90_000), "https://example.org/" + "x" * 90
    terminal_crawler.show_list(
        "Seen", ("time", "kind", "rung", "reason"), [(moment, "new", None, reason)]
    )
    assert isinstance(terminal.file, StringIO)
    shown = terminal.file.getvalue()
    assert moment in shown
    assert "rung" not in shown
    assert reason in "".join(line.split()[-1] for line in shown.splitlines() if "x" in line)
