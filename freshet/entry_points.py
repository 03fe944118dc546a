"""Entry points of installed packages, including Freshet's own extensions.

*Invariant.* A package is imported only through its entry points, when its hook is needed.
Consequence: the crawler runs without any extension, and does not load an unused one.
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
    """Return the entry points of a group: other packages' by name, then Freshet's own.

    Of two with the same name the first one counts, so another package can replace Freshet's.
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
    """Return the entry points of all groups; reading the metadata once takes about 8 ms.

    If a package is installed twice, as in an environment on top of the system's, the first one
    counts.
    """
    of_packages: dict[str, list[EntryPoint]] = {}
    for package in distributions():
        if ours := [it for it in package.entry_points if it.group.startswith("freshet.")]:
            of_packages.setdefault(package.name.lower(), ours)
    return tuple(sorted(chain.from_iterable(of_packages.values()), key=_place))


@cache
def loaded(group: str) -> dict[str, Any]:
    """Return the objects that the entry points of a group name, by entry point name.

    Raises:
        BrokenExtension: one cannot be imported.
    """
    return {each.name: load(each) for each in found(group)}


def folder(module: str) -> Path:
    """Return the folder of an imported module, which has its data files."""
    return Path(str(sys.modules[module].__file__)).parent


def load(entry: EntryPoint) -> Any:
    """Return the object that an entry point names; raise :class:`BrokenExtension`."""
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
