"""A verb is imported when it is asked for, and all for the help."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from freshet.crawler.cli.verbs import VERBS, application
from tests.console import freshet


def test_the_help_lists_every_verb() -> None:
    result = CliRunner().invoke(application([]), ["--help"])
    assert [verb for verb in VERBS if f"│ {verb} " not in result.stdout] == []


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["crawll"], ["-h", "crawl"]])
def test_what_names_no_verb_first_sees_all_of_them(arguments: list[str]) -> None:
    assert len(application(arguments).registered_commands) == len(VERBS) - 1


def test_a_verb_alone_is_still_named_as_a_verb() -> None:
    result = CliRunner().invoke(application(["status"]), ["status", "--help"])
    assert result.exit_code == 0
    assert "Usage: freshet status" in result.stdout


def test_a_crawl_does_not_import_what_plans() -> None:
    program = (
        "import sys; from freshet.crawler.cli.verbs import application; application(['crawl'])\n"
        "print(sorted({'scipy', 'numba', 'freshet.scheduler.planning'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    assert found.stdout.decode().strip() == "[]"


@pytest.mark.parametrize(
    "arguments",
    ["status", "alerts", "changes", "signals", "duplicates", "duplicates --update", "export", "gc",
     "gc --dry-run", "rereduce", "history a.example", "explain a.example", "diff a.example"],
)  # fmt: skip
def test_a_store_that_is_not_there_is_one_line_and_none_is_made(
    tmp_path: Path, arguments: str
) -> None:
    result = freshet(*arguments.split(), "--db", str(tmp_path / "none.db"))
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    assert "there is no such file" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_the_help_shows_whole_names_and_no_types_of_python(
    verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = freshet(*verb.split(), "--help").stdout
    assert not re.search(r"<(?:bool|path|str|list|int)", shown), shown
    assert not re.search(r"--[\w-]*…", shown), shown


@pytest.mark.parametrize("verb", ["changes", "history x.example", "duplicates", "simulate"])
def test_a_number_beyond_all_bounds_is_wrong_usage(verb: str) -> None:
    option = "--sources" if verb == "simulate" else "--limit"
    assert freshet(*verb.split(), option, 10**20).exit_code == 2
