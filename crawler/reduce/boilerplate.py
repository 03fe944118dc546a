"""The frame of a page: names of its elements, and short blocks that are not its main text.

The choice of content (:mod:`crawler.reduce.content`) and the compared text
(:mod:`crawler.reduce.main_text`) ask these functions. The frame is the part that a site repeats
around its pages (navigation, banners, sharing, consent), and the part that changes without an edit
(build stamps, counters, server names). All rules are general, without names of sites or generators.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from itertools import compress, repeat
from typing import Final, Generic, NamedTuple, TypeVar

from freshet.crawler.reduce.tree import ELEMENTS


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FRAME_ROLES: Final = frozenset(
    name[len("[role=") : -1] for name in _words(ELEMENTS["places"]["frame"])
)

_DATA: Final = tomllib.loads((files(__package__) / "boilerplate.toml").read_text("utf-8"))
FRAME_WORDS, LAYOUT_WORDS, SURE_WORDS, STATES = map(_words, _DATA["names"].values())
#: Hosts with frames that are not content, or the beginnings of paths there.
FRAME_HOSTS: Final = tuple(_DATA["hosts"]["frame"].split())
_KNOWN_WORDS: Final = FRAME_WORDS | LAYOUT_WORDS


def _patterns(parts: dict[str, str], phrases: dict[str, str]) -> Iterator[re.Pattern[str]]:
    """Yield the patterns, with the parts filled in that they and earlier parts name.

    They match what :func:`_small` returns: letters of both cases would take three times as long.
    """
    for name, text in (parts | phrases).items():
        parts[name] = re.sub("<([A-Z_]+)>", lambda found: parts[found[1]], text)
        if name in phrases:
            yield re.compile(rf"\W*(?:{parts[name]})\W*", re.VERBOSE)


_CONTROL, _STAMP, _COUNT = _patterns(_DATA["parts"], _DATA["phrases"])
#: Parts of a page that open at a click.
_OPENED: Final = re.compile(
    r"accordion|collaps|expand|faq|answer|spoiler|panel\b|region\b|\btabs?(?:\b|_)", re.IGNORECASE
)
_WORD: Final = re.compile(r"[A-Z]*[^\W\d_A-Z]+|[A-Z]+")


def is_frame_name(element_id: str | None, classes: str | None) -> bool:
    """Return whether an element's id or class names a part of the frame.

    A token counts when all its words are frame or layout words and at least one of them is
    a frame word: ``site-footer`` and ``navLink`` do, ``footnote``, ``share-price``,
    ``has-sidebar`` and ``thread-header-title`` do not. Some words suffice alone.
    """
    if element_id and _is_frame_token(element_id):
        return True
    return classes is not None and _is_frame_class(classes)


# Classes repeat over a site, ids do not: only the former are worth caching.
@lru_cache(maxsize=4096)
def _is_frame_class(classes: str) -> bool:
    return any(_is_frame_token(token) for token in classes.split())


def _is_frame_token(token: str) -> bool:
    words = [word.lower() for word in _WORD.findall(token)]
    if _KNOWN_WORDS.issuperset(words):
        return not FRAME_WORDS.isdisjoint(words)
    return words[0] not in STATES and not SURE_WORDS.isdisjoint(words)


def is_hidden(attributes: Mapping[str, str | None]) -> bool:
    """Return whether the element is marked as not shown, and no click of the reader shows it."""
    if "hidden" not in attributes and attributes.get("aria-hidden") != "true":
        return False
    # A search in the page finds it, and shows it then (HTML, section 6.1).
    if (attributes.get("hidden") or "").strip().lower() == "until-found":
        return False
    return not _OPENED.search(" ".join(filter(None, map(attributes.get, ("role", "id", "class")))))


def is_frame_role(attributes: Mapping[str, str | None]) -> bool:
    """Return whether the element's landmark role (WAI-ARIA 1.2, section 5.3.4) is frame."""
    role = attributes.get("role")
    return role is not None and role.lower() in _FRAME_ROLES


#: The most words of each, and characters of all.
_CONTROL_WORDS: Final = 8
_STAMP_WORDS: Final = 14
_MOST_CHARACTERS: Final = 200
#: Every stamp with a distance from now has one of these.
_DISTANCES: Final = (
    *(" ago", "just now", "yesterday", "today", "last ", "past ", "this "),
    *("vor ", " y a ", "hace ", "há ", " fa", " geleden", " sedan"),
)

#: Beginnings of words of a phrase, "_" for a space, and the first three characters of each.
_TELLING: Final = {
    name: frozenset(word.replace("_", " ") for word in _words(text))
    for name, text in _DATA["starts"].items()
}
_STARTS: Final = {name: frozenset(word[:3] for word in it) for name, it in _TELLING.items()}
_BEGINNINGS: Final = "".join(
    f"{word}\n" for word in sorted(_TELLING["stamps"] | _TELLING["distances"])
).encode("ascii")


#: What CLDR writes for moments in the past, by scripts/relative_times.py, with 0 for any number.
RELATIVE_TIMES: Final = "relative_times.txt"
#: What moment and date-fns write beside those, such as "gestern um 0:0".
LIBRARY_TIMES: Final = "relative_times_of_libraries.txt"
_RELATIVE: Final = [
    line
    for name in (RELATIVE_TIMES, LIBRARY_TIMES)
    for line in (files(__package__) / name).read_text("utf-8").splitlines()
]
#: A number in digits of any script; Chinese ones are letters.
_NUMBER: Final = re.compile(r"[\d\u3007一二三四五六七八九十百]+(?:[.,\u066b\u066c]\d+)*")
#: Characters around a stamp, or left out in one.
_AROUND: Final = " .,:;·•|()[]"


def with_noughts(text: str) -> str:
    """Return a text with 0 in place of each number."""
    return _NUMBER.sub("0", text)


def relative_key(small: str) -> str:
    """Return a text in lower case as a relative time is looked up: without white space."""
    return relative_keys([small])[0]


def relative_keys(small: Sequence[str]) -> list[str]:
    """Return :func:`relative_key` of each of these texts, which have no NUL."""
    keys = _NUMBER.sub("0", "".join("\0".join(small).split()).replace("’", "'")).split("\0")
    return [*map(str.strip, keys, repeat(_AROUND))]


#: No longer block is one, with digits and spaces to spare.
_MOST_RELATIVE: Final = max(map(len, _RELATIVE)) + 8
#: Without letters beyond ASCII: punctuation from U+2000 on is plain to the core as well.
_PLAIN: Final = re.compile(rb"(?:[ -~]|\xe2..)+")
_DIGITS: Final = [b"%d" % digit for digit in range(10)]


#: Bits of the compiled core, which looks for stamps as it cuts a page: most blocks cannot be one.
_BEGINS: Final = 1
_WITHIN: Final = 2
_COUNTED: Final = 4
_BEGINS_RELATIVE: Final = 8


def _relative_groups() -> Iterator[tuple[int, bytes]]:
    """Yield bits and groups of relative times; the core asks about blocks with other letters."""
    for text in map(str.encode, _RELATIVE):
        if not _PLAIN.fullmatch(text):
            continue
        if text.startswith(b"0"):
            yield _COUNTED, text.rstrip(b".")[-3:]
        else:
            start = text[:3]
            digits = _DIGITS if b"0" in start else _DIGITS[:1]
            yield from ((_BEGINS_RELATIVE, start.replace(b"0", digit)) for digit in digits)


def _groups() -> bytes:
    """Return the bits of each group of three; its index is the last five bits of each character."""
    groups = bytearray(1 << 15)
    named = zip((_BEGINS, _BEGINS, _WITHIN, _COUNTED), _STARTS.values(), strict=True)
    told = [(bit, start.encode("ascii")) for bit, starts in named for start in starts]
    for bit, (first, second, third) in (*told, *_relative_groups()):
        groups[(first & 31) << 10 | (second & 31) << 5 | third & 31] |= bit
    return bytes(groups)


class _Stamps(NamedTuple):
    """Stamps in the form for the core: groups, the most characters, and too many words.

    ``starts`` begin stamps, a line each; ``relative`` bounds the characters of relative times.
    """

    groups: bytes = _groups()
    starts: bytes = _BEGINNINGS
    characters: int = _MOST_CHARACTERS
    relative: int = _MOST_RELATIVE
    words: int = _STAMP_WORDS


STAMPS: Final = _Stamps()
#: Letters that are written for "i" and "s".
_ALIKE: Final = str.maketrans("İıſ", "iis")


def _small(block: str) -> str:
    """Return a block in lower case, of the same length."""
    return (block if block.isascii() else block.translate(_ALIKE)).lower()


def is_stamp(block: str) -> bool:
    """Return whether a short block states when, where or how often the page was made or shown.

    Such a stamp changes without an edit of the page. A price, the date of an event and a date of
    publication are content, except for a date as a distance from now: the block must begin with the
    words of a stamp and have a moment, a duration, a count or an identifier.
    """
    return are_stamps([block])[0]


def are_stamps(blocks: Sequence[str]) -> list[bool]:
    """Return whether each of these blocks :func:`is_stamp`; many at once take little longer."""
    short = _are_short(blocks, _STAMP_WORDS)
    if not any(short):
        return short
    small = _small_ones([*compress(blocks, short)])
    counted = map(str.isdecimal, [text[:1] for text in small])
    told = zip(small, relative_keys(small), counted, _begin_stamps(small), strict=True)
    found = [
        (key in _RELATIVE_KEYS and len(text) <= _MOST_RELATIVE)
        or (is_count and _COUNT.match(text) is not None)
        or (begins and _STAMP.match(text) is not None)
        for text, key, is_count, begins in told
    ]
    return _spread(found, short)


def _begin_stamps(small: Sequence[str]) -> list[bool]:
    """Return whether each of these texts begins like a stamp, or has a distance from now."""
    whole, starts = "\n".join(small), _STARTS["stamps"]
    far = [distance for distance in _DISTANCES if distance in whole]
    found = [text[:3] in starts or text[:1] == "©" for text in small]
    for distance in far:
        found = [it or distance in text for it, text in zip(found, small, strict=True)]
    return found


def _small_ones(blocks: Sequence[str]) -> list[str]:
    """Return :func:`_small` of each of these blocks, without NULs."""
    small = _small("\0".join(blocks))
    if small.count("\0") == len(blocks) - 1:
        return small.split("\0")
    return [_small(block).replace("\0", "\ufffd") for block in blocks]


#: Made at once: one by one they would take half as long again at each start.
_RELATIVE_KEYS: Final = frozenset(relative_keys(_small_ones(_RELATIVE)))


def _spread(verdicts: Iterable[bool], asked: Sequence[bool]) -> list[bool]:
    """Return the verdicts in the places of those that were asked about, and False in the others."""
    found = [False] * len(asked)
    for place, verdict in zip(compress(range(len(asked)), asked), verdicts, strict=True):
        found[place] = verdict
    return found


Said = TypeVar("Said")
#: Bytes of cached texts and their verdicts: a template's texts repeat on all of its pages.
_KEPT_BYTES: Final = 4 << 20
#: What a text takes beside its characters, as a key of a dictionary.
_KEY_BYTES: Final = 150


class Verdicts(Generic[Said]):
    """Verdicts of a function on texts; it is called once for all new texts of a page.

    A verdict takes ``each`` bytes beside its text.
    """

    def __init__(self, says: Callable[[Sequence[str]], Iterable[Said]], each: int = 0) -> None:
        self._says, self._each = says, each + _KEY_BYTES
        self._room = _KEPT_BYTES
        self._known: dict[str, Said] = {}

    def of(self, texts: Sequence[str]) -> list[Said]:
        """Return the verdict of the function on each of these texts."""
        # Other threads may begin another dictionary.
        known = self._known
        if new := [text for text in dict.fromkeys(texts) if text not in known]:
            self._room -= sum(map(len, new)) + self._each * len(new)
            if self._room < 0:
                self._room, self._known, known, new = _KEPT_BYTES, {}, {}, [*texts]
            known.update(zip(new, self._says(new), strict=True))
        return [*map(known.__getitem__, texts)]


def is_control(block: str) -> bool:
    """Return whether a short block only calls for an action of the reader, or labels one."""
    return _are_controls([block])[0]


def _are_controls(blocks: Sequence[str]) -> list[bool]:
    short = _are_short(blocks, _CONTROL_WORDS)
    matches = map(_CONTROL.fullmatch, _small_ones([*compress(blocks, short)]))
    return _spread([match is not None for match in matches], short)


_CONTROLS: Final = Verdicts(_are_controls)


def are_controls(lines: bytes) -> bytes:
    """Return 1 for each line, with a newline behind it, that :func:`is_control`, else 0."""
    return bytes(_CONTROLS.of(lines.decode().split("\n")[:-1]))


def _are_short(blocks: Sequence[str], words: int) -> list[bool]:
    spaces = map(str.count, blocks, repeat(" "))
    lengths = map(len, blocks)
    return [
        length <= _MOST_CHARACTERS and count < words
        for length, count in zip(lengths, spaces, strict=True)
    ]
