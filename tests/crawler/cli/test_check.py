"""`freshet check` as its user meets it: tables, JSON, wrong input."""

from functools import partial
from pathlib import Path

import pytest

from tests.console import as_json, freshet, shown

CLOSED = "http://127.0.0.1:2/x"
check = partial(freshet, "check")


def test_people_get_a_table_of_the_steps_and_a_conclusion(tmp_path: Path) -> None:
    told = shown("check", CLOSED, "--allow-private-addresses", "--db", tmp_path / "no.db")
    assert "robots.txt  unreachable  until it answers, no page is fetched" in told
    assert "refused: only robots.txt was fetched" in told


def test_json_has_the_steps(tmp_path: Path) -> None:
    told = as_json("check", CLOSED, "--db", tmp_path / "no.db")
    assert told["url"] == CLOSED
    assert [step["name"] for step in told["steps"]] == ["robots.txt"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["http://"], 2, "http://"),
        (
            ["https://example.org/"],
            2,
            "freshet check https://example.org/ --contact you@example.org",
        ),
        ([CLOSED, "--include", "a["], 2, "'a[' is not a CSS selector"),
        ([CLOSED, "--ignore", ">"], 2, "[[sites]], /*: '>'"),
    ],
)
def test_wrong_input_is_one_line(arguments: list[str], code: int, words: str) -> None:
    result = check(*arguments)
    assert result.exit_code == code
    (line,) = result.stderr.splitlines()
    assert words in line
