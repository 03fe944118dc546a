"""A request that fails is repeated once, without what we add to requests."""

from dataclasses import replace

import pytest

from freshet.crawler.fetch.client import request_headers
from freshet.crawler.frontier.frontier import PageRequest
from freshet.crawler.reduce.blocks import TEXT_VERSION
from freshet.storage.entries import Outcome, Repeats
from freshet.storage.records import Digests, DueUrl, FetchResult, StoreUpdate, Validators, Visit
from tests.crawler.frontier.frontier_world import ALLOW, parsed
from tests.crawler.run.test_requester import FILE, Hosts
from tests.crawler.stages import DUE, NOON, PAGE, URL, Stages, answer

DAY_S = 86_400.0
SENT = (("Host", "h1"), ("Accept-Encoding", "gzip, deflate, br, zstd"))
KNOWN = replace(DUE, digests=Digests(b"old", b"text", TEXT_VERSION), validators=Validators('"v"'))


def failed(
    status: int | None = None,
    reason: str | None = None,
    *headers: tuple[bytes, bytes],
    url: str = URL,
    outcome: Outcome = "failed",
    sent: tuple[tuple[str, str], ...] = SENT,
    at: float = NOON,
) -> FetchResult:
    return FetchResult(
        url, outcome, at - 1.0, 1.0, status, reason or f"http_{status}", "words",
        request_headers=sent, headers=headers,
    )  # fmt: skip


class Site(Stages):
    """Visits of one page, as the frontier hands it out."""

    async def visit(
        self, due: DueUrl, result: FetchResult, at: float = NOON
    ) -> Visit | StoreUpdate:
        for host_id in (1, 2):
            self.world.settle(host_id, parsed(ALLOW, at), at)
        self.world.supply(due)
        return await self.go_on(result, at)

    async def go_on(self, result: FetchResult, at: float) -> Visit | StoreUpdate:
        self.clock.go_on_from(at)
        (request,) = self.world.requests(at)
        assert isinstance(request, PageRequest)
        self.answers.results.append(result)
        return await self.pipeline.visit(request)

    async def visit_twice(
        self, due: DueUrl, first: FetchResult, second: FetchResult, at: float = NOON,
        pause_s: float = 900.0,
    ) -> Visit:  # fmt: skip
        entry = await self.visit(due, first, at)
        assert isinstance(entry, StoreUpdate)
        assert entry.fetches == 1
        # Not before the delay of the host is over.
        assert self.world.requests(at) == []
        visit = await self.go_on(second, at + pause_s)
        assert isinstance(visit, Visit)
        return visit


@pytest.fixture
def site() -> Site:
    return Site()


REPEATED = {
    **{str(status): (status, None) for status in (400, 406, 408, 412, 416, 431, 500, 501)},
    "a hang-up": (None, "hung_up"),
    "half a head": (None, "cut_short"),
    "a hang-up on a kept connection": (None, "stale"),
    "a head that cannot be read": (None, "protocol"),
    "a head that is too large": (200, "headers_too_large"),
    "a body that does not decode": (200, "encoding"),
    "a body that ends early": (200, "cut_short"),
    "a redirect that ends early": (302, "cut_short"),
    "a 304 with rubbish": (304, "protocol"),
}


@pytest.mark.parametrize("due", [DUE, KNOWN], ids=["plain", "conditional"])
@pytest.mark.parametrize(("status", "reason"), REPEATED.values(), ids=REPEATED)
async def test_a_request_that_fails_is_repeated_once_as_a_plain_one(
    site: Site, status: int | None, reason: str | None, due: DueUrl
) -> None:
    visit = await site.visit_twice(due, failed(status, reason), answer())
    assert (visit.fetches, visit.observation.status) == (1, 200)
    full, plain = site.answers.asked
    assert (full.url, full.is_plain) == (plain.url, False)
    assert plain.is_plain
    headers = request_headers(plain)
    assert headers == {"Accept": "*/*", "Accept-Encoding": "identity", "Connection": "close"}
    assert (reason or f"http_{status}") in (visit.observation.detail or "")


NOT_REPEATED = {
    **{
        f"{status}": failed(status, outcome="gone" if status in (404, 410) else "failed")
        for status in (401, 402, 403, 404, 405, 407, 409, 410, 421, 429, 451, 502, 503, 504)
    },
    "500 with Retry-After": failed(500, None, (b"Retry-After", b"1")),
    "400 with a date": failed(400, None, (b"retry-after", b"Sun, 06 Nov 1994 08:49:37 GMT")),
    "a cut body with Retry-After": failed(200, "cut_short", (b"Retry-After", b"soon")),
    "a cut body of a 503": failed(503, "cut_short"),
    "no address": failed(None, "no_such_host", sent=()),
    "no connection": failed(None, "connect", sent=()),
    "no certificate": failed(None, "tls", sent=()),
    "silence": failed(None, "timeout_headers"),
    "a slow body": failed(200, "too_slow"),
    "a body that is too large": failed(200, "too_large"),
    "a picture": failed(200, "content_type", outcome="skipped"),
    "a page that a browser has rendered": replace(failed(500), requests={}),
    "a request that was plain": failed(500, sent=(*SENT[:1], ("Accept-Encoding", "identity"))),
}


@pytest.mark.parametrize("result", NOT_REPEATED.values(), ids=NOT_REPEATED)
async def test_other_failures_are_not_repeated(site: Site, result: FetchResult) -> None:
    entry = await site.visit(KNOWN, result)
    assert isinstance(entry, Visit)
    assert (entry.repeats, entry.plain_at) == (None, None)


async def test_a_repeat_that_fails_is_not_repeated(site: Site) -> None:
    visit = await site.visit_twice(DUE, failed(500), failed(500))
    assert (visit.observation.kind, visit.plain_at) == ("failed", None)
    assert visit.repeats == (1, Repeats(0, 1, NOON))


@pytest.mark.parametrize("days", [0.1, 1, 7, 29])
async def test_a_page_that_only_a_plain_request_reads_gets_one_at_once(
    site: Site, days: float
) -> None:
    visit = await site.visit_twice(KNOWN, failed(500), answer())
    assert visit.plain_at == NOON
    known = replace(KNOWN, plain_at=visit.plain_at)
    assert isinstance(await site.visit(known, answer(), NOON + days * DAY_S), Visit)
    assert site.answers.asked[-1].is_plain


async def test_after_a_month_the_page_gets_a_full_request_again(site: Site) -> None:
    known = replace(KNOWN, plain_at=NOON)
    await site.visit(known, answer(), NOON + 31 * DAY_S)
    assert not site.answers.asked[-1].is_plain
    assert site.answers.asked[-1].validators == KNOWN.validators


async def three_times(site: Site, first: FetchResult, second: FetchResult) -> None:
    for n in range(3):
        at = NOON + n * 7_200
        await site.visit_twice(replace(KNOWN, page_id=n), first, replace(second, started_at=at), at)


async def test_after_three_pages_all_requests_to_the_host_are_plain(site: Site) -> None:
    await three_times(site, failed(500), answer())
    other = replace(DUE, page_id=9, url=f"{URL}9", fetch_url=f"{URL}9")
    assert isinstance(await site.visit(other, answer(), NOON + DAY_S), Visit)
    assert site.answers.asked[-1].is_plain
    await site.visit(replace(other, host_id=2), answer(), NOON + DAY_S)
    await site.visit(other, answer(), NOON + 40 * DAY_S)
    assert [each.is_plain for each in site.answers.asked[-2:]] == [False, False]


async def test_a_304_clears_its_host(site: Site) -> None:
    await three_times(site, failed(500), answer())
    await site.visit(KNOWN, answer(), NOON + 40 * DAY_S)
    fine = failed(304, "", outcome="not_modified", at=NOON + 40 * DAY_S)
    entry = await site.visit(KNOWN, fine, NOON + 41 * DAY_S)
    assert isinstance(entry, Visit)
    assert entry.repeats is not None
    assert entry.repeats[1].helped == 0


async def test_connections_that_went_stale_tell_nothing_of_host_and_page(site: Site) -> None:
    await three_times(site, failed(None, "stale"), answer())
    assert site.world.frontier.repeats(1) == Repeats()
    await site.visit(KNOWN, answer(), NOON + DAY_S)
    assert not site.answers.asked[-1].is_plain


async def test_after_three_repeats_in_vain_a_host_gets_none_for_a_day(site: Site) -> None:
    await three_times(site, failed(500), failed(500))
    at = site.world.frontier.repeats(1).repeated_at
    assert isinstance(await site.visit(KNOWN, failed(500, at=at + 8_000), at + 8_000), Visit)
    later = at + DAY_S
    # The host is left alone for a while after so many failures.
    visit = await site.visit_twice(KNOWN, failed(500, at=later), answer(at=later), later, 30_000.0)
    assert visit.repeats == (1, Repeats(1, 0, later))


@pytest.mark.parametrize(
    ("times", "days", "conditional"),
    [(0, 0, True), (1, 1, True), (49, 1, True), (50, 1, False), (51, 1, False), (300, 1, False),
     (0, 89, True), (0, 90, False), (1, 91, False), (49, 89.9, True), (3, 400, False)],
)  # fmt: skip
async def test_now_and_then_a_page_is_requested_without_validators(
    site: Site, times: int, days: float, conditional: bool
) -> None:
    due = replace(KNOWN, not_modified=times, read_at=NOON - days * DAY_S)
    await site.visit(due, answer(PAGE))
    (asked,) = site.answers.asked
    assert asked.is_conditional == conditional
    assert not asked.is_plain


# -- robots.txt ----------------------------------------------------------------


@pytest.fixture
async def hosts() -> Hosts:
    return Hosts()


def robots(status: int | None, reason: str | None = None) -> FetchResult:
    return failed(status, reason, url="http://h1/robots.txt")


@pytest.mark.parametrize(("status", "reason"), REPEATED.values(), ids=REPEATED)
async def test_a_robots_txt_is_requested_once_more(
    hosts: Hosts, status: int | None, reason: str | None
) -> None:
    hosts.stages.world.frontier.ask_robots(1)
    (note,) = await hosts.perform_next(robots(status, reason))
    assert isinstance(note, StoreUpdate)
    assert (note.fetches, note.robots) == (1, None)
    assert await hosts.perform_next() == []
    (read,) = await hosts.perform_next(answer(FILE, "http://h1/robots.txt"), at=NOON + 900)
    assert isinstance(read, StoreUpdate)
    assert read.robots is not None
    assert read.robots[1].standing == "parsed"
    assert [each.is_plain for each in hosts.stages.answers.asked] == [False, True]


@pytest.mark.parametrize("status", [401, 403, 404, 410, 429, 451, 503])
async def test_the_answer_of_a_robots_txt_stands(hosts: Hosts, status: int) -> None:
    hosts.stages.world.frontier.ask_robots(1)
    (note,) = await hosts.perform_next(robots(status))
    assert isinstance(note, StoreUpdate)
    assert note.robots is not None


async def test_a_robots_txt_that_fails_twice_closes_its_host(hosts: Hosts) -> None:
    hosts.stages.world.frontier.ask_robots(1)
    await hosts.perform_next(robots(500))
    (note,) = await hosts.perform_next(robots(500), at=NOON + 900)
    assert isinstance(note, StoreUpdate)
    assert note.robots is not None
    # The older copy stays in force for a while.
    assert note.robots[1].stale_since is not None
    assert note.repeats == (1, Repeats(0, 1, NOON))
