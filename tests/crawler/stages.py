"""The stages of a visit around in-memory parts, for tests: no socket, no store, no process."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from freshet.crawler.admission.admit import Admission, Redirects, Scope
from freshet.crawler.admission.copies import Copies
from freshet.crawler.admission.traps import TrapLimits
from freshet.crawler.compare.detection import Detector
from freshet.crawler.compare.not_content.check import NotContentCheck
from freshet.crawler.errors import ParserLost
from freshet.crawler.fetch.client import Request
from freshet.crawler.frontier.clock import VirtualClock
from freshet.crawler.frontier.politeness import PolitenessRules, Retries
from freshet.crawler.reduce.parser_process import Parser, Unparsable
from freshet.crawler.reduce.sitemaps import Feed, SitemapLimits, read_feed
from freshet.crawler.signals.headers import HostHeaders
from freshet.crawler.signals.listings import Complaints, Listings, SourceDiscovery
from freshet.crawler.visit import Comparer, Pipeline, Recorder, Reducer
from freshet.storage.entries import Outcome, RobotsRecord
from freshet.storage.records import DueUrl, FetchResult, PageHistory, SitemapSource, Visit
from tests.crawler.frontier.frontier_world import ALLOW, World, parsed

NOON = 1_800_000_000.0
SITE = "http://h1"
URL = f"{SITE}/p"
DUE = DueUrl(7, URL, URL, host_id=1, due_at=NOON)
HTML = {"Content-Type": "text/html; charset=utf-8"}
PROSE = "".join(
    f"<p>Paragraph {n} is a sentence of some length about the weather of that year.</p>"
    for n in range(12)
)
PAGE = f"<html><head><title>T</title></head><body>{PROSE}</body></html>".encode()
NOT_FOUND = (
    b'<html><head><title>404 Not Found</title><script>page = {"status": 404}</script></head>'
    b"<body><h1>Page not found</h1>"
    b"<p>Sorry, the page you requested could not be found.</p></body></html>"
)
TOO_MANY = (
    b'<html><head><title>Too many requests</title><script>page = {"status": 429}</script></head>'
    b"<body><h1>Too many requests</h1>"
    b"<p>You have sent too many requests. Rate limit exceeded, please try again later.</p>"
    b"</body></html>"
)


def answer(body: bytes = PAGE, url: str = URL, *, at: float = NOON, **headers: str) -> FetchResult:
    """A response with the status 200; names of headers are written with underscores."""
    named = {**HTML, **{name.replace("_", "-"): value for name, value in headers.items()}}
    raw = tuple((name.encode(), value.encode()) for name, value in named.items())
    return FetchResult(url, "fetched", at - 1.0, 1.0, 200, headers=raw, body=body)


def no_answer(
    outcome: Outcome, status: int | None, reason: str, location: str | None = None
) -> FetchResult:
    return FetchResult(URL, outcome, NOON - 1.0, 1.0, status, reason, "words", location=location)


class InlineParser(Parser):
    """Parses feeds, too, in this process; raises on a page that says ``explode``.

    The next calls for a page are ``lost``.
    """

    lost = 0

    async def parse_feed(self, body: bytes, url: str) -> Feed | Unparsable:
        return read_feed(body, url) if b"<rss" in body else Unparsable("no feed")

    async def parse(self, body: bytes, url: str, content_type: str | None, hints=None):  # type: ignore[no-untyped-def]
        if self.lost:
            self.lost -= 1
            raise ParserLost("no answer within 60 s")
        if b"explode" in body:
            raise RecursionError("a hostile page")
        return await super().parse(body, url, content_type, hints)


@dataclass
class Past:
    """What the store knows, by page and by host."""

    histories: dict[int, PageHistory] = field(default_factory=dict)
    aliases: dict[str, int] = field(default_factory=dict)

    async def history(self, page_id: int) -> PageHistory | None:
        return self.histories.get(page_id)

    async def sample(self, host_id: int, most: int) -> list[PageHistory]:
        return list(self.histories.values())[:most]

    async def nothing(self, *of: object) -> None:
        return None

    predecessor = not_content = again = text = standing = channels = content = nothing

    async def texts(self, host_id: int, most: int) -> Sequence[tuple[int, str, bytes]]:
        return []

    async def alias_target(self, url: str) -> int | None:
        return self.aliases.get(url)

    async def sources(self, page_id: int) -> list[SitemapSource]:
        return []

    async def offsite_at(self, url: str, origin: str) -> list[tuple[str, int]]:
        return []

    async def led_to(self, page_id: int) -> str | None:
        return None


@dataclass
class Answers:
    """A fetcher that gives one answer after the other, and keeps what it was asked."""

    results: list[FetchResult] = field(default_factory=list)
    asked: list[Request] = field(default_factory=list)

    async def fetch(self, request: Request) -> FetchResult:
        self.asked.append(request)
        return self.results.pop(0)


class Stages:
    """A pipeline for the hosts 1 and 2; ``h1`` is in scope."""

    def __init__(self, robots: RobotsRecord | None = None) -> None:
        self.world = World()
        for host_id in (1, 2):
            self.world.add(host_id, f"queue {host_id}", robots or parsed(ALLOW, NOON))
        self.clock = VirtualClock(NOON)
        self.past = Past()
        self.answers = Answers()
        self.scope = Scope("host", [f"{SITE}/"])
        self.admission = Admission(self.scope, TrapLimits())
        self.discovery = SourceDiscovery(self.admission, most=3, well_known=False)
        self.pipeline = self._wired()
        self.reduce = self.pipeline.reducer.reduce
        self.compare = self.pipeline.comparer.compare

    def _wired(self) -> Pipeline:
        parser, complaints = InlineParser(max_links=5), Complaints()
        listings = Listings(self.admission, self.world.book, SitemapLimits(), complaints, self.past)
        headers = HostHeaders(complaints)
        redirects = Redirects(self.admission, self.past, max_redirects=10)
        return Pipeline(
            fetcher=self.answers,
            reducer=Reducer(
                parser=parser, listings=listings, headers=headers, agent_token="freshet"
            ),
            comparer=Comparer(
                detector=Detector(self.past),
                check=NotContentCheck(self.past, parser, Random(0)),
                redirects=redirects,
                past=self.past,
                counts=lambda _url: ("words", "order"),
            ),
            recorder=Recorder(
                discovery=self.discovery,
                listings=listings,
                redirects=redirects,
                copies=Copies(self.admission, self.past),
                headers=headers,
                agent_token="freshet",
                retries=Retries(PolitenessRules(), 3, Random(0)),
                frontier=self.world.frontier,
                clock=self.clock,
            ),
            sitemap_max_bytes=50_000,
        )

    async def take(self, result: FetchResult, due: DueUrl = DUE) -> Visit:
        return await self.pipeline.take(due, result)

    def remember(self, visit: Visit) -> None:
        """Keep a visit's text as the store would."""
        assert visit.capture is not None
        assert visit.capture.sketch is not None
        history = PageHistory(visit.capture.sketch, visit.memory, 0)
        self.past.histories[visit.due.page_id] = history
