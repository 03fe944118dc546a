"""Entry points of installed packages, Freshet's own extensions among them.

*Invariant.* A package is imported by its entry point alone, when its hook is needed. Consequence:
the crawler runs without any extension, and one that is not used is not loaded.
"""

import sys
from functools import cache
from importlib.metadata import EntryPoint, distributions
from itertools import chain
from pathlib import Path
from typing import Any


class BrokenExtension(ImportError):
    """An extension cannot be loaded; the message names it and the package that declares it."""


@cache
def found(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group: those of other packages by name, then Freshet's own.

    Of two with one name the first one counts: another package can take the place of ours.
    """
    by_name: dict[str, EntryPoint] = {}
    for each in _declared():
        if each.group == group:
            by_name.setdefault(each.name, each)
    return tuple(by_name.values())


def _place(entry: EntryPoint) -> tuple[bool, str]:
    return entry.module.split(".")[0] == "freshet", entry.name


@cache
def _declared() -> tuple[EntryPoint, ...]:
    """Return those of all groups: the metadata of all packages is read once, in some 8 ms.

    Of a package that is installed twice, as in an environment over that of the system, the first.
    """
    of_packages: dict[str, list[EntryPoint]] = {}
    for package in distributions():
        if ours := [it for it in package.entry_points if it.group.startswith("freshet.")]:
            of_packages.setdefault(package.name.lower(), ours)
    return tuple(sorted(chain.from_iterable(of_packages.values()), key=_place))


@cache
def loaded(group: str) -> dict[str, Any]:
    """Return what the entry points of a group name, by their own names.

    Raises:
        BrokenExtension: one cannot be imported.
    """
    return {each.name: load(each) for each in found(group)}


def folder(module: str) -> Path:
    """Return the folder of a module that was imported, which has the files beside it."""
    return Path(str(sys.modules[module].__file__)).parent


def load(entry: EntryPoint) -> Any:
    """Return what an entry point names; raises :class:`BrokenExtension`."""
    try:
        return entry.load()
    except BrokenExtension:
        raise
    except (ImportError, AttributeError) as error:
        package = "an installed package" if entry.dist is None else entry.dist.name
        raise BrokenExtension(
            f"the extension {entry.name} ({entry.value}, of {package}) cannot be loaded: {error}; "
            "upgrade or remove it"
        ) from error
