"""What the tests of the synthetic web look at pages with: a parser, and a naive crawl."""

import gzip
import html
import re
from collections.abc import Iterator

from ada_url import join_url
from selectolax.lexbor import LexborHTMLParser

from freshet.crawler.extensions.lab.synthetic_web.answers import Responder, SiteResponse
from freshet.crawler.extensions.lab.synthetic_web.content import SyntheticUrl
from freshet.crawler.extensions.lab.synthetic_web.site import Addresses, without_utm
from freshet.crawler.extensions.lab.synthetic_web.web import SyntheticWeb
from freshet.crawler.robots import parse as parse_robots
from freshet.storage.records import Validators

UNKNOWN = Validators()


def responder_for(web: SyntheticWeb, port: int = 80) -> Responder:
    return Responder(web, Addresses.named(web.sites, port))


def get(
    responder: Responder, place: SyntheticUrl, at: float, known: Validators = UNKNOWN
) -> SiteResponse:
    return responder.answer(place, at, known)


def departures(web: SyntheticWeb) -> list[tuple[SyntheticUrl, float, SyntheticUrl | None]]:
    """The pages that come to an end while the web changes, when, and what takes over."""
    return [
        (place, page.died_at, SyntheticUrl(place.host, page.moved_to) if page.moved_to else None)
        for place, page in web.documents()
        if page.died_at is not None and page.died_at > web.start_at
    ]


def main_text(body: bytes) -> str:
    """The text of the main content, by the markup that the skins promise."""
    tree = LexborHTMLParser(body)
    node = tree.css_first("main") or tree.css_first("div.content") or tree.body
    assert node is not None
    return " ".join(node.text().split())


def frame_text(body: bytes) -> str:
    """The text of all the rest."""
    tree = LexborHTMLParser(body)
    for node in tree.css("main, div.content"):
        node.decompose()
    assert tree.body is not None
    return " ".join(tree.body.text().split())


def hrefs(body: bytes) -> list[str]:
    """The references that a crawler may follow, as written."""
    anchors = LexborHTMLParser(body).css("a[href]")
    return [
        node.attributes["href"] or ""
        for node in anchors
        if "nofollow" not in (node.attributes.get("rel") or "")
    ]


class NaiveCrawl:
    """Reads nothing but answers: an opinion about reach that is independent of the truth."""

    def __init__(self, web: SyntheticWeb, at: float) -> None:
        self._web = web
        self._at = at
        self._responder = responder_for(web)
        self._addresses = self._responder.addresses
        self._robots = {name: parse_robots(self._read_robots(name)) for name in web.sites}
        self._hops: dict[str, int] = {}

    def run(self) -> set[SyntheticUrl]:
        todo = [(self._addresses.url(SyntheticUrl(name, "/")), 0) for name in self._web.sites]
        todo += [(url, 0) for name in self._web.sites for url in self._sitemap_urls(name)]
        pages: set[SyntheticUrl] = set()
        while todo:
            url, hops = todo.pop()
            url = url.partition("#")[0]
            place = self._addresses.place(url)
            if place is None or hops > 10 or self._web.sites[place.host].trap(place.target):
                continue
            place = SyntheticUrl(place.host, without_utm(place.target))
            url = self._addresses.url(place)
            if self._hops.get(url, 11) <= hops:
                continue
            if not self._robots[place.host].allows("freshet", url):
                continue
            self._hops[url] = hops
            todo += self._visit(url, place, hops, pages)
        return pages

    def _visit(
        self, url: str, place: SyntheticUrl, hops: int, pages: set[SyntheticUrl]
    ) -> Iterator[tuple[str, int]]:
        answer = self._patient(place)
        location = answer.header("Location")
        kind = answer.header("Content-Type") or ""
        if location is not None:
            yield join_url(url, location), hops + 1
        if answer.status != 200 or not kind.startswith(("text/", "application/pdf")):
            return
        tree = LexborHTMLParser(answer.body)
        refresh = tree.css_first('meta[http-equiv="Refresh"]')
        if refresh is not None:
            target = (refresh.attributes["content"] or "").partition("url=")[2]
            yield join_url(url, target), hops + 1
            return
        pages.add(place)
        meta = tree.css_first("meta[name=robots]")
        words = (meta.attributes["content"] or "") if meta is not None else ""
        if "nofollow" in words + (answer.header("X-Robots-Tag") or ""):
            return
        base = tree.css_first("base")
        home = join_url(url, base.attributes["href"] or "") if base is not None else url
        for href in hrefs(answer.body):
            try:
                yield join_url(home, href), 0
            except ValueError:
                continue

    def _patient(self, place: SyntheticUrl) -> SiteResponse:
        answer = get(self._responder, place, self._at)
        if answer.status in {429, 500, 503}:
            return get(self._responder, place, self._at)
        return answer

    def _read_robots(self, name: str) -> bytes:
        answer = get(self._responder, SyntheticUrl(name, "/robots.txt"), self._at)
        return answer.body if answer.status == 200 else b""

    def _sitemap_urls(self, name: str) -> list[str]:
        urls = []
        for sitemap in self._robots[name].sitemaps:
            place = self._addresses.place(sitemap)
            assert place is not None
            for part in _locations(get(self._responder, place, self._at).body):
                part_place = self._addresses.place(part)
                assert part_place is not None
                body = get(self._responder, part_place, self._at).body
                urls += _locations(gzip.decompress(body) if part.endswith(".gz") else body)
        return urls


def _locations(xml: bytes) -> list[str]:
    return [html.unescape(loc) for loc in re.findall(r"<loc>([^<]*)</loc>", xml.decode())]
