"""The not-content check: what a page shows, what its host showed before, and what a probe shows."""

import asyncio
from dataclasses import replace
from random import Random

import pytest

from freshet.crawler.compare.not_content.check import CheckedPage, NotContentCheck
from freshet.crawler.compare.not_content.host import HostJudge
from freshet.crawler.compare.not_content.page import NotContentKind
from freshet.crawler.reduce.page import ParsedPage
from freshet.crawler.reduce.parser_process import Parser
from freshet.crawler.reduce.sketch import sketch
from freshet.storage.records import Digests, DueUrl, FetchResult, PageHistory, Rejected
from tests.crawler.stages import NOON, NOT_FOUND, PAGE, PROSE, SITE, Past, answer

#: A page that does not say that it is none, but shows the same for any URL.
HOME = b"<title>Shop</title><body><p>Welcome to our shop of bells.</p></body>"


def due(number: int, digests: Digests | None = None) -> DueUrl:
    url = f"{SITE}/{number}"
    return DueUrl(number, url, url, host_id=1, due_at=NOON, digests=digests)


class Checked:
    """A check of one host's pages; ``probes`` are the URLs that were asked for."""

    def __init__(self, nowhere: FetchResult | None = None) -> None:
        self.past = Past()
        self.probes: list[str] = []
        self._nowhere = nowhere
        self._parser = Parser()
        self._check = NotContentCheck(self.past.queries(), self._parser, Random(0), ask=self._ask)

    async def _ask(self, host_id: int, url: str) -> FetchResult | None:
        self.probes.append(url)
        await asyncio.sleep(0)
        return self._nowhere

    async def see(
        self,
        number: int,
        body: bytes,
        digests: Digests | None = None,
        kind: str = "text/html",
        rejected: Rejected | None = None,
    ) -> CheckedPage:
        result = answer(body, f"{SITE}/{number}", at=NOON + number, Content_Type=kind)
        parsed = await self._parser.parse(body, result.url, kind)
        assert isinstance(parsed, ParsedPage)
        text = sketch(parsed.blocks.texts, parsed.blocks.places)
        known = replace(due(number, digests), rejected=rejected)
        return await self._check.check(known, result, parsed, text)


async def test_a_page_of_many_words_is_content_and_costs_no_probe() -> None:
    host = Checked()
    long = PAGE.replace(PROSE.encode(), 10 * PROSE.encode())
    assert [await host.see(n, long) for n in range(3)] == [CheckedPage()] * 3
    assert host.probes == []


async def test_plain_text_is_content_whatever_it_says() -> None:
    assert await Checked().see(1, b"404 Not Found", kind="text/plain") == CheckedPage()


async def test_a_page_that_says_what_it_is_is_known_by_itself() -> None:
    checked = await Checked().see(1, NOT_FOUND)
    assert checked.verdict is not None
    assert checked.verdict.kind is NotContentKind.SOFT_404
    assert checked.not_content is not None


async def test_what_a_host_shows_for_any_url_is_no_content_also_of_earlier_pages() -> None:
    host = Checked(answer(HOME, f"{SITE}/nowhere"))
    first = await host.see(1, HOME)
    second = await host.see(2, HOME)
    assert len(host.probes) == 1
    assert second.verdict is not None
    assert second.verdict.kind is NotContentKind.SOFT_404
    taken_back = {each.page_id for each in (*first.retractions, *second.retractions)}
    assert taken_back == ({1} if first.verdict is None else set())
    assert HostJudge.from_bytes(second.not_content).shows_pages(NOON + 3)


async def test_a_host_that_answers_honestly_is_probed_once() -> None:
    host = Checked(FetchResult(f"{SITE}/nowhere", "gone", NOON, 0.1, 404))
    assert [(await host.see(n, HOME)).verdict for n in range(1, 5)] == [None] * 4
    assert len(host.probes) == 1


async def test_pages_of_a_host_that_come_together_share_its_probe() -> None:
    host = Checked(answer(HOME, f"{SITE}/nowhere"))
    found = await asyncio.gather(*(host.see(n, HOME) for n in range(1, 5)))
    assert len(host.probes) == 1
    retracted = {each.page_id for checked in found for each in checked.retractions}
    block_pages = {n for n, checked in enumerate(found, 1) if checked.verdict is not None}
    assert block_pages | retracted == {1, 2, 3, 4}


async def test_the_history_that_had_to_be_read_is_passed_on() -> None:
    host = Checked()
    old = sketch(["An article of some words that stood here until yesterday."] * 3)
    host.past.histories[1] = history = PageHistory(old.to_bytes(), None, 0)
    checked = await host.see(1, NOT_FOUND, Digests(b"old", old.text_digest))
    assert checked.history == history
    assert checked.verdict is not None


async def test_a_wall_whose_text_was_captured_takes_that_capture_back() -> None:
    host = Checked()
    parsed = await Parser().parse(NOT_FOUND, f"{SITE}/1", "text/html")
    assert isinstance(parsed, ParsedPage)
    text = sketch(parsed.blocks.texts, parsed.blocks.places)
    checked = await host.see(1, NOT_FOUND, Digests(b"old", text.text_digest))
    (retraction,) = checked.retractions
    assert (retraction.page_id, retraction.at, retraction.reason) == (1, None, "soft_404")
    assert replace(checked, retractions=()).verdict is not None


@pytest.mark.parametrize(
    ("gap_s", "is_taken_back"),
    [
        (1, True), (60, True), (600, True), (3_500, True), (3_700, False), (7_200, False),
        (86_400, False), (7 * 86_400, False), (30 * 86_400, False), (200 * 86_400, False),
    ],
)  # fmt: skip
async def test_a_probe_takes_back_only_what_was_seen_shortly_before_it(
    gap_s: int, is_taken_back: bool
) -> None:
    host = Checked(answer(HOME, f"{SITE}/nowhere"))
    assert (await host.see(1, HOME)).verdict is None
    second = await host.see(1 + gap_s, HOME)
    assert second.verdict is not None
    assert [each.page_id for each in second.retractions] == [1] * is_taken_back
    assert all(each.since >= NOON + 1 + gap_s - 3_600 for each in second.retractions)


async def test_of_its_own_captures_a_page_takes_back_those_since_the_probe() -> None:
    host = Checked(answer(HOME, f"{SITE}/nowhere"))
    parsed = await Parser().parse(HOME, f"{SITE}/1", "text/html")
    assert isinstance(parsed, ParsedPage)
    text = sketch(parsed.blocks.texts, parsed.blocks.places)
    known = Digests(b"old", text.text_digest)
    await host.see(1, HOME, known)
    second = await host.see(9_000, HOME, known)
    (own,) = second.retractions
    assert (own.page_id, own.at, own.since) == (9_000, None, NOON + 9_000 - 3_600)


async def test_a_page_that_may_be_none_is_content_with_a_remark() -> None:
    host = Checked(FetchResult(f"{SITE}/nowhere", "gone", NOON, 0.1, 404))
    login = b"<title>Choir</title><h1>Members</h1><p>Please log in to see the minutes of the choir."
    first, second = await host.see(1, login), await host.see(2, login)
    assert (first.verdict, first.remark, second.verdict) == (None, None, None)
    assert second.remark == "its text may say that a reader must log in or subscribe"


async def test_a_page_that_was_rejected_before_takes_back_nothing_more() -> None:
    host = Checked()
    parsed = await Parser().parse(NOT_FOUND, f"{SITE}/1", "text/html")
    assert isinstance(parsed, ParsedPage)
    text = sketch(parsed.blocks.texts, parsed.blocks.places)
    rejected = Rejected(b"digest", "soft_404", NOON)
    checked = await host.see(1, NOT_FOUND, Digests(b"old", text.text_digest), rejected=rejected)
    assert checked.verdict is not None
    assert checked.retractions == ()
