"""What is told of a file that cannot be read or written."""

import errno
import os
from pathlib import Path

import pytest

from freshet.storage.errors import trouble


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOENT, "check its name"), (errno.ENOTDIR, "check its name"),
        (errno.EISDIR, "name a file"), (errno.EACCES, "check its permissions"),
        (errno.EPERM, "check its permissions"), (errno.EROFS, "name another place"),
        (errno.ENOSPC, "free some space"), (errno.EDQUOT, "free some space"),
        (errno.EMFILE, "ulimit -n"), (errno.EIO, "check it and its disk"),
        (errno.ESTALE, "check it and its disk"),
    ],
)  # fmt: skip
def test_the_advice_is_that_for_the_error(number: int, advice: str) -> None:
    told = trouble(Path("a.db"), OSError(number, os.strerror(number), "elsewhere"))
    assert told.startswith(f"a.db: {os.strerror(number)}; ")
    assert advice in told


def test_an_error_in_words_of_its_own_gets_no_advice() -> None:
    assert trouble("key.pem", OSError("the key has a passphrase")) == (
        "key.pem: the key has a passphrase"
    )
