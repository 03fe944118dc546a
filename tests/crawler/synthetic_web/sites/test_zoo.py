import pytest
from ada_url import join_url
from selectolax.lexbor import LexborHTMLParser

from freshet.crawler.synthetic_web.content import Place
from freshet.crawler.synthetic_web.difficult_sites import zoo
from freshet.crawler.synthetic_web.site import Document
from freshet.crawler.synthetic_web.web import START_AT, SyntheticWeb, WebSpec
from tests.crawler.synthetic_web.browsing import get, hrefs, main_text, responder_for

SITE = zoo(WebSpec().plot("zoo"))
WEB = SyntheticWeb.of(1, [SITE], START_AT, START_AT + 1)
LINKS = Place("zoo", "/links/")


def test_every_awkward_reference_leads_where_the_url_standard_says() -> None:
    responder = responder_for(WEB, 8080)
    body = get(responder, LINKS, START_AT).body
    page = SITE.resources["/links/"]
    assert isinstance(page, Document)
    truths = [link.leads_to for link in page.content_at(START_AT).links]
    found: list[Place | None] = []
    # The first two references belong to the frame.
    for href in hrefs(body)[2:]:
        try:
            url = join_url(responder.addresses.url(LINKS), href)
        except ValueError:
            url = ""
        found.append(responder.addresses.place(url))
    assert found == truths


@pytest.mark.parametrize(
    ("name", "codec", "header"),
    [
        ("windows-1252", "cp1252", "text/html; charset=windows-1252"),
        ("shift-jis", "shift_jis", "text/html"),
        ("utf-8-bom", "utf-8-sig", "text/html"),
        ("utf-16", "utf-16", "text/html"),
        ("koi8-r", "koi8_r", "text/html"),
    ],
)
def test_a_page_is_in_the_charset_that_its_name_says(name: str, codec: str, header: str) -> None:
    place = Place("zoo", f"/charset/{name}")
    answer = get(responder_for(WEB), place, START_AT)
    page = SITE.resources[place.target]
    assert isinstance(page, Document)
    assert answer.header("Content-Type") == header
    text = main_text(answer.body.decode(codec).encode())
    content = page.content_at(START_AT)
    assert text == " ".join([content.title, *(block.text for block in content.blocks)])


def test_only_shift_jis_is_declared_in_the_page() -> None:
    responder = responder_for(WEB)
    declared = [
        target
        for target in SITE.resources
        if b"<meta charset=" in get(responder, Place("zoo", target), START_AT).body
    ]
    assert declared == ["/charset/shift-jis"]


def test_the_large_page_is_large_and_the_empty_one_empty() -> None:
    responder = responder_for(WEB)
    assert len(get(responder, Place("zoo", "/large"), START_AT).body) > 300_000
    assert get(responder, Place("zoo", "/files/empty"), START_AT).body == b""


def test_the_untitled_page_has_no_title() -> None:
    body = get(responder_for(WEB), Place("zoo", "/untitled"), START_AT).body
    assert LexborHTMLParser(body).css_first("title") is None


def test_files_have_the_types_of_what_they_are() -> None:
    responder = responder_for(WEB)
    types = {
        target.rpartition(".")[2]: get(responder, Place("zoo", target), START_AT)
        for target in SITE.resources
        if target.startswith("/files/") and "." in target
    }
    assert {ending: answer.header("Content-Type") for ending, answer in types.items()} == {
        "png": "image/png",
        "pdf": "application/pdf",
        "txt": "text/plain; charset=utf-8",
    }
    assert types["png"].body.startswith(b"\x89PNG\r\n\x1a\n")
