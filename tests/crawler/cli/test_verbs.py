"""A verb is imported when it is asked for, and all for the help."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from freshet.crawler.cli.verbs import VERBS, application


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
