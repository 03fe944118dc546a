"""PDF: its paragraphs, where the extra ``pdf`` is installed and they can be read.

Else one digest without the time and the identifier that many programs stamp on each copy (ISO
32000-1, sections 14.3 and 14.4), outside compressed streams.
"""

import re
from collections.abc import Mapping
from contextlib import closing, suppress
from hashlib import blake2b
from typing import Final
from unicodedata import normalize

from freshet.crawler.reduce.blocks import ROOT, Blocks, alike, below
from freshet.crawler.reduce.formats import Body, reads_pdf

#: Pages that are read, and the share of a page's usual width of lines that ends no paragraph.
_MOST_PAGES: Final = 2_000
_FULL_LINE: Final = 0.75
_PAGE_NUMBER: Final = re.compile(r"[–—-]?\s*(?:\d{1,4}|[ivxlc]{1,7})\s*[–—-]?")
_BULLET: Final = re.compile(r"[•‣▪◦·–—*-]\s|\(?(?:\d{1,3}|[a-z])[.)]\s")
_NAMES: Final = ("Title", "Author")
_PLACE: Final = below(ROOT, "pdf")
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


def read(body: bytes, _content_type: str | None) -> Body:
    """Return the paragraphs of a document, or without text its size and digest."""
    paragraphs, said = read_pdf(body)
    names = (" ".join(said.get(name, "").replace("\0", " ").split()) for name in _NAMES)
    title, author = (name or None for name in names)
    blocks = alike(paragraphs, "paragraph", _PLACE) if paragraphs else _digest(body)
    return Body(None, blocks=blocks, shown="\n\n".join(paragraphs), title=title, author=author)


def _digest(body: bytes) -> Blocks:
    digest = blake2b(_STAMP.sub(b"", body), digest_size=8).hexdigest()
    return alike((f"PDF of {len(body):,} bytes, digest {digest}",), "text", _PLACE)


def read_pdf(body: bytes) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """Return the paragraphs of a document, and its metadata (``Title``, ``Author`` …).

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
            # It fails at text that is not Unicode.
            with suppress(UnicodeDecodeError):
                said = document.get_metadata_dict()
            for number in range(min(len(document), _MOST_PAGES)):
                _add_page(found, document[number].get_textpage().get_text_bounded())
    except PdfiumError:
        return (), {}
    # The character marks a hyphen at the end of a line.
    texts = (normalize("NFC", re.sub("\x02 ?", "", text)) for text in found)
    return tuple(text for text in texts if text and not text.isspace()), said


def _add_page(found: list[str], text: str) -> None:
    """Add the paragraphs of a page; its first line may go on with the last paragraph found."""
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
