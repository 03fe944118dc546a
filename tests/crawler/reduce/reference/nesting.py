"""What the tags of a body make a parser do, by regular expressions: slow, and without a doubt."""

import re
from collections.abc import Set
from dataclasses import dataclass, field
from typing import Final

from freshet.crawler.reduce.tree import _CLOSES as CLOSED_BY
from freshet.crawler.reduce.tree import NAMES
from freshet.crawler.reduce.tree import _Work as Work

# The elements that are rebuilt (HTML, section 13.2.4.3), but ``a``, which is never nested.
_FORMATTING: Final = frozenset(b"b big code em font i nobr s small strike strong tt u".split())
_WORDS: Final = _FORMATTING | {b"a", b"span"}
_LEADING: Final = frozenset(b"a area frame iframe link".split())
_SWALLOW: Final = frozenset({b"select", b"frameset"})
#: Elements at once that can surely be closed.
_SURE: Final = 64

_SPACE: Final = rb"[\t\n\f\r ]"
# Possessive throughout (``*+``): what has been read is never read again.
_ATTRIBUTES: Final = rb"""(?:
    [\t\n\f\r /]++
  | [^\t\n\f\r />][^\t\n\f\r />=]*+
    (?: %(space)s*+ = %(space)s*+ (?: "[^"]*+"? | '[^']*+'? | [^\t\n\f\r >]*+ ) )?+
)*+""" % {b"space": _SPACE}
_ATTRIBUTE: Final = re.compile(
    rb"""[^\t\n\f\r />][^\t\n\f\r />=]*+
    (?: %(space)s*+ = %(space)s*+ (?: "[^"]*+"? | '[^']*+'? | [^\t\n\f\r >]*+ ) )?+"""
    % {b"space": _SPACE},
    re.VERBOSE,
)
_WHOLE: Final = re.compile(
    rb"(/?)([a-zA-Z][^\t\n\f\r />]*+) (%(attributes)s) >" % {b"attributes": _ATTRIBUTES}, re.VERBOSE
)
_TAG_AT: Final = re.compile(
    rb"</?[a-zA-Z][^\t\n\f\r />]*+ (%(attributes)s)" % {b"attributes": _ATTRIBUTES}, re.VERBOSE
)

_TAG: Final = re.compile(
    rb"""
    <(?:
      !--(?: -?> | (?: [^-]++ | -(?!-!?>) )*+ (?:--!?>)?+ )
    | [!?][^>]*+
    | (script|style|textarea|title|xmp|iframe|noembed|noframes)(?=[\t\n\f\r />]) %(attributes)s >?
        (?: [^<]++ | <(?!/\1[\t\n\f\r />]) )*+
    | (/?[a-z][^\t\n\f\r />]*+) %(attributes)s >?
    )
    """
    % {b"attributes": _ATTRIBUTES},
    re.IGNORECASE | re.VERBOSE,
)

_VOID: Final = frozenset(map(str.encode, NAMES["childless"]))
_CLOSED, _SHAPES, _IN_TABLE, _EMPTY = (
    frozenset(map(str.encode, names))
    for names in (
        NAMES["closed"], NAMES["shapes"], NAMES["in_table"], NAMES["void"] - NAMES["frames"]
    )
)  # fmt: skip
_CLOSES: Final = {
    name.encode(): frozenset(map(str.encode, closed)) for name, closed in CLOSED_BY.items()
}
_YIELDING: Final = frozenset(map(str.encode, NAMES["yielding"])).union(_CLOSES)
#: Open elements that are searched for the one that a tag ends.
_LOOK_BACK: Final = 32


def start_tags(body: bytes) -> int:
    return body.count(b"<") - body.count(b"</")


@dataclass
class _Seen:
    """What was seen of a body; ``opened`` are names, and the tags that rebuild before each."""

    work: Work = field(default_factory=lambda: Work(*7 * (0,)))
    opened: list[tuple[bytes, int]] = field(default_factory=list)
    for_good: int = 0
    rebuilding: int = 0
    swallowing: int = 0
    has_drawing: bool = False

    def add(self, **more: int) -> None:
        self.work = self.work._replace(**{k: getattr(self.work, k) + n for k, n in more.items()})

    def leave_open(self) -> None:
        self.for_good += len(self.opened)
        self.opened = []


def parser_work(body: bytes) -> Work:
    """Bound the work of a parser; of bodies that are read too often only their tags."""
    seen = _Seen()
    for found in re.finditer(rb"<([^<]*)", body):
        seen.add(tags=1)
        whole = _WHOLE.match(found[1])
        seen.add(text=len(found[1]) - (len(whole[0]) if whole else 0))
        attributes = 0
        if tag := _TAG_AT.match(body, found.start()):
            attributes = len(_ATTRIBUTE.findall(whole[3] if whole else tag[1]))
            seen.add(squares=attributes**2)
        elif not found[1].startswith((b"/", b"!", b"?")):
            continue
        name = re.match(rb"/?([a-zA-Z][^\t\n\f\r />]*)?", found[1])
        _note(seen, ((name and name[1]) or b"").lower(), ends=found[1].startswith(b"/"),
              is_tag=bool(tag), is_whole=bool(whole))  # fmt: skip
        seen.add(links=bool(attributes and name and name[0].lower() in _LEADING))
        deepest = max(seen.work.deepest, seen.for_good + len(seen.opened))
        seen.work = seen.work._replace(deepest=deepest)
    return seen.work


def _note(seen: _Seen, name: bytes, *, ends: bool, is_tag: bool, is_whole: bool) -> None:
    closes, is_void = name in _CLOSED, name in _EMPTY
    is_sure = is_whole and (ends or closes or is_void or name in _SHAPES)
    is_end = is_sure and ends and [name] == [each for each, _ in seen.opened[-1:]]
    in_table = any(each == b"table" for each, _ in seen.opened)
    is_kept = is_end or (is_sure and not ends and (in_table or name not in _IN_TABLE))
    seen.add(ignored=bool(seen.swallowing) or not is_kept)
    seen.add(left=not ends and name in _FORMATTING)
    seen.has_drawing |= not ends and name in _SHAPES
    seen.swallowing += not ends and name in _SWALLOW
    seen.rebuilding += not (name in _WORDS and (is_end if ends else is_sure))
    if is_end:
        _, before = seen.opened.pop()
        seen.add(left=-(name in _FORMATTING and before == seen.rebuilding))
        seen.swallowing -= bool(name in _SWALLOW and seen.swallowing)
    elif not is_sure or (not ends and closes and len(seen.opened) == _SURE):
        seen.leave_open()
    if ends or not is_tag:
        return
    if is_sure and closes:
        seen.opened.append((name, seen.rebuilding))
    else:
        seen.for_good += not (is_sure and is_void) or seen.has_drawing


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
