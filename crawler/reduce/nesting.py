"""Bounds on the work that a body makes for the HTML parser, from its bytes.

Lexbor is fast on human-written pages and quadratic on some others: every later block's start tag
searches past an open block element, a formatting element left open is rebuilt in every later
block, and every attribute of a tag is compared with those before it. Two checks in linear time:
:func:`is_calm` bounds the work for any order of the tags, :func:`max_depth` estimates the depth of
the tree, mostly from above; a page that deceives it meets the time limit.
"""

import tomllib
from collections.abc import Iterator
from ctypes import POINTER, byref, c_char_p, c_int64, c_size_t, c_uint64, c_void_p
from functools import partial
from importlib.resources import files
from typing import Final

from freshet.compiled import function

#: Bounds on start tags, and on start tags times formatting start tags, for a calm body.
#: Measured with Lexbor of selectolax 1.0.2: 8,000 nested ``div`` take 40 ms; 250,000
#: elements built anew take 60 ms and 100 MB.
_CALM_TAGS: Final = 8_000
_CALM_CLONES: Final = 250_000

#: A tag's attributes are compared with each other: 1,400 in 4 KiB take 5 ms. In a short body
#: there are too few of them to matter.
_SHORT_BYTES: Final = 64 * 1024
_CALM_STRETCH: Final = 4 * 1024

_DATA: Final = tomllib.loads((files(__package__) / "elements.toml").read_text("utf-8"))
#: Names of elements, relations and classes by what they have in common.
NAMES: Final = {what: frozenset(names.split()) for what, names in _DATA["sets"].items()}
_CLOSES: Final = {name: closed.split() for name, closed in _DATA["closes"].items()}
#: Elements by what the compiled core does at them: their kinds there, as bits.
_KINDS: Final = (
    (1, NAMES["childless"]),
    # They may be open between an element and the tag that ends it.
    (2, NAMES["yielding"].union(_CLOSES)),
    (4, "script style textarea title xmp iframe noembed noframes".split()),
    # Those that are rebuilt (HTML, section 13.2.4.3), but ``a``, which is never nested.
    (8, "b big code em font i nobr s small strike strong tt u".split()),
)


def _entries() -> Iterator[int]:
    """Yield the fields of each name: its letters, its own bit, those it closes, its kinds."""
    bits = {name: 1 << i for i, name in enumerate(sorted(set().union(*_CLOSES.values())))}
    for name in sorted(set().union(*(names for _, names in _KINDS)), key=_letters):
        closes = sum(bits[closed] for closed in _CLOSES.get(name, ()))
        kinds = sum(bit for bit, names in _KINDS if name in names)
        yield from (_letters(name), bits.get(name, 0), closes, kinds)


def _letters(name: str) -> int:
    return int.from_bytes(name.encode(), "little")


_TABLE: Final = tuple(_entries())
_NAMES: Final = ((c_uint64 * len(_TABLE))(*_TABLE), len(_TABLE) // 4)
_short: Final = partial(function, is_short=True)
_count_tags: Final = _short("start_tags", [c_char_p, c_size_t, POINTER(c_size_t)], c_size_t)
_max_depth: Final = _short("max_depth", [c_char_p, c_size_t, c_void_p, c_size_t], c_int64)
_left_open: Final = _short("left_open", [c_char_p, c_size_t, c_void_p, c_size_t], c_size_t)


def is_calm(body: bytes) -> bool:
    """Return whether no order of this body's tags can make a parser slow or hungry."""
    tags, stretch = _start_tags(body)
    if len(body) > _SHORT_BYTES and stretch > _CALM_STRETCH:
        return False
    if tags * tags <= _CALM_CLONES:
        return True
    if tags > _CALM_TAGS:
        return False
    # At most so many formatting elements are open when another element begins: all but those that
    # are closed before any element in which they could be rebuilt.
    return bool(tags * _left_open(body, len(body), *_NAMES) <= _CALM_CLONES)


def start_tags(body: bytes) -> int:
    """Over-count the start tags in a fraction of the time of :func:`max_depth`."""
    return _start_tags(body)[0]


def _start_tags(body: bytes) -> tuple[int, int]:
    """Return that number, and the length of the longest stretch without a "<"."""
    longest = c_size_t()
    return _count_tags(body, len(body), byref(longest)), longest.value


def max_depth(body: bytes) -> int:
    """Return the greatest number of elements open at once, according to the tags.

    Comments and the contents of ``script``, ``style`` and their like are skipped; void
    elements do not nest, nor do elements with an implied end tag in themselves. An end tag
    that matches nothing near is ignored, so that errors add to the depth.

    Raises:
        MemoryError: there is too little memory, four times the bytes of the body at worst.
    """
    depth = _max_depth(body, len(body), *_NAMES)
    if depth < 0:
        raise MemoryError(f"no memory for the depth of {len(body):,} bytes")
    return int(depth)
