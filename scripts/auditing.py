"""Compare the lock with advisories of the OSV database (https://ossf.github.io/osv-schema/).

The file is a ZIP of JSON advisories, as OSV exports them for PyPI, or one such JSON file. Exits
with 1 if an advisory is about a locked version.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

_LOCK = Path(__file__).parents[1] / "requirements.lock"
_PINNED = re.compile(r"^([a-z0-9][a-z0-9._-]*)==([^ ;\\\n]+)", re.MULTILINE)


def main() -> None:
    """The command ``scripts/audit``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("advisories", type=Path)
    parser.add_argument("--lock", type=Path, default=_LOCK)
    chosen = parser.parse_args()
    pinned = _PINNED.findall(chosen.lock.read_text("utf-8"))
    try:
        found = sorted(set(affected(pinned, read(chosen.advisories))))
    except (OSError, BadZipFile, ValueError) as error:
        parser.error(f"{chosen.advisories}: no advisories: {error}")
    for package, version, advisory, summary in found:
        print(f"{package} {version}: {advisory} {summary}".rstrip())
    print(f"{len(pinned)} locked packages, {len(found)} advisories about them")
    sys.exit(bool(found))


def read(path: Path) -> Iterator[Mapping[str, Any]]:
    """Read advisories."""
    if path.suffix == ".json":
        yield json.loads(path.read_bytes())
        return
    with ZipFile(path) as archive:
        for name in archive.namelist():
            yield json.loads(archive.read(name))


def affected(
    pinned: Iterable[tuple[str, str]], advisories: Iterable[Mapping[str, Any]]
) -> Iterator[tuple[str, str, str, str]]:
    """Yield package, version, advisory and its summary for each locked version with a fault."""
    versions: dict[str, list[str]] = {}
    for name, version in pinned:
        versions.setdefault(canonicalize_name(name), []).append(version)
    for advisory in advisories:
        for entry in () if "withdrawn" in advisory else advisory.get("affected", ()):
            package = entry.get("package", {})
            if package.get("ecosystem") != "PyPI":
                continue
            name = canonicalize_name(package["name"])
            for version in versions.get(name, ()):
                if _is_in(version, entry):
                    yield name, version, advisory["id"], advisory.get("summary", "")


def _is_in(version: str, entry: Mapping[str, Any]) -> bool:
    if version in entry.get("versions", ()):
        return True
    return any(
        _is_between(Version(version), each["events"])
        for each in entry.get("ranges", ())
        if each["type"] == "ECOSYSTEM"
    )


def _is_between(version: Version, events: Iterable[Mapping[str, str]]) -> bool:
    """Return whether the last event at or before a version introduces the fault."""
    is_faulty = False
    for event in events:
        ((kind, at),) = event.items()
        try:
            reached = Version("0" if at == "0" else at)
        except InvalidVersion:
            continue
        if kind == "introduced" and version >= reached:
            is_faulty = True
        elif (kind == "fixed" and version >= reached) or (
            kind == "last_affected" and version > reached
        ):
            is_faulty = False
    return is_faulty


if __name__ == "__main__":
    main()
