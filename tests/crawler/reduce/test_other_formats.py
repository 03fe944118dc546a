"""JSON documents as blocks, and PDF by digest."""

import json

from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.reduce.other_formats import is_json, is_pdf, json_text, pdf_text
from freshet.crawler.reduce.page import is_plain, parse

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=10,
)


def test_values_are_blocks_with_their_keys_in_the_order_of_the_keys() -> None:
    found = json_text('{"b": [1, 2.50], "a": {"x": "two  words", "y": null}}')
    assert found is not None
    assert found.texts == ("x: two words", "y: null", "b: 1", "b: 2.5")
    assert len(set(found.places)) == 3
    assert found.places[2] == found.places[3]


def test_white_space_and_the_order_of_keys_are_no_difference() -> None:
    assert json_text('{"a":1,"b":2}') == json_text('{ "b": 2,\n "a": 1 }')


def test_what_is_no_json_or_says_nothing_is_left_to_others() -> None:
    assert json_text("{broken") is None
    assert json_text("[]") is None
    assert json_text("[" * 100_000) is None
    assert json_text(json.dumps(list(range(30_000)))) is None


def test_a_json_answer_is_parsed_by_its_values_and_a_broken_one_by_its_paragraphs() -> None:
    url, mime = "https://example.org/data", "application/ld+json; charset=utf-8"
    assert parse(b'{"n": 1}', url, mime).blocks.texts == ("n: 1",)
    assert parse(b"{n: 1}", url, mime).blocks.texts == ("{n: 1}",)


def test_json_is_known_by_its_media_type() -> None:
    assert is_json("application/json")
    assert is_json("application/FEED+JSON; charset=utf-8")
    assert not is_json("text/html")
    assert not is_json(None)


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
