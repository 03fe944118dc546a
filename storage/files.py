"""Words about a file that cannot be read or written."""

import errno
from pathlib import Path
from typing import Final

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
    """Return in one line what is wrong with a file or folder, and what to do.

    >>> trouble("sites.txt", FileNotFoundError(errno.ENOENT, "No such file or directory"))
    'sites.txt: No such file or directory; check its name'
    """
    if error.errno is None:
        # Raised by Python code, in words of its own.
        return f"{path}: {error}"
    return f"{path}: {error.strerror}; {_ADVICE.get(error.errno, 'check it and its disk')}"
