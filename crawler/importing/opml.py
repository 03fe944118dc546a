"""The sites of an OPML outline, however deeply it is nested.

A document type declaration ends the reading before an entity could be declared.
"""

from __future__ import annotations

from typing import Final
from xml.parsers import expat

from freshet.crawler.importing.entries import Entry, Site, Skipped, Unreadable

OPML_MAX_BYTES: Final = 16 * 1024 * 1024


def read_opml(data: bytes) -> list[Entry]:
    """The outlines that name a page or a feed, in the order of the document.

    Raises:
        Unreadable: it is not well-formed, not OPML, too large, or declares a document type.
    """
    if len(data) > OPML_MAX_BYTES:
        raise Unreadable(f"larger than {OPML_MAX_BYTES // 1024**2} MiB")
    outlines = _Outlines()
    try:
        outlines.parser.Parse(data.lstrip(), True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise Unreadable(f"line {error.lineno}: not well-formed XML: {reason}") from error
    except (LookupError, ValueError) as error:
        # Of an encoding that is not known, or not this document's.
        raise Unreadable(f"not read: {error}") from error
    return outlines.found


class _Outlines:
    """Takes the outlines from the parser."""

    def __init__(self) -> None:
        self.found: list[Entry] = []
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.StartDoctypeDeclHandler = self._refuse
        self.parser.StartElementHandler = self._start
        self._is_opml = False

    def _refuse(self, *_declaration: object) -> None:
        line = self.parser.CurrentLineNumber
        raise Unreadable(f"line {line}: a document type declaration, which is refused")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if not self._is_opml and name.lower() != "opml":
            raise Unreadable(f"XML, but not OPML: <{name[:40]}>")
        self._is_opml = True
        if name.lower() == "outline":
            values = {key.lower(): value.strip() for key, value in attributes.items()}
            self._take(values, f"line {self.parser.CurrentLineNumber}")

    def _take(self, values: dict[str, str], where: str) -> None:
        name = values.get("title") or values.get("text") or ""
        # The page before its feed, which a crawl of the page finds.
        url = values.get("htmlurl") or values.get("xmlurl") or values.get("url")
        if url:
            lost = ("categories",) if values.get("category") else ()
            self.found.append(Site(where, url, name, lost=lost))
        elif values.get("type"):
            self.found.append(Skipped(where, name, f"of type {values['type'][:40]}, without a URL"))
