"""Bounds on the work that a body makes for the HTML parser, from its bytes.

Lexbor is fast on human-written pages and quadratic on some others: a tag searches all elements
that are open, a formatting element left open is rebuilt in every later block, every attribute of a
tag is compared with those before it, and a text is copied for every tag that is ignored in it. Two
checks in linear time: :func:`is_calm` bounds the work for any order of the tags, :func:`max_depth`
estimates the depth of the tree, mostly from above; a page that deceives it meets the time limit.
"""

import tomllib
from collections.abc import Iterator
from ctypes import c_char_p, c_int64, c_size_t, c_uint64, c_void_p
from functools import partial
from importlib.resources import files
from typing import Final, NamedTuple

from freshet.compiled import function

#: Bounds on a calm body: its tags, and what they can make a parser do beyond what every body
#: costs: a tenth of a second.
_CALM_TAGS: Final = 32_000
_CALM_NS: Final = 1e8
#: Measured with Lexbor of selectolax 1.0.2: a tag searches all open elements, rebuilds formatting
#: elements, and compares each attribute with those before it; a text that follows another one is
#: added to it in another place. A link that nobody has seen costs us as much.
_SEARCH_NS: Final = 2.5
_REBUILD_NS: Final = 240.0
_COMPARE_NS: Final = 1.6
_JOIN_NS: Final = 0.15
_LINK_NS: Final = 12_000.0

#: What elements are and mean.
ELEMENTS: Final = tomllib.loads((files(__package__) / "elements.toml").read_text("utf-8"))
#: Names of elements, relations and classes by what they have in common.
NAMES: Final = {what: frozenset(names.split()) for what, names in ELEMENTS["sets"].items()}
_CLOSES: Final = {name: closed.split() for name, closed in ELEMENTS["closes"].items()}
#: Elements by what the compiled core does at them: their kinds there, as bits.
_KINDS: Final = (
    (1, NAMES["childless"]),
    # They may be open between an element and the tag that ends it.
    (2, NAMES["yielding"].union(_CLOSES)),
    (4, "script style textarea title xmp iframe noembed noframes".split()),
    # Those that are rebuilt (HTML, section 13.2.4.3), but ``a``, which is never nested.
    (8, "b big code em font i nobr s small strike strong tt u".split()),
    (16, NAMES["void"] - NAMES["frames"]),
    (32, NAMES["shapes"]),
    (64, NAMES["closed"]),
    (128, NAMES["in_table"]),
    (256, {"select", "frameset"}),
    # Those that can lead elsewhere.
    (512, "a area frame iframe link".split()),
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
_max_depth: Final = _short("max_depth", [c_char_p, c_size_t, c_void_p, c_size_t], c_int64)
_parser_work: Final = _short("parser_work", [c_char_p, c_size_t, c_void_p, c_size_t, c_void_p])


class _Work(NamedTuple):
    """Bounds on what a body can make a parser do, whatever the parser takes its bytes for.

    Its ``tags`` of both kinds, the elements that may be open at once (``deepest``; the parser may
    add twice as many), the formatting elements that may be rebuilt in others (``left``), the sum
    of the ``squares`` of the numbers of attributes that tags may have, the tags that the parser
    may have ``ignored``, so that it joins the texts around them, the bytes of ``text``, and the
    ``links`` that we read then.
    """

    tags: int
    deepest: int
    left: int
    squares: int
    ignored: int
    text: int
    links: int


def parser_work(body: bytes) -> _Work:
    """Bound the work of a parser, in linear time."""
    bounds = (c_uint64 * len(_Work._fields))()
    _parser_work(body, len(body), *_NAMES, bounds)
    return _Work(*bounds)


def is_calm(body: bytes, times: int = 1) -> bool:
    """Return whether no order of this body's tags can make a parser slow or hungry.

    ``times`` multiplies its bounds.
    """
    tags, deepest, left, squares, ignored, text, links = parser_work(body)
    ns = tags * (_SEARCH_NS * deepest + _REBUILD_NS * left) + _COMPARE_NS * squares
    ns += _JOIN_NS * ignored * text + _LINK_NS * links
    return tags <= times * _CALM_TAGS and ns <= times * _CALM_NS


def start_tags(body: bytes) -> int:
    """Over-count the start tags in a fraction of the time of :func:`max_depth`."""
    return body.count(b"<") - body.count(b"</")


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
