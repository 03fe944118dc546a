"""Print, out of requirements.lock, what Freshet needs to run, with its hashes.

The lock has the tools of its developers as well. With the names of packages as arguments it prints
what these need instead.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
#: A requirement at the beginning of a line, with its hashes, and the comment that says whose it is.
_ENTRY = re.compile(
    r"^(?P<name>[a-z0-9][a-z0-9.-]*)==.*?(?=^[a-z0-9]|\Z)", re.MULTILINE | re.DOTALL
)
_WHOSE = re.compile(r"#\s+(?:via\s+)?([a-z0-9][a-z0-9.-]*)\s*$", re.MULTILINE)


def needed(lock: str, wanted: set[str]) -> list[str]:
    """The entries of the lock that these packages need, themselves included, in its order."""
    # A package may have several: each is for other versions of Python.
    entries = [(found["name"], found[0]) for found in _ENTRY.finditer(lock)]
    needs: dict[str, set[str]] = {name: set() for name, _ in entries}
    if missing := wanted - needs.keys():
        sys.exit(f"requirements.lock does not have {', '.join(sorted(missing))}")
    for name, entry in entries:
        for owner in _WHOSE.findall(entry):
            if owner in needs:
                needs[owner].add(name)
    taken: set[str] = set()
    waiting = set(wanted)
    while waiting:
        name = waiting.pop()
        taken.add(name)
        waiting |= needs[name] - taken
    return [entry for name, entry in entries if name in taken]


def of_the_project() -> set[str]:
    """The names of the packages that pyproject.toml asks for."""
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    found = (_NAME.match(line) for line in project["dependencies"])
    return {re.sub(r"[._-]+", "-", name[0]).lower() for name in found if name is not None}


def main() -> None:
    """Print the entries."""
    lock = (_ROOT / "requirements.lock").read_text("utf-8")
    sys.stdout.write("".join(needed(lock, set(sys.argv[1:]) or of_the_project())))


if __name__ == "__main__":
    main()
