"""The inner functions of the compiled core, in a library that is built for the tests."""

import ctypes
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from freshet.compiled import build
from freshet.compiled.numeric import Floats
from freshet.scheduler.estimate.site_model import ClockState

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


def look(
    clock: ClockState, begin: float, end: float, rate: float, theta: float, area: int, changed: bool
) -> None:
    """Let a clock learn of an interval between two visits."""
    inner = function("look", "pddddib")
    inner(clock.structure.address, begin, end, rate, theta, area, changed)


def read(clock: ClockState, days: list[float], area: int = 0) -> tuple[Floats, Floats]:
    """Return M(t) and Y(t) on these days."""
    at, shared, cold = np.array(days), np.empty(len(days)), np.empty(len(days))
    addresses = at.ctypes.data, len(at), area, shared.ctypes.data, cold.ctypes.data
    function("read_days", "ppiipp")(clock.structure.address, *addresses)
    return shared, cold
