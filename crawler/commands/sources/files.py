"""A file of sources read, and a plan written: how, is said by the ending of the name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from freshet.crawler.commands.sources import csv_files, parquet_files
from freshet.crawler.commands.sources.columns import BadSources, Sources, UnusableFile, checked

_READERS = {".csv": csv_files.read_csv, ".parquet": parquet_files.read_parquet}
_WRITE = {".csv": csv_files.write_csv, ".parquet": parquet_files.write_parquet}


def read_sources(path: Path) -> Sources:
    """The sources in a file.

    Raises:
        UnusableFile: there is no such file, or it is not what its ending says.
        BadSources: naming the row, the column and what is accepted.
    """
    try:
        return checked(_READERS[_ending(path)](path))
    except OSError as error:
        raise UnusableFile(f"{path}: {error.strerror or error}") from error


def check_writable(path: Path) -> None:
    """Find out before the work whether a plan can be written here; nothing is written.

    Raises:
        BadSources: the ending is not one of those that are accepted.
        UnusableFile: the folder or what would be replaced is not what it should be, or an
            extra is missing.
    """
    if _ending(path) == ".parquet":
        parquet_files.require_duckdb(path)
    if not path.parent.is_dir():
        raise UnusableFile(f"{path}: there is no folder {path.parent}")
    if path.exists() and not path.is_file():
        raise UnusableFile(f"{path}: it is no file, and is not replaced")


def write_plan(path: Path, columns: Mapping[str, NDArray[Any]]) -> bool:
    """Write the columns of a plan, whole or not at all; whether an older file was replaced.

    Raises:
        UnusableFile: it cannot be written.
    """
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        _WRITE[_ending(path)](unfinished, columns)
        replaced = path.exists()
        unfinished.replace(path)
    except OSError as error:
        raise UnusableFile(f"{path}: {error.strerror or error}") from error
    finally:
        unfinished.unlink(missing_ok=True)
    return replaced


def _ending(path: Path) -> str:
    ending = path.suffix.lower()
    if ending not in _READERS:
        raise BadSources(f"{path}: accepted are files that end in {' or '.join(_READERS)}")
    return ending
