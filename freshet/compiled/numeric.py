"""Functions of the compiled core over numpy arrays: learning, valuing, bounds.

``core.h`` defines the constants, the records and the structures of arrays; :func:`record` and
:class:`Structure` read them from there.

Each function raises TypeError for an array of a wrong type or length, or one that is not
contiguous. It raises IndexError, before any change, for a row, slot, host, source or area that does
not exist, and for offsets that do not range from 0 to the length of a column. It raises MemoryError
if memory runs out, when a part may have been done.
"""

import ctypes
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, NoReturn, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from freshet.compiled import function

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Octets: TypeAlias = NDArray[np.uint8]
Singles: TypeAlias = NDArray[np.float32]
Records: TypeAlias = NDArray[np.void]

_HEADER = Path(__file__).with_name("core.h").read_text("ascii")
_BODIES = dict(re.findall(r"^struct (\w+) \{\n(.*?)^\};", _HEADER, re.MULTILINE | re.DOTALL))
_MEMBER = re.compile(r"^ {4}(?:struct )?(\w+) ([\w*, ]+);(?: /\* (\S.*) \*/)?$", re.MULTILINE)
_TYPES: Final[dict[str, DTypeLike]] = {
    "bool": np.bool_, "double": np.float64, "float": np.float32, "int16_t": np.int16,
    "int64_t": np.int64, "uint8_t": np.uint8,
}  # fmt: skip

#: The constants of ``core.h``.
CONSTANTS: Final[Mapping[str, float]] = {
    name: float(value)
    for name, value in re.findall(r"^#define (\w+) (-?[\d.]\S*)$", _HEADER, re.MULTILINE)
}


@cache
def _members(name: str) -> list[tuple[str, DTypeLike, list[list[str]] | None]]:
    """Return the members of a structure: name, type and, for a pointer, the terms of its shape."""
    found: list[tuple[str, DTypeLike, list[list[str]] | None]] = []
    for kind, names, shape in _MEMBER.findall(_BODIES[name]):
        dtype = _TYPES[kind] if kind in _TYPES else record(kind)
        terms = [each.split(" + ") for each in re.findall(r"\[(.*?)\]", shape)]
        for member in names.split(", "):
            pointed = member.removeprefix("*")
            found.append((pointed, np.dtype(dtype), terms if pointed != member else None))
    return found


@cache
def record(name: str) -> np.dtype[np.void]:
    """Return the numpy type for a structure of ``core.h`` without pointers."""
    return np.dtype([(member, dtype) for member, dtype, _ in _members(name)], align=True)


class Structure:
    """Arrays passed to C as a structure of ``core.h``; this object keeps them alive.

    Attributes:
        name: the name of the structure.
        address: its address.
        numbers: its members other than pointers.
    """

    __slots__ = ("_arrays", "_words", "address", "name", "numbers")

    def __init__(self, name: str, arrays: Any, **numbers: int) -> None:
        """Take the attributes of ``arrays`` that the structure names, and these numbers.

        Raises:
            TypeError: an array has another type or shape than the structure, is not contiguous, or
                is read-only.
        """
        self.name = name
        self.numbers = numbers
        self._arrays = []
        words = []
        for member, dtype, terms in _members(name):
            if terms is None:
                words.append(numbers[member])
                continue
            array = getattr(arrays, member)
            shape = tuple(sum(map(self._value, each)) for each in terms)
            _check(f"{name}.{member}", array, dtype, shape, written=True)
            self._arrays.append(array)
            words.append(array.ctypes.data)
        self._words = np.array(words, np.int64)
        self.address = self._words.ctypes.data

    def __reduce__(self) -> NoReturn:
        raise TypeError("addresses are of one process: copy the arrays instead")

    def _value(self, word: str) -> int:
        return (
            int(word)
            if word.isdigit()
            else self.numbers[word]
            if word in self.numbers
            else int(CONSTANTS[word])
        )


def _check(
    name: str, array: NDArray[Any], dtype: DTypeLike, shape: tuple[int, ...], *, written: bool
) -> bool:
    """Return whether an array is writable; raise TypeError if it is not as C needs it."""
    flags = array.flags
    writable = bool(flags.writeable)
    if array.shape != shape or array.dtype != dtype:
        given = f"is {array.dtype}, {array.shape}"
        raise TypeError(f"{name}: {given}; accepted is {dtype}, {shape}")
    if not flags.c_contiguous or (written and not writable):
        raise TypeError(f"{name}: is not contiguous, or cannot be written to")
    return writable


# -- calls --

_KINDS = {"i": ctypes.c_int64, "r": ctypes.c_double}
_ARRAY = re.compile(r"(\w+)(!?)\[(\w+)\]")
_address_of = (ctypes.c_char * 0).from_buffer


def _kind(word: str) -> Any:
    """Return the C type of an argument."""
    is_address = word[-1] == "]" or word[0] == "*"
    return _KINDS.get(word, ctypes.c_void_p if is_address else ctypes.c_int64)


def _step(name: str, word: str) -> tuple[str, str, np.dtype[Any] | None, bool]:
    """Return an argument's text for errors, its length, its type, and whether C writes it."""
    if it := _ARRAY.fullmatch(word):
        dtype = np.dtype(_TYPES[it[1]]) if it[1] in _TYPES else record(it[1])
        return f"{name}: {word}", it[3], dtype, bool(it[2])
    return word, word, None, False


def _function(name: str, signature: str) -> Callable[..., int]:
    """Return a C function that checks its arguments.

    Each word of the signature is an argument: ``i`` an integer, ``r`` a real number, ``*clock`` a
    structure, ``double[n]`` an array of that type, ``double![n]`` an array that C writes, or ``n``
    the length of the arrays [n], which must be equal. The function passes ``n`` itself.
    """
    words = signature.split()
    called = function(name, [*map(_kind, words)], ctypes.c_int64)
    steps = [_step(name, word) for word in words]

    def call(*given: Any) -> int:
        lengths: dict[str, int] = {}
        waiting = iter(given)
        ready: list[Any] = []
        for word, length, dtype, written in steps:
            if dtype is not None:
                value = next(waiting)
                shape = (lengths.setdefault(length, len(value)),)
                writable = _check(word, value, dtype, shape, written=written)
                # This takes a fifth of the time of array.ctypes.
                ready.append(_address_of(value) if writable else value.ctypes.data)
            elif word in lengths:
                ready.append(lengths[word])
            elif word[0] == "*":
                value = next(waiting)
                if value.name != word[1:]:
                    raise TypeError(f"{name}: {value.name} is not {word}")
                ready.append(value.address)
            else:
                ready.append(next(waiting))
        return _number(called(*ready))

    return call


def _number(result: int) -> int:
    """Return the result of C, or raise the error for a negative one."""
    if result < 0:
        if result == CONSTANTS["WRONG_INDEX"]:
            raise IndexError("a row, slot, source or host does not exist; nothing was changed")
        raise MemoryError
    return result


# -- rates, clocks and learning --

_grid_rates = _function("grid_rates", "double![n] double![n]")
#: Note visits to a site, starting with one of them; fill in the visits before. Returns their
#: number, or the number of the visit at which more room, or a fold, is needed first.
site_note = _function("site_note", "*pages *site visit![n] n i")
#: Close the current session of a site, so that the next fit learns it.
site_close = _function("site_close", "*site")
_site_fit = _function("site_fit", "*pages *site *fit float![cells] cells")
#: Add the time before a session to the likelihoods; the notes must be fitted.
site_fold = _function("site_fold", "*pages *site *fit i")
_site_readings = _function("site_readings", "*pages *site *fit float[cells] cells r i double![n] n")
_page_prospects = _function(
    "page_prospects", "page[n] n float[cells] cells double[n] double![n] double![n] double![n]"
)
_page_worth = _function(
    "page_worth", "page[n] n double[n] double[n] double[n] double[n] double[n] r r double![n]"
)
_two_of_each = _function("two_of_each", "double[n] int64_t[n] n int64_t![h] int64_t![h] h")


def grid_rates() -> tuple[Floats, Floats]:
    """Return the rates (40,) of the grid, in changes a day, and the general prior."""
    rates, prior = np.empty((2, int(CONSTANTS["POINTS"])))
    _grid_rates(rates, prior)
    return rates, prior


def site_fit(pages: Structure, site: Structure, fit: Structure, belief: Singles) -> None:
    """Fit the rates of a site's pages and its site model to the notes.

    Writes the rows of the site's pages in ``belief`` (n, 40), and ``fit``.
    """
    _site_fit(pages, site, fit, belief.reshape(-1))


def site_readings(
    pages: Structure,
    site: Structure,
    fit: Structure,
    *,
    belief: Singles,
    now: float,
    only: int,
    since: Floats,
) -> None:
    """Write the days of a site's clock since the last visits to its pages, into (n,).

    ``only`` is the row of a single page, or −1 for all pages.
    """
    _site_readings(*(pages, site, fit), belief.reshape(-1), now, only, since)


def page_prospects(page: Records, belief: Singles, since: Floats) -> tuple[Floats, Floats, Floats]:
    """Return (n,) each: the expected changes since, the rates a day, and the days of staleness."""
    hazard, rate, stale = np.empty((3, len(page)))
    _page_prospects(page, belief.reshape(-1), since, *(hazard, rate, stale))
    return hazard, rate, stale


def page_worth(
    page: Records,
    *,
    hazard: Floats,
    stale: Floats,
    jump: Floats,
    per: Floats,
    importance: Floats,
    now: float,
    longest: float,
) -> Floats:
    """Return W of each page; a page of mean importance waits at most ``longest`` days.

    All columns are (n,): ``hazard`` the changes expected since the last visit, ``stale`` the days
    of staleness, ``jump`` q, 0 without change signals, and ``per`` D.
    """
    worth = np.empty(len(page))
    _page_worth(page, *(hazard, stale, jump, per, importance), now, longest, worth)
    return worth


def two_of_each(worth: Floats, host: Ints, hosts: int) -> tuple[Ints, Ints]:
    """Return each host's two rows (hosts,) with the largest values; -1 without a row above 0."""
    first, second = np.empty((2, hosts), np.int64)
    _two_of_each(worth, host, first, second)
    return first, second


# -- claims --

#: Learn the change signals of a source (its place) on a day, in the order of their events; the last
#: argument is the number of the site's pages.
claims_receive = _function("claims_receive", "*claims i r claim[n] n i")
_claims_stale = _function("claims_stale", "*claims page[n] double[n] n r double![room] room")
#: Count the gain of a signal of a source (its place).
claims_credit = _function("claims_credit", "*claims i r")
#: Learn visits to pages of the site in order (slots; −1: without change signals), given the days of
#: the visits before and the changes expected without signals; the last argument as above.
claims_learn = _function("claims_learn", "*claims visit[n] int64_t[n] n i")
_claims_value = _function(
    "claims_value", "*claims page[n] n r r double![n] double![n] double![n] double![n]"
)
#: Raise the value (n,) of polling a source by its expected signals of a day, weighted by
#: reliability.
claims_value_polls = _function("claims_value_polls", "*claims r double![n] n")


def claims_stale(claims: Structure, page: Records, hazard: Floats, now: float) -> Floats:
    """Return the probabilities (room,) of stale copies; ``hazard`` (n,) is without signals."""
    stale = np.zeros(claims.numbers["room"])
    _claims_stale(claims, page, hazard, now, stale)
    return stale


def claims_value(
    claims: Structure,
    page: Records,
    *,
    now: float,
    turn: float,
    hazard: Floats,
    rate: Floats,
    jump: Floats,
    per: Floats,
) -> None:
    """Write y, changes a day, the addition to W and its divisor (n,), for pages with signals."""
    _claims_value(claims, page, now, turn, *(hazard, rate, jump, per))


# -- trees --

_leaf_sums = _function("leaf_sums", "*trees double[cells] cells double![rows] rows")


def leaf_sums(trees: Structure, rows: Floats) -> Floats:
    """Return for each row (rows, columns) the sum of the leaves that it reaches in the trees."""
    sums = np.empty(len(rows))
    _leaf_sums(trees, rows.ravel(), sums)
    return sums


# -- archives --

_bounds_bill = _function("bounds_bill", "*timeline int64_t[m] m double[k] k double[n] n *bill r")
_bounds_list = _function(
    "bounds_list", "*timeline double[n] n r r double![k] double![k] k int64_t![n] double![n]"
)
_bounds_relaxed = _function(
    "bounds_relaxed", "int64_t[m] m double[c] double[c] c double[n] double[n] n r i double![one]"
)


def bounds_bill(
    timeline: Structure, offsets: Ints, at: Floats, copy: Floats, bill: Structure, end: float
) -> None:
    """Add up the costs of copies until a day, see :mod:`freshet.scheduler.evaluate.bounds`.

    ``offsets`` (n + 1,) index each page's visits ``at`` (k,); ``copy`` (n,) are the visits before.
    """
    _bounds_bill(timeline, *(offsets, at, copy), bill, end)


def bounds_list(
    timeline: Structure, copy: Floats, span: tuple[float, float]
) -> tuple[Ints, Floats, Floats, Floats]:
    """Return the certain changes that copies (n,) miss between two days.

    Returns:
        their number by page (n,); their days and since when each could be seen, by page, in days
        that count; these days, (n,).
    """
    number, counted = np.empty(len(copy), np.int64), np.empty(len(copy))
    day, sight = np.empty((2, timeline.numbers["captures"]))
    total = _bounds_list(timeline, copy, *span, *(day, sight, number, counted))
    return number, day[:total], sight[:total], counted


def bounds_relaxed(
    offsets: Ints,
    *,
    day: Floats,
    since: Floats,
    end: Floats,
    importance: Floats,
    price: float,
    harmonic: bool,
) -> tuple[float, int]:
    """Return the least cost of n pages with visits at a price, and the number of visits.

    ``offsets`` (n + 1,) index each page's changes in ``day`` and ``since`` (c,); ``end`` (n,) are
    the days that count in all.
    """
    cost = np.empty(1)
    visits = _bounds_relaxed(offsets, *(day, since, end, importance), price, harmonic, cost)
    return float(cost[0]), visits


# -- search quality --

#: Fill the table of a scorer; its number of slots is a power of two above twice its terms.
scorer_begin = _function("scorer_begin", "*scorer")
_scorer_score = _function("scorer_score", "*scorer uint8_t[l] l double![q] q")
_score_rows_move = _function("score_rows_move", "*score_rows i double[n] double[n] n double![one]")


def scorer_score(scorer: Structure, text: Octets) -> Floats:
    """Return BM25 (queries,) of a page given as lines of words and spaces in UTF-8.

    0: a term is missing; −1: all terms are there, but 0.9 by the mean page's words (``per_word``)
    is 0.
    """
    scores = np.empty(scorer.numbers["queries"])
    _scorer_score(scorer, text, scores)
    return scores


def score_rows_move(rows: Structure, page: int, before: Floats, after: Floats) -> float:
    """Move a page in the rows of all queries for which its score, (n,) each, has changed.

    Returns the gain of the rows (:class:`freshet.scheduler.search_quality.ScoreTable`).
    """
    gain = np.empty(1)
    _score_rows_move(rows, page, before, after, gain)
    return float(gain[0])
