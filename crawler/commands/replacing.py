"""A file that takes the place of another one when it is whole."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from freshet.crawler.commands.console import fail


@contextmanager
def replacing(output: Path) -> Iterator[Path]:
    """A file beside ``output`` that takes its place when the block ends well, and is then synced.

    It has the permissions of the file that was there. Where it cannot be written, the program
    ends with one line.
    """
    try:
        # A link is followed: what it leads to is replaced, not the link.
        output = output.resolve()
        handle, name = tempfile.mkstemp(dir=output.parent, prefix=f".{output.name}.")
        os.close(handle)
        whole = Path(name)
        try:
            yield whole
            whole.chmod(_mode(output))
            _sync(whole)
            whole.replace(output)
            _sync(output.parent)
        finally:
            with suppress(FileNotFoundError):
                whole.unlink()
    except OSError as error:
        fail(f"{output}: cannot be written: {error.strerror or error}")


def _mode(output: Path) -> int:
    try:
        return stat.S_IMODE(output.stat().st_mode)
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
