"""Bounds on the work that a body makes for the HTML parser, from its bytes.

Lexbor is fast on human-written pages and quadratic on some others: every later block's start tag
searches past an open block element, a formatting element left open is rebuilt in every later
block, and every attribute of a tag is compared with those before it. Two checks in linear time:
:func:`is_calm` bounds the work for any order of the tags, :func:`max_depth` estimates the depth of
the tree, mostly from above; a page that deceives it meets the time limit.
"""

import re
import tomllib
from collections.abc import Set
from importlib.resources import files
from typing import Final

#: Bounds on start tags, and on start tags times formatting start tags, for a calm body.
#: Measured with Lexbor of selectolax 1.0.2: 8,000 nested ``div`` take 40 ms; 250,000
#: elements built anew take 60 ms and 100 MB.
_CALM_TAGS: Final = 8_000
_CALM_CLONES: Final = 250_000

#: A tag's attributes are compared with each other: 1,400 in 4 KiB take 5 ms. In a short body
#: there are too few of them to matter.
_SHORT_BYTES: Final = 64 * 1024
_CALM_STRETCH: Final = 4 * 1024

# The elements that are rebuilt (HTML, section 13.2.4.3), but ``a``, which is never nested.
_NAMES: Final = rb"b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u"
_FORMATTING: Final = re.compile(rb"<(?:%s)[\t\n\f\r />]" % _NAMES)
# Those that are closed before any element in which they could be rebuilt. Attributes
# count in their strict form alone, in which the end of the tag is unambiguous.
_STRICT: Final = rb"""(?:
    [\t\n\f\r ]++ [a-z][-\w:.]*+ (?: = (?: "[^"<>]*+" | '[^'<>]*+' | [^\t\n\f\r "'<>=`]++ ) )?+
)*+[\t\n\f\r ]*+"""
_CLOSED: Final = re.compile(
    rb"<(%(names)s)%(strict)s> (?: [^<]++ | <(?:span|a)%(strict)s> | </(?:span|a)> )*+ </\1>"
    % {b"names": _NAMES, b"strict": _STRICT},
    re.VERBOSE,
)

_SPACE: Final = rb"[\t\n\f\r ]"
# Possessive throughout (``*+``): what has been read is never read again.
_ATTRIBUTES: Final = rb"""(?:
    [\t\n\f\r /]++
  | [^\t\n\f\r />][^\t\n\f\r />=]*+
    (?: %(space)s*+ = %(space)s*+ (?: "[^"]*+"? | '[^']*+'? | [^\t\n\f\r >]*+ ) )?+
)*+>?""" % {b"space": _SPACE}
_TAG: Final = re.compile(
    rb"""
    <(?:
      !--(?: -?> | (?: [^-]++ | -(?!-!?>) )*+ (?:--!?>)?+ )
    | [!?][^>]*+
    | (script|style|textarea|title|xmp|iframe|noembed|noframes)(?=[\t\n\f\r />]) %(attributes)s
        (?: [^<]++ | <(?!/\1[\t\n\f\r />]) )*+
    | (/?[a-z][^\t\n\f\r />]*+) %(attributes)s
    )
    """
    % {b"attributes": _ATTRIBUTES},
    re.IGNORECASE | re.VERBOSE,
)

_DATA: Final = tomllib.loads((files(__package__) / "elements.toml").read_text("utf-8"))
#: Names of elements, relations and classes by what they have in common.
NAMES: Final = {what: frozenset(names.split()) for what, names in _DATA["sets"].items()}
_VOID: Final = frozenset(map(str.encode, NAMES["childless"]))
_CLOSES: Final = {
    name.encode(): frozenset(closed.encode().split()) for name, closed in _DATA["closes"].items()
}
_YIELDING: Final = frozenset(map(str.encode, NAMES["yielding"])).union(_CLOSES)
#: Open elements that are searched for the one that a tag ends.
_LOOK_BACK: Final = 32


def is_calm(body: bytes) -> bool:
    """Return whether no order of this body's tags can make a parser slow or hungry."""
    if len(body) > _SHORT_BYTES and max(map(len, body.split(b"<"))) > _CALM_STRETCH:
        return False
    tags = start_tags(body)
    if tags * tags <= _CALM_CLONES:
        return True
    if tags > _CALM_TAGS:
        return False
    # At most so many formatting elements are open when another element begins.
    lower = body.lower()
    left_open = len(_FORMATTING.findall(lower)) - len(_CLOSED.findall(lower))
    return tags * left_open <= _CALM_CLONES


def start_tags(body: bytes) -> int:
    """Over-count the start tags in a hundredth of the time of :func:`max_depth`."""
    return body.count(b"<") - body.count(b"</")


def max_depth(body: bytes) -> int:
    """Return the greatest number of elements open at once, according to the tags.

    Comments and the contents of ``script``, ``style`` and their like are skipped; void
    elements do not nest, nor do elements with an implied end tag in themselves. An end tag
    that matches nothing near is ignored, so that errors add to the depth.
    """
    opened: list[bytes] = []
    deepest = 0
    for match in _TAG.finditer(body):
        tag = match[2]
        if tag is None:
            continue
        name = tag.lower()
        if name.startswith(b"/"):
            _close(opened, {name[1:]}, most=1)
        elif name not in _VOID:
            if name in _CLOSES:
                _close(opened, _CLOSES[name], most=_LOOK_BACK)
            opened.append(name)
            deepest = max(deepest, len(opened))
    return deepest


def _close(opened: list[bytes], names: Set[bytes], *, most: int) -> None:
    """Close the nearest ``most`` elements of these names, each with all that is open in it."""
    for i in range(len(opened) - 1, max(-1, len(opened) - 1 - _LOOK_BACK), -1):
        if opened[i] in names:
            del opened[i:]
            most -= 1
            if not most:
                return
        elif opened[i] not in _YIELDING:
            return
