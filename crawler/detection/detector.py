"""The ladder from the main text on, with what the store recalls of pages and hosts.

Invariant: what is stored is read only where a text differs, and a host's sample of pages a
few times in a run, the first when its first text differs. Consequence: an unchanged page
costs a comparison of digests.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from freshet.crawler.detection.change import Verdict, judge_text
from freshet.crawler.detection.judging import Judgement, judge_blocks
from freshet.crawler.detection.memory import PageRecord
from freshet.crawler.detection.sketch import Sketch, resemblance
from freshet.crawler.detection.templates import HostRun, Template
from freshet.storage.entries import Amendment
from freshet.storage.records import DueUrl, PageHistory
from freshet.storage.words import Kind, Rung

#: Pages of a host whose sketches are read to learn its template.
SAMPLE_PAGES: Final = 32
#: Differing texts of a host after which its template is learnt again: what a run shows of the
#: first pages is known for the others.
_LEARN_AGAIN_AT: Final = frozenset({6, 24, 96, 384})
#: Hosts whose templates are held, those used last.
_HOSTS: Final = 256
#: A page that moved is the same page if its text resembles the old one at least so much.
_SAME_PAGE: Final = 0.5


@dataclass(frozen=True, slots=True)
class Recall:
    """What the store is asked.

    ``page``: a page's history. ``predecessor``: that of the URL it has moved here from.
    ``host``: the histories of up to so many pages of a host.
    """

    page: Callable[[int], Awaitable[PageHistory | None]]
    predecessor: Callable[[int], Awaitable[PageHistory | None]]
    host: Callable[[int, int], Awaitable[list[PageHistory]]]


@dataclass(frozen=True, slots=True)
class Detection:
    """The verdict on a main text, and what to store: see :class:`~storage.records.Visit`."""

    verdict: Verdict
    keeps_sketch: bool = True
    memory: bytes | None = None
    amendments: tuple[Amendment, ...] = ()
    detail: str | None = None


_NEW: Final = Detection(Verdict(Kind.NEW))


class Detector:
    """Judges texts for one run. ``significant_below``: see :func:`judge_blocks`."""

    def __init__(self, recall: Recall, *, significant_below: float = 1.0) -> None:
        self._recall = recall
        self._significant_below = significant_below
        self._pages: Counter[int] = Counter()
        self._hosts: OrderedDict[int, HostRun] = OrderedDict()

    def visited(self, host_id: int) -> None:
        """Count a page of the host that answered with content, changed or not."""
        self._pages[host_id] += 1

    async def detect(
        self, due: DueUrl, new: Sketch, at: float, history: PageHistory | None = None
    ) -> Detection:
        """Judge the text of a page, seen at ``at``, whose bytes are not those of before.

        ``history`` is the page's, where it has been read already.
        """
        if due.digests is None:
            return await self._first(due, new, at)
        verdict = judge_text(due.digests, new.text_digest)
        if verdict is not None:
            return Detection(verdict, keeps_sketch=verdict.rung is not Rung.TEXT)
        history = history or await self._recall.page(due.page_id)
        if history is None:
            return Detection(Verdict(Kind.CHANGED, Rung.BODY))
        return _detection(await self._judged(due, PageRecord.of(history), new, at))

    async def _first(self, due: DueUrl, new: Sketch, at: float) -> Detection:
        """A page that was not seen before is new, unless it has moved here."""
        history = await self._recall.predecessor(due.page_id) if due.redirects else None
        if history is None:
            return _NEW
        past = PageRecord.of(history)
        detail = "it stood at another URL before"
        if past.sketch.text_digest == new.text_digest:
            verdict = Verdict(Kind.UNCHANGED, Rung.TEXT)
            return Detection(verdict, memory=past.memory.to_bytes(), detail=detail)
        if not is_same_page(past.sketch, new):
            return _NEW
        judgement = await self._judged(due, past, new, at)
        return Detection(judgement.verdict, memory=judgement.memory.to_bytes(), detail=detail)

    async def _judged(self, due: DueUrl, past: PageRecord, new: Sketch, at: float) -> Judgement:
        host = await self._host(due.host_id)
        return judge_blocks(past, new, host, at, significant_below=self._significant_below)

    async def _host(self, host_id: int) -> HostRun:
        known = self._hosts.get(host_id)
        if known is None or known.differing in _LEARN_AGAIN_AT:
            template = await self._template(host_id)
            # Another text of the host may have come while this waited.
            known = self._hosts.setdefault(host_id, HostRun())
            known.template = template
            if len(self._hosts) > _HOSTS:
                self._hosts.popitem(last=False)
        self._hosts.move_to_end(host_id)
        known.pages = self._pages[host_id]
        return known

    async def _template(self, host_id: int) -> Template:
        histories = await self._recall.host(host_id, SAMPLE_PAGES)
        return Template.learnt([PageRecord.of(history) for history in histories])


def is_same_page(old: Sketch, new: Sketch) -> bool:
    """Whether the text at a page's new URL is that of the page that moved there."""
    return resemblance(old, new).value >= _SAME_PAGE


def _detection(judgement: Judgement) -> Detection:
    return Detection(
        judgement.verdict,
        judgement.keeps_sketch,
        judgement.memory.to_bytes(),
        judgement.amendments,
    )
