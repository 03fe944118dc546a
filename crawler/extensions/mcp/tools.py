"""The tools of the server. Each reads a store and returns a bounded result.

Assistants read the docstring of a tool: it states the result and how to read on. Results are JSON
data with times in ISO 8601.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Annotated, Any, Final, TypeAlias

from pydantic import Field

from freshet.crawler.compare.diff import AlignedBlock
from freshet.crawler.frontier.clock import dated
from freshet.crawler.read.store import Store
from freshet.storage.errors import CursorGone

Told: TypeAlias = dict[str, Any]
#: Most characters of a page's text, and of a block of a difference, in one result.
_CHARS: Final = 10_000
_BLOCK_CHARS: Final = 1_000
#: Visits that are looked at for changes of these kinds.
_LOOKED: Final = 10_000
_TOLD: Final = frozenset({"new", "changed", "gone"})

Url = Annotated[str, Field(description="The URL of a page, as the store has it or leading to it.")]
Version = Annotated[
    str | None,
    Field(description="A version by its number, -1 the last, or a time such as 2026-03-31T12:00."),
]
Prefix = Annotated[str, Field(description="Only pages with this prefix of the URL.")]


def _few(most: int) -> Any:
    return Field(ge=1, le=most, description=f"The most results, up to {most}.")


class ReadingTools:
    """The tools that read one store, by their names."""

    def __init__(self, store: Store) -> None:
        """Read ``store``, which stays the caller's."""
        self._store = store
        self.all: Sequence[Callable[..., Any]] = (
            self.search, self.read_page, self.read_chunks, self.what_changed, self.diff,
            self.history, self.next_visit,
        )  # fmt: skip

    def search(
        self,
        query: Annotated[str, Field(description='Words; "a phrase", -without, site:HOST, begin*.')],
        since: Annotated[
            str | None, Field(description="Only pages that changed since 2d, 1w or a date.")
        ] = None,
        limit: Annotated[int, _few(20)] = 5,
    ) -> Told:
        """Return the pages that match best: url, title, changed_at, and a snippet of the text."""
        found = self._store.search(query, since=since, limit=limit)
        names = ("url", "title", "changed_at", "snippet")
        return {"results": [{name: each.as_json()[name] for name in names} for each in found]}

    def read_page(
        self,
        url: Url,
        version: Version = None,
        offset: Annotated[int, Field(ge=0, description="Where to go on: next_offset.")] = 0,
    ) -> Told:
        """Return a page's title, dates and main text in Markdown, up to 10,000 characters.

        next_offset is null at the end of the text.
        """
        it = self._store.page(url, version)
        end = offset + _CHARS
        return {
            "url": it.url, "version": it.version, "title": it.title, "language": it.language,
            "fetched_at": it.fetched_at.isoformat(), "changed_at": it.changed_at.isoformat(),
            "missing": it.missing, "markdown": it.markdown[offset:end],
            "next_offset": end if end < len(it.markdown) else None,
        }  # fmt: skip

    def read_chunks(
        self,
        url: Url,
        first: Annotated[int, Field(ge=0, description="The position to begin at: next.")] = 0,
        limit: Annotated[int, _few(20)] = 10,
    ) -> Told:
        """Return a page's passages: id, url that leads to it, headings above it, markdown.

        next is the position of the passage that follows, null at the end.
        """
        chunks = self._store.page(url).chunks
        names = ("id", "url", "headings", "position", "markdown")
        some = chunks[first : first + limit]
        end = first + len(some)
        return {
            "chunks": [{name: each.as_json()[name] for name in names} for each in some],
            "next": end if end < len(chunks) else None,
        }

    def what_changed(
        self,
        cursor: Annotated[
            str | None, Field(description="Go on after this cursor; without, go back by since.")
        ] = None,
        since: Annotated[str, Field(description="2d, 1w or a date; used without a cursor.")] = "7d",
        prefix: Prefix = "",
        limit: Annotated[int, _few(100)] = 20,
    ) -> Told:
        """Return changed pages: url, kind (new, changed, gone, moved), at, title; and a cursor.

        After a cursor: each page once, oldest change first; call again while more is true. Without
        one: changes of the last days, newest first. Keep the cursor, and ask with it later.
        """
        if cursor is not None:
            return self._changed_after(cursor, prefix, limit)
        place = self._store.changefeed("now", docs=False)
        for _ in place:
            pass
        last = self._store.changes(since, limit=_LOOKED, all=True)
        found = (it for it in last if it.kind in _TOLD and it.url.startswith(prefix))
        some = [*islice(found, limit)]
        told = [
            {"url": it.url, "kind": it.kind, "at": it.changed_at.isoformat(), "title": it.title}
            for it in some
        ]
        return {"changes": told, "cursor": place.cursor, "more": next(found, None) is not None}

    def _changed_after(self, cursor: str, prefix: str, limit: int) -> Told:
        feed = self._store.changefeed(cursor, docs=False, match=f"{prefix}*")
        try:
            some = [*islice(feed, limit)]
            cursor = feed.cursor
            more = len(some) == limit and next(iter(feed), None) is not None
        except CursorGone as error:
            raise CursorGone(f"{error}; ask without a cursor") from error
        told = [
            {"url": it.id, "kind": it.kind, "at": it.at.isoformat(), "moved_to": it.moved_to}
            for it in some
        ]
        return {"changes": told, "cursor": cursor, "more": more}

    def diff(
        self,
        url: Url,
        before: Version = None,
        after: Version = None,
        limit: Annotated[int, _few(100)] = 30,
    ) -> Told:
        """Return the blocks that differ between two versions, by default the last change.

        Each has change (added, removed, edited, moved) and text, in which [-old-] and {+new+} are
        what was edited; left_out counts further ones.
        """
        it = self._store.diff(url, before, after)
        blocks = [each for each in it.blocks if each.change != "kept"]
        return {
            "url": it.url,
            "before": {"version": it.before.number, "at": dated(it.before.at, "at")},
            "after": {"version": it.after.number, "at": dated(it.after.at, "at")},
            "blocks": [{"change": it.change, "text": _words(it)} for it in blocks[:limit]],
            "left_out": max(len(blocks) - limit, 0),
        }

    def history(self, url: Url, limit: Annotated[int, _few(100)] = 20) -> Told:
        """Return the visits to a page, newest first: at, kind, version, HTTP status, reason."""
        visits = self._store.history(url, limit)
        names = ("at", "kind", "version", "status", "reason")
        told = [{name: asdict(each)[name] for name in names} for each in visits]
        return {"visits": dated(told)}

    def next_visit(self, url: Url) -> Told:
        """Return in words when a page is visited next and why, and how often it changes."""
        return {"url": url, "next_visit": self._store.explain(url)}


def _words(block: AlignedBlock) -> str:
    """Return a block as one text, with edits marked as wdiff marks them."""
    text = block.text
    if block.change == "edited":
        text = "".join(
            run.after
            if run.is_kept
            else (f"[-{run.before}-]" if run.before else "")
            + (f"{{+{run.after}+}}" if run.after else "")
            for run in block.runs
        )
    return text if len(text) <= _BLOCK_CHARS else f"{text[:_BLOCK_CHARS]}…"
