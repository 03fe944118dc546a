"""XHTML by XML's rules, and the values of other XML."""

from collections.abc import Sequence
from difflib import unified_diff

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.reduce.document import document
from freshet.crawler.reduce.formats import MOST_VALUES
from freshet.crawler.reduce.page import ParsedPage, parse
from freshet.crawler.reduce.parser_process import Parser

URL = "https://h.example/rates.xml"
XHTML = "application/xhtml+xml"
REST = "<h1>Opening hours</h1><p>We are open on <a href='/days'>all days</a>.</p>"
SHOWN = ("Opening hours", "We are open on all days.")


def page(markup: str | bytes, content_type: str = XHTML) -> ParsedPage:
    body = markup if isinstance(markup, bytes) else markup.encode()
    return parse(body, URL, content_type)


def xhtml(head: str = "", body: str = "", rest: str = REST) -> str:
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 '
        'Strict//EN" "http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd">\n'
        f'<html xmlns="http://www.w3.org/1999/xhtml" xml:lang="de"><head>{head}</head>'
        f"<body>{body}{rest}</body></html>"
    )


# -- xhtml -------------------------------------------------------------------

SELF_CLOSED = [
    "<title/>",
    '<script src="a.js"/>',
    "<style/>",
    '<script type="text/javascript" />',
    '<style type="text/css"/><title/>',
    "<noscript/>",
    "<template/>",
    "<object/>",
    '<script src="a.js"/><script src="b.js"/>',
    "<iframe/>",
]
IN_BODY = [
    "<textarea/>",
    "<iframe/>",
    "<script/>",
    "<title/>",
    "<div hidden='hidden'/>",
    "<nav/>",
    "<aside class='sidebar'/>",
    "<footer/>",
    "<select/>",
    "<button/>",
    "<noframes/>",
    "<xmp/>",
    "<template/>",
    "<svg xmlns='http://www.w3.org/2000/svg'><title/><path d=''/></svg>",
    "<plaintext/>",
    "<noembed/>",
    "<form><textarea rows='3'/></form>",
    "<style/>",
    "<video/>",
]


@pytest.mark.parametrize("kind", [XHTML, "text/xml", "application/xml; charset=utf-8"])
@pytest.mark.parametrize("element", SELF_CLOSED)
def test_a_self_closed_element_of_the_head_swallows_nothing(element: str, kind: str) -> None:
    found = page(xhtml(head=element), kind)
    assert found.blocks.texts == SHOWN
    assert found.links.fetch_urls == ("https://h.example/days",)


@pytest.mark.parametrize("element", IN_BODY)
def test_a_self_closed_element_of_the_body_swallows_nothing(element: str) -> None:
    found = page(xhtml(body=element))
    assert found.blocks.texts == SHOWN
    assert found.links.fetch_urls == ("https://h.example/days",)
    assert "We are open on" in document(xhtml(body=element).encode(), URL, XHTML).markdown


@pytest.mark.parametrize("name", ["a", "b", "div", "p", "span", "em", "td", "ul"])
def test_a_self_closed_element_does_not_go_on(name: str) -> None:
    found = page(xhtml(rest=f"{REST}<p><{name} class='nav' href='/x' id='y'/>After.</p>"))
    assert found.blocks.texts == (*SHOWN, "After.")
    assert "After." not in found.links.anchors


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("<![CDATA[1 < 2 & 3]]>", "1 < 2 & 3"),
        ("a<![CDATA[]]>b", "ab"),
        ("<![CDATA[&nbsp;<b>]]>", "&nbsp;<b>"),
        ("a&nbsp;b &auml;&hellip;", "a b ä…"),
        ("&lt;b&gt; &amp;amp;", "<b> &amp;"),
        ("&#8364;&#x20AC;", "€€"),
        ("&apos;", "'"),
        ("&NotEqualTilde;", "≂̸"),
        ("a<!-- &bad; -->b", "ab"),
        ("a<?php echo '<' ?>b", "ab"),
        ("<b>a</b >b", "ab"),
        ("<br></br>a", "a"),
    ],
)
def test_texts_are_those_of_xml_with_the_entities_of_html(written: str, shown: str) -> None:
    assert page(xhtml(rest=f"<p>{written}</p>")).blocks.texts == (shown,)


@pytest.mark.parametrize(
    "markup",
    [
        "<p>One<p>Two",
        "<br>",
        "<p>a & b</p>",
        "<p title=x>a</p>",
        "<B>a</b>",
        "<p>&unknown;</p>",
        "<input disabled>",
        "<fb:like/>",
        "<p>\x0b</p>",
        "<a href='?a=1&b=2'>x</a>",
        "</div>",
    ],
)
def test_what_is_not_well_formed_is_read_as_html(markup: str) -> None:
    body = xhtml(body=markup)
    assert page(body) == page(body, "text/html")


@pytest.mark.parametrize("element", SELF_CLOSED)
def test_html_is_never_read_by_the_rules_of_xml(element: str) -> None:
    body = xhtml(head=element)
    assert page(body, "text/html") == page(body.removeprefix('<?xml version="1.0" ?>'), "text/html")
    if element == "<title/>":
        assert page(body, "text/html").blocks.texts == ()


@pytest.mark.parametrize("kind", [XHTML, "application/xml"])
def test_a_well_formed_page_is_the_same_by_both_rules(kind: str) -> None:
    body = xhtml(
        "<title>A &amp; B</title><meta name='robots' content='noindex' /><script>a &lt; b</script>"
        "<base href='/in/'/><link rel='canonical' href='c'/>",
        "<ul><li>One</li><li>Two<br/>lines</li></ul><table><tr><td>1</td></tr></table>"
        "<pre>\n a</pre>"
        "<img src='i' alt='An image'/><svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 1 1'>"
        "<g><text>drawn</text></g></svg><noscript><p>Shown.</p></noscript>",
    )
    assert page(body, kind) == page(body, "text/html")
    made = (document(body.encode(), URL, each) for each in (kind, "text/html"))
    assert next(made) == next(made)


def test_a_prefix_and_other_encodings_are_those_of_xml() -> None:
    body = (
        '<h:html xmlns:h="http://www.w3.org/1999/xhtml" xml:lang="de"><h:head><h:title>Zeit'
        "</h:title></h:head><h:body><h:p>Täglich</h:p></h:body></h:html>"
    )
    for encoding in ("utf-8", "utf-16"):
        found = page(
            f'<?xml version="1.0" encoding="{encoding}"?>{body}'.encode(encoding), "text/xml"
        )
        assert (found.title, found.language, found.blocks.texts) == ("Zeit", "de", ("Täglich",))
        assert not found.is_plain


def test_linked_data_is_read_in_a_cdata_section() -> None:
    script = (
        '<script type="application/ld+json"><![CDATA[{"@type": "Article", "headline": "A <b> c"}]]>'
        "</script>"
    )
    assert document(xhtml(script).encode(), URL, XHTML).title == "A <b> c"


# -- values ------------------------------------------------------------------

RATES = """<?xml version="1.0"?><!-- made by a machine -->
<gesmes:Envelope xmlns:gesmes="http://www.gesmes.org/xml/2002-08-01" xmlns="http://www.ecb.int/v"
 xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="a b">
<gesmes:subject>Reference   rates</gesmes:subject>
<Cube><Cube time='2026-11-27'>
 <Cube currency='USD' rate='1.0812'/><Cube currency="JPY" rate="161.5"/>
</Cube></Cube></gesmes:Envelope>"""


def texts(body: str | bytes, kind: str = "text/xml") -> tuple[str, ...]:
    return page(body, kind).blocks.texts


def changed(old: str, new: str, kind: str = "text/xml") -> list[str]:
    lines: Sequence[str] = [*unified_diff(texts(old, kind), texts(new, kind), n=0, lineterm="")][3:]
    return [*lines]


@pytest.mark.parametrize("kind", ["text/xml", "application/xml", "application/vnd.ecb+xml"])
def test_texts_and_attributes_are_values_in_the_order_of_the_file(kind: str) -> None:
    assert texts(RATES, kind) == (
        "subject: Reference rates",
        "time: 2026-11-27",
        "currency: USD",
        "rate: 1.0812",
        "currency: JPY",
        "rate: 161.5",
    )
    places = page(RATES, kind).blocks.places
    assert places[3] == places[5]
    assert len(set(places)) == 4
    assert document(RATES.encode(), URL, kind).blocks == texts(RATES, kind)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('<r><c rate="1.08"/></r>', '<r><c rate="1.09"/></r>', ["-rate: 1.08", "+rate: 1.09"]),
        ("<r a='1'/>", "<r a='2'/>", ["-a: 1", "+a: 2"]),
        (
            "<r xlink:href='/a' xmlns:xlink='x'/>",
            "<r xlink:href='/b' xmlns:xlink='x'/>",
            ["-href: /a", "+href: /b"],
        ),
        ("<r><p in='true'>x</p></r>", "<r><p in='false'>x</p></r>", ["-in: true", "+in: false"]),
        ("<r><p>1</p></r>", "<r><p>2</p></r>", ["-p: 1", "+p: 2"]),
        ("<r><p><![CDATA[a<b]]></p></r>", "<r><p><![CDATA[a<c]]></p></r>", ["-p: a<b", "+p: a<c"]),
        ("<r><p a='1'/></r>", "<r><p a='1' b='2'/></r>", ["+b: 2"]),
        ("<r><p a='&auml;'/></r>", "<r><p a='&ouml;'/></r>", ["-a: ä", "+a: ö"]),
        ("<kml><Point c='1,2'/></kml>", "<kml><Point c='1,3'/></kml>", ["-c: 1,2", "+c: 1,3"]),
        ("<r><i n='1'/><i n='2'/></r>", "<r><i n='1'/></r>", ["-n: 2"]),
        ("<r><i n='1'/></r>", "<r><i n=''/></r>", ["-n: 1", "+n:"]),
    ],
)
def test_a_changed_value_is_a_change_with_its_name(old: str, new: str, said: list[str]) -> None:
    assert changed(old, new) == said


@pytest.mark.parametrize(
    "other",
    [
        '<r a="1"  b="2"><p>x y</p></r>',
        "<r b='2' a='1'><p>x y</p></r>",
        "<r a='1' b='2'><p>\n x\n y </p></r>\n",
        "<!-- c --><r a='1' b='2'><p>x y</p></r>",
        "<r a='1' b='2'><?pi x?><p>x y</p></r>",
        "<!DOCTYPE r SYSTEM 'd'><r a='1' b='2'><p>x y</p></r>",
        "<r xmlns='urn:1' a='1' b='2'><p>x y</p></r>",
        "<n:r xmlns:n='u' a='1' b='2'><n:p>x y</n:p></n:r>",
        "<r a='&#49;' b='2'><p><![CDATA[x]]> y</p></r>",
        "<r a='1' b='2'><p>x<!-- c --> y</p></r>",
        "<?xml version='1.0' standalone='yes'?><r a='1' b='2'><p>x y</p><q></q></r>",
        "\n\ufeff<?xml version='1.1'?><r a='1' b='2'><p>x y</p></r>",
        "<!DOCTYPE r [<!ELEMENT r ANY>\n]><r a='1' b='2'><p>x y</p></r>",
    ],
)
def test_what_means_nothing_in_xml_is_no_difference(other: str) -> None:
    first = page("<r a='1' b='2'><p>x y</p></r>", "text/xml").blocks
    assert page(other, "text/xml").blocks == first


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("<r a='1 & 2'/>", ("a: 1 & 2",)),
        ("<r>a &foo; b</r>", ("r: a &foo; b",)),
        ("<r>a\x0bb</r>", ("r: ab",)),
        ("<r a='?x=1&y=2'/>", ("a: ?x=1&y=2",)),
    ],
)
def test_a_stray_ampersand_or_control_character_costs_nothing(
    body: str, shown: tuple[str, ...]
) -> None:
    assert texts(body) == shown


def test_a_damaged_file_is_read_as_html_and_one_of_many_values_by_its_lines() -> None:
    assert texts("<r><p>One<p>Two</r>") == ("One", "Two")
    line = "<v m='1' n='1'/>"
    many = texts("\n".join(["<r>", *[line] * (MOST_VALUES // 2 + 1), "</r>"]))
    assert many[1:-1] == (line,) * (MOST_VALUES // 2 + 1)
    assert texts("<r><a/></r>") == ()


# -- hostile files -----------------------------------------------------------

LAUGHS = (
    '<!DOCTYPE r [<!ENTITY a "ha">'
    + "".join(f'<!ENTITY {x} "{f"&{y};" * 50}">' for x, y in zip("bcdefg", "abcdef", strict=True))
    + "]><r>&g;</r>"
)


@pytest.mark.parametrize(
    "body",
    [
        LAUGHS,
        LAUGHS.replace("<r>", "<html>").replace("</r>", "</html>"),
        '<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/passwd">]><r>&a;</r>',
        '<!DOCTYPE r [<!ENTITY % p SYSTEM "http://h.example/"> %p;]><r>x</r>',
        '<!DOCTYPE r [<!ENTITY a "' + "x" * 10_000 + '">]><r>' + "&a;" * 10_000 + "</r>",
        '<!DOCTYPE r [<!ATTLIST r a CDATA "' + "x" * 1_000 + '">]><r/>',
        "<!DOCTYPE[" * 20_000,
        "<![CDATA[" * 20_000,
        "<?xml " * 20_000,
        "<!--" * 20_000,
        "<r>" + "&a" * 50_000,
        "<r " + "a" * 100_000,
        "<r>" + "]" * 100_000,
    ],
    ids=[f"file-{n}" for n in range(13)],
)
@pytest.mark.parametrize("kind", [XHTML, "text/xml"])
def test_no_file_grows_or_is_slow(body: str, kind: str) -> None:
    found = page(body, kind)
    assert sum(map(len, found.blocks.texts)) <= 2 * len(body)
    assert not any("root:" in text for text in found.blocks.texts)


def test_deep_files_end_as_pages_or_as_typed_failures() -> None:
    deep = b"<a>" * 30_000 + b"x" + b"</a>" * 30_000
    assert parse(deep, URL, "text/xml", deepest=20_000).blocks.texts == ("a: x",)
    for around in (b"", b"<script/>", b"<title/>", b"<!-- <script> -->", b"<textarea/>"):
        body = b"<html>" + around + deep.replace(b"a>", b"div>") + b"</html>"
        with pytest.raises(RecursionError, match="nested"):
            parse(body, URL, XHTML, deepest=20_000)


async def test_a_long_file_is_read_in_the_process_and_a_short_one_is_not() -> None:
    parser = Parser()
    for body, is_started in ((RATES.encode(), False), (RATES.encode() + b" " * 70_000, True)):
        found = await parser.parse(body, URL, "text/xml")
        assert isinstance(found, ParsedPage)
        assert found.blocks.texts == texts(RATES)
        assert (parser._first._process is not None) is is_started
    await parser.close()


@given(
    st.text(alphabet="<>&;/!?[]=' \"-abCDT#x1:\n", max_size=60),
    st.sampled_from([XHTML, "text/xml"]),
)
def test_any_text_is_read(text: str, kind: str) -> None:
    found = page(text, kind)
    assert len(found.blocks.texts) == len(found.blocks.places)
    assert document(text.encode(), URL, kind).markdown is not None
