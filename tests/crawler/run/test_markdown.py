"""Which hosts are asked for Markdown, and for how long."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from freshet.crawler.fetch.client import Request
from freshet.crawler.frontier.frontier import ApiRequest
from freshet.crawler.run.markdown import ACCEPT, MarkdownFetcher, are_same, words
from freshet.storage.records import FetchResult

DAY_S = 86_400.0
URL = "https://h.example/a"
HTML = b"<title>A</title>" + b"<i></i>" * 99 + b"<p>one two three four"
MARKDOWN = b"# A\n\none two three four"


def response(
    content_type: str = "text/html", body: bytes = HTML, url: str = URL, **headers: str
) -> FetchResult:
    named = {"Content-Type": content_type, **headers}
    fields = tuple((name.encode(), value.encode()) for name, value in named.items())
    return FetchResult(
        url, "fetched", status=200, headers=fields, body=body, started_at=0.0, duration_s=0.0
    )


OFFER = response(Vary="Accept")
AS_MARKDOWN = response("text/markdown", MARKDOWN)


@dataclass
class Stage:
    """A fetcher that answers as told, and the rules of a run."""

    answer: FetchResult = OFFER
    at: float = 0.0
    asked: list[Request] = field(default_factory=list)
    further: list[ApiRequest] = field(default_factory=list)
    agent_token: str = "freshet"

    def __post_init__(self) -> None:
        self.fetcher = MarkdownFetcher(self, self)

    async def fetch(self, request: Request) -> FetchResult:
        self.asked.append(request)
        return replace(self.answer, url=request.url)

    def now(self) -> float:
        return self.at

    async def queue_key(self, url: str) -> str:
        return url.split("/")[2]

    def request(self, request: ApiRequest) -> None:
        self.further.append(request)

    async def _texts(self, result: FetchResult) -> Sequence[str]:
        return result.body.decode().replace("#", " ").replace("<", " <").split()

    def texts(self, result: FetchResult) -> Awaitable[Sequence[str]]:
        body = b"one two three four" if b"one two three four" in result.body else b"log in"
        return self._texts(replace(result, body=body))

    async def visit(self, url: str = URL, answer: FetchResult | None = None, **more: Any) -> bool:
        """Request a page, and return whether Markdown was asked for."""
        self.answer = answer or self.answer
        await self.fetcher.fetch(Request(url, **more))
        return ACCEPT in self.asked[-1].headers

    def compared(self, result: FetchResult = AS_MARKDOWN) -> None:
        """Let the further request come."""
        (request,) = self.further
        self.further.clear()
        assert request.headers == (ACCEPT,)
        assert list(request.handle(result, self.at)) == []


@pytest.mark.parametrize(
    ("answer", "offers"),
    [
        (OFFER, True),
        (response(Vary="accept-encoding, ACCEPT"), True),
        (response(Link='</a.md>; rel="alternate"; type="text/markdown"'), True),
        (response(body=b'<link rel=alternate type="text/markdown" href=a.md>'), True),
        (response(body=b'<LINK href=a.md TYPE=text/markdown rel=alternate>'), True),
        (response("text/plain", b"# A", url="https://h.example/llms.txt"), True),
        (response(), False),
        (response(Vary="Accept-Encoding"), False),
        (response(Vary="Accept-Language, Cookie"), False),
        (response(Link='</a.css>; rel="preload"'), False),
        (response(body=b"<p>text/markdown is a type <link rel=x>"), False),
        (response(url="https://h.example/llms.txt"), False),
        (replace(OFFER, outcome="failed", status=500), False),
        (response("application/pdf", b"%PDF-", Vary="Accept"), True),
    ],
)  # fmt: skip
async def test_an_offer_is_taken_on_the_next_page_of_html(
    answer: FetchResult, offers: bool
) -> None:
    stage = Stage()
    await stage.visit(answer.url, answer)
    await stage.visit("https://h.example/b", response())
    assert bool(stage.further) is offers


async def test_pages_are_asked_for_as_markdown_for_a_month() -> None:
    stage = Stage()
    assert not await stage.visit()
    stage.compared()
    assert await stage.visit(answer=AS_MARKDOWN)
    stage.at = 29 * DAY_S
    assert await stage.visit()
    # Then one page is compared again.
    stage.at = 31 * DAY_S
    assert not await stage.visit(answer=OFFER)
    assert await stage.visit(answer=AS_MARKDOWN)
    stage.compared(response("text/markdown", b"# A\n\nlog in"))
    assert not await stage.visit(answer=OFFER)
    stage.at = 60 * DAY_S
    assert not await stage.visit()
    assert not stage.further
    stage.at = 62 * DAY_S
    assert not await stage.visit()
    stage.compared()
    assert await stage.visit()


@pytest.mark.parametrize(
    "came",
    [
        response(),
        response("text/markdown", b"# A\n\nlog in"),
        response("text/markdown", MARKDOWN + b" " * 2_000),
        replace(AS_MARKDOWN, outcome="failed", status=406, body=b""),
        replace(AS_MARKDOWN, outcome="redirected", status=302, body=b""),
        response("text/plain", MARKDOWN),
        response("text/markdown", b""),
    ],
)
async def test_what_is_no_gain_is_not_asked_for(came: FetchResult) -> None:
    stage = Stage()
    await stage.visit()
    stage.compared(came)
    assert not await stage.visit()
    assert not stage.further


async def test_hosts_are_compared_apart() -> None:
    stage = Stage()
    await stage.visit()
    stage.compared()
    assert not await stage.visit("https://other.example/", response())
    assert not stage.further
    assert await stage.visit()


@pytest.mark.parametrize(
    "more",
    [
        {"is_plain": True}, {"accept": "robots"}, {"accept": "sitemap"}, {"accept": "probe"},
        {"form": "a=b"}, {"headers": (("Accept", "text/html"),)},
    ],
)  # fmt: skip
async def test_other_requests_stay_as_they_are(more: dict[str, Any]) -> None:
    stage = Stage()
    await stage.visit()
    stage.compared()
    assert not await stage.visit(**more)
    assert await stage.visit()


def test_the_same_words_are_nearly_all() -> None:
    text = words(["One two, three.", "four"] * 10)
    assert are_same(text, text)
    assert are_same(text, words([*["one TWO three four"] * 10, "menu"]))
    assert not are_same(text, words(["one two three four"] * 8))
    assert not are_same(text, words([*["one two three four"] * 10, *"abcdefgh"]))
    assert not are_same(words([]), words([]))
