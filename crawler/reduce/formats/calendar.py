"""Calendars (iCalendar, RFC 5545): each property is a block, its place the event that has it.

What servers stamp on each copy does not count: DTSTAMP, SEQUENCE, LAST-MODIFIED and PRODID.
"""

import re
from dataclasses import dataclass, field
from typing import Final
from unicodedata import normalize

from freshet.crawler.reduce.blocks import ROOT, Blocks, below
from freshet.crawler.reduce.charset import decode
from freshet.crawler.reduce.formats import MOST_VALUES, Body
from freshet.crawler.reduce.formats.plain import of_text
from freshet.crawler.reduce.formats.values import as_blocks

_STAMPS: Final = frozenset({"DTSTAMP", "SEQUENCE", "LAST-MODIFIED", "PRODID"})
#: They identify an event; differing repetitions of one event have the same UID.
_IDENTITY: Final = frozenset({"UID", "RECURRENCE-ID"})
#: Components in each other; the standard has three.
_LEVELS: Final = 8
#: A line continues in the next one if that begins with white space (section 3.1).
_FOLD: Final = re.compile(r"(?:\r\n?|\n)[ \t]")
#: A name, parameters with quoted values that may contain colons, and a value.
_PROPERTY: Final = re.compile(r"""([\w-]++)((?>(?:;(?>(?:"[^"]*+"|[^":])*))?)):(.*)""")
#: Section 3.3.11.
_ESCAPE: Final = re.compile(r"\\([nN,;\\])")


def read(body: bytes, content_type: str | None) -> Body:
    """Return the properties of a calendar, or the lines of another text."""
    text, encoding = decode(body, content_type)
    blocks = _properties(_FOLD.sub("", text))
    return of_text(text, encoding) if blocks is None else Body(encoding, blocks=blocks)


@dataclass(slots=True)
class _Component:
    """A part of a calendar, such as an event: its place, and where its properties begin.

    ``identity`` has the names and values that identify it.
    """

    place: int
    start: int
    identity: list[str] = field(default_factory=list)

    def read(self, name: str, parameters: str, value: str) -> tuple[str, int]:
        """Return a property in the form for comparison, and its place."""
        if name in _IDENTITY:
            self.identity.append(f"{name}:{value}")
        words = f"{name}{parameters}: {_ESCAPE.sub(_unescaped, value)}".split()
        return normalize("NFC", " ".join(words)), self.place

    def end(self, found: list[tuple[str, int]]) -> None:
        """Move the properties to a separate place if the component has an identity."""
        if self.identity:
            own, place = below(self.place, " ".join(sorted(self.identity))), self.place
            its = found[self.start :]
            found[self.start :] = [(said, own if at == place else at) for said, at in its]


def _properties(text: str) -> Blocks | None:
    found: list[tuple[str, int]] = []
    #: The components that are open.
    opened: list[_Component] = []
    for line in text.splitlines():
        match = _PROPERTY.match(line)
        if match is None:
            continue
        name, parameters, value = match[1].upper(), match[2], match[3].strip()
        if name == "BEGIN":
            above = opened[-1].place if opened else ROOT
            opened.append(_Component(below(above, value.upper()), len(found)))
        elif not opened:
            # The text before is not a calendar.
            return None
        elif name == "END":
            opened.pop().end(found)
        elif name not in _STAMPS:
            found.append(opened[-1].read(name, parameters, value))
        if len(found) > MOST_VALUES or len(opened) > _LEVELS:
            return None
    return as_blocks(found)


def _unescaped(escape: re.Match[str]) -> str:
    return " " if escape[1] in "nN" else escape[1]
