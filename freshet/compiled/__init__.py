"""The compiled core: loops in C that Python calls by way of ctypes.

The C files beside this module are one library (:mod:`freshet.compiled.build`). Modules here give
its functions names, types and checks: C gets no address whose length and type were not looked at.
A call lets go of the interpreter's lock.
"""

import ctypes
from collections.abc import Callable
from typing import Any

from freshet.compiled import build

_PATH = build.library()
if not _PATH.exists():
    raise ImportError(
        f"{_PATH} is not built, or its sources have changed since: run scripts/setup", name=__name__
    )
_LIBRARY = ctypes.CDLL(str(_PATH))


def function(name: str, arguments: list[Any], result: Any = None) -> Callable[..., Any]:
    """Return a function of the library; ``arguments`` and ``result`` are types of ctypes."""
    found = _LIBRARY[name]
    found.argtypes, found.restype = arguments, result
    return found
