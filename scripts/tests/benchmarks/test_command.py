"""What the scripts do where nobody reads on, and where something else breaks."""

from __future__ import annotations

import subprocess
import sys
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
