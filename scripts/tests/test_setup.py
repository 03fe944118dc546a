"""scripts/setup downloads a compiler only where nothing else gives the compiled core."""

import platform
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import pytest

from freshet.compiled import build

ROOT = Path(__file__).parents[2]
CORE = f"freshet/compiled/{build.library().name}"
TAGS = {"gnu": "manylinux_2_17", "musl": "musllinux_1_2"}
OURS = "musl" if "musl" in (sysconfig.get_config_var("HOST_GNU_TYPE") or "") else "gnu"
THEIRS = "gnu" if OURS == "musl" else "musl"
#: In place of the environment's: it notes what it should install, and installs a compiler at most.
PYTHON = """#!/bin/sh
case "$*" in
"-m pip install "*compiler.lock*)
    echo "$*" >> installed
    mkdir ziglang && cp compiler.py ziglang/__main__.py && touch ziglang/__init__.py ;;
"-m pip uninstall "*ziglang*) rm -r ziglang ;;
"-m pip "*) echo "$*" >> installed ;;
*) exec {python} "$@" ;;
esac
"""
#: In place of a compiler: the library was built before.
COMPILER = """import shutil, sys
shutil.copy({core!r}, sys.argv[sys.argv.index("-o") + 1])
"""
SAYS_SIZE = "downloading ziglang, 100 MB, and 400 MB of disk"
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="these wheels are those of Linux")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone on a machine without a compiler, set up but for the compiled core."""
    ignored = shutil.ignore_patterns("core-*", "__pycache__")
    shutil.copytree(ROOT / "freshet/compiled", tmp_path / "freshet/compiled", ignore=ignored)
    for name in ("requirements.lock", "pyproject.toml", "scripts/setup", "scripts/deploy"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    for folder in ("dist", "programs", ".venv/bin"):
        (tmp_path / folder).mkdir(parents=True)
    for program in ("bash", "cat", "cksum", "cp", "dirname", "mkdir", "rm", "sed", "sh", "touch"):
        (tmp_path / "programs" / program).symlink_to(str(shutil.which(program)))
    python = tmp_path / ".venv/bin/python"
    python.write_text(PYTHON.format(python=sys.executable))
    python.chmod(0o755)
    (tmp_path / "compiler.py").write_text(COMPILER.format(core=str(build.library())))
    sums = subprocess.run(
        ["cksum", "requirements.lock", "pyproject.toml"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    (tmp_path / ".venv/.freshet-setup").write_text(f"{sums} {tmp_path}\n")
    return tmp_path


def set_up(clone: Path, **environment: str) -> str:
    """Run scripts/setup; return what it said."""
    given = {"PATH": str(clone / "programs"), "PYTHONPATH": str(clone), **environment}
    done = subprocess.run(
        ["scripts/setup"], cwd=clone, env=given, capture_output=True, text=True, check=False,
        timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert (clone / CORE).is_file()
    assert [each.name for each in (clone / CORE).parent.glob("*core-*")] == [build.library().name]
    return done.stderr


def was_installed(clone: Path) -> bool:
    assert not (clone / "ziglang").exists()  # it does not stay
    return (clone / "installed").exists()


def wheel(
    clone: Path, libc: str = OURS, member: str = CORE, content: bytes | None = None,
    machine: str = platform.machine(), version: str = "0.1.0",
) -> Path:  # fmt: skip
    """Put a wheel into dist/."""
    made = clone / f"dist/freshet-{version}-py3-none-{TAGS[libc]}_{machine}.whl"
    with ZipFile(made, "w") as archive:
        archive.writestr(member, build.library().read_bytes() if content is None else content)
    return made


def cut(file: Path) -> Path:
    file.write_bytes(file.read_bytes()[:500])
    return file


def damage(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[200:300] = bytes(100)
    file.write_bytes(content)


@pytest.mark.parametrize(
    "put",
    [
        lambda clone: shutil.copy(build.library(), clone / CORE),
        wheel,
        lambda clone: wheel(clone, version="9.8.7"),
        lambda clone: (wheel(clone, THEIRS), wheel(clone)),
        lambda clone: (cut(wheel(clone, version="0.0.9")), wheel(clone)),
        lambda clone: (wheel(clone, member="core-0.so", version="0.0.1"), wheel(clone)),
        lambda clone: (wheel(clone), (clone / "dist/freshet-0.1.0.tar.gz").touch()),
        lambda clone: (wheel(clone), (clone / "freshet/compiled/core-0123.so").touch()),
    ],
    ids=[
        "a core in the checkout", "a wheel", "a wheel of another version with the same sources",
        "wheels of both C libraries", "a wheel that is cut off and one that is not",
        "a wheel of other sources and one of these", "all that a release makes",
        "a wheel, and a core of other sources in the checkout",
    ],
)  # fmt: skip
def test_where_the_core_is_built_no_compiler_is_downloaded(
    clone: Path, put: Callable[[Path], object]
) -> None:
    put(clone)
    assert "compiler" not in set_up(clone)
    assert not was_installed(clone)
    assert set_up(clone) == ""  # the second time


def test_with_a_compiler_on_the_machine_none_is_downloaded(clone: Path) -> None:
    said = set_up(clone, CC=f"{sys.executable} {clone / 'compiler.py'}")
    assert said.startswith(f"freshet: building {build.library().name} with ")
    assert not was_installed(clone)


@pytest.mark.parametrize(
    "put",
    [
        lambda clone: None,
        lambda clone: wheel(clone, THEIRS),
        lambda clone: wheel(clone, member="freshet/compiled/core-0123456789abcdef.so"),
        lambda clone: wheel(clone, content=b"no library"),
        lambda clone: cut(wheel(clone)),
        lambda clone: damage(wheel(clone)),
        lambda clone: wheel(clone).write_bytes(b""),
        lambda clone: (clone / "freshet/compiled/core-0123456789abcdef.so").touch(),
        lambda clone: wheel(clone).rename(clone / "dist/other.zip"),
        lambda clone: (clone / "dist").rmdir(),
    ],
    ids=[
        "nothing", "a wheel for the other C library", "a wheel of other sources",
        "a core that does not load", "a wheel that is cut off", "a wheel with a damaged core",
        "an empty wheel", "a core of other sources", "no wheel by name", "no dist/",
    ],
)  # fmt: skip
def test_otherwise_it_is_and_its_size_is_said_first(
    clone: Path, put: Callable[[Path], object]
) -> None:
    put(clone)
    said = set_up(clone)
    assert SAYS_SIZE in said
    assert said.index(SAYS_SIZE) < said.index("freshet: building")
    assert was_installed(clone)
    assert set_up(clone) == ""


def test_a_wheel_that_is_passed_over_because_it_is_damaged_is_named(clone: Path) -> None:
    damaged = cut(wheel(clone))
    assert f"freshet: no compiled core from {damaged}: " in set_up(clone)


def test_the_size_is_that_of_what_is_locked() -> None:
    lock = (ROOT / "scripts/deploy/compiler.lock").read_text("utf-8")
    assert "\n# Size: 100 MB, and 400 MB of disk until the core is built\nziglang==0.17.1 " in lock
