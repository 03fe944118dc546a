"""What the scripts do where nobody reads on, and where something else breaks."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
_BEGIN = "from scripts.benchmarks.command import enter_environment; enter_environment(); "


def run(program: str, *, has_reader: bool = False) -> tuple[int, str]:
    """Exit code and what was said on stderr, of a program whose reader goes at once, or stays."""
    with subprocess.Popen(
        [sys.executable, "-c", _BEGIN + program],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdin is not None
        if not has_reader:
            process.stdout.close()
        process.stdin.close()
        said = process.stderr.read()
    return process.returncode, said


@pytest.mark.parametrize("lines", [1, 100_000])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_has_gone_is_no_traceback(
    lines: int, unbuffered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    # Nothing is printed before the reader has gone: then its standard input is closed.
    _, said = run(f"import sys; sys.stdin.read(); [print('a line') for _ in range({lines})]")
    assert said == ""


def test_a_pipe_that_breaks_elsewhere_is_told() -> None:
    code, said = run("raise BrokenPipeError('a server')", has_reader=True)
    assert code == 1
    assert "BrokenPipeError: a server" in said


@pytest.mark.parametrize("script", ["bench", "fit", "reproduce"])
def test_a_launcher_lists_its_commands_each_of_which_has_a_module(script: str) -> None:
    listed = told(script)
    assert told(script, "--help") == listed
    lines = [line.split(maxsplit=1) for line in listed.stdout.splitlines() if line[:2] == "  "]
    names = [name for name, _ in lines]
    assert len(names) >= 3
    assert sorted(names) == names
    assert all(sentence.endswith((".", ":", ")", "JSON on stdout.")) for _, sentence in lines)
    # It gets the options, and its own name in what it says.
    shown = told(script, names[0], "--help")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.startswith(f"usage: {script} {names[0]} ")
    for name in names:
        module = import_module(MODULES[script].format(name))
        assert callable(module.main)


def test_a_launcher_says_that_there_is_no_such_command() -> None:
    refused = told("bench", "nothing")
    assert refused.returncode == 1
    assert refused.stderr == (
        "scripts/bench: there is no nothing; without a name it lists what there is\n"
    )


#: The module of a command, by its name.
MODULES = {
    "bench": "scripts.benchmarks.{}",
    "fit": "scripts.benchmarks.{}_fit",
    "reproduce": "scripts.reproductions.{}",
}


def told(script: str, *given: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / script), *given]
    return subprocess.run(command, capture_output=True, text=True, check=False)
