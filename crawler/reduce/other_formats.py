"""JSON and PDF as text.

JSON: each value is a block, its place the path of keys that leads to it. Consequence: neither
white space nor the order of an object's keys is a change (RFC 8259, section 4).

PDF: its paragraphs, where the extra ``pdf`` is installed and they can be read. Else one digest
without the time and the identifier that many programs stamp on each copy (ISO 32000-1, sections
14.3 and 14.4), outside compressed streams.
"""

import json
import re
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import replace
from hashlib import blake2b
from importlib.util import find_spec
from typing import Final
from unicodedata import normalize

from freshet.crawler.reduce.markup import ROOT, Blocks, alike, below

#: Documents with more values are compared by their lines.
_MOST_VALUES = 20_000


def media_type(content_type: str | None) -> str:
    """Return the lower-case media type of a Content-Type header; default HTML."""
    return (content_type or "text/html").partition(";")[0].strip().lower()


def is_json(content_type: str | None) -> bool:
    """Return whether a Content-Type is that of a JSON document (RFC 6839, section 3.1)."""
    subtype = media_type(content_type).partition("/")[2]
    return subtype == "json" or subtype.endswith("+json")


def json_text(text: str) -> Blocks | None:
    """Return the values of a document as blocks ``key: value``, or None if it is unreadable."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    found: list[tuple[str, int]] = []
    pending: list[tuple[str, int, object]] = [("", ROOT, document)]
    while pending and len(found) <= _MOST_VALUES:
        key, place, value = pending.pop()
        if isinstance(value, dict):
            members = sorted(value.items(), reverse=True)
            pending += [(k, below(place, k), v) for k, v in members]
        elif isinstance(value, list):
            pending += [(key, below(place, "[]"), v) for v in reversed(value)]
        else:
            shown = value if isinstance(value, str) else json.dumps(value)
            found.append((" ".join(f"{key}: {shown}".split()), place))
    if pending or not found:
        return None
    texts, places = zip(*found, strict=True)
    return replace(alike(texts, "text", ROOT), places=places)


# -- pdf ---------------------------------------------------------------------

#: Pages that are read, and the share of a page's usual width of lines that ends no paragraph.
_MOST_PAGES: Final = 2_000
_FULL_LINE: Final = 0.75
_PAGE_NUMBER: Final = re.compile(r"[–—-]?\s*(?:\d{1,4}|[ivxlc]{1,7})\s*[–—-]?")
_BULLET: Final = re.compile(r"[•‣▪◦·–—*-]\s|\(?(?:\d{1,3}|[a-z])[.)]\s")
_TYPES: Final = frozenset({"application/pdf", "application/x-pdf"})
_STRING: Final = rb"(?:\((?>(?:[^()\\]|\\.)*)\)|<[0-9A-Fa-f\s]*+>)"
_STAMP: Final = re.compile(
    rb"""
      /(?:CreationDate|ModDate)\s*+%(string)s
    | /ID\s*+\[(?>(?:\s*+%(string)s)+)\s*+\]
    | <(xmp:(?:Create|Modify|Metadata)Date|xmpMM:(?:Document|Instance)ID)>[^<]*+</\1>
    | \b(?:xmp:(?:Create|Modify|Metadata)Date|xmpMM:(?:Document|Instance)ID)="[^"]*+"
    """
    % {b"string": _STRING},
    re.VERBOSE | re.DOTALL,
)


def is_pdf(media_type: str) -> bool:
    """Return whether a lower-case media type is that of PDF (RFC 8118)."""
    return media_type in _TYPES


def reads_pdf() -> bool:
    """Return whether the text of PDF can be read: the extra ``pdf`` is installed."""
    return find_spec("pypdfium2") is not None


def pdf_text(body: bytes) -> Blocks:
    """Return the paragraphs of a document, or if there is no text, its size and its digest."""
    if found := read_pdf(body)[0]:
        return alike(found, "paragraph", below(ROOT, "pdf"))
    digest = blake2b(_STAMP.sub(b"", body), digest_size=8).hexdigest()
    text = f"PDF of {len(body):,} bytes, digest {digest}"
    return alike((text,), "text", below(ROOT, "pdf"))


def read_pdf(body: bytes) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """Return the paragraphs of a document, and what it says of itself (``Title``, ``Author`` …).

    Both are empty if it cannot be read; one that shows pictures only has no paragraphs. PDF knows
    lines at places only: a paragraph ends with a line that is shorter than most, and a mark of a
    list begins one. Numbers of pages are left out. The reader is compiled code: a hostile body must
    be read in the parser's process.
    """
    if not reads_pdf():
        return (), {}
    from pypdfium2 import PdfDocument, PdfiumError  # noqa: PLC0415  # an extra

    found, said = [""], dict[str, str]()
    try:
        with closing(PdfDocument(body)) as document:
            # It fails at text that is no Unicode.
            with suppress(UnicodeDecodeError):
                said = document.get_metadata_dict()
            for number in range(min(len(document), _MOST_PAGES)):
                text = document[number].get_textpage().get_text_bounded()
                lines = [line for each in text.splitlines() if (line := " ".join(each.split()))]
                usual = sorted(map(len, lines))[: 1 + len(lines) * 4 // 5]
                for line in lines:
                    if _PAGE_NUMBER.fullmatch(line) and line in {lines[0], lines[-1]}:
                        continue
                    if _BULLET.match(line):
                        found.append("")
                    found[-1] = f"{found[-1]} {line}" if found[-1] else line
                    if len(line) < _FULL_LINE * usual[-1]:
                        found.append("")
    except PdfiumError:
        return (), {}
    # The sign is that of a hyphen at the end of a line.
    texts = (normalize("NFC", re.sub("\x02 ?", "", text)) for text in found)
    return tuple(text for text in texts if text and not text.isspace()), said
