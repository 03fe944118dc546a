"""The not-content check: soft 404s and block pages with the status 200.

Only pages of few words are checked. Two independent proofs refuse a page. One makes it doubtful: it
is stored and delivered, with the reason and a probability. The signs of a host are held for a run,
and stored if they cost a request or decided a verdict.

Invariant: only a doubtful capture can be retracted. Consequence: text that was delivered as content
stays, even if later evidence is against it.

The check may send a probe: a request for a page that cannot exist. The frontier sends it politely,
before the host's next page. A visit that waits for a probe has ended its request, so it blocks no
other.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from random import Random
from typing import Final, NamedTuple, Protocol

from freshet.crawler.compare.detection import PageHistories
from freshet.crawler.compare.not_content.cues import (
    MOST_WHERE_CONTENT_WAS,
    is_judged,
    is_short,
    may_wait,
    most_judged,
    words_up_to,
)
from freshet.crawler.compare.not_content.host import (
    MOST_PENDING,
    HostJudge,
    ShownTexts,
    needs_javascript,
    probe_url,
    tells_of_change,
    tells_of_few_words,
)
from freshet.crawler.compare.not_content.page import (
    SHORT,
    NotContent,
    NotContentKind,
    PageFacts,
    Proof,
    is_another_text,
    replaces,
)
from freshet.crawler.errors import ParserLost
from freshet.crawler.fetch.bounds import LruCache
from freshet.crawler.frontier.clock import Turns
from freshet.crawler.reduce.page import ParsedPage
from freshet.crawler.reduce.parser_process import Parser, Unparsable
from freshet.crawler.reduce.sketch import Sketch, sketch
from freshet.storage.entries import Retraction
from freshet.storage.records import Doubt, DueUrl, FetchResult, PageHistory

#: Hosts with signs in memory.
_HOSTS: Final = 512
#: Pages of a host from which its frame is learned, and the least that share a block of it.
_SAMPLE: Final = 64
_LEAST_PAGES: Final = 3
#: Least seen pages of a host that is probed.
_PROBED_FROM: Final = 2


class ProbeSender(Protocol):
    """Sends probes."""

    async def ask(self, host_id: int, url: str, /) -> FetchResult | None:
        """Return the response to a probe of a host, or None."""


class Probes:
    """Probes under way, one for a host; ``waiting`` counts the visits that wait.

    ``queue`` hands a probe to the frontier; it returns whether robots.txt and the budget allow it.
    A small budget may have room for it days after the visit: its answer is for the next one then.
    """

    def __init__(self, queue: Callable[[int, str], bool]) -> None:
        self._queue = queue
        self._answers: dict[int, asyncio.Future[FetchResult | None]] = {}
        self._late: LruCache[int, FetchResult] = LruCache(_HOSTS)
        self._queued: Callable[[], None] | None = None
        self._is_over = False
        self.waiting = 0

    def begin(self, queued: Callable[[], None]) -> None:
        """Allow probes, and call ``queued`` for each new one."""
        self._queued, self._is_over = queued, False

    async def ask(self, host_id: int, url: str) -> FetchResult | None:
        """Return the response to a probe; None if robots.txt forbids it or the run ends first.

        A host has at most one probe under way; concurrent callers share its response. A response
        that arrived when no caller waited any more is returned at once.
        """
        late = self._late.pop(host_id, None)
        if late is not None:
            return late
        answer = self._answers.get(host_id)
        if answer is None:
            if self._is_over or not self._queue(host_id, url):
                return None
            answer = self._answers[host_id] = asyncio.get_running_loop().create_future()
            if self._queued is not None:
                self._queued()
        self.waiting += 1
        try:
            # Other visits wait for the response, so it is needed even if this visit is cancelled.
            return await asyncio.shield(answer)
        finally:
            self.waiting -= 1

    def answered(self, host_id: int, result: FetchResult) -> None:
        """Pass a probe's response to the visits that wait for it, or keep it for the next one."""
        answer = self._answers.pop(host_id, None)
        if answer is None:
            self._late[host_id] = result
        else:
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

    ``verdict`` is the reason of a refusal, ``doubt`` of a doubt; the page is content if both are
    None. ``retractions`` are of doubtful captures that prove to be block pages;
    ``history`` is the page's, if it was read.
    """

    verdict: NotContent | None = None
    doubt: NotContent | None = None
    not_content: bytes | None = None
    retractions: tuple[Retraction, ...] = ()
    history: PageHistory | None = None


class _Before(NamedTuple):
    """The history of a page, if it was read, and the digest of another text that it had.

    ``is_replaced``: a few words have replaced that text, which was long.
    """

    history: PageHistory | None = None
    digest: bytes | None = None
    is_replaced: bool = False


@dataclass(slots=True)
class _Host:
    """A host; ``turn`` serializes its pages, so that one probe serves them all.

    ``doubtful`` are visits of this run, by URL: page id and Unix seconds. ``frame`` has the digests
    of the blocks that most of its stored pages have; it is learnt again from ``frame_from`` pages.
    """

    known: HostJudge
    shown: ShownTexts = field(default_factory=ShownTexts)
    pages: int = 0
    frame: frozenset[int] = frozenset()
    frame_from: int = _LEAST_PAGES
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    doubtful: LruCache[str, tuple[int, float]] = field(
        default_factory=lambda: LruCache(MOST_PENDING)
    )

    def judge(self, due: DueUrl, facts: PageFacts, at: float) -> NotContent | None:
        """Judge a page, and remember its visit if it is doubtful."""
        self.doubtful.pop(due.fetch_url, None)
        found = self.known.judge(facts, at)
        if found is not None and not found.is_refused:
            self.doubtful[due.fetch_url] = due.page_id, at
        return found

    def retractions(self, proven: Mapping[str, NotContent]) -> Iterator[Retraction]:
        """Yield retractions of these URLs' doubtful visits, which a probe has proved wrong."""
        for url, found in proven.items():
            visit = self.doubtful.pop(url, None)
            if visit is not None:
                yield Retraction(*visit, str(found.kind), found.why)


_CONTENT: Final = CheckedPage()


@dataclass(slots=True, eq=False)
class NotContentCheck:
    """The check for one run; it needs ``probes`` to send any."""

    past: PageHistories
    parser: Parser
    rng: Random
    _: KW_ONLY
    probes: ProbeSender | None = None
    _hosts: LruCache[int, _Host] = field(default_factory=lambda: LruCache(_HOSTS), init=False)
    # The stored signs of hundreds of hosts may arrive at once.
    _turns: Turns = field(default_factory=Turns, init=False)

    async def check(
        self, due: DueUrl, result: FetchResult, parsed: ParsedPage, new: Sketch
    ) -> CheckedPage:
        """Judge a page by its main text (``new`` is its sketch) and by its host's block pages."""
        if parsed.is_plain:
            return _CONTENT
        # A long page with the same text is judged by its title alone.
        most = MOST_WHERE_CONTENT_WAS if _has_changed(due, new) else most_judged(parsed.title)
        count = words_up_to(parsed.blocks.texts, most)
        before = await self._before(due, new, count)
        if before.digest is None and not is_judged(parsed.title, count):
            return CheckedPage(doubt=_doubt_before(due, new), history=before.history)
        host = await self._host(due.host_id)
        async with host.turn:
            host.pages += 1
            facts = facts_of(result, due.fetch_url, parsed, new, before=before.digest)
            facts = replace(facts, replaced=before.is_replaced)
            is_elsewhere = host.shown.is_elsewhere(facts)
            facts = replace(facts, elsewhere=is_elsewhere, is_known=_is_known(due, new))
            await self._turns.take()
            if facts.tells:
                frame = await self._frame(due.host_id, host, parsed, new)
                facts = replace(facts, frame=frame) if frame else facts
            checked = await self._judged(host, due, facts, result.ended_at)
            return replace(checked, history=before.history)

    async def _judged(self, host: _Host, due: DueUrl, facts: PageFacts, now: float) -> CheckedPage:
        """Judge a page; without a sign it is only compared with its host's known block pages."""
        judge, found, proven = host.known, None, None
        several = host.pages >= _PROBED_FROM
        # The first page may be a block page that only the next one's probe shows.
        is_first = not several and judge.wants_probe(now)
        if facts.tells or is_first or judge.may_know(due.fetch_url, now):
            await self._turns.take()
            found = host.judge(due, facts, now)
        is_refused = found is not None and found.is_refused
        if not is_refused and judge.wants_probe(now, several=several):
            proven = await self._probed(judge, due, now)
            if proven is not None and judge.shows_pages(now):
                found = host.judge(due, facts, now)
        keeps = proven is not None or found is not None
        checked = CheckedPage(
            not_content=judge.to_bytes() if keeps else None,
            retractions=(*host.retractions(proven or {}), *_own(due, found, facts)),
        )
        if found is None:
            return replace(checked, doubt=_doubt_before(due, facts.sketch))
        if found.is_refused:
            return replace(checked, verdict=found)
        return replace(checked, doubt=found)

    async def _host(self, host_id: int) -> _Host:
        host = self._hosts.use(host_id)
        if host is None:
            stored = await self.past.not_content(host_id)
            # Another page of the host may have been judged while this waited.
            host = self._hosts.use(host_id)
            if host is None:
                host = self._hosts[host_id] = _Host(HostJudge.from_bytes(stored))
        return host

    async def _frame(
        self, host_id: int, host: _Host, parsed: ParsedPage, new: Sketch
    ) -> frozenset[str]:
        """Return the blocks of a page that most pages of its host have."""
        if host.pages >= host.frame_from:
            host.frame_from = 2 * host.pages
            histories = await self.past.sample(host_id, _SAMPLE)
            pages = {each.text_digest: each for each in map(_sketch_of, histories)}
            counts = Counter(d for each in pages.values() for d in set(each.block_digests.tolist()))
            least = max(_LEAST_PAGES, (len(pages) + 1) // 2)
            host.frame = frozenset(digest for digest, count in counts.items() if count >= least)
        shown = zip(parsed.blocks.texts, new.block_digests.tolist(), strict=True)
        return frozenset(text for text, digest in shown if digest in host.frame)

    async def _before(self, due: DueUrl, new: Sketch, words: int) -> _Before:
        """Return the former text of the page if the new one, of ``words``, is not an edit of it."""
        old = due.digests
        if old is None or not _has_changed(due, new) or words > MOST_WHERE_CONTENT_WAS:
            return _Before()
        if due.doubt is not None:
            return _before_doubt(due, due.doubt, words)
        history = await self.past.history(due.page_id)
        if history is None:
            return _Before()
        last = _sketch_of(history)
        if not is_another_text(last, new):
            return _Before(history)
        return _Before(history, old.text, is_replaced=words <= SHORT and replaces(new, last))

    async def _probed(
        self, judge: HostJudge, due: DueUrl, now: float
    ) -> dict[str, NotContent] | None:
        """Ask the host for a URL beside this one that cannot exist, and learn its answer.

        Return the pages that this shows to be block pages, by URL; None without an answer.
        """
        if self.probes is None:
            return None
        url = probe_url(due.fetch_url, f"{self.rng.getrandbits(64):016x}")
        result = await self.probes.ask(due.host_id, url)
        if result is None:
            return None
        # Another one may have been asked for before.
        url = result.url
        shown = None
        if result.outcome == "fetched":
            parsed = await self.parser.parse(result.body, url, result.header("Content-Type"))
            if not isinstance(parsed, Unparsable):
                text = sketch(parsed.blocks.texts, parsed.blocks.places)
                shown = facts_of(result, url, parsed, text)
        return judge.learn_probe(shown, now)


def _before_doubt(due: DueUrl, doubt: Doubt, words: int) -> _Before:
    """Return the page's text before a doubt that a replacement raised.

    The doubtful text was perhaps not content, so the new one may be a block page in other words.
    The text before is not stored: the URL represents it, because each URL had a separate text.
    """
    if not tells_of_change(doubt.why):
        return _Before()
    is_replaced = words <= SHORT and tells_of_few_words(doubt.why)
    return _Before(None, due.fetch_url.encode(), is_replaced)


def _sketch_of(history: PageHistory) -> Sketch:
    return Sketch.from_bytes(history.sketch)


def _has_changed(due: DueUrl, new: Sketch) -> bool:
    """Return whether a page had another text at its last visit."""
    return due.digests is not None and due.digests.text != new.text_digest


def _is_known(due: DueUrl, new: Sketch) -> bool:
    """Return whether a page was content with this very text."""
    is_same = due.digests is not None and due.digests.text == new.text_digest
    return is_same and due.doubt is None


def _doubt_before(due: DueUrl, new: Sketch) -> NotContent | None:
    """Return the doubt of the last visit, if the page still has the text that raised it."""
    doubt, digests = due.doubt, due.digests
    if doubt is None or digests is None or digests.text != new.text_digest:
        return None
    if not tells_of_change(doubt.why):
        return None
    kind, proofs = NotContentKind(doubt.kind), frozenset({Proof.REPLACED})
    return NotContent(kind, doubt.why, doubt.probability, proofs)


def _own(due: DueUrl, found: NotContent | None, facts: PageFacts) -> Iterator[Retraction]:
    """Yield the retraction of the page's own doubtful captures, if this visit proves them wrong.

    The pages of other URLs are no proof about them.
    """
    if due.doubt is None or due.digests is None or found is None or not found.is_refused:
        return
    is_same = due.digests.text == facts.sketch.text_digest
    if is_same and len(found.proofs - {Proof.RETURN}) > 1:
        why = f"known since its next visit: {found.why}"
        yield Retraction(due.page_id, None, str(found.kind), why)


def facts_of(
    result: FetchResult, url: str, parsed: ParsedPage, new: Sketch, before: bytes | None = None
) -> PageFacts:
    """Return the facts about a page alone, without its host."""
    return PageFacts(
        url=url,
        title=parsed.title,
        blocks=parsed.blocks,
        sketch=new,
        body=result.body,
        content_type=result.header("Content-Type"),
        before=before,
        retry_after=result.header("Retry-After") is not None,
    )


async def waits_for_scripts(parser: Parser, result: FetchResult) -> bool:
    """Return whether a page is empty until scripts have built it."""
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
