"""The compiled core: loops in C, called through ctypes.

The C files beside this module are one library (:mod:`freshet.compiled.build`). Modules here give
its functions names, types and checks: C gets only addresses with a checked length and type.
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
#: The same library; calls keep the interpreter's lock.
_AT_ONCE = ctypes.PyDLL(str(_PATH))


def function(
    name: str, arguments: list[Any], result: Any = None, *, is_short: bool = False
) -> Callable[..., Any]:
    """Return a function of the library; ``arguments`` and ``result`` are ctypes types.

    Other threads run meanwhile, unless it ``is_short``: giving up the lock for a few microseconds
    could cost milliseconds.
    """
    found = (_AT_ONCE if is_short else _LIBRARY)[name]
    found.argtypes, found.restype = arguments, result
    return found
