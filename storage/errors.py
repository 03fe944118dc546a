"""What the store says when it cannot do its work: one line, with the file's name."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: What may pass by itself: why, and what to do about it.
_PASSING = {
    "SQLITE_FULL": ("the disk is full", "free some space and run the same command again"),
    "SQLITE_BUSY": ("another program holds a lock on it", "close that program and try again"),
    "SQLITE_LOCKED": ("another program holds a lock on it", "close that program and try again"),
}
_SENTENCES = {
    "SQLITE_NOTADB": "it is not a Freshet store (not an SQLite file)",
    "SQLITE_CORRUPT": "it is damaged; restore a backup, or salvage it with `sqlite3 FILE .recover`",
    "SQLITE_CANTOPEN": "it cannot be opened; check that the folder exists and may be written",
    "SQLITE_READONLY": "it may not be written",
    "SQLITE_PERM": "it may not be opened",
}


class StoreError(Exception):
    """The store cannot do what was asked; the message is one line for the user."""


class StoreUnavailable(StoreError):
    """The store cannot be read or written now, for a reason (``why``) that may pass."""

    def __init__(self, path: Path, why: str, advice: str = "") -> None:
        super().__init__(f"{path}: {why}; {advice}" if advice else f"{path}: {why}")
        self.why = f"{path}: {why}"


@contextmanager
def sqlite_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's exceptions into :class:`StoreError`.

    A full disk, the lock of another program and failures of reading and writing, which is how
    quotas and network disks show, are a :class:`StoreUnavailable`.
    """
    try:
        yield
    except sqlite3.Error as error:
        raise _store_error(path, error) from error


@contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's and the file system's exceptions into :class:`StoreError`."""
    try:
        with sqlite_errors(path):
            yield
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}") from error


def _store_error(path: Path, error: sqlite3.Error) -> StoreError:
    name = getattr(error, "sqlite_errorname", "")
    for prefix, (why, advice) in _PASSING.items():
        if name.startswith(prefix):
            return StoreUnavailable(path, why, advice)
    if name.startswith("SQLITE_IOERR"):
        return StoreUnavailable(path, f"the disk failed or is full ({name})")
    said = f"{error} ({name or type(error).__name__})"
    known = (sentence for prefix, sentence in _SENTENCES.items() if name.startswith(prefix))
    return StoreError(f"{path}: {next(known, said)}")
