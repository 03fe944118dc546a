"""Loops compiled to machine code by numba.

Its import takes half a second, and a loop that is not on disk yet some more. Where the same is
at hand in numpy, one solve of a million sources saves a fiftieth of that: a single plan never earns
it back, so there the number of rows decides, alone: it does not depend on what was imported
before, so neither do the last digits of a result. What goes look by look, as the learning of a
daemon does, has no form in numpy and is compiled wherever it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
Compiled = TypeVar("Compiled")

#: Rows from which a compiled loop is asked for where numpy does the same.
WORTHWHILE_ROWS = 500_000


def worthwhile(rows: int) -> bool:
    """Whether so many rows are to go through a compiled loop."""
    return rows >= WORTHWHILE_ROWS


def compiled(loop: Callable[P, Compiled]) -> Callable[P, Compiled]:
    """``loop`` as machine code for one core, compiled when it is first called.

    The code is kept on disk, beside the module or in the user's cache directory; where neither
    can be written, the next process compiles again. It is made anew when the file of the function
    changes, not when that of one it calls does: ``scripts/setup`` sees to that.

    It must be a function of a module, written in what numba knows of Python, and calls none but
    such as are compiled. It holds no lock while it runs. It divides as numpy does (1/0 is inf),
    and its sums may be regrouped, so that the processor adds several terms at once: their last
    digits depend on it, and a sum that corrects its own rounding must not be compiled with this.
    """
    code: Callable[P, Compiled] = _machine_code(loop, from_python=True)
    return code


def part(loop: Callable[P, Compiled]) -> Callable[P, Compiled]:
    """As :func:`compiled`, for what none but compiled loops call: compiled in half the time."""
    code: Callable[P, Compiled] = _machine_code(loop, from_python=False)
    return code


@cache
def _machine_code(loop: Callable[P, Compiled], *, from_python: bool) -> Callable[P, Compiled]:
    import numba  # noqa: PLC0415 - slow to import

    options: dict[str, Any] = {
        "nogil": True, "error_model": "numpy", "fastmath": {"reassoc"},
        "no_cpython_wrapper": not from_python, "no_cfunc_wrapper": True,
    }  # fmt: skip

    def made(*, cache: bool) -> Callable[P, Compiled]:
        code: Callable[P, Compiled] = numba.njit(cache=cache, **options)(loop)
        return code

    try:
        return made(cache=True)
    except RuntimeError:
        # Numba found no directory that it can write to.
        return made(cache=False)
