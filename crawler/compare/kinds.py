"""Kinds of change that a visit found, and the selection of kinds that count.

Detection (:mod:`freshet.crawler.compare.detection`) decides by the text. If the bytes differ, the
documents of both versions are compared as well (:mod:`freshet.crawler.reduce.channels`): a
difference beside the text counts as a change if ``change.counts`` names it, and is *refreshed*
elsewhere.

*Invariant.* A version with other bytes than the last one has either the same channels, or a finding
that names the differing ones. Consequence: a document that differs in more than noise has an entry
in the changefeed. This has a cost from the second version of a page on.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

from freshet.crawler.compare.detection import COMPARED, Content, PageHistories, Verdict
from freshet.crawler.reduce.channels import Channels, have_same_tags, kinds_of
from freshet.crawler.reduce.parser_process import Parser, Unparsable
from freshet.storage.entries import CHANNELS, TEXT_CHANNELS, Channel, Rung
from freshet.storage.records import DueUrl, FetchResult

#: Stages of detection that take differences of the text for noise.
_NOISE: Final = frozenset[Rung | None]({"volatile", "frame", "flip"})


@dataclass(frozen=True, slots=True)
class ChangeKinds:
    """Judges differences beside the text; the kinds in ``counts`` are a change of a page."""

    parser: Parser
    past: PageHistories
    counts: Collection[Channel]

    async def judge(self, due: DueUrl, result: FetchResult, verdict: Verdict) -> Verdict:
        """Return the verdict on a page with other bytes, with the kinds of change.

        Raises as :meth:`.Parser.channels`.
        """
        if verdict.kind not in COMPARED:
            return verdict
        of_text = _of_text(verdict)
        if due.digests is None:
            # It had another URL before.
            return _judged(verdict, of_text, frozenset(), self.counts)
        if verdict.kind == "changed" and await self._has_same_tags(due, result):
            # The documents are not made, and the next version is compared with these bytes.
            return _judged(verdict, of_text, frozenset(), self.counts)
        stored = await self.past.channels(due.page_id)
        new = await self._made(due, _content(result), stored)
        old = None if new is None else await self._last(due, new, stored)
        found = frozenset[Channel]() if new is None or old is None else kinds_of(old, new)
        if verdict.rung in _NOISE:
            found -= TEXT_CHANNELS
        judged = _judged(verdict, of_text, found, self.counts)
        return judged if new is None else replace(judged, channels=new.to_bytes())

    async def _has_same_tags(self, due: DueUrl, result: FetchResult) -> bool:
        """Return whether the texts between the tags are all in which the last version differs."""
        kept = await self.past.content(due.page_id)
        return kept is not None and have_same_tags(kept, _content(result))

    async def _last(self, due: DueUrl, new: Channels, stored: bytes | None) -> Channels | None:
        """Return the channels of the last version; None if its bytes are not kept, either."""
        last = Channels.from_bytes(stored)
        if last is not None and last.made == new.made:
            return last
        kept = await self.past.content(due.page_id)
        return None if kept is None else await self._made(due, kept, new.to_bytes())

    async def _made(self, due: DueUrl, content: Content, other: bytes | None) -> Channels | None:
        body, content_type = content
        made = await self.parser.channels(body, due.fetch_url, content_type, other)
        return None if isinstance(made, Unparsable) else made


def _content(result: FetchResult) -> Content:
    return result.body, result.header("Content-Type")


def _of_text(verdict: Verdict) -> frozenset[Channel]:
    """Return the kinds of difference in the text, even if the change is too small to count."""
    if verdict.kind == "unchanged" and verdict.rung not in {"blocks", "minor"}:
        return frozenset()
    is_order = verdict.blocks_added == 0 == verdict.blocks_removed
    return frozenset({"order" if is_order else "words"})


def _judged(
    verdict: Verdict,
    of_text: frozenset[Channel],
    found: frozenset[Channel],
    counts: Collection[Channel],
) -> Verdict:
    """Return the verdict by the kinds that count.

    Of words and their order the text decides: a document may hold others.
    """
    kinds = of_text | found
    told = tuple(each for each in CHANNELS if each in kinds)
    counts_by_text = verdict.kind == "changed" and not of_text.isdisjoint(counts)
    if counts_by_text:
        return replace(verdict, kinds=told)
    if not (found - TEXT_CHANNELS).isdisjoint(counts):
        return replace(verdict, kind="changed", rung="document", kinds=told)
    # The bytes alone are no evidence of a text.
    rung: Rung | None = "blocks" if verdict.kind == "changed" else verdict.rung
    return replace(verdict, kind="unchanged", rung=rung, kinds=told)
