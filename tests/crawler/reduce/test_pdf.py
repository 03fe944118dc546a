"""PDF by digest."""

from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.reduce.other_formats import is_pdf, pdf_text
from freshet.crawler.reduce.page import is_plain, parse

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


def test_a_document_made_again_is_the_same() -> None:
    assert pdf_text(document()) == pdf_text(document(day=b"21", number=b"ff00"))


def test_another_word_is_another_document() -> None:
    assert pdf_text(document(b"Hello")) != pdf_text(document(b"Hullo"))


def test_people_see_its_size_and_that_it_is_another() -> None:
    (text,) = pdf_text(document()).texts
    assert text.startswith(f"PDF of {len(document())} bytes, digest ")


def test_it_is_read_by_its_type_and_leads_nowhere() -> None:
    page = parse(document(), URL, "Application/PDF; name=x")
    assert page.blocks == pdf_text(document())
    assert (page.encoding, len(page.links), page.title) == (None, 0, None)
    assert is_plain("application/pdf")
    assert not is_pdf("text/html")


@given(st.binary(max_size=200), st.sampled_from([b"/ModDate (", b"/ID [", b'xmp:ModifyDate="']))
def test_no_bytes_are_too_odd(odd: bytes, start: bytes) -> None:
    assert len(pdf_text(odd + start + odd)) == 1
