"""Formats by the registry: JSON and PDF."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.reduce.blocks import Blocks
from freshet.crawler.reduce.document import Document
from freshet.crawler.reduce.document import document as read_document
from freshet.crawler.reduce.formats import pdf
from freshet.crawler.reduce.formats.values import leaves
from freshet.crawler.reduce.page import ParsedPage, parse
from freshet.crawler.reduce.parser_process import Parser

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=10,
)


def json_text(text: str) -> Blocks | None:
    return leaves(json.loads(text))


def pdf_text(body: bytes) -> Blocks:
    return pdf.read(body, None).blocks


def test_values_are_blocks_with_their_keys_in_the_order_of_the_keys() -> None:
    found = json_text('{"b": [1, 2.50], "a": {"x": "two  words", "y": null}}')
    assert found is not None
    assert found.texts == ("x: two words", "y: null", "b: 1", "b: 2.5")
    assert len(set(found.places)) == 3
    assert found.places[2] == found.places[3]
    # White space and the order of keys are no difference.
    assert json_text('{"a":1,"b":2}') == json_text('{ "b": 2,\n "a": 1 }')


def test_what_is_no_json_or_says_nothing_is_left_to_others() -> None:
    for text in ("{broken", "[]", "[" * 100_000, json.dumps(list(range(30_000)))):
        assert parse(text.encode(), URL, "application/json").blocks.texts == (text,)


def test_a_json_answer_is_parsed_by_its_values_and_a_broken_one_by_its_paragraphs() -> None:
    url, mime = "https://example.org/data", "application/ld+json; charset=utf-8"
    assert parse(b'{"n": 1}', url, mime).blocks.texts == ("n: 1",)
    assert parse(b"{n: 1}", url, mime).blocks.texts == ("{n: 1}",)


@given(VALUES)
def test_any_document_can_be_read(value: object) -> None:
    found = json_text(json.dumps(value))
    assert found is None or len(found.texts) == len(found.places) == len(found.kinds)


# -- pdf -----------------------------------------------------------------------------

URL = "https://example.org/paper.pdf"


def document(text: bytes = b"Hello", day: bytes = b"01", number: bytes = b"ab12") -> bytes:
    return b"""%%PDF-1.4
1 0 obj << /Title (A \\(true\\) paper) /CreationDate (D:202611%(day)s120000Z)
 /ModDate(D:202611%(day)s120000Z) /Producer (A tool \\) of 2026) >> endobj
2 0 obj << /Length %(size)d >> stream
(%(text)s) Tj
endstream endobj
3 0 obj << /Type /Metadata >> stream
<x:xmpmeta xmp:ModifyDate="2026-11-%(day)s"><xmp:CreateDate>2026-11-%(day)s</xmp:CreateDate>
<xmpMM:InstanceID>uuid:%(number)s</xmpMM:InstanceID></x:xmpmeta>
endstream endobj
trailer << /Root 1 0 R /ID [<%(number)s> <%(number)s>] >>
%%%%EOF
""" % {b"text": text, b"size": len(text), b"day": day, b"number": number}


def test_a_pdf_without_text_is_the_same_when_made_again_and_another_by_a_word() -> None:
    assert pdf_text(document()) == pdf_text(document(day=b"21", number=b"ff00"))
    assert pdf_text(document(b"Hello")) != pdf_text(document(b"Hullo"))
    (text,) = pdf_text(document()).texts
    assert text.startswith(f"PDF of {len(document())} bytes, digest ")


def test_it_is_read_by_its_type_and_leads_nowhere() -> None:
    page = parse(document(), URL, "Application/PDF; name=x")
    assert page.blocks == pdf_text(document())
    assert (page.encoding, len(page.links), page.title) == (None, 0, None)


@given(st.binary(max_size=200), st.sampled_from([b"/ModDate (", b"/ID [", b'xmp:ModifyDate="']))
def test_no_bytes_are_too_odd(odd: bytes, start: bytes) -> None:
    assert len(pdf_text(odd + start + odd)) == 1


def pdf_of(*pages: list[str]) -> bytes:
    """Return a document of pages with these lines, in Helvetica."""
    kids = " ".join(f"{4 + 2 * i} 0 R" for i in range(len(pages)))
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Count {len(pages)}/Kids[{kids}]/MediaBox[0 0 595 842]>>",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    for i, lines in enumerate(pages):
        text = f"BT /F 9 Tf 14 TL 40 780 Td {' '.join(f'({line}) Tj T*' for line in lines)} ET"
        objects += [
            f"<</Type/Page/Parent 2 0 R/Resources<</Font<</F 3 0 R>>>>/Contents {5 + 2 * i} 0 R>>",
            f"<</Length {len(text)}>>\nstream\n{text}\nendstream",
        ]
    body = "".join(f"{i} 0 obj\n{each}\nendobj\n" for i, each in enumerate(objects, 1))
    return f"%PDF-1.4\n{body}trailer\n<</Root 1 0 R>>\n%%EOF\n".encode()


def test_a_pdf_with_text_is_its_paragraphs() -> None:
    first = [
        "A line that goes on over the width of the page", "and ends here.", "- one", "- two", "7"
    ]  # fmt: skip
    found = pdf_text(pdf_of(first, ["Its last paragraph stands on the second page", "alone.", "8"]))
    assert found.texts == (
        "A line that goes on over the width of the page and ends here.",
        "- one",
        "- two",
        "Its last paragraph stands on the second page alone.",
    )
    assert set(found.kinds) == {"paragraph"}


def test_without_the_extra_a_pdf_is_its_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf, "reads_pdf", lambda: False)
    (text,) = pdf_text(pdf_of(["Some text"])).texts
    assert text.startswith("PDF of ")


async def test_the_text_of_a_pdf_is_read_in_the_process_and_has_a_version_of_its_own() -> None:
    parser = Parser()
    assert parser.text_version(URL, "application/pdf") == parser.text_version(URL) + "+pdf"
    found = await parser.parse(pdf_of(["Some text"]), URL, "application/pdf")
    assert isinstance(found, ParsedPage)
    assert found.blocks.texts == ("Some text",)
    assert parser._first._process is not None
    document = await parser.document(pdf_of(["Some <text>"]), URL, "application/pdf")
    assert isinstance(document, Document)
    assert (document.blocks, document.html) == (("Some <text>",), "<p>Some &lt;text&gt;</p>")
    await parser.close()


@pytest.mark.parametrize(
    ("title", "read"),
    [(b"(A  report)", "A report"), (b"<FEFF00C40000>", "Ä"), (b"<FEFFD800>", None)],
)
def test_a_pdf_says_its_title_and_author(title: bytes, read: str | None) -> None:
    body = pdf_of(["Some text"]).replace(b"/Root", b"/Info 9 0 R/Root")
    info = b"9 0 obj\n<</Title %s/Author(Ann Bee)>>\nendobj\ntrailer" % title
    found = read_document(body.replace(b"trailer", info), URL, "application/pdf")
    assert (found.title, found.author) == (read, "Ann Bee" if read else None)
    assert found.blocks == ("Some text",)


@given(st.binary())
def test_any_bytes_after_the_beginning_of_a_pdf_are_read(rest: bytes) -> None:
    assert len(pdf_text(b"%PDF-1.4\n" + rest)) >= 1
