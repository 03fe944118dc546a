"""Sites whose URLs have parts that select no content: few copies are read, and no page is lost."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from urllib.parse import parse_qs, urlsplit

import pytest

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.fetch.client import Request
from freshet.crawler.frontier.clock import VirtualClock
from freshet.crawler.run.crawl import CrawlOrder, crawl
from freshet.storage.records import FetchResult
from tests.integration.quick import quick, unwatched
from tests.storage.small_store import rows
from tests.variants import first

SITE = "https://docs.localhost"
HTML = ((b"Content-Type", b"text/html; charset=utf-8"),)
PAGES = 120


def words(seed: object, count: int = 60) -> str:
    chance = Random(f"{seed}")
    return " ".join(chance.choice(("oak", "fir", "elm", "ash", "yew")) + str(chance.randrange(999))
                    for _ in range(count))  # fmt: skip


def document(name: str, links: Iterator[str], text: str = "") -> str:
    listed = "".join(f'<li><a href="{link}">{words(link, 2)}</a>' for link in links)
    said = f"<h1>{words(name, 3)}</h1><p>{words(name)}</p><p>{words((name, 2))}</p>{text}"
    return f"<!doctype html><title>{name}</title><main>{said}</main><nav><ul>{listed}</ul></nav>"


class Site:
    """A site of documents ``/N``; ``link`` spells a URL of one, ``text`` is what a URL adds."""

    def __init__(
        self,
        link: Callable[[int, Random], str],
        text: Callable[[str], str] = lambda _query: "",
        number: str = r"/(?:\w{20,}/)?(\d+)",
    ) -> None:
        self.link, self.text, self.number = link, text, re.compile(number)
        self.clock = VirtualClock(1_800_000_000.0)
        self.asked: list[str] = []
        self.chance = Random(7)

    def near(self, n: int) -> Iterator[str]:
        if n == 0:
            yield from (self.link(k, self.chance) for k in range(1, PAGES))
        for k in range(n - 6, n + 6):
            yield self.link(k % PAGES, self.chance)

    async def fetch(self, request: Request) -> FetchResult:
        at, place = self.clock.now(), urlsplit(request.url)
        target = request.url.removeprefix(SITE) or "/"
        found = self.number.match(place.path if place.path != "/" else "/0")
        if found is None or target == "/robots.txt":
            return FetchResult(request.url, "gone", at, 0.0, 404, "http_404")
        self.asked.append(target)
        n = int(found[1])
        body = document(f"{n}", self.near(n), self.text(target)).encode()
        return FetchResult(request.url, "fetched", at, 0.0, 200, headers=HTML, body=body)

    async def crawl(self, db: Path, **changes: object) -> None:
        self.clock.go_on_from(self.clock.now() + 86_400.0)
        order = CrawlOrder(db, seeds_from_arguments([SITE]).seeds)
        # Visits of virtual time are faster than what is committed every so often.
        settings = quick(politeness__delay_s=1.0, store__batch=4, **changes)
        await crawl(settings, order, watch=unwatched, fetcher=self, clock=self.clock)

    @property
    def documents(self) -> set[int]:
        paths = (urlsplit(target).path for target in self.asked)
        return {int(found[1]) for path in paths if (found := self.number.match(path))} | {0}


def token(chance: Random) -> str:
    return f"{chance.getrandbits(128):032x}"


#: By what differs: the URL of a document in a link. All show the same.
COPIES: dict[str, Callable[[int, Random], str]] = {
    "session in the query": lambda n, chance: f"/{n}?PHPSESSID={token(chance)}",
    "session of a common name": lambda n, chance: f"/{n}?sid={token(chance)}",
    "session beside a parameter": lambda n, chance: f"/{n}?view=full&sid={token(chance)}",
    "session in the path": lambda n, chance: f"/{token(chance)}/{n}",
    "session of a program's own": lambda n, chance: f"/{n};visit={token(chance)}",
    "highlighted words": lambda n, chance: f"/{n}" + chance.choice(
        [*[""] * 3, f"?highlight={words(chance.random(), 1)}"]
    ),
    "the page it was linked on": lambda n, chance: f"/{n}?from={chance.randrange(PAGES)}",
    "a print view": lambda n, chance: f"/{n}" + chance.choice(["", "?print=1"]),
    "a language that is the default": lambda n, chance: f"/{n}" + chance.choice(["", "?lang=en"]),
    "two that are nothing": lambda n, chance: f"/{n}?ref={chance.randrange(9)}&t={chance.random()}",
    "none": lambda n, _chance: f"/{n}",
}  # fmt: skip


@pytest.mark.parametrize("kind", first(5, COPIES))
async def test_of_copies_few_are_read_and_each_document_is(tmp_path: Path, kind: str) -> None:
    db, site = tmp_path / "crawl.db", Site(COPIES[kind])
    await site.crawl(db)
    assert site.documents == set(range(PAGES))
    # One in twenty and fewer of those held back; a page without the part is read in any case.
    assert len(site.asked) <= (2.3 if kind == "two that are nothing" else 1.75) * PAGES


def value(target: str, name: str) -> str:
    return parse_qs(urlsplit(target).query).get(name, [""])[0]


def number(target: str) -> int:
    found = re.findall(r"\d+", urlsplit(target).path)
    return int(found[-1]) if found else 0


#: By what differs: the URL of a document in a link, and what the URL adds to the document.
CONTENT: dict[str, tuple[Callable[[int, Random], str], Callable[[str], str]]] = {
    "pages of a list": (
        lambda n, chance: f"/{n}" + chance.choice(["", "?page=1", "?page=2", "?page=3"]),
        lambda target: value(target, "page").replace("1", ""),
    ),
    "languages": (
        lambda n, chance: f"/{n}" + chance.choice(["", "?lang=en", "?lang=de"]),
        lambda target: value(target, "lang").replace("en", ""),
    ),
    "versions": (
        lambda n, chance: f"/{n}?version={chance.randrange(3)}",
        lambda target: value(target, "version"),
    ),
    "stories under the name of a session": (
        lambda n, chance: f"/{n}?sid={chance.randrange(3):016x}a",
        lambda target: value(target, "sid"),
    ),
    "colours of every tenth product": (
        lambda n, chance: f"/{n}?colour={chance.choice(['red', 'blue', 'green'])}",
        lambda target: value(target, "colour") if number(target) % 10 == 5 else "",
    ),
    "colours of the last products": (
        lambda n, chance: f"/{n}?colour={chance.choice(['red', 'blue', 'green', 'grey'])}",
        lambda target: value(target, "colour") if number(target) >= PAGES // 2 else "",
    ),
    "states in the path": (
        lambda n, chance: f"/{chance.randrange(3):020x}/{n}",
        lambda target: target.split("/")[1] if target.count("/") > 1 else "",
    ),
    "a view of some pages": (
        lambda n, chance: f"/{n}" + chance.choice(["", "?view=notes"]),
        lambda target: value(target, "view") if number(target) % 3 == 0 else "",
    ),
}  # fmt: skip


#: The others are variants of these.
FIRST = ("pages of a list", "colours of the last products", "states in the path")


@pytest.mark.parametrize(
    "kind", [pytest.param(it, marks=[] if it in FIRST else pytest.mark.long) for it in CONTENT]
)
async def test_what_differs_is_read(tmp_path: Path, kind: str) -> None:
    link, text = CONTENT[kind]
    site, linked = Site(link, lambda target: f"<p>{words(text(target))}"), set[str]()

    def noted(n: int, chance: Random) -> str:
        target = link(n, chance)
        linked.add(target)
        return target

    site.link = noted
    await site.crawl(tmp_path / "crawl.db")
    shown = {(number(target), text(target)) for target in site.asked}
    assert {(number(target), text(target)) for target in linked} <= shown


async def test_a_page_that_fails_is_replaced_by_one_that_was_held_back(tmp_path: Path) -> None:
    def link(n: int, chance: Random) -> str:
        return f"/{n}" + chance.choice(["", f"?from={chance.randrange(PAGES)}"])

    class Odd(Site):
        async def fetch(self, request: Request) -> FetchResult:
            found = await super().fetch(request)
            if number(request.url.removeprefix(SITE)) % 2 and "?" not in request.url:
                return FetchResult(request.url, "gone", found.started_at, 0.0, 404, "http_404")
            return found

    site = Odd(link)
    await site.crawl(tmp_path / "crawl.db")
    read = {number(target) for target in site.asked if "?" in target or number(target) % 2 == 0}
    assert read == set(range(PAGES))


async def test_what_is_held_back_is_told(tmp_path: Path) -> None:
    db, site = tmp_path / "crawl.db", Site(COPIES["the page it was linked on"])
    await site.crawl(db)
    sql = "SELECT shape, refused, closed_at IS NOT NULL FROM trap WHERE kind = 'trap: parameter'"
    found = {shape: refused for shape, refused, is_closed in rows(db, sql) if is_closed}
    held = "SELECT count(*) FROM page WHERE held_back = 'trap: parameter'"
    assert rows(db, held) == [(sum(found.values()),)]
    assert found["/…?from"] > 100


async def test_with_0_pairs_nothing_is_held_back(tmp_path: Path) -> None:
    db, site = tmp_path / "crawl.db", Site(COPIES["a print view"])
    await site.crawl(db, traps__min_copy_pairs=0)
    assert len(set(site.asked)) > 1.9 * PAGES
    assert rows(db, "SELECT count(*) FROM page WHERE held_back LIKE 'trap: param%'") == [(0,)]


async def test_versions_that_differ_in_a_sentence_are_all_read(tmp_path: Path) -> None:
    db = tmp_path / "crawl.db"
    site = Site(
        lambda n, chance: f"/{n}" + chance.choice(["", "?version=1", "?version=2", "?version=3"]),
        lambda target: f"<p>This is version {value(target, 'version')}.</p>",
    )
    await site.crawl(db)
    versions = {(number(target), value(target, "version")) for target in site.asked}
    assert len(versions) > 3.5 * PAGES
