"""Compiled loops, where numba is installed.

The import of numba takes a second, and a loop that is not on disk yet some more. One solve of a
million sources saves a fiftieth of that, so a single plan never earns it back; a process that
looks after so many sources plans again and again. The rule is therefore the number of rows
alone: it does not depend on what was imported before, so neither do the last digits of a result.
Every loop has a form in numpy that gives the same result to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

#: Rows from which a compiled loop is asked for.
WORTHWHILE_ROWS = 500_000


@cache
def available() -> bool:
    """Whether loops can be compiled here."""
    return find_spec("numba") is not None


def worthwhile(rows: int) -> bool:
    """Whether so many rows are to go through a compiled loop."""
    return rows >= WORTHWHILE_ROWS and available()


def compiled(loop: Callable[P, T]) -> Callable[P, T]:
    """``loop`` as machine code for one core, compiled once a process.

    The code is kept on disk, beside the module or in the user's cache directory; where neither
    can be written, the next process compiles again.

    It must be a function of a module, written in what numba knows of Python. It divides as
    numpy does (1/0 is inf), and its sums may be regrouped, so that the processor adds several
    terms at once: their last digits depend on it, and a sum that corrects its own rounding
    must not be compiled with this.
    """
    made: Callable[P, T] = _compiled(loop)
    return made


@cache
def _compiled(loop: Callable[P, T]) -> Callable[P, T]:
    import numba  # noqa: PLC0415 - an extra, and slow to import

    def machine_code(*, cache: bool) -> Callable[P, T]:
        options = numba.njit(cache=cache, nogil=True, error_model="numpy", fastmath={"reassoc"})
        made: Callable[P, T] = options(loop)
        return made

    try:
        return machine_code(cache=True)
    except RuntimeError:
        # Numba found no directory that it can write to.
        return machine_code(cache=False)
