"""Formats are found by media type and first bytes; a new one is one module and one entry."""

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from freshet.crawler.reduce import formats as registry
from freshet.crawler.reduce.blocks import TEXT_VERSION
from freshet.crawler.reduce.charset import decode
from freshet.crawler.reduce.document import document
from freshet.crawler.reduce.formats import Body, Format, as_shown, format_of, no_page_type
from freshet.crawler.reduce.main_text import plain_text
from freshet.crawler.reduce.page import parse
from freshet.crawler.reduce.parser_process import Parser
from freshet.storage.records import FetchResult

URL = "https://h.example/book"


@pytest.mark.parametrize(
    ("content_type", "found"),
    [
        (None, "html"), ("", "html"), ("text/html; charset=utf-8", "html"), ("image/png", "html"),
        ("unknown/unknown", "html"), ("application/xhtml+xml", "xml"), ("text/xml", "xml"),
        ("application/RSS+xml", "xml"), ("application/vnd.google-earth.kml+xml", "xml"),
        ("application/json", "json"), ("application/FEED+JSON; charset=utf-8", "json"),
        ("text/json", "json"), ("application/x-ndjson", "json_lines"), ("application/yaml", "yaml"),
        ("text/calendar; method=PUBLISH", "calendar"), ("application/x-pdf", "pdf"),
        ("text/plain", "plain"), ("text/markdown", "markdown"),
        ("text/x-markdown; charset=utf-8", "markdown"), ("text/x-anything", "plain"),
        ("text/csv", "plain"),
        ("application/toml", "plain"), ("text/toml", "plain"), ("text/vcard", "plain"),
    ],
)  # fmt: skip
def test_a_format_is_found_by_the_media_type(content_type: str | None, found: str) -> None:
    modules = ["html", *(each.rpartition(".")[2] for each in registry.MODULES)]
    assert registry.FORMATS.index(format_of(content_type)) == modules.index(found)


@pytest.mark.parametrize(
    ("content_type", "is_page"),
    [
        ("text/css", False), ("text/javascript", False), ("text/vtt", False), ("image/png", False),
        ("image/svg+xml", False), ("application/zip", False), ("application/octet-stream", False),
        ("application/x-rss+xml", False), ("application/x-atom+xml", False), ("video/mp4", False),
        (None, True), ("unknown/unknown", True), ("text/x-anything", True),
        ("application/yaml", True), ("application/jsonl", True), ("application/gpx+xml", True),
    ],
)  # fmt: skip
def test_a_page_has_a_media_type_of_some_format_or_none(
    content_type: str | None, is_page: bool
) -> None:
    assert (no_page_type(content_type) is None) is is_page


# -- a format of one's own -----------------------------------------------------


def read_shouting(body: bytes, content_type: str | None) -> Body:
    text, encoding = decode(body.removeprefix(b"SHOUT\n"), content_type)
    return Body(encoding, blocks=plain_text(text.upper()), title="A shout")


def read_chapters(body: bytes, _content_type: str | None) -> Body:
    chapters = body.removeprefix(b"BOOK\n").split(b"\n")
    return Body("utf-8", b"<title>A book</title>" + b"".join(b"<p>%s</p>" % it for it in chapters))


SHOUT = Format(
    "application/x-shout", read_shouting, first_bytes=(b"SHOUT\n",), label="application/x-shout",
    version="shout1", most_inline=0,
)  # fmt: skip
BOOK = Format("application/x-book", read_chapters)


@pytest.fixture
def _with_two_more(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    added = {"book": BOOK, "shout": SHOUT}
    monkeypatch.setattr(registry, "loaded", {registry.GROUP: added}.__getitem__)
    known = (registry.formats, registry.first_bytes, registry._named)
    for each in known:
        each.cache_clear()
    yield
    for each in known:
        each.cache_clear()


@pytest.mark.usefixtures("_with_two_more")
def test_a_new_format_is_read_compared_and_shown() -> None:
    assert no_page_type("application/x-shout") is None
    page = parse(b"SHOUT\nhello\n\nworld", URL, "application/x-shout")
    assert (page.blocks.texts, page.is_plain) == (("HELLO", "WORLD"), True)
    made = document(b"SHOUT\nhello\n\nworld", URL, "application/x-shout")
    assert (made.title, made.blocks) == ("A shout", ("HELLO", "WORLD"))
    version = Parser().text_version(URL, "application/x-shout")
    assert (version, registry.versions()[:7]) == (f"{TEXT_VERSION}+shout1", "+shout1")


@pytest.mark.usefixtures("_with_two_more")
def test_a_new_format_may_be_read_as_a_page() -> None:
    page = parse(b"BOOK\nOne <a href=2>two</a>\nThree", URL, "application/x-book")
    assert (page.title, page.blocks.texts, page.is_plain) == ("A book", ("One two", "Three"), False)
    assert page.links.urls == ("https://h.example/2",)


def test_the_format_of_the_guide_reads_a_book() -> None:
    guide = Path(__file__).parents[3] / "docs/guide/formats.md"
    names: dict[str, Any] = {}
    exec(guide.read_text("utf-8").split("```python")[1].split("```")[0], names)
    file = BytesIO()
    with ZipFile(file, "w") as book:
        book.writestr("1.xhtml", "<p>One</p>")
        book.writestr("2.xhtml", "<p>Two</p>")
    assert names["FORMAT"].read(file.getvalue(), None).html == b"<p>One</p><p>Two</p>"
    assert names["FORMAT"].read(b"PK", None) == Body(None)


@pytest.mark.usefixtures("_with_two_more")
def test_its_first_bytes_show_a_new_format_whatever_the_label_says() -> None:
    headers = ((b"Content-Type", b"text/plain"), (b"X", b"y"))
    came = FetchResult(
        URL,
        "fetched",
        status=200,
        headers=headers,
        body=b"SHOUT\na",
        started_at=0.0,
        duration_s=0.0,
    )
    assert registry.is_mislabelled(came.body)
    assert as_shown(came, 100).header("Content-Type") == "application/x-shout"
