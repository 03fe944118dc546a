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
TESTS = [
    "tests/compiled/test_numeric.py",
    "tests/crawler/extensions/readers/test_search_quality.py",
    "tests/scheduler/queue/test_site_clock_ranker_claims.py",
    "tests/scheduler/queue/test_site_clock_ranker.py",
    "tests/scheduler/estimate/test_site_model.py",
    "tests/scheduler/evaluate/test_bounds.py",
]
TESTS += [
    f"tests/crawler/reduce/test_{name}.py"
    for name in (
        *"content document_markdown links main_text main_text_cut_blocks page".split(),
        *"pieces_features sketch tree tree_nesting tree_selectors".split(),
    )
]
TESTS += ["tests/crawler/reduce/test_sketch_word_hashes.py"]
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


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A copy of the project whose core has checks, and the environment that it needs."""
    copy = tmp_path_factory.mktemp("checked")
    for folder in ("config", "crawler", "scheduler", "storage", "tests"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, copy / folder, ignore=ignored)
    ignored = shutil.ignore_patterns("core-*", "__pycache__")
    shutil.copytree(ROOT / "freshet", copy / "freshet", symlinks=True, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", copy)
    checker, sources = address_checker(), copy / "freshet/compiled"
    if checker is not None and built(sources, ADDRESSES):
        # What Python keeps until it ends is no leak.
        return copy, {"LD_PRELOAD": checker, "ASAN_OPTIONS": "detect_leaks=0"}
    if built(sources, BOUNDS):
        return copy, {}
    pytest.skip(f"{shlex.join(build.compiler() or ())!r} builds no library with checks")


@pytest.mark.long
@pytest.mark.xdist_group("checked core")
@pytest.mark.parametrize("tests", TESTS)
def test_nothing_undefined_is_done(checked: tuple[Path, dict[str, str]], tests: str) -> None:
    copy, variables = checked
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not long"]
    done = subprocess.run(
        [*command, tests], cwd=copy, env={**os.environ, **variables}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
