"""What the store says when it cannot do its work: one line, with the file's name."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SENTENCES = {
    "SQLITE_FULL": "the disk is full; free some space and run the same command again",
    "SQLITE_BUSY": "another program holds a lock on it; close that program and try again",
    "SQLITE_LOCKED": "another program holds a lock on it; close that program and try again",
    "SQLITE_NOTADB": "it is not a Freshet store (not an SQLite file)",
    "SQLITE_CORRUPT": "it is damaged; restore a backup, or salvage it with `sqlite3 FILE .recover`",
    "SQLITE_CANTOPEN": "it cannot be opened; check that the folder exists and may be written",
    "SQLITE_READONLY": "it may not be written",
    "SQLITE_PERM": "it may not be opened",
}


class StoreError(Exception):
    """The store cannot do what was asked; the message is one line for the user."""


@contextmanager
def sqlite_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's exceptions into :class:`StoreError`."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(f"{path}: {_sentence(error)}") from error


@contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's and the file system's exceptions into :class:`StoreError`."""
    try:
        with sqlite_errors(path):
            yield
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}") from error


def _sentence(error: sqlite3.Error) -> str:
    name = getattr(error, "sqlite_errorname", "")
    for prefix, sentence in _SENTENCES.items():
        if name.startswith(prefix):
            return sentence
    if name.startswith("SQLITE_IOERR"):
        return f"the disk failed or is full ({name})"
    return f"{error} ({name or type(error).__name__})"
