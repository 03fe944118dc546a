"""The compiled core does nothing undefined: its tests pass in a build that stops where it would."""

import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from freshet.compiled import build

ROOT = Path(__file__).parents[2]
TESTS = ["tests/compiled", "tests/scheduler/agenda", "tests/scheduler/estimate"]
ADDRESSES = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
#: Where the check of addresses cannot be loaded into Python.
BOUNDS = ("-g", "-fsanitize=undefined,bounds", "-fsanitize-trap=all")


def built(sources: Path, checks: Sequence[str]) -> bool:
    """Return whether the compiler could build with these checks."""
    try:
        build.build(sources, checks)
    except RuntimeError:
        return False
    return True


def address_checker() -> str | None:
    """Return the library that must be loaded into Python before one with checks of addresses."""
    command = build.compiler()
    if command is None or platform.system() != "Linux":
        return None
    done = subprocess.run(
        [*command, "-print-file-name=libasan.so"], capture_output=True, text=True, check=False
    )
    path = Path(done.stdout.strip())
    return str(path) if done.returncode == 0 and path.is_absolute() and path.exists() else None


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the project, without a library."""
    for folder in ("config", "crawler", "scheduler", "storage", "tests"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)
    ignored = shutil.ignore_patterns("core-*", "__pycache__")
    shutil.copytree(ROOT / "freshet", tmp_path / "freshet", symlinks=True, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


@pytest.mark.long
def test_nothing_undefined_is_done(copy: Path) -> None:
    checker = address_checker()
    sources = copy / "freshet/compiled"
    if checker is not None and built(sources, ADDRESSES):
        # What Python keeps until it ends is no leak.
        variables = {"LD_PRELOAD": checker, "ASAN_OPTIONS": "detect_leaks=0"}
    elif built(sources, BOUNDS):
        variables = {}
    else:
        used = shlex.join(build.compiler() or ())
        pytest.skip(f"the compiler {used!r} builds no library with checks")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not long"]
    done = subprocess.run(
        [*command, *TESTS], cwd=copy, env={**os.environ, **variables}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
