"""Exceptions of the store, and messages about files that cannot be used."""

import errno
from pathlib import Path
from typing import Final


class StoreError(Exception):
    """Error of the store; the message is one line for the user."""


class StoreUnavailable(StoreError):
    """Temporary error: the store cannot be read or written now, for the reason ``why``."""

    def __init__(self, path: Path, why: str, advice: str = "") -> None:
        super().__init__(f"{path}: {why}; {advice}" if advice else f"{path}: {why}")
        self.why = f"{path}: {why}"


class CursorGone(Exception):
    """Error for a cursor that is older than the retained changes; the message names the remedy."""


class SnapshotError(Exception):
    """A part of a snapshot is missing, damaged or of another version; it is rebuilt."""


_ADVICE: Final = {
    errno.ENOENT: "check its name",
    errno.ENOTDIR: "check its name",
    errno.EISDIR: "name a file, not a folder",
    errno.EACCES: "check its permissions",
    errno.EPERM: "check its permissions",
    errno.EROFS: "its disk is read-only: name another place",
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
    errno.EMFILE: "allow more open files (ulimit -n)",
}


def trouble(path: Path | str, error: OSError) -> str:
    """Return one line with the problem of a file or folder, and the remedy.

    >>> trouble("sites.txt", FileNotFoundError(errno.ENOENT, "No such file or directory"))
    'sites.txt: No such file or directory; check its name'
    """
    if error.errno is None:
        # Raised by Python code, in words of its own.
        return f"{path}: {error}"
    return f"{path}: {error.strerror}; {_ADVICE.get(error.errno, 'check it and its disk')}"
