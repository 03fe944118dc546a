"""The compiled core is built once from its sources, with what compiler there is."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from freshet.compiled import build

HERE = Path(build.__file__).parent


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A copy of the sources, without a library."""
    ignored = shutil.ignore_patterns("core-*", "__pycache__")
    return Path(shutil.copytree(HERE, tmp_path / "compiled", ignore=ignored))


@pytest.fixture(autouse=True)
def compiler_found_anew() -> Iterator[None]:
    build.compiler.cache_clear()
    if build.compiler() is None:
        pytest.skip("no C compiler works here")
    build.compiler.cache_clear()
    yield
    build.compiler.cache_clear()


@pytest.mark.long
def test_it_is_built_once(sources: Path, capfd: pytest.CaptureFixture[str]) -> None:
    made = build.build(sources)
    assert made == build.library(sources)
    assert made.is_file()
    said = capfd.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith(f"freshet: building {made.name} with ")
    written = made.stat().st_mtime_ns
    assert build.build(sources) == made
    assert made.stat().st_mtime_ns == written
    assert capfd.readouterr().err == ""


@pytest.mark.long
def test_other_sources_or_flags_have_another_library_and_no_old_one_is_left(sources: Path) -> None:
    first = build.build(sources)
    header = sources / "core.h"
    header.write_text(header.read_text() + "/* changed */\n")
    second = build.build(sources)
    (sources / "build.py").write_text("# other flags\n")
    assert len({first, second, build.library(sources)}) == 3
    assert [each for each in sources.iterdir() if "core-" in each.name] == [second]


def test_the_sources_say_what_is_wrong_with_them(sources: Path) -> None:
    for path in sources.glob("*.c"):
        path.unlink()
    (sources / "wrong.c").write_text("int f(void) { return missing; }\n")
    with pytest.raises(RuntimeError, match=r"could not build the compiled core:\n(?s:.*)missing"):
        build.build(sources)
    assert not build.library(sources).exists()


def test_without_a_compiler_it_says_what_to_do(
    sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(sources))
    monkeypatch.setattr(build, "find_spec", lambda name: None)
    with pytest.raises(RuntimeError, match=r"install one .* or the package ziglang"):
        build.build(sources)


def test_a_compiler_that_does_not_work_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = build.compiler()
    build.compiler.cache_clear()
    monkeypatch.setenv("CC", "false --really")
    assert build.compiler() == usual
    build.compiler.cache_clear()
    monkeypatch.setenv("CC", "/no/such/compiler")
    assert build.compiler() == usual


def test_python_refuses_to_load_the_core_of_other_sources(sources: Path) -> None:
    package = sources.parent / "freshet"
    package.mkdir()
    (package / "__init__.py").touch()
    sources.rename(package / "compiled")
    done = subprocess.run(
        [sys.executable, "-c", "import freshet.compiled"],
        cwd=package.parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("have changed since: run scripts/setup")
