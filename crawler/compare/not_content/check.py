"""The not-content check: soft 404s and block pages that came with the status 200.

Only pages of few words are checked. The signs of a host are held for a run, and stored if they
cost a request or decided a verdict. The visit that proves an earlier capture to be a block page
retracts that capture.

The check may send a probe: a request for a page that cannot exist. The frontier sends it politely,
before the host's next page. A visit that waits for a probe has ended its own request, so it blocks
no other.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cache, partial
from random import Random
from typing import Final

from freshet.crawler.compare.ladder import PageHistories
from freshet.crawler.compare.not_content.cues import is_short, may_wait, tells
from freshet.crawler.compare.not_content.host import (
    MOST_PENDING,
    ORDER_S,
    HostJudge,
    needs_javascript,
    probe_url,
)
from freshet.crawler.compare.not_content.page import (
    NotContent,
    PageFacts,
    is_another_text,
    read_signs,
)
from freshet.crawler.lru import LruCache
from freshet.crawler.reduce.page import ParsedPage
from freshet.crawler.reduce.parser_process import Parser, ParserLost, Unparsable
from freshet.crawler.reduce.sketch import Sketch, sketch
from freshet.storage.entries import Retraction
from freshet.storage.records import Digests, DueUrl, FetchResult, PageHistory

#: Hosts whose signs are held.
_HOSTS: Final = 512
#: A host of which only one page was seen is not probed.
_PROBED_FROM: Final = 2


class Probes:
    """Probes under way, one for a host; ``waiting`` counts the visits that wait.

    ``queue`` hands a probe to the frontier; it returns whether robots.txt allows it.
    """

    def __init__(self, queue: Callable[[int, str], bool]) -> None:
        self._queue = queue
        self._answers: dict[int, asyncio.Future[FetchResult | None]] = {}
        self._queued: Callable[[], None] | None = None
        self._is_over = False
        self.waiting = 0

    def begin(self, queued: Callable[[], None]) -> None:
        """Allow probes, and call ``queued`` for each new one."""
        self._queued, self._is_over = queued, False

    async def ask(self, host_id: int, url: str) -> FetchResult | None:
        """Return the response to a probe; None if robots.txt forbids it or the run ends first.

        A host has at most one probe under way; concurrent callers share its response.
        """
        answer = self._answers.get(host_id)
        if answer is None:
            if self._is_over or not self._queue(host_id, url):
                return None
            answer = self._answers[host_id] = asyncio.get_running_loop().create_future()
            if self._queued is not None:
                self._queued()
        self.waiting += 1
        try:
            # Other visits wait for the same response: it must come even if this visit is cancelled.
            return await asyncio.shield(answer)
        finally:
            self.waiting -= 1

    def answered(self, host_id: int, result: FetchResult) -> None:
        """Pass a probe's response to the visits that wait for it."""
        answer = self._answers.pop(host_id, None)
        if answer is not None:
            answer.set_result(result)

    def give_up(self) -> None:
        """Send no more probes; waiting visits go on without a response."""
        self._is_over = True
        for answer in self._answers.values():
            answer.set_result(None)
        self._answers.clear()


@dataclass(frozen=True, slots=True)
class CheckedPage:
    """The result of the check, and the host's block pages in bytes if they are to be stored.

    ``verdict`` is None for content; ``retractions`` are of captures that prove to be block pages;
    ``history`` is the page's, if it was read. ``remark`` says why a page may not be content after
    all.
    """

    verdict: NotContent | None = None
    not_content: bytes | None = None
    retractions: tuple[Retraction, ...] = ()
    history: PageHistory | None = None
    remark: str | None = None


@dataclass(slots=True)
class _Host:
    """A host; ``turn`` serializes its pages, so that one probe serves them all.

    ``taken`` are the visits that passed as content, by URL: page id and Unix seconds.
    """

    known: HostJudge
    pages: int = 0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    taken: LruCache[str, tuple[int, float]] = field(default_factory=lambda: LruCache(MOST_PENDING))

    def judge(self, due: DueUrl, facts: PageFacts, at: float) -> NotContent | None:
        """Judge a page, and remember its visit if it passes as content."""
        self.taken.pop(due.fetch_url, None)
        verdict = self.known.judge(facts, at)
        if verdict is None:
            self.taken[due.fetch_url] = due.page_id, at
        return verdict

    def retractions(
        self, verdicts: Mapping[str, NotContent], by: str, now: float
    ) -> Iterator[Retraction]:
        """Yield retractions of these URLs' visits, which the page at ``by`` proves wrong now."""
        since = now - ORDER_S
        for url, verdict in verdicts.items():
            visit = self.taken.pop(url, None)
            if visit is not None and visit[1] >= since:
                why = f"known since {by} was seen: {verdict.why}"
                yield Retraction(*visit, str(verdict.kind), why, max(since, verdict.since))


_CONTENT: Final = CheckedPage()


@dataclass(slots=True, eq=False)
class NotContentCheck:
    """The check for one run. ``ask`` sends a probe and returns its response (None: no probes)."""

    past: PageHistories
    parser: Parser
    rng: Random
    _: KW_ONLY
    ask: Callable[[int, str], Awaitable[FetchResult | None]] | None = None
    _hosts: LruCache[int, _Host] = field(default_factory=lambda: LruCache(_HOSTS), init=False)

    async def check(
        self, due: DueUrl, result: FetchResult, parsed: ParsedPage, new: Sketch
    ) -> CheckedPage:
        """Judge a page by its main text (``new`` is its sketch) and by its host's block pages."""
        if parsed.is_plain:
            return _CONTENT
        texts = parsed.blocks.texts
        had_content, history = None, None
        if due.digests is not None and is_short(texts, had_content=True):
            had_content, history = await self._before(due, due.digests, new)
        if not is_short(texts, had_content=had_content):
            return CheckedPage(history=history)
        host = await self._host(due.host_id)
        async with host.turn:
            host.pages += 1
            suspicious = bool(had_content) or tells(parsed.title, texts, result.body)
            # Read at most once, and only for a page that is judged.
            facts = cache(
                partial(facts_of, result, due.fetch_url, parsed, new, had_content=had_content)
            )
            waits = may_wait(texts, result.body)
            checked = await self._judged(
                host, due, facts, result.ended_at, suspicious=suspicious, waits=waits
            )
            return checked if history is None else replace(checked, history=history)

    async def _judged(
        self,
        host: _Host,
        due: DueUrl,
        facts: Callable[[], PageFacts],
        now: float,
        *,
        suspicious: bool,
        waits: bool,
    ) -> CheckedPage:
        """Judge a page; without a sign it is only compared with its host's known block pages."""
        judge, verdict, shown, remark = host.known, None, None, None
        several = host.pages >= _PROBED_FROM
        # The first page may be a block page that only the next one's probe shows.
        is_first = not several and judge.wants_probe(now)
        if suspicious or is_first or judge.shows_pages(now):
            verdict = host.judge(due, facts(), now)
            remark = judge.suspicion
        elif waits:
            verdict = needs_javascript(facts())
        if verdict is None and judge.wants_probe(now, several=several):
            shown = await self._probed(judge, due, now)
            if shown is not None and judge.shows_pages(now):
                verdict = host.judge(due, facts(), now)
        known = {**(shown or {}), **(dict.fromkeys(verdict.earlier, verdict) if verdict else {})}
        retractions = list(host.retractions(known, due.url, now))
        # A page without any text is judged by its markup only: it may have been content then.
        # One that was known at the last visit has taken back then what it proves.
        text = None if due.digests is None or due.rejected is not None else due.digests.text
        if verdict is not None and text == facts().sketch.text_digest and any(facts().blocks.texts):
            why = f"known since its next visit: {verdict.why}"
            retractions.append(Retraction(due.page_id, None, str(verdict.kind), why, verdict.since))
        keeps = shown is not None or verdict is not None
        return CheckedPage(
            verdict, judge.to_bytes() if keeps else None, tuple(retractions),
            remark=remark if verdict is None else None,
        )  # fmt: skip

    async def _host(self, host_id: int) -> _Host:
        host = self._hosts.use(host_id)
        if host is None:
            stored = await self.past.not_content(host_id)
            # Another page of the host may have come while this waited.
            host = self._hosts.use(host_id)
            if host is None:
                host = self._hosts[host_id] = _Host(HostJudge.from_bytes(stored))
        return host

    async def _before(
        self, due: DueUrl, old: Digests, new: Sketch
    ) -> tuple[bool | None, PageHistory | None]:
        """Return whether the page had another text before, and its history if it was read."""
        if old.text == new.text_digest:
            return False, None
        history = await self.past.history(due.page_id)
        if history is None:
            return None, None
        return is_another_text(Sketch.from_bytes(history.sketch), new), history

    async def _probed(
        self, judge: HostJudge, due: DueUrl, now: float
    ) -> dict[str, NotContent] | None:
        """Ask the host for a URL beside this one that cannot exist, and learn its answer.

        Return the pages that this shows to be block pages, by URL; None without an answer.
        """
        if self.ask is None:
            return None
        url = probe_url(due.fetch_url, f"{self.rng.getrandbits(64):016x}")
        result = await self.ask(due.host_id, url)
        if result is None:
            return None
        shown = None
        if result.outcome == "fetched":
            parsed = await self.parser.parse(result.body, url, result.header("Content-Type"))
            if not isinstance(parsed, Unparsable):
                text = sketch(parsed.blocks.texts, parsed.blocks.places)
                shown = facts_of(result, url, parsed, text)
        return judge.learn_probe(shown, now)


def facts_of(
    result: FetchResult, url: str, parsed: ParsedPage, new: Sketch, had_content: bool | None = None
) -> PageFacts:
    """Return the signs of a page by itself, without its host."""
    return PageFacts(
        url=url,
        title=parsed.title,
        blocks=parsed.blocks,
        sketch=new,
        signs=read_signs(result.body, result.header("Content-Type")),
        had_content=had_content,
        retry_after=result.header("Retry-After") is not None,
    )


async def waits_for_scripts(parser: Parser, result: FetchResult) -> bool:
    """Return whether a page says nothing until scripts have built it."""
    if not may_wait((), result.body):
        return False
    try:
        parsed = await parser.parse(result.body, result.url, result.header("Content-Type"))
    except ParserLost:
        # Whoever reduces the page parses it again, and records the loss.
        return False
    if isinstance(parsed, Unparsable) or not is_short(texts := parsed.blocks.texts):
        return False
    facts = facts_of(result, result.url, parsed, sketch(texts, parsed.blocks.places))
    return may_wait(texts, result.body) and needs_javascript(facts) is not None
