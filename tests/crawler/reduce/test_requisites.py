"""What pages and style sheets need to be shown."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.reduce.page import parse
from freshet.crawler.reduce.requisites import MOST, candidates, css_references, resolved, unescaped

URL = "http://e.example/d/p.html"


def needed(html: str) -> list[str]:
    page = parse(html.encode(), URL, "text/html; charset=utf-8", requisites=True)
    return [url.removeprefix("http://e.example/d/") for url in page.requisites]


@pytest.mark.parametrize(
    ("html", "urls"),
    [
        ("<link rel=stylesheet href=a.css>", ["a.css"]),
        ("<link rel='shortcut ICON' href=a.ico>", ["a.ico"]),
        ("<link rel=preload href=a.woff2 imagesrcset='b.png 2x'>", ["a.woff2", "b.png"]),
        ("<link rel=canonical href=a><link rel=next href=b>", []),
        ("<script src=a.js></script><img src=b.png>", ["a.js", "b.png"]),
        ("<img src=b.png><script src=a.js></script>", ["a.js", "b.png"]),
        ("<img src=a.png srcset='b.png 1x,c.png 2x'>", ["a.png", "b.png", "c.png"]),
        ("<img src='data:image/png;base64,AA=' data-src=lazy.png>", ["lazy.png"]),
        ("<picture><source srcset=a.webp><img src=a.png></picture>", ["a.png", "a.webp"]),
        ("<video src=a.mp4 poster=a.jpg><source src=b.mp4></video>", ["a.jpg"]),
        ("<body background=a.gif><input type=image src=b.png>", ["a.gif", "b.png"]),
        ("<object data=a.svg></object><embed src=b.swf>", ["a.svg", "b.swf"]),
        ("<svg><use href='a.svg#x'/><image xlink:href=b.png /></svg>", ["a.svg", "b.png"]),
        ("<p style='background: url(&quot;a.png&quot;)'>", ["a.png"]),
        ("<style>@import 'a.css'; p { background: url(b.png) }</style>", ["a.css", "b.png"]),
        ("<base href=/x/><img src=a.png>", ["http://e.example/x/a.png"]),
        ("<img src='a.png?x=1&amp;y=2#f'>", ["a.png?x=1&y=2"]),
        ("<img src='http://u:p@h.example/a.png'>", ["http://h.example/a.png"]),
        ("<img src=''><img src='#x'><img src='javascript:x'><img src='ftp://h/a'>", []),
        ("<noscript><img src=a.png></noscript>", ["a.png"]),
        ("<!-- <img src=a.png> --><script>'<img src=b.png>'</script>", []),
        ("<iframe src=a.html></iframe><a href=b.html>b</a>", []),
    ],
)
def test_a_page_names_what_it_needs(html: str, urls: list[str]) -> None:
    assert needed(html) == urls


def test_nothing_is_looked_for_unless_it_is_asked_for() -> None:
    assert parse(b"<img src=a.png>", URL, "text/html").requisites == ()


def test_of_a_page_of_many_pictures_some_are_taken_and_its_style_sheet_first() -> None:
    pictures = "".join(f"<img src={n}.png>" for n in range(3 * MOST))
    found = needed(f"<link rel=stylesheet href=a.css>{pictures}")
    assert found[0] == "a.css"
    assert len(found) == MOST


@pytest.mark.parametrize(
    ("css", "references"),
    [
        ('@import "a.css" screen; @IMPORT url(b.css); @import url("c.css") print;', "a b c"),
        ("p { background: URL( a.css ) } q { background: url('b.css') }", "a b"),
        ("/* url(no.css) \" */ p { background: url(a.css) /* ' */ }", "a"),
        ("p { content: \"url(no.css) @import 'no.css'\"; cursor: url(a.css) }", "a"),
        ("@font-face { src: local('no'), url(a.css) format('woff2'), url(b.css) }", "a b"),
        ("p { background: image-set('a.css' type('no') 1x, url(b.css) 2x); content: 'no' }", "a b"),
        ("p { x: curl(no.css) -url(no.css) } q { x: url(a.css", "a"),
        (r"p { background: url(\61.css) url('\000062 .css') url('c\.css') }", "a b c"),
        ("p { background: url(no\n url(a.css) }", "a"),
        ('p { content: "no\n; background: url(a.css) }', "a"),
    ],
)
def test_a_style_sheet_names_what_it_needs(css: str, references: str) -> None:
    assert list(css_references(css)) == [f"{each}.css" for each in references.split()]


def test_an_escape_that_is_no_character_is_replaced() -> None:
    assert unescaped(r"\0 \d800 \110000 \zz\9") == "\ufffd\ufffd\ufffdzz\t"


def escaped(text: str, quote: str) -> str:
    """Write a text as a string of CSS."""
    special = f"\\\n\r\f{quote}"
    body = "".join(f"\\{ord(each):x} " if each in special else each for each in text)
    return quote + body + quote


NOISE = st.sampled_from(
    ["p { color: red }", "/* url(x) ' \" */", "@media print {", "}", ";", "a:hover{}", "\n"]
)
TEXTS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20
)


@given(st.lists(st.tuples(NOISE, TEXTS, st.sampled_from("\"'"), st.booleans()), max_size=8))
def test_whatever_is_written_into_strings_is_read(parts: list[tuple[str, str, str, bool]]) -> None:
    """Quotes, brackets, comments and breaks inside a reference end nothing."""
    css = "".join(
        f"{noise} @import {escaped(text, quote)};"
        if imports
        else f"{noise} x: url( {escaped(text, quote)} );"
        for noise, text, quote, imports in parts
    )
    assert list(css_references(css)) == [text for _, text, _, _ in parts]


@given(st.text(alphabet="\\\"'()/*@ursl image-t,;{}\n", max_size=200))
def test_any_text_is_a_style_sheet(text: str) -> None:
    for each in css_references(text):
        assert isinstance(each, str)
    assert len(resolved(css_references(text), URL)) <= MOST


@given(st.text(alphabet="ab ,()\t1x", max_size=100))
def test_any_text_is_a_set_of_images(text: str) -> None:
    assert all(each and not each.endswith(",") for each in candidates(text) if each)


def test_a_set_of_images_is_read_as_browsers_do() -> None:
    said = "a.png 1x, b.png 2x,c.png, d,e.png 100w (x,y) , data:x;base64,AA== 3x,"
    assert list(candidates(said)) == ["a.png", "b.png", "c.png", "d,e.png", "data:x;base64,AA=="]


@pytest.mark.parametrize(
    "unit",
    ["url(", "/*", '"', "\\", "image-set(", "type('", "@import ", "url(\\(", '"\n', "url(a "],
)
def test_the_time_grows_with_the_text_and_no_faster(unit: str) -> None:
    """Twice the text takes about twice the time; where it were quadratic, four times."""

    def took(times: int) -> float:
        text, start = unit * times, time.process_time()
        assert sum(1 for _ in css_references(text)) <= times
        assert sum(1 for _ in candidates(text)) <= times
        return time.process_time() - start

    assert took(20_000) < 1.0
