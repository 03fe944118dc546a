"""The inner functions of the compiled core, in a library that is built for the tests."""

import ctypes
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from freshet.compiled import build

_HERE = Path(__file__).parent


@cache
def library() -> ctypes.CDLL:
    """Return the library of inner.c; it is built once a process."""
    command = build.compiler()
    if command is None:
        pytest.skip("no C compiler works here")
    with tempfile.TemporaryDirectory() as place:
        path = f"{place}/inner.so"
        flags = ["-O1", "-std=c11", "-ffp-contract=off", "-fPIC", "-shared"]
        included = ["-I", str(Path(build.__file__).parent)]
        subprocess.run(
            [*command, *flags, *included, "-o", path, str(_HERE / "inner.c"), "-lm"], check=True
        )
        return ctypes.CDLL(path)


def function(name: str, arguments: str, result: str = "") -> Any:
    """Return an inner function; letters are types: p address, d double, i integer, b bool."""
    kinds: dict[str, Any] = {
        "p": ctypes.c_void_p,
        "d": ctypes.c_double,
        "i": ctypes.c_int64,
        "b": ctypes.c_bool,
    }
    found = library()[name]
    found.argtypes, found.restype = [kinds[each] for each in arguments], kinds.get(result)
    return found
