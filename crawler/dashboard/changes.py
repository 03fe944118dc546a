"""The changes of all pages, newest first, and one change block by block."""

import heapq
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from operator import itemgetter
from typing import Any, TypeAlias

from freshet.crawler.admission.site_lists import spellings
from freshet.crawler.compare.diff import in_numbers
from freshet.crawler.dashboard.asked import Asked
from freshet.crawler.documents import Documents, change_summary, difference
from freshet.crawler.tally import UsageError
from freshet.crawler.urls import origin
from freshet.storage.entries import Kind
from freshet.storage.queries import overview, page
from freshet.storage.queries.overview import CHANGES, PageChange
from freshet.storage.tables import hosts

_SHOWN = 50
#: Changes of a store that are looked at for large ones.
_LOOKED = 500
_SUMMARY_WIDTH = 160
_MOST_ID = 2**62
_FILTERS = ("site", "words", "kind", "size", "since")
#: Unchanged blocks around a change.
_CONTEXT = 1
_KINDS: Mapping[str, tuple[Kind, ...]] = {
    "": CHANGES[:3], "changed": ("changed",), "new": ("new",), "gone": ("gone",),
    "noise": ("unchanged",),
}  # fmt: skip

#: A place in the list of changes, ascending: the negative time, the shard, the negative id.
_Place: TypeAlias = tuple[float, int, int]
#: A change, and a summary of what changed; None: further ones were not looked at.
_Listed: TypeAlias = tuple[_Place, tuple[PageChange, str] | None]


async def newest(
    asked: Asked, limit: int, **wanted: Any
) -> tuple[list[tuple[PageChange, str]], _Place | None, Mapping[int, str]]:
    """Return the newest changes with summaries, the place behind them, and what is down.

    Noise is left out unless it is ``wanted``. The place is None if no others follow.
    """
    wanted.setdefault("kinds", _KINDS[""])
    parts, down = await asked.library.each(
        lambda shard: partial(_newest, shard=shard, limit=limit, **wanted)
    )
    shown, last = list[tuple[PageChange, str]](), None
    for place, it in heapq.merge(*parts.values(), key=itemgetter(0)):
        if it is None or len(shown) == limit:
            return shown, place if it is None else last, down
        shown.append(it)
        last = place
    return shown, None, down


async def _newest(
    made: Documents, shard: int, limit: int, *, site: Sequence[str] = (), size: float = 0.0,
    before: _Place | None = None, **wanted: Any,
) -> list[_Listed]:  # fmt: skip
    if before is not None:
        at, of, number = before
        # Of those at the same time, the ones of later shards are still to come.
        last = -number if of == shard else _MOST_ID * (shard > of)
        wanted["before"] = -at, last
    async with page.snapshot(made.path) as db:
        if site:
            known = [await hosts.find(db, each) for each in site]
            wanted["host_id"] = next((it.host_id for it in known if it is not None), -1)
        found = await overview.changes_page(db, _LOOKED if size else limit, **wanted)
        large = [
            it for it in found.changes
            if not size or ((same := it[1].resemblance) is not None and 1 - same >= size)
        ]  # fmt: skip
        end = found.before
        if len(large) > limit:
            end = large[limit - 1][1].at, large[limit - 1][0]
        listed = list[_Listed]()
        for number, it in large[:limit]:
            changed = it.kind == "changed"
            said = await change_summary(db, made.parser, it, _SUMMARY_WIDTH) if changed else ""
            listed.append(((-it.at, shard, -number), (it, said)))
        return listed if end is None else [*listed, ((-end[0], shard, -end[1]), None)]


async def listed(asked: Asked) -> Mapping[str, object]:
    """Return the changes that the reader's filters ask for."""
    given = {name: asked.query.get(name, "").strip() for name in _FILTERS}
    if given["kind"] not in _KINDS:
        raise UsageError(f"kind: accepted are {', '.join(filter(None, _KINDS))}")
    try:
        wanted: dict[str, Any] = {
            "size": float(given["size"] or 0) / 100,
            "after": datetime.fromisoformat(f"{given['since'] or '1970-01-01'}T00:00Z").timestamp(),
        }
        if "before" in asked.query:
            at, shard, number = asked.query["before"].split("_")
            wanted["before"] = float(at), int(shard), max(int(number), -_MOST_ID)
    except ValueError as error:
        raise UsageError(f"{error}: size is a number, since as 2026-03-31") from error
    if given["site"]:
        wanted["site"] = [str(origin(url)) for url in spellings(given["site"])]
    words, among = given["words"].split(), _KINDS[given["kind"]]
    found, end, down = await newest(asked, _SHOWN, kinds=among, words=words, **wanted)
    older = end and {k: v for k, v in given.items() if v} | {"before": "_".join(map(str, end))}
    kinds = tuple(_KINDS)[1:]
    return {"changes": found, "older": older, "given": given, "kinds": kinds, "down": down}


async def one(asked: Asked) -> Mapping[str, object]:
    """Return a change: the difference of two versions of a page, block by block."""
    shard, url = await asked.library.home(asked.page_url)
    before, after = asked.query.get("before"), asked.query.get("after")
    noise = after is not None
    read = partial(difference, typed=url, before=before, after=after, noise=noise)
    found = await asked.library.one(shard, read)
    return {
        "change": found,
        "numbers": in_numbers(found.blocks),
        "rows": list(found.around_changes(_CONTEXT)),
        "whole": asked.query.get("view") == "texts",
    }
