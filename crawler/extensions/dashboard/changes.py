"""The changes of all pages, newest first, and one change block by block."""

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from operator import itemgetter
from typing import Any, TypeAlias

from aiosqlite import Connection as Reader

from freshet.crawler.admission.site_lists import spellings
from freshet.crawler.compare.diff import AlignedBlock, in_numbers, in_one_line
from freshet.crawler.errors import UsageError
from freshet.crawler.extensions.dashboard.request import DashboardRequest, value_of
from freshet.crawler.read.documents import (
    Documents,
    change_blocks,
    difference,
    in_counts,
    in_kinds,
    is_of_text,
)
from freshet.crawler.urls import origin
from freshet.storage.entries import REFRESHED
from freshet.storage.queries import overview, page
from freshet.storage.queries.overview import CHANGES, ChangesPage, PageChange
from freshet.storage.tables import hosts

#: Changes on one page of the list: this many summaries of large pages take less than 200 ms.
_SHOWN = 25
#: Changes that one search by size or words reads from a store.
_LOOKED = 500
_SUMMARY_WIDTH = 160
_MOST_ID, _EPOCH = 2**62, date(1970, 1, 1)
_FILTERS = ("site", "words", "titles", "kind", "size", "since")
_KINDS: Mapping[str, tuple[str, ...]] = {
    "": CHANGES[:3], "changed": ("changed",), "new": ("new",), "gone": ("gone",),
    "refreshed": (REFRESHED,), "noise": ("unchanged",), "failed": ("failed",),
}  # fmt: skip

#: A place in the list of changes, ascending: the negative time, the shard, the negative id.
_Place: TypeAlias = tuple[float, int, int]
#: A change with its summary. None instead of both: the search stopped here.
_Listed: TypeAlias = tuple[_Place, tuple[PageChange, str] | None]


async def newest(
    asked: DashboardRequest, limit: int, **wanted: Any
) -> tuple[list[tuple[PageChange, str]], _Place | None, Mapping[int, str]]:
    """Return the newest changes with summaries, where the next ones begin, and the shards down.

    Noise is left out unless it is ``wanted``. The place is None if no others follow. ``altered``
    words must occur in the differences, of which ``limit`` are made, or in titles or URLs.
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
    altered: Sequence[str] = (), before: _Place | None = None, **wanted: Any,
) -> list[_Listed]:  # fmt: skip
    if before is not None:
        at, of, number = before
        # Changes of the same time in later shards have not been shown yet.
        last = -number if of == shard else _MOST_ID * (shard > of)
        wanted["before"] = -at, last
    async with page.snapshot(made.path) as db:
        if site:
            wanted["host_ids"] = [it.host_id for it in await hosts.named(db, site)] or [-1]
        found = await overview.changes_page(db, _LOOKED if size or altered else limit, **wanted)
        if size:
            found = replace(
                found, changes=[each for each in found.changes if _is_large(each[1], size)]
            )
        return await _summarised(db, made, found, shard, limit=limit, altered=altered)


async def _summarised(
    db: Reader, made: Documents, found: ChangesPage, shard: int, *, limit: int,
    altered: Sequence[str],
) -> list[_Listed]:  # fmt: skip
    """Return changes with their summaries; a last entry has the place of the next ones."""
    listed, compared, end = list[_Listed](), 0, found.before
    words = [word.casefold() for word in altered]
    for number, it in found.changes:
        if limit in (len(listed), compared):
            break
        end, compared = (it.at, number), compared + (it.kind == "changed")
        if (said := await _summary(db, made, it, words)) is not None:
            listed.append(((-it.at, shard, -number), (it, said)))
    else:
        end = found.before
    return listed if end is None else [*listed, ((-end[0], shard, -end[1]), None)]


def _is_large(change: PageChange, size: float) -> bool:
    return change.resemblance is not None and 1 - change.resemblance >= size


async def _summary(db: Reader, made: Documents, it: PageChange, words: Sequence[str]) -> str | None:
    """Return the change, or the reason of a failure; None unless it has all ``words``."""
    blocks = await change_blocks(db, made.parser, it) if is_of_text(it) else ()
    texts = {each: _altered(each) for each in blocks}
    whole = "\n".join([it.url, it.title or "", it.reason or "", *texts.values()]).casefold()
    if not all(word in whole for word in words):
        return None
    held = [each for each, text in texts.items() if any(word in text for word in words)]
    return _in_a_line(it, held or blocks)


def _in_a_line(it: PageChange, blocks: Sequence[AlignedBlock]) -> str:
    """Return the change of these blocks, or the reason of a failure."""
    if not is_of_text(it):
        return it.reason or in_kinds(it.kinds)
    return in_one_line(blocks, _SUMMARY_WIDTH) if blocks else in_counts(it)


def _altered(block: AlignedBlock) -> str:
    """Return the words that were added to a block or removed from it, each as a whole."""
    old = Counter("".join(run.before for run in block.runs).split())
    new = Counter("".join(run.after for run in block.runs).split())
    altered = "\n".join((old - new) + (new - old))
    return (altered or block.text * (block.change in ("added", "removed"))).casefold()


def _place(text: str) -> _Place | None:
    at, shard, number = text.split("_")
    return float(at), int(shard), max(int(number), -_MOST_ID)


async def listed(asked: DashboardRequest) -> Mapping[str, object]:
    """Return the changes that the reader's filters ask for."""
    given = {name: asked.query.get(name, "").strip() for name in _FILTERS}
    if given["kind"] not in _KINDS:
        raise UsageError(f"kind={given['kind'][:80]}: accepted are {', '.join(_KINDS)[2:]}")
    since = value_of(given, "since", date.fromisoformat, "dates, as 2026-03-31", _EPOCH)
    site = value_of(given, "site", spellings, "sites, as example.org", list[str]())
    words = "words" if given["titles"] else "altered"
    found, end, down = await newest(
        asked, _SHOWN, kinds=_KINDS[given["kind"]], site=[str(origin(url)) for url in site],
        size=value_of(given, "size", float, "numbers, of percent", 0.0) / 100,
        after=(since - _EPOCH).total_seconds(),
        before=value_of(asked.query, "before", _place, "those of the links here", None),
        **{words: given["words"].split()},
    )  # fmt: skip
    older = end and {k: v for k, v in given.items() if v} | {"before": "_".join(map(str, end))}
    return {"changes": found, "older": older, "given": given, "kinds": [*_KINDS][1:], "down": down}


async def one(asked: DashboardRequest) -> Mapping[str, object]:
    """Return a change: the difference of two versions of a page, block by block."""
    shard, url = await asked.library.home(asked.page_url)
    before, after = asked.query.get("before"), asked.query.get("after")
    noise = after is not None
    read = partial(difference, typed=url, before=before, after=after, noise=noise)
    found = await asked.library.one(shard, read)
    return {
        "change": found, "numbers": in_numbers(found.blocks),
        "rows": list(found.around_changes(context=1)), "whole": asked.query.get("view") == "texts",
    }  # fmt: skip
