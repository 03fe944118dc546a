"""Run the demo on the other Pythons that pyproject.toml names and this machine has.

With ``--tests``, run on each a fixed quarter of the tests instead, and then the demo and that
quarter once more with the newest versions of the dependencies that pyproject.toml allows. The
Python of ``.venv`` is left out: there all tests run. Each Python gets an environment in a temporary
folder.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

ROOT = Path(__file__).parents[1]
#: A Python that does not import venv makes no environments.
_ASKED = "import json, sys, venv; print(json.dumps(sys.version_info[:3]))"

Command = list[str | Path]


@dataclass(frozen=True, slots=True, order=True)
class Python:
    """An interpreter."""

    version: tuple[int, ...]
    path: str

    def __str__(self) -> str:
        return f"Python {'.'.join(map(str, self.version))} ({self.path})"


def supported() -> list[tuple[int, int]]:
    """Return the versions that pyproject.toml names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    names = "\n".join(project["classifiers"])
    return [(3, int(minor)) for minor in re.findall(r"Python :: 3\.(\d+)$", names, re.MULTILINE)]


def installed(versions: Iterable[tuple[int, int]]) -> list[Python]:
    """Return the Pythons of these versions in PATH and in pyenv's folders, the oldest first."""
    folders = [Path(each) for each in os.environ.get("PATH", "").split(os.pathsep)]
    homes = {Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser(), Path.home() / ".pyenv"}
    found = set[Python]()
    for major, minor in versions:
        paths = [folder / f"python{major}.{minor}" for folder in folders]
        for home in homes:
            paths += home.glob(f"versions/{major}.{minor}.*/bin/python")
        # A version of pyenv that is not in use has a program in PATH, too, which fails.
        found |= {it for it in map(asked, paths) if it and it.version[:2] == (major, minor)}
    return sorted(found)


def asked(path: Path) -> Python | None:
    """Return the interpreter at a path; None if there is none that makes environments."""
    try:
        done = subprocess.run([path, "-I", "-c", _ASKED], capture_output=True, check=True)
        return Python(tuple(json.loads(done.stdout)), str(path))
    except (OSError, subprocess.SubprocessError, ValueError):
        return None


def others(found: Iterable[Python], own: tuple[int, ...]) -> list[Python]:
    """Return the Pythons to run on: the oldest one of each version, but not our own."""
    oldest: dict[tuple[int, ...], Python] = {}
    for python in sorted(found):
        if python.version != own:
            oldest.setdefault(python.version[:2], python)
    return list(oldest.values())


def quarter(names: Iterable[str]) -> list[str]:
    """Return a quarter of the files; a name is in it or not, whatever else comes and goes."""
    # Of the four quarters this one has the tests of the database and of its writer.
    return [name for name in names if crc32(name.encode()) % 4 == 1]


def test_files() -> list[str]:
    """Return the paths of the files of tests."""
    folders = (ROOT / "tests", ROOT / "scripts/tests")
    found = (path for folder in folders for path in folder.rglob("test_*.py"))
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


def trials(python: Python, place: Path, *, tests: bool) -> Iterator[tuple[str, list[Command]]]:
    """Yield what to run on a Python, by its name, as commands."""
    environment = place / "environment"
    program = environment / "bin/python"
    # Debian's Python lacks ensurepip without a further package: pip is that of .venv.
    new: Command = [python.path, "-m", "venv", "--clear", "--without-pip", environment]
    pip: Command = [sys.executable, "-m", "pip", "--python", program, "install", "--no-compile"]
    pip += ["--quiet", "--quiet", "--disable-pip-version-check"]
    # The locks are complete: what a package needs is there, with its hash.
    locked: Command = [*pip, "--no-deps", "--require-hashes", "--requirement"]
    demo: Command = [program, "-m", "scripts.demo"]
    workers = (os.cpu_count() or 1) + 1
    chosen: Command = [
        program,
        "-m",
        "pytest",
        "-q",
        f"--numprocesses={workers}",
        "--dist=loadgroup",
    ]
    chosen += ["-m", "not long", f"--basetemp={place / 'tests'}", *quarter(test_files())]
    if not tests:
        running = place / "running.txt"
        command: Command = [sys.executable, "scripts/deploy/locked.py"]
        running.write_bytes(subprocess.run(command, cwd=ROOT, stdout=-1, check=True).stdout)
        yield "the demo", [new, [*locked, running], demo]
        return
    ours: Command = [*pip, "--no-deps", "--no-build-isolation", "--editable", "."]
    yield "a quarter of the tests", [new, [*locked, "requirements.lock"], ours, chosen]
    newest: Command = [*pip, "--upgrade", "--group", "dev", "--editable", "."]
    yield "the demo with the newest versions", [new, newest, demo]
    yield "a quarter of the tests with the newest versions", [chosen]


def succeeds(command: Command) -> bool:
    """Run a command and return whether it succeeds; print what it said if it does not."""
    done = subprocess.run(command, cwd=ROOT, stdout=-1, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        print(done.stdout.decode(errors="replace"), end="")
        print(f"ended with {done.returncode}:", *command)
    return done.returncode == 0


def processor_s() -> float:
    """Return the processor time of the commands so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def tried(python: Python, *, tests: bool) -> bool:
    """Run everything on a Python and print how it ended; return whether all of it succeeded."""
    ended = []
    with tempfile.TemporaryDirectory(prefix="freshet-python-") as place:
        for name, commands in trials(python, Path(place), tests=tests):
            began_at, used_s = time.monotonic(), processor_s()
            ended.append(all(map(succeeds, commands)))
            wall_s, used_s = time.monotonic() - began_at, processor_s() - used_s
            how = "passed" if ended[-1] else "FAILED"
            print(f"{python}: {name} {how} in {wall_s:.0f} s ({used_s:.0f} s of processor time)")
            sys.stdout.flush()
    return all(ended)


def main() -> None:
    """Run, and exit 1 if a Python failed; a Python that is not there is no failure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tests", action="store_true", help="run a quarter of the tests")
    arguments = parser.parse_args()
    own = sys.version_info[:3]
    versions = supported()
    found = installed(versions)
    ended = [tried(python, tests=arguments.tests) for python in others(found, own)]
    there = {python.version[:2] for python in found} | {own[:2]}
    for major, minor in sorted(set(versions) - there):
        print(f"Python {major}.{minor}: not run, as it is neither in PATH nor in pyenv's folders")
    if not all(ended):
        sys.exit(1)


if __name__ == "__main__":
    # Whoever ends this also ends what it runs, and the folder goes.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    main()
