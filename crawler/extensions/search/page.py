"""Search: the pages that hold words, each with a part of its text in which they are marked."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from aiohttp import web

from freshet.config.settings import Settings
from freshet.crawler.errors import UsageError
from freshet.crawler.extensions.dashboard.request import DashboardRequest
from freshet.crawler.extensions.search import tables
from freshet.crawler.extensions.search.searching import Query, search
from freshet.crawler.read.library import asking
from freshet.crawler.read.lists import SearchResult

#: Results of a page, and those that can be turned to: one costs as much as all before it.
_SHOWN, _MOST = 10, 1_000


class SearchPage:
    """The page of searches."""

    path, label, template = "/search", "Search", "search.html"

    def __init__(self, _db: Path, _settings: Settings) -> None:
        """Search the store that is asked for."""
        self.routes: Sequence[web.AbstractRouteDef] = []

    async def shown(self, asked: DashboardRequest) -> Mapping[str, object]:
        """Return the results of a search, of which nothing is noted, or why there are none."""
        return await _found(asked)


async def _found(asked: DashboardRequest) -> Mapping[str, object]:
    """Return the results of a search, of which nothing is noted, or why there are none."""
    typed, offset, why = asked.query.get("q", ""), asked.query.get("offset", "0"), ""
    if not (offset.isascii() and offset.isdigit() and len(offset) < 5 and int(offset) < _MOST):
        raise UsageError(f"offset={offset[:80]}: accepted are whole numbers below {_MOST}")
    told, down = await asked.library.each(lambda _: asking(tables.is_there))
    results, counts = list[SearchResult](), (0, 0)
    if typed.strip() and all(told.values()):
        try:
            query = Query.parse(typed, asked.now)
        except UsageError as error:
            why = str(error)
        else:
            results, counts, down = await search(
                asked.library, query, _SHOWN, offset=int(offset), now=asked.now
            )
    after = int(offset) + _SHOWN
    return {
        "typed": typed, "why": why, "indexed": all(told.values()),
        "not_indexed": counts[1] - counts[0],
        "results": [(it, list(_parts(it))) for it in results], "down": down, "step": _SHOWN,
        "after": after, "more": len(results) == _SHOWN and after < _MOST,
    }  # fmt: skip


def _parts(it: SearchResult) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a snippet, and whether each was looked for."""
    places = {0, len(it.snippet), *(place for mark in it.marks for place in mark)}
    for begin, end in pairwise(sorted(places)):
        yield it.snippet[begin:end], any(a <= begin < b for a, b in it.marks)
