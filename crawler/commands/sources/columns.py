"""Sources of a plan as columns: what a file says of them, and the checks that it must pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from freshet.crawler.errors import CrawlError
from freshet.crawler.urls import origin

#: What a file must have of each source, and what it may.
REQUIRED = ("url", "change_rate")
OPTIONAL = ("importance", "host", "complete_observations")

_LONGEST_VALUE = 60


class UnusableFile(CrawlError):
    """A file that cannot be read or written; the message is one line."""


class BadSources(CrawlError):
    """A file that says something wrong; one line names row, column and what is accepted."""


@dataclass(frozen=True, slots=True)
class Sources:
    """n sources; ``host`` are rows of ``hosts``, ``change_rate`` is per day."""

    url: Sequence[str]
    importance: NDArray[np.float64]
    change_rate: NDArray[np.float64]
    complete_observations: NDArray[np.bool_]
    host: NDArray[np.intp]
    hosts: Sequence[str]

    def __len__(self) -> int:
        return len(self.url)


@dataclass(frozen=True, slots=True)
class FileColumns:
    """The columns of a file; those that it does not have are None.

    ``numbers`` are those by which people find the rows, ``unit`` what they count: line, row.
    """

    path: Path
    unit: str
    numbers: NDArray[np.int64]
    url: list[str]
    change_rate: NDArray[np.float64]
    importance: NDArray[np.float64] | None = None
    host: list[str] | None = None
    complete_observations: NDArray[np.bool_] | None = None

    def refuse(self, row: int, column: str, shown: str, accepted: str) -> NoReturn:
        """Say what is wrong with a value."""
        refuse(self.path, f"{self.unit} {self.numbers[row]}", column, shown, accepted)


def refuse(path: Path, place: str, column: str, shown: str, accepted: str) -> NoReturn:
    """Say what is wrong with a value in a file, and what is accepted."""
    if len(shown) > _LONGEST_VALUE:
        shown = shown[: _LONGEST_VALUE - 1] + "…"
    raise BadSources(f"{path}: {place}: {column}: is {shown}; accepted is {accepted}")


def check_header(path: Path, names: Sequence[str]) -> None:
    """Refuse columns that are missing, unknown or there twice."""
    known = (*REQUIRED, *OPTIONAL)
    accepted = f"accepted are {', '.join(known)}, of which {' and '.join(REQUIRED)} are required"
    for name in names:
        if name not in known:
            raise BadSources(f"{path}: column {name!r} is not known; {accepted}")
        if names.count(name) > 1:
            raise BadSources(f"{path}: column {name!r} is there {names.count(name)} times")
    for name in REQUIRED:
        if name not in names:
            raise BadSources(f"{path}: column {name!r} is missing; {accepted}")


def checked(columns: FileColumns) -> Sources:
    """The sources that a file tells of, with what it leaves out: see :class:`Sources`.

    That is importance 1, the URL's origin as the host, and incomplete observations.

    Raises:
        BadSources: naming the row, the column and what is accepted.
    """
    n = len(columns.url)
    if not n:
        raise BadSources(f"{columns.path}: has no rows; accepted is one for each source")
    host, hosts = _origins(columns)
    if columns.host is not None:
        host, hosts = _named(columns, columns.host)
    _refuse_twice(columns)
    importance, complete = columns.importance, columns.complete_observations
    return Sources(
        columns.url,
        np.ones(n) if importance is None else _rates(columns, "importance", importance),
        _rates(columns, "change_rate", columns.change_rate),
        np.zeros(n, np.bool_) if complete is None else complete,
        host,
        hosts,
    )


def numbered(names: Iterable[str]) -> tuple[NDArray[np.intp], list[str]]:
    """Each name's place among the different ones, which stand in order of appearance."""
    codes: dict[str, int] = {}
    places = np.array([codes.setdefault(name, len(codes)) for name in names], np.intp)
    return places, list(codes)


def _rates(columns: FileColumns, name: str, values: NDArray[np.float64]) -> NDArray[np.float64]:
    bad = ~(np.isfinite(values) & (values >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        columns.refuse(row, name, str(values[row]), "a finite number of at least 0")
    return values


def _origins(columns: FileColumns) -> tuple[NDArray[np.intp], list[str]]:
    """The origin of each URL; that it has one is what makes it a URL."""
    known: dict[str, str] = {}
    names = []
    for row, url in enumerate(columns.url):
        # URLs are many, origins few: most are told by the text before the path.
        head = "/".join(url.split("/", 3)[:3])
        name = known.get(head) or _origin(url)
        if name is None or not url.isprintable():
            columns.refuse(row, "url", repr(url), "an absolute http or https URL")
        if not head.endswith("/"):
            # Behind further slashes another host may stand.
            known[head] = name
        names.append(name)
    return numbered(names)


def _origin(url: str) -> str | None:
    try:
        return str(origin(url))
    except ValueError:
        return None


def _named(columns: FileColumns, names: list[str]) -> tuple[NDArray[np.intp], list[str]]:
    places, hosts = numbered(names)
    for name in hosts:
        if not name.strip() or not name.isprintable():
            columns.refuse(names.index(name), "host", repr(name), "a name")
    return places, hosts


def _refuse_twice(columns: FileColumns) -> None:
    if len(set(columns.url)) == len(columns.url):
        return
    first: dict[str, Any] = {}
    for row, url in enumerate(columns.url):
        if url in first:
            earlier = f"{columns.unit} {columns.numbers[first[url]]}"
            columns.refuse(row, "url", repr(url), f"each URL once, and {earlier} has it")
        first[url] = row
