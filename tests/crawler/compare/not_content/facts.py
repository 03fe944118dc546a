"""Facts of pages that the tests write as HTML."""

from freshet.crawler.compare.not_content.page import PageFacts
from freshet.crawler.reduce.page import parse
from freshet.crawler.reduce.sketch import sketch

HOST = "https://shop.example"
HTML = "text/html; charset=utf-8"


def facts_of(
    main: str,
    *,
    title: str = "",
    path: str = "/things/blue-chair",
    before: bytes | None = None,
    retry_after: bool = False,
    lang: str = "en",
) -> PageFacts:
    """The facts of a page with that body."""
    html = f'<html lang="{lang}"><head><title>{title}</title></head><body>{main}</body></html>'
    body = html.encode()
    page = parse(body, HOST + path, HTML)
    text = sketch(page.blocks.texts, page.blocks.places)
    return PageFacts(HOST + path, page.title, page.blocks, text, body, HTML, before, retry_after)
