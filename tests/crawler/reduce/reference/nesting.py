"""What the tags of a body make a parser do, by regular expressions: slow, and without a doubt."""

import re
from collections.abc import Set
from typing import Final

from freshet.crawler.reduce.nesting import _CLOSES as CLOSED_BY
from freshet.crawler.reduce.nesting import NAMES

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

_VOID: Final = frozenset(map(str.encode, NAMES["childless"]))
_CLOSES: Final = {
    name.encode(): frozenset(map(str.encode, closed)) for name, closed in CLOSED_BY.items()
}
_YIELDING: Final = frozenset(map(str.encode, NAMES["yielding"])).union(_CLOSES)
#: Open elements that are searched for the one that a tag ends.
_LOOK_BACK: Final = 32


def start_tags(body: bytes) -> int:
    return body.count(b"<") - body.count(b"</")


def left_open(body: bytes) -> int:
    """Count the formatting elements that are not closed before any could be rebuilt in them."""
    lower = body.lower()
    return len(_FORMATTING.findall(lower)) - len(_CLOSED.findall(lower))


def max_depth(body: bytes) -> int:
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
