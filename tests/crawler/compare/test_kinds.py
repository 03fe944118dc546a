"""Kinds of change of a visit, and which documents are made to find them."""

from dataclasses import dataclass, field

import pytest

from freshet.crawler.compare.detection import Content, Verdict
from freshet.crawler.compare.kinds import ChangeKinds
from freshet.crawler.reduce.channels import Channels
from freshet.crawler.reduce.parser_process import Parser, Unparsable
from freshet.storage.entries import Channel
from freshet.storage.records import Digests, DueUrl, FetchResult
from tests.crawler.stages import Past

URL, TYPE = "https://h.example/a", "text/html; charset=utf-8"
DUE = DueUrl(1, URL, URL, 1, 0.0, digests=Digests(b"", b"text", "1"))
FILL = "<p>The reservoir above the village was built in three summers.</p>" * 3
CHANGED = Verdict("changed", "blocks", blocks_added=1, blocks_removed=1)
FRAME = Verdict("unchanged", "frame")
SAME = Verdict("unchanged", "text")


class CountingParser(Parser):
    """Counts the documents that are made."""

    made = 0

    async def channels(
        self, body: bytes, url: str, content_type: str | None, other: bytes | None = None
    ) -> Channels | Unparsable:
        self.made += 1
        return await super().channels(body, url, content_type, other)


@dataclass
class Page(Past):
    """The last version of a page, and the kinds that count of it."""

    body: str | None = None
    stored: bytes | None = None
    counts: tuple[Channel, ...] = ("words", "order")
    parser: CountingParser = field(default_factory=CountingParser)

    async def content(self, page_id: int) -> Content | None:  # type: ignore[override]
        return None if self.body is None else (page(self.body), TYPE)

    async def channels(self, page_id: int) -> bytes | None:  # type: ignore[override]
        return self.stored

    async def visit(self, body: str, verdict: Verdict) -> Verdict:
        """Judge a visit, and keep the version as a store does."""
        headers = ((b"Content-Type", TYPE.encode()),)
        result = FetchResult(URL, "fetched", 0.0, 0.0, 200, headers=headers, body=page(body))
        found = await ChangeKinds(self.parser, self, self.counts).judge(DUE, result, verdict)
        self.body, self.stored = body, found.channels
        return found


def page(body: str) -> bytes:
    return f"<html><title>x</title><main><h1>Mills</h1>{FILL}{body}{FILL}</main></html>".encode()


async def test_no_document_is_made_where_words_differ_between_the_same_tags() -> None:
    seen = Page(body="<p>See <a href=/a>it</a> for 10 euros.</p>")
    found = await seen.visit("<p>See <a href=/a>it</a> for 12 euros.</p><p>Or not.</p>", CHANGED)
    assert (found.kind, found.kinds, found.channels, seen.parser.made) == (
        "changed", ("words",), None, 0,
    )  # fmt: skip
    # The next version is compared with the bytes.
    found = await seen.visit("<p>See <a href=/b>it</a> for 12 euros.</p><p>Or not.</p>", SAME)
    assert (found.kinds, seen.parser.made) == (("links",), 2)
    assert found.channels is not None
    found = await seen.visit("<p>See <a href=/c>it</a> for 12 euros.</p><p>Or not.</p>", SAME)
    assert (found.kinds, seen.parser.made) == (("links",), 3)


async def test_the_words_that_do_not_count_are_told_as_well() -> None:
    seen = Page(body="<p>10 euros</p>", counts=("links",))
    found = await seen.visit("<p>12 euros</p>", CHANGED)
    assert (found.kind, found.kinds, seen.parser.made) == ("unchanged", ("words",), 0)


@pytest.mark.parametrize("verdict", [FRAME, SAME])
async def test_documents_are_made_of_what_is_no_change_of_words(verdict: Verdict) -> None:
    seen = Page(body="<p>10 euros</p>")
    found = await seen.visit("<p>12 euros</p>", verdict)
    assert (found.kind, seen.parser.made) == ("unchanged", 2)
    assert found.channels is not None


async def test_they_are_made_where_the_last_bytes_are_not_kept() -> None:
    seen = Page()
    found = await seen.visit("<p>12 euros</p>", CHANGED)
    assert (found.kinds, seen.parser.made, found.channels is None) == (("words",), 1, False)
