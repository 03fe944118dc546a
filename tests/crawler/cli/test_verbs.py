"""A verb is imported when it is run, completed or asked for its own help, and imports little."""

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from freshet.crawler import cli
from freshet.crawler.cli.verbs import application, groups, lines
from freshet.crawler.extensions.alerts import cli as alerts_cli
from freshet.crawler.extensions.connectors import cli as connectors_cli
from freshet.crawler.extensions.feeds import cli as feeds_cli
from freshet.crawler.extensions.identity import cli as identity_cli
from freshet.crawler.extensions.lab import cli as lab_cli
from freshet.crawler.extensions.mcp import cli as mcp_cli
from freshet.crawler.extensions.readers import cli as readers_cli
from freshet.crawler.extensions.search import cli as search_cli
from freshet.crawler.extensions.shards import cli as shards_cli
from tests.console import freshet


def test_the_help_lists_every_verb() -> None:
    result = CliRunner().invoke(application([]), ["--help"])
    assert [verb for verb in lines() if f"│ {verb} " not in result.stdout] == []


def test_the_help_groups_the_verbs_and_shows_each_line_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = freshet("--help").stdout
    assert list(groups()) == re.findall(r"─ (\w+) ─+╮", shown)[1:]
    assert [line for line in lines().values() if line not in shown] == []


@pytest.mark.parametrize("verb", ["crawl", "daemon"])
def test_rare_options_are_shown_by_help_all(verb: str) -> None:
    rare = ["--resolve", "--shards", "--ray", "--requisites", "--queries", "--strict"]
    short, whole = (freshet(verb, option).stdout for option in ("--help", "--help-all"))
    assert [option for option in rare if f"{option} " in short] == []
    assert [option for option in rare if f"{option} " not in whole] == []
    common = re.findall(r"│ (--[\w-]+)", short)
    assert [option for option in common if f"{option} " not in whole] == []


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["crawll"], ["-h", "crawl"]])
def test_what_names_no_verb_first_sees_all_of_them(arguments: list[str]) -> None:
    assert len(application(arguments).registered_commands) == len(lines())


@pytest.mark.parametrize("verb", lines())
def test_a_line_of_the_help_is_the_first_of_the_help_of_its_verb(verb: str) -> None:
    (command,) = get_command(application([verb])).commands.values()  # type: ignore[attr-defined]
    assert command.help.splitlines()[0] == lines()[verb]


def test_every_module_with_a_verb_is_in_the_help() -> None:
    folders = [
        cli, alerts_cli, connectors_cli, feeds_cli, identity_cli, lab_cli, mcp_cli, readers_cli,
        search_cli, shards_cli,
    ]  # fmt: skip
    modules = [f"{it.__name__}.{each.name}" for it in folders for each in iter_modules(it.__path__)]
    found = [name for module in modules for name in dir(import_module(module))]
    ending = "_command"
    verbs = {name.removesuffix(ending) for name in found if name.endswith(ending)}
    # The first belong to the groups `config` and `key`; get_command is typer's.
    assert verbs - {"show", "new", "rotate", "get"} == set(lines())


def test_a_verb_alone_is_still_named_as_a_verb() -> None:
    result = CliRunner().invoke(application(["status"]), ["status", "--help"])
    assert result.exit_code == 0
    assert "Usage: freshet status" in result.stdout


def test_a_crawl_does_not_import_what_plans() -> None:
    program = (
        "import sys, freshet.crawler.run.crawl\n"
        "print(sorted({'scipy', 'freshet.scheduler.planning'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    assert found.stdout.decode().strip() == "[]"


SLOW = {"aiohttp", "datasketch", "numpy", "pydantic_settings", "scipy", "structlog"}
RUN = """
import sys
from contextlib import suppress
from freshet.crawler.cli import run
with suppress(SystemExit):
    run()
print("imported", *sys.modules)
"""


@pytest.mark.parametrize(
    "arguments", ["--help", "status --help", "status --db none.db", "crawl --help", "daemon --help"]
)
def test_what_should_be_quick_imports_nothing_slow(arguments: str, tmp_path: Path) -> None:
    program = [sys.executable, "-c", RUN, *arguments.split()]
    ended = subprocess.run(program, cwd=tmp_path, text=True, capture_output=True, check=True)
    _, imported = ended.stdout.split("imported ")
    assert "typer" in imported.split()
    assert SLOW.intersection(imported.split()) == set()


@pytest.mark.long
@pytest.mark.parametrize("verb", ["explain", "plan", "signals", "simulate"])
def test_what_computes_loads_solvers_when_it_does(verb: str) -> None:
    program = [sys.executable, "-c", RUN, verb, "--help"]
    ended = subprocess.run(program, text=True, capture_output=True, check=True)
    slow = {"datasketch", "scipy.optimize", "scipy.sparse", "scipy.special"}
    assert slow.intersection(ended.stdout.split()) == set()


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


@pytest.mark.parametrize("verb", ["", *lines()])
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
