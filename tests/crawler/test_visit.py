"""The visit pipeline, stage by stage: fetch, reduce, compare, record."""

import gzip
from dataclasses import replace
from email.utils import formatdate
from typing import get_args
from unittest.mock import AsyncMock

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.crawler.admission.admit import RedirectTarget
from freshet.crawler.compare.detection import Verdict
from freshet.crawler.fetch.client import Request
from freshet.crawler.frontier.frontier import PageRequest
from freshet.crawler.reduce.blocks import TEXT_VERSION
from freshet.crawler.reduce.page import ParsedPage
from freshet.crawler.reduce.parser_process import Unparsable
from freshet.crawler.reduce.sketch import body_digest
from freshet.crawler.visit import Opaque, ReducedFeed, ReducedPage, ReducedSitemap, unasked
from freshet.storage.entries import AliasKind, Outcome, Role
from freshet.storage.records import (
    Alias,
    Digests,
    DueUrl,
    FetchResult,
    Links,
    Observation,
    Validators,
    Visit,
)
from tests.crawler.stages import (
    DUE,
    NOON,
    NOT_FOUND,
    PAGE,
    PROSE,
    SITE,
    TOO_MANY,
    URL,
    InlineParser,
    Stages,
    answer,
    no_answer,
)

FEED = (
    f"<?xml version='1.0'?><rss version='2.0'><channel><title>t</title><item><title>one</title>"
    f"<link>{SITE}/one</link><pubDate>Fri, 01 May 2026 00:00:00 GMT</pubDate></item>"
    "</channel></rss>"
).encode()
SITEMAP = (
    f"<?xml version='1.0'?><urlset><url><loc>{SITE}/a</loc><lastmod>2026-05-01</lastmod></url>"
    "</urlset>"
).encode()
BROKEN = b"<?xml version='1.0'?><feed xmlns='http://www.w3.org/2005/Atom'/>"
SEEN = replace(DUE, digests=Digests(body_digest(PAGE), None), validators=Validators('"1"'))


@pytest.fixture
def stages() -> Stages:
    return Stages()


def as_role(role: Role, *, seen: bool = False) -> DueUrl:
    return replace(DUE, role=role, digests=Digests(b"another", None) if seen else None)


async def seen_once(stages: Stages, body: bytes = PAGE) -> DueUrl:
    """A page that was captured with this body."""
    visit = await stages.take(answer(body))
    stages.remember(visit)
    assert visit.capture is not None
    return replace(DUE, digests=visit.capture.digests)


# -- reduce ------------------------------------------------------------------------


async def test_a_page_is_reduced_to_a_sketch_of_its_text_and_a_capture(stages: Stages) -> None:
    page = await stages.reduce(DUE, answer(ETag='"1"'))
    assert isinstance(page, ReducedPage)
    assert page.parsed.title == page.capture.title == "T"
    assert page.capture.digests == Digests(body_digest(PAGE), page.text.text_digest, TEXT_VERSION)
    assert page.capture.sketch == page.text.to_bytes()
    assert zstandard.decompress(page.capture.body or b"") == PAGE


async def test_equal_bytes_are_not_parsed(stages: Stages) -> None:
    explosive = PAGE.replace(b"weather", b"explode")
    due = replace(DUE, digests=Digests(body_digest(explosive), None))
    assert await stages.reduce(due, answer(explosive)) == Verdict("unchanged", "body")
    result = no_answer("not_modified", 304, "")
    assert await stages.reduce(SEEN, result) == Verdict("unchanged", "304")


async def test_directives_of_the_header_and_of_the_page_add_up(stages: Stages) -> None:
    body = PAGE.replace(b"<title>", b"<meta name=robots content=nofollow><title>")
    page = await stages.reduce(DUE, answer(body, X_Robots_Tag="noarchive"))
    assert isinstance(page, ReducedPage)
    said = page.capture
    assert (said.nofollow, said.noarchive, said.noindex, said.body) == (True, True, False, None)


@pytest.mark.parametrize(
    ("role", "body", "kind"),
    [("page", FEED, ReducedFeed), ("page", SITEMAP, ReducedSitemap),
     ("feed", FEED, ReducedFeed), ("feed", PAGE, ReducedPage), ("page", BROKEN, Opaque)],
)  # fmt: skip
async def test_what_came_decides_not_what_was_due(
    stages: Stages, role: Role, body: bytes, kind: type
) -> None:
    assert type(await stages.reduce(as_role(role, seen=True), answer(body))) is kind


NO_PAGE_TYPES = [
    "application/octet-stream", "application/x-rss+xml", "application/rss",
    "application/x-atom+xml",
    "binary/octet-stream", "application/force-download", "application/x-download",
    "application/vnd.rss", "image/svg+xml", "text/css", "text/javascript", "application/x-xml",
    "application/x-gzip", "audio/mpeg", "model/x",
]  # fmt: skip
UNKNOWN_TYPES = ["", "unknown/unknown", "application/unknown", "*/*", "nonsense", "/", "text"]


@pytest.mark.parametrize("content_type", [
    *NO_PAGE_TYPES, *UNKNOWN_TYPES, "text/html", "text/plain", "application/json",
    "application/x-rss+xml; charset=utf-8",
])  # fmt: skip
@pytest.mark.parametrize(
    "body",
    [FEED, gzip.compress(FEED), b"\xef\xbb\xbf\n<!-- x -->" + FEED, SITEMAP],
    ids=["feed", "packed feed", "feed behind a mark", "sitemap"],
)
async def test_a_listing_is_known_by_its_content(
    stages: Stages, content_type: str, body: bytes
) -> None:
    visit = await stages.take(answer(body, Content_Type=content_type), as_role("feed"))
    assert visit.observation.kind == "new"
    assert visit.role == ("sitemap" if body is SITEMAP else "feed")


@pytest.mark.parametrize("role", ["feed", "page"])
@pytest.mark.parametrize("content_type", NO_PAGE_TYPES)
@pytest.mark.parametrize("body", [PAGE, b"text", b"{}", b"\0\1\2", b"", b"<svg/>"])
async def test_of_a_type_that_no_page_has_only_a_listing_is_read(
    stages: Stages, content_type: str, body: bytes, role: Role
) -> None:
    visit = await stages.take(answer(body, Content_Type=content_type), as_role(role))
    seen = visit.observation
    assert (seen.kind, seen.reason) == ("skipped", "content_type")
    assert content_type in (seen.detail or "")


@pytest.mark.parametrize("content_type", UNKNOWN_TYPES)
async def test_a_page_of_an_unknown_type_is_read_as_what_it_is(
    stages: Stages, content_type: str
) -> None:
    visit = await stages.take(answer(Content_Type=content_type))
    assert visit.observation.kind == "new"
    assert visit.capture is not None
    assert visit.capture.title == "T"


@pytest.mark.parametrize("role", ["feed", "sitemap"])
async def test_a_listing_that_was_only_tried_is_no_page_that_has_gone(
    stages: Stages, role: Role
) -> None:
    gone = no_answer("gone", 404, "http_404")
    for result in (gone, answer(PAGE)):
        failure = await stages.reduce(as_role(role), result)
        assert isinstance(failure, Verdict)
        assert (failure.kind, failure.reason) == ("skipped", f"no_{role}")
    known = await stages.reduce(as_role(role, seen=True), gone)
    assert known == Verdict("gone", reason="http_404", detail="words")


@pytest.mark.parametrize(
    ("status", "kind"),
    [(301, "permanent"), (308, "permanent"), (302, "temporary"),
     (200, "refresh")],
)  # fmt: skip
async def test_a_redirect_is_permanent_by_its_status(
    stages: Stages, status: int, kind: AliasKind
) -> None:
    result = no_answer("redirected", status, "http", location=f"{SITE}/new")
    assert await stages.reduce(DUE, result) == RedirectTarget(f"{SITE}/new", kind)


@pytest.mark.parametrize(
    ("refresh", "is_redirect"),
    [("0; url=/new", True), ("10; url=/new", True), ("11; url=/new", False), ("0; url=/p", False),
     ("0;/.well-known/sgcaptcha/?r=%2Fp", False)],
)  # fmt: skip
async def test_a_page_that_sends_its_reader_on_at_once_is_a_redirect(
    stages: Stages, refresh: str, *, is_redirect: bool
) -> None:
    meta = f'<meta http-equiv="refresh" content="{refresh}"><title>'.encode()
    found = await stages.reduce(DUE, answer(PAGE.replace(b"<title>", meta)))
    assert isinstance(found, RedirectTarget) == is_redirect
    assert not is_redirect or found == RedirectTarget(f"{SITE}/new", "refresh")


# -- compare -----------------------------------------------------------------------


async def verdict_on(stages: Stages, body: bytes, due: DueUrl = DUE) -> Verdict:
    result = answer(body)
    return await stages.compare(due, result, await stages.reduce(due, result))


async def test_a_page_is_new_then_unchanged_by_its_text_then_changed(stages: Stages) -> None:
    assert await verdict_on(stages, PAGE) == Verdict("new")
    due = await seen_once(stages)
    same_text = PAGE.replace(b"<body>", b"<body class=x>")
    same = await verdict_on(stages, same_text, due)
    assert (same.kind, same.rung, same.keeps_sketch) == ("unchanged", "text", False)
    edited = await verdict_on(stages, PAGE.replace(b"Paragraph 3", b"Paragraph three"), due)
    assert (edited.kind, edited.rung, edited.blocks_added) == ("changed", "blocks", 1)


async def test_without_a_text_the_bytes_decide(stages: Stages) -> None:
    for body in (SITEMAP, BROKEN):
        assert (await verdict_on(stages, body)).kind == "new"
        other = await verdict_on(stages, body, as_role("page", seen=True))
        assert (other.kind, other.rung) == ("changed", "body")
    assert (await verdict_on(stages, BROKEN)).reason == "unparsable"


@pytest.mark.parametrize("robots", [(), ("nofollow",)])
async def test_of_a_page_that_cannot_be_parsed_the_links_of_its_beginning_are_followed(
    stages: Stages, monkeypatch: pytest.MonkeyPatch, robots: tuple[str, ...]
) -> None:
    urls = (f"{SITE}/a", f"{SITE}/b")
    links = Links(urls, urls, ("", ""), ("A", "B"))
    read = ParsedPage(URL, "utf-8", title="T", links=links, robots_meta=robots)
    unparsable = AsyncMock(return_value=Unparsable("too deep", beginning=read))
    monkeypatch.setattr(stages.pipeline.reducer.parser, "parse", unparsable)
    visit = await stages.take(answer())
    assert visit.observation.reason == "unparsable"
    assert visit.observation.detail == "too deep; of its beginning 2 links were read"
    assert visit.capture is not None
    assert (visit.capture.title, visit.capture.sketch) == ("T", None)
    assert visit.capture.nofollow is bool(robots)
    assert visit.links is not None
    assert visit.links.urls == urls


async def test_a_page_that_says_that_it_is_not_there_is_not_content(stages: Stages) -> None:
    verdict = await verdict_on(stages, NOT_FOUND)
    assert (verdict.kind, verdict.reason) == ("failed", "soft_404")
    assert verdict.not_content is not None


async def test_links_beyond_the_limit_are_told(stages: Stages) -> None:
    links = "".join(f"<a href=/{n}>x</a>" for n in range(9)).encode()
    verdict = await verdict_on(stages, PAGE.replace(b"</body>", links))
    assert verdict.detail == "only its first 5 links were read; raise parse.max_links to read more"


REFRESHES = [
    "0; url={}", "0;url={}", "0; URL={}", "0;  Url = {}", "5; url={}", "10; url={}", "0, url={}",
    "0 url={}", "0; {}", "0; url='{}'", '0; url="{}"', "0.5; url={}", " 3 ;url={}", ".1;url={}",
]  # fmt: skip


@pytest.mark.parametrize("header", REFRESHES)
async def test_a_refresh_in_the_headers_is_a_redirect_as_one_in_the_page(
    stages: Stages, header: str
) -> None:
    for body in (PAGE, b"", b"%PDF-1.7"):
        visit = await stages.take(answer(body, Refresh=header.format("/new")))
        assert visit.alias == Alias(f"{SITE}/new", "refresh")
        assert (visit.observation.kind, visit.observation.reason) == ("redirected", "refresh")
        assert visit.capture is None
    # Also where the bytes are known.
    visit = await stages.take(answer(Refresh=header.format("/new")), SEEN)
    assert visit.alias == Alias(f"{SITE}/new", "refresh")


@pytest.mark.parametrize(
    "header",
    ["11; url=/new", "60; url=/new", "0", "5", "", "0; url=", "url=/new", "-1; url=/new",
     "0; url={URL}", "0; url={URL}#part", "0; url=mailto:a@b.example", "0; url=javascript:go()"],
)  # fmt: skip
async def test_a_refresh_in_the_headers_that_leads_nowhere_leaves_the_page(
    stages: Stages, header: str
) -> None:
    visit = await stages.take(answer(Refresh=header.replace("{URL}", URL)))
    assert (visit.observation.kind, visit.alias) == ("new", None)


async def test_a_refresh_in_the_headers_keeps_the_octets_of_its_url(stages: Stages) -> None:
    result = answer()
    headers = (*result.headers, (b"Refresh", b"0; url=/caf\xe9?q=\xfc"))
    visit = await stages.take(replace(result, headers=headers))
    assert visit.alias == Alias(f"{SITE}/caf%E9?q=%FC", "refresh")


@pytest.mark.parametrize("role", ["feed", "sitemap"])
async def test_a_listing_is_read_whatever_its_headers_tell_a_browser(
    stages: Stages, role: Role
) -> None:
    body = FEED if role == "feed" else SITEMAP
    visit = await stages.take(answer(body, Refresh="0; url=/new"), as_role(role))
    assert (visit.observation.kind, visit.role) == ("new", role)


# -- cookies of a chain ------------------------------------------------------------


def sent(stages: Stages) -> list[str | None]:
    """The Cookie header of each request."""
    return [dict(request.headers).get("Cookie") for request in stages.answers.asked]


def moved(location: str, *set_cookie: str) -> FetchResult:
    cookies = tuple((b"Set-Cookie", each.encode()) for each in set_cookie)
    return replace(no_answer("redirected", 302, "http_302", location=location), headers=cookies)


async def visited(stages: Stages, due: DueUrl, result: FetchResult) -> Visit:
    stages.world.supply(due)
    (request,) = stages.world.requests(NOON + 2.0 * len(stages.answers.asked))
    assert isinstance(request, PageRequest)
    had = stages.pipeline.comparer.redirects.cookies(due, NOON)
    headers = (("Cookie", had),) if had else ()
    stages.answers.results.append(replace(result, url=due.fetch_url, request_headers=headers))
    visit = await stages.pipeline.visit(request)
    assert isinstance(visit, Visit)
    return visit


async def test_a_cookie_goes_back_with_the_next_request_of_the_chain_and_no_further(
    stages: Stages,
) -> None:
    first = await visited(stages, DUE, moved(URL, "a=1; Path=/"))
    assert (first.observation.kind, first.retry_at) == ("redirected", NOON)
    second = await visited(stages, replace(DUE, attempt=1), answer())
    assert second.observation.kind == "new"
    await visited(stages, DUE, answer())
    assert sent(stages) == [None, "a=1", None]


async def test_a_cookie_that_was_set_on_the_way_back_opens_the_page(stages: Stages) -> None:
    check = replace(DUE, page_id=8, url=f"{SITE}/check", fetch_url=f"{SITE}/check", redirects=1)
    first = await visited(stages, DUE, moved(check.url))
    assert first.alias == Alias(check.url, "temporary")
    stages.past.aliases[URL] = 8
    back = await visited(stages, check, moved(URL, "seen=yes; Path=/; HttpOnly"))
    assert (back.observation.kind, back.alias) == (
        "redirected", Alias(URL, "temporary", again=True)
    )  # fmt: skip
    last = await visited(stages, DUE, answer())
    assert last.observation.kind == "new"
    assert sent(stages) == [None, None, "seen=yes"]


@pytest.mark.parametrize("cookie", ["", "n={}", "n=1; Max-Age=0", "n=1; Path=/elsewhere", "n=1"])
async def test_a_page_that_redirects_to_itself_for_ever_is_a_loop(
    stages: Stages, cookie: str
) -> None:
    reasons = list[str | None]()
    while "redirect_loop" not in reasons:
        set_cookie = (cookie.format(len(reasons)),) if cookie else ()
        due = replace(DUE, attempt=len(reasons))
        reasons.append((await visited(stages, due, moved(URL, *set_cookie))).observation.reason)
        assert len(reasons) <= 4
    await visited(stages, DUE, answer())
    assert sent(stages)[-1] is None


async def test_cookies_of_two_hosts_of_a_chain_go_back_to_their_own(stages: Stages) -> None:
    far = replace(
        DUE, page_id=9, url="http://h2/x", fetch_url="http://h2/x", host_id=2, redirects=1
    )
    stages.scope.add_seed("http://h2/")
    await visited(stages, DUE, moved(far.url, "a=1; Path=/; Domain=h2", "b=1"))
    await visited(stages, far, moved(f"{SITE}/end", "c=1; Path=/"))
    end = replace(DUE, page_id=8, url=f"{SITE}/end", fetch_url=f"{SITE}/end", redirects=2)
    await visited(stages, end, moved("http://h2/again"))
    again = replace(far, page_id=10, url="http://h2/again", fetch_url="http://h2/again")
    await visited(stages, again, answer())
    assert sent(stages) == [None, None, "b=1", "c=1"]


async def test_cookies_of_a_chain_that_did_not_go_on_are_forgotten_in_time(stages: Stages) -> None:
    await visited(stages, DUE, moved(URL, "a=1"))
    stages.clock.go_on_from(NOON + 901.0)
    await visited(stages, DUE, answer())
    assert sent(stages) == [None, None]


# -- record ------------------------------------------------------------------------


async def test_a_new_page_leads_on_and_is_kept(stages: Stages) -> None:
    body = PAGE.replace(b"</body>", b'<a href="/a">a</a><a href="http://h2/">b</a>')
    modified = formatdate(NOON - 1e6, usegmt=True)
    visit = await stages.take(answer(body, ETag='"1"', Last_Modified=modified))
    seen = visit.observation
    assert (seen.page_id, seen.at, seen.kind, seen.size_bytes) == (7, NOON, "new", len(body))
    assert (visit.due, visit.fetches, visit.charged, visit.retry_at) == (DUE, 1, True, None)
    assert visit.links is not None
    assert visit.links.urls == (f"{SITE}/a", "http://h2/")
    assert visit.offsite == {1}
    assert visit.targets is not None
    assert visit.targets.urls == [f"{SITE}/a"]
    assert visit.validators == Validators('"1"', modified)
    assert visit.said is not None
    assert (visit.said.kind, visit.said.url, len(visit.said.claims)) == ("last_modified", None, 1)
    assert visit.host == stages.world.frontier.host_state(1)
    assert visit.capture is not None


async def test_links_of_a_nofollow_page_are_known_and_held_back(stages: Stages) -> None:
    feed = b"<link rel=alternate type=application/rss+xml href=/f><title>"
    body = PAGE.replace(b"<title>", feed).replace(b"</body>", b"<a href=/a>a</a>")
    visit = await stages.take(answer(body, X_Robots_Tag="nofollow"))
    assert visit.targets is not None
    assert (visit.targets.urls, visit.targets.column("held_back")) == ([f"{SITE}/a"], ["nofollow"])
    followed = await stages.take(answer(body))
    assert followed.targets is not None
    assert followed.targets.column("roles") == ["page", "feed"]


async def test_of_an_unchanged_text_no_second_sketch_is_kept(stages: Stages) -> None:
    due = await seen_once(stages)
    visit = await stages.take(answer(PAGE.replace(b"<body>", b"<body class=x>")), due)
    assert visit.observation.kind == "unchanged"
    assert visit.capture is not None
    assert (visit.capture.sketch, visit.capture.body is None) == (None, False)
    # Of equal bytes nothing is kept but the validators.
    visit = await stages.take(answer(ETag='"2"'), SEEN)
    expected = Visit(
        due=SEEN, observation=visit.observation, validators=Validators('"2"'),
        noindex=False, host=visit.host, signs=visit.signs,
    )  # fmt: skip
    assert visit == expected
    assert (visit.observation.kind, visit.observation.rung) == ("unchanged", "body")


async def test_of_what_is_not_content_nothing_is_kept_or_followed(stages: Stages) -> None:
    body = NOT_FOUND.replace(b"</body>", b"<a href=/a>a</a></body>")
    visit = await stages.take(answer(body))
    assert (visit.observation.kind, visit.observation.status) == ("failed", 200)
    assert (visit.capture, visit.links, visit.targets, visit.signs) == (None, None, None, None)
    assert (visit.observation.size_bytes, visit.retry_at) == (None, None)
    assert visit.not_content is not None


async def test_links_and_feeds_of_a_page_that_needs_javascript_are_followed(stages: Stages) -> None:
    body = (
        b"<link rel=alternate type=application/rss+xml href=/f><nav><a href=/a>a</a></nav>"
        b"<div id=root></div><script type=module src=/app.js></script>"
    )
    visit = await stages.take(answer(body, ETag='"2"'), SEEN)
    assert (visit.observation.kind, visit.observation.reason) == ("failed", "needs_javascript")
    assert visit.targets is not None
    assert (visit.targets.urls, visit.targets.column("roles")) == (
        [f"{SITE}/a", f"{SITE}/f"], ["page", "feed"]
    )  # fmt: skip
    # What is known of the content before stays. The page is asked in full: a browser may build it.
    assert (visit.capture, visit.links, visit.validators) == (None, None, Validators())
    assert (visit.role, visit.retry_at) == ("page", None)


async def test_a_host_that_turns_us_away_is_left_alone_and_asked_again(stages: Stages) -> None:
    visit = await stages.take(answer(TOO_MANY))
    assert visit.observation.reason == "rate_limited_page"
    assert visit.retry_at is not None
    assert visit.retry_at > NOON
    assert visit.host is not None
    assert visit.host.parked_until is not None
    assert visit.host.parked_until > NOON
    assert visit.host.parked_reason == "rate_limited_page"


async def test_a_redirect_makes_its_url_an_alias_and_its_target_due(stages: Stages) -> None:
    result = no_answer("redirected", 301, "http_301", location=f"{SITE}/new")
    visit = await stages.take(result)
    seen = visit.observation
    assert (seen.kind, seen.reason, seen.detail) == ("redirected", "permanent", f"{SITE}/new")
    assert visit.alias == Alias(f"{SITE}/new", "permanent")
    assert visit.targets is not None
    assert visit.targets.urls == [f"{SITE}/new"]
    respelled = await stages.take(replace(result, location=f"{URL}?utm_source=x"))
    assert (respelled.retry_at, respelled.fetch_url) == (NOON, f"{URL}?utm_source=x")
    assert (respelled.targets, respelled.alias) == (None, None)


async def test_a_redirect_that_leads_nowhere_is_a_failure(stages: Stages) -> None:
    result = no_answer("redirected", 301, "http_301", location=URL)
    visit = await stages.take(result)
    assert (visit.observation.kind, visit.observation.reason) == ("failed", "redirect_loop")
    assert (visit.alias, visit.targets, visit.retry_at) == (None, None, None)


@pytest.mark.parametrize(
    ("status", "reason", "is_retried", "charged"),
    [(500, "http_500", True, True), (None, "dns", True, False), (None, "tls", False, False),
     (200, "too_large", False, True)],
)  # fmt: skip
async def test_a_failure_is_tried_again_if_it_may_pass(
    stages: Stages, status: int | None, reason: str, *, is_retried: bool, charged: bool
) -> None:
    due = as_role("sitemap", seen=True)
    visit = await stages.take(no_answer("failed", status, reason), due)
    seen = visit.observation
    assert (seen.kind, seen.status, seen.reason, seen.detail) == (
        "failed", status, reason, "words",
    )  # fmt: skip
    assert (visit.role, visit.validators, seen.duration_s) == ("sitemap", None, 1.0)
    assert (visit.retry_at is not None, visit.charged) == (is_retried, charged)


async def test_a_page_that_has_gone_is_no_failure(stages: Stages) -> None:
    visit = await stages.take(no_answer("gone", 404, "http_404"), SEEN)
    assert (visit.observation.kind, visit.retry_at, visit.charged) == ("gone", None, True)


@pytest.mark.parametrize(("body", "role"), [(FEED, "feed"), (SITEMAP, "sitemap")])
async def test_a_listing_leads_on_and_claims(stages: Stages, body: bytes, role: Role) -> None:
    visit = await stages.take(answer(body))
    assert visit.said is not None
    assert (visit.role, visit.said.kind, visit.said.url) == (role, str(role), visit.due.url)
    assert visit.targets is not None
    assert [claim.url for claim in visit.said.claims] == visit.targets.urls
    assert visit.links is not None


# -- the pipeline ------------------------------------------------------------------


async def test_validators_are_sent_where_there_is_a_capture(stages: Stages) -> None:
    stages.world.supply(SEEN, replace(SEEN, digests=None))
    for at in (NOON, NOON + 2):
        (request,) = stages.world.requests(at)
        assert isinstance(request, PageRequest)
        stages.answers.results.append(answer())
        await stages.pipeline.visit(request)
    assert stages.answers.asked == [Request(URL, validators=SEEN.validators), Request(URL)]


async def test_a_sitemap_is_asked_for_as_such_and_up_to_its_limit(stages: Stages) -> None:
    stages.world.supply(as_role("sitemap"))
    (request,) = stages.world.requests(NOON)
    assert isinstance(request, PageRequest)
    stages.answers.results.append(answer(SITEMAP))
    visit = await stages.pipeline.visit(request)
    assert stages.answers.asked == [Request(URL, "sitemap", max_body_bytes=50_000)]
    assert visit.host is not None
    assert visit.host.last_exchange_at == NOON


@pytest.mark.parametrize(
    ("due", "is_any_type"), [(as_role("feed"), True), (replace(DUE, seed_id=1), True), (DUE, False)]
)
async def test_a_listing_that_is_named_is_read_under_any_media_type(
    stages: Stages, due: DueUrl, is_any_type: bool
) -> None:
    stages.world.supply(due)
    (request,) = stages.world.requests(NOON)
    assert isinstance(request, PageRequest)
    stages.answers.results.append(answer(FEED))
    await stages.pipeline.visit(request)
    assert stages.answers.asked == [Request(URL, is_any_type=is_any_type)]


async def test_a_hostile_page_fails_by_itself_and_the_crawl_goes_on(
    stages: Stages, caplog: pytest.LogCaptureFixture
) -> None:
    visit = await stages.take(answer(PAGE.replace(b"weather", b"explode")))
    seen = visit.observation
    assert (seen.kind, seen.status, seen.reason) == ("failed", 200, "internal")
    assert "a hostile page" in (seen.detail or "")
    assert (visit.capture, visit.retry_at, visit.host is None) == (None, None, False)
    assert "could not be processed" in caplog.text
    assert (await stages.take(answer())).observation.kind == "new"


@pytest.mark.parametrize("lost", [1, 2])
async def test_a_page_whose_parser_is_lost_is_parsed_again_and_no_failure_of_its_own(
    stages: Stages, lost: int
) -> None:
    parser = stages.pipeline.reducer.parser
    assert isinstance(parser, InlineParser)
    parser.lost = lost
    visit = await stages.take(answer())
    seen = visit.observation
    assert (seen.kind, seen.reason) == [("new", None), ("failed", "parser")][lost - 1]
    assert (visit.capture is None, visit.retry_at is None) == (lost == 2, lost == 1)


async def test_a_url_that_is_not_asked_for_costs_no_request() -> None:
    seen = Observation(7, NOON, "refused", reason="robots")
    visit = unasked(as_role("feed"), seen)
    assert (visit.fetches, visit.role, visit.observation) == (0, "feed", seen)


PIECES = st.sampled_from([
    PAGE, PROSE.encode(), NOT_FOUND, TOO_MANY, FEED, SITEMAP, BROKEN, b"<a href=/x>", b"<p>",
    b"\xff", b"explode",
])  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(
    pieces=st.lists(PIECES, max_size=3),
    outcome=st.sampled_from(get_args(Outcome)),
    role=st.sampled_from(get_args(Role)),
    seen=st.booleans(),
    location=st.sampled_from([None, URL, f"{SITE}/new", "http://h2/", "http://:0:0/"]),
)
async def test_whatever_comes_is_one_visit_and_a_failure_keeps_nothing(
    pieces: list[bytes], outcome: Outcome, role: Role, location: str | None, *, seen: bool
) -> None:
    fetched = outcome == "fetched"
    result = replace(
        answer(b"".join(pieces)), outcome=outcome, location=location,
        status=200 if fetched else 500, reason=None if fetched else "http_500",
    )  # fmt: skip
    due = as_role(role, seen=seen)
    visit = await Stages().take(result, due)
    kind = visit.observation.kind
    assert (visit.due, visit.observation.at, visit.host is None) == (due, NOON, False)
    is_content = kind in {"new", "changed", "unchanged"}
    assert (visit.capture is not None) == (is_content and fetched)
    assert (visit.signs is not None) == is_content
    if kind == "failed":
        leads = (visit.links, visit.targets, visit.alias, visit.memory, visit.advertised)
        assert leads == (None,) * 5
    if visit.retry_at is not None and kind != "failed":
        assert visit.fetch_url is not None
