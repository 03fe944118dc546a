"""YAML: its values as written; comments, quotation marks and styles do not matter.

No objects are made: only the events of the parser are read. An alias of a text is that text, one of
a map or a list is its name, so that no alias makes a file grow.
"""

from collections.abc import Iterator
from typing import Final

from freshet.crawler.reduce.charset import decode
from freshet.crawler.reduce.formats import MOST_VALUES, Body
from freshet.crawler.reduce.formats.plain import of_text
from freshet.crawler.reduce.formats.values import leaves

#: Most parts of a file, and most nested maps and lists: for each part libyaml checks all open ones.
_MOST_EVENTS: Final = 5 * MOST_VALUES
_LEVELS: Final = 100


def read(body: bytes, content_type: str | None) -> Body:
    """Return the values of all documents in a file; one that cannot be read is lines."""
    text, encoding = decode(body, content_type)
    document = _document(text)
    blocks = leaves(document) if isinstance(document, dict | list) else None
    return of_text(text, encoding) if blocks is None else Body(encoding, blocks=blocks)


def _document(text: str) -> object:
    """Return maps, lists and texts, None if it is not YAML, or too long."""
    import yaml  # noqa: PLC0415  # slow to load, and most crawls meet none

    try:
        found = list(_documents(text))
    except (yaml.YAMLError, RecursionError, ValueError):
        return None
    return found[0] if len(found) == 1 else found


class _TooLong(ValueError):
    """The file has more parts than are read."""


class _Open:
    """A map or a list that is open."""

    def __init__(self, *, is_map: bool) -> None:
        self.value: dict[str, object] | list[object] = {} if is_map else []
        #: The key of the next value in a map.
        self._key: str | None = None

    def add(self, value: object) -> None:
        if isinstance(self.value, list):
            self.value.append(value)
        elif self._key is None:
            self._key = value if isinstance(value, str) else repr(value)
        else:
            self.value[self._key], self._key = value, None


def _documents(text: str) -> Iterator[object]:
    import yaml  # noqa: PLC0415

    # The loader in C, which the wheels have, takes a tenth of the time.
    events = yaml.parse(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    texts: dict[str | None, str] = {}
    opened: list[_Open] = []
    for number, event in enumerate(events):
        if number > _MOST_EVENTS or len(opened) > _LEVELS:
            raise _TooLong
        value: object
        match event:
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                opened.append(_Open(is_map=isinstance(event, yaml.MappingStartEvent)))
                continue
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                value = opened.pop().value
            case yaml.ScalarEvent():
                value = texts[event.anchor] = event.value
            case yaml.AliasEvent():
                value = texts.get(event.anchor, f"*{event.anchor}")
            case _:
                continue
        if not opened:
            yield value
        else:
            opened[-1].add(value)
