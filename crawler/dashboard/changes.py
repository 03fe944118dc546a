"""The changes of all pages, newest first, and one change block by block."""

import heapq
from collections.abc import Mapping
from functools import partial
from itertools import islice
from typing import Any

from freshet.crawler.compare.diff import in_numbers, shortened
from freshet.crawler.dashboard.asked import Asked
from freshet.crawler.documents import Documents, VersionDifference, change_summary, difference
from freshet.crawler.tally import UsageError
from freshet.storage.queries import overview, page
from freshet.storage.queries.overview import PageChange

_SHOWN = 50
_SUMMARY_WIDTH = 160
#: Unchanged blocks around a change.
_CONTEXT = 1
_KINDS = ("changed", "new", "gone", "noise")


async def newest(asked: Asked, limit: int, **wanted: Any) -> list[tuple[PageChange, str]]:
    """Return the newest changes, each with a summary of what changed."""
    read = partial(_newest, after=0.0, limit=limit, **wanted)
    parts, _ = await asked.library.each(lambda _: read)
    merged = heapq.merge(*parts.values(), key=lambda one: -one[0].at)
    return list(islice(merged, limit))


async def _newest(
    made: Documents, after: float, limit: int, *, all_kinds: bool = True
) -> list[tuple[PageChange, str]]:
    async with page.snapshot(made.path) as db:
        found, _ = await overview.since(db, after, limit, all_kinds=all_kinds)
        return [
            (it, await change_summary(db, made.parser, it, _SUMMARY_WIDTH)
             if it.kind == "changed" else "")
            for it in found
        ]  # fmt: skip


async def listed(asked: Asked) -> Mapping[str, object]:
    """Return the list of changes."""
    return {"changes": await newest(asked, _SHOWN), "kinds": _KINDS}


async def one(asked: Asked) -> Mapping[str, object]:
    """Return a change: the difference of two versions of a page, block by block."""
    if "url" not in asked.query:
        raise UsageError("url: name the page, as /changes/one?url=https://example.org/")
    shard, url = await asked.library.home(asked.query["url"])
    before, after = asked.query.get("before"), asked.query.get("after")
    found = await asked.library.one(
        shard, partial(_difference, url=url, before=before, after=after)
    )
    return {
        "change": found,
        "numbers": in_numbers(found.blocks),
        "rows": list(found.around_changes(_CONTEXT)),
        "shortened": shortened,
    }


async def _difference(
    made: Documents, url: str, before: str | None, after: str | None
) -> VersionDifference:
    async with page.snapshot(made.path) as db:
        return await difference(db, made.parser, url, before, after, noise=after is not None)
