"""Search in a store: queries, and results with snippets.

A query is a list of words that a page must contain: ``"a phrase"``, a ``prefix*``, ``-without``,
``site:example.org/docs``, ``changed:>2026-11-01``.
"""

import asyncio
import heapq
import logging
import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from math import inf
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from aiosqlite import Connection as Reader

from freshet.config.settings import Settings
from freshet.crawler.errors import ParserLost, UsageError
from freshet.crawler.extensions.search import queries, tables
from freshet.crawler.extensions.search.queries import MatchingPage
from freshet.crawler.extensions.search.settings import SearchSettings
from freshet.crawler.extensions.search.tables import PendingPage
from freshet.crawler.extensions.search.words import normalised, places
from freshet.crawler.frontier.clock import calendar, moment_of
from freshet.crawler.read.documents import Documents
from freshet.crawler.read.library import Library, asking, noting
from freshet.crawler.read.lists import (
    Audience,
    Impression,
    MadeFor,
    RankedPage,
    SearchResult,
    audience_of,
    record,
    seed_of,
)
from freshet.crawler.reduce.page import ParsedPage
from freshet.crawler.reduce.parser_process import Parser, Unparsable
from freshet.crawler.run.hooks import SearchRequest
from freshet.storage.database import write_beside
from freshet.storage.errors import StoreError
from freshet.storage.queries import page
from freshet.storage.tables import runs

log = logging.getLogger(__name__)

# -- queries -----------------------------------------------------------------

_PIECE: Final = re.compile(r'(-?)(?:(site|changed):)?(?:"([^"]*)"?(\*?)|([^\s"]+))', re.IGNORECASE)
_COMPARED: Final = re.compile(r"([<>]=?)(.+)")
#: Terms of a query: each costs some passes over the index.
_MOST_TERMS: Final = 32


@dataclass(frozen=True, slots=True)
class SearchTerm:
    """Words that must follow one another; of a prefix, the last one may go on."""

    words: tuple[str, ...]
    is_prefix: bool = False

    def __str__(self) -> str:
        """Return the phrase in the syntax of FTS5; words are letters and digits only."""
        return f'"{" ".join(self.words)}"' + "*" * self.is_prefix

    def matches(self, words: Sequence[str]) -> bool:
        """Return whether as many words as the term has are these."""
        *begin, last = self.words
        return list(words[:-1]) == begin and (
            words[-1].startswith(last) if self.is_prefix else words[-1] == last
        )


@dataclass(frozen=True, slots=True)
class Query:
    """A search for pages with all ``terms`` and none of the ``excluded``.

    They are on one of the ``sites`` (host and beginning of the path), if any are named, on none of
    ``other_sites``, and changed last in [``since``, ``until``) in Unix seconds.
    """

    terms: tuple[SearchTerm, ...]
    excluded: tuple[SearchTerm, ...] = ()
    sites: tuple[str, ...] = ()
    other_sites: tuple[str, ...] = ()
    since: float = -inf
    until: float = inf

    @classmethod
    def parse(
        cls, text: str, now: float, *, site: str | None = None, since: str | None = None
    ) -> "Query":
        """Read a query as it is typed; ``site`` and ``since`` are further conditions.

        Raises:
            UsageError: it has no word, too many, or an invalid date.
        """
        terms: dict[bool, dict[SearchTerm, None]] = {False: {}, True: {}}
        sites: dict[bool, list[str]] = {False: [] if site is None else [_site(site)], True: []}
        begin, end = -inf, inf
        if since is not None:
            begin, end = _within(f">{since}", now, begin, end)
        for minus, field, quoted, star, bare in _PIECE.findall(text):
            said = quoted or bare
            if field.lower() == "site":
                sites[bool(minus)].append(_site(said))
            elif field:
                begin, end = _within(minus + said, now, begin, end)
            elif words := normalised(said).split():
                is_prefix = (bare + star).endswith("*")
                terms[bool(minus)].setdefault(SearchTerm(tuple(words), is_prefix))
        if not terms[False]:
            raise UsageError(f"{text!r}: it names no word to look for; give one")
        if len(terms[False]) + len(terms[True]) > _MOST_TERMS:
            raise UsageError(f"it has more than {_MOST_TERMS} words and phrases; give fewer")
        return cls(
            terms=tuple(terms[False]),
            excluded=tuple(terms[True]),
            sites=tuple(sites[False]),
            other_sites=tuple(sites[True]),
            since=begin,
            until=end,
        )

    @property
    def admits_all(self) -> bool:
        """True if every page that holds the words is wanted."""
        return not (self.sites or self.other_sites) and (self.since, self.until) == (-inf, inf)

    def beginnings(self, origins: Iterable[str], *, wanted: bool) -> list[str]:
        """Return how URLs begin that are on sites that are wanted, or on those that are not."""
        sites = self.sites if wanted else self.other_sites
        return [
            f"{origin}/{path}"
            for origin in origins
            for host, _, path in (site.partition("/") for site in sites)
            if _is_on(origin, host)
        ]


def _site(said: str) -> str:
    name = said.partition("://")[2] or said
    if not re.fullmatch(r"[^\s/?#]+(/\S*)?", name):
        raise UsageError(f"site:{said}: not a host such as example.org, or example.org/docs")
    host, slash, path = name.partition("/")
    return f"{host.lower()}{slash}{path}"


def _is_on(origin: str, host: str) -> bool:
    """Return whether an origin is this host, or one below it; a host may have a port."""
    parts = urlsplit(origin)
    there = parts.netloc if ":" in host else (parts.hostname or "")
    return there == host or there.endswith(f".{host}")


def _within(said: str, now: float, begin: float, end: float) -> tuple[float, float]:
    compared = _COMPARED.fullmatch(said)
    if compared is None:
        raise UsageError(f"changed:{said}: accepted are changed:>DATE and changed:<DATE")
    try:
        at = moment_of(compared[2], now)
    except ValueError as error:
        raise UsageError(f"changed: {error}") from error
    return (max(begin, at), end) if compared[1].startswith(">") else (begin, min(end, at))


# -- results -----------------------------------------------------------------

#: Pages, the best by relevance, among which appeal decides.
_ARRANGED: Final = 200
#: Characters of a snippet, and its characters before the first word that was found.
_SNIPPET: Final = 240
_LEAD: Final = 60
#: Characters of a block in which they are looked for.
_READ: Final = 20_000


@dataclass(frozen=True, slots=True)
class Snippet:
    """A part of a page's text, and where the words that were found begin and end in it."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()


async def search(
    library: Library,
    query: Query,
    limit: int,
    *,
    offset: int = 0,
    by_importance: bool = False,
    audience: Audience | None = None,
    now: float = 0.0,
) -> tuple[list[SearchResult], tuple[int, int], dict[int, str]]:
    """Return the pages that match a query best, the best one first.

    They are at most ``limit``, after the first ``offset`` ones. If fewer contain all terms, pages
    with some of them follow. ``by_importance`` multiplies scores by the importances that
    a daemon gives pages; the ``audience`` orders the 200 best, ``now``. The other
    results are the numbers of :func:`tables.counts`, and the shards that could not be searched,
    with the reason.

    Raises:
        StoreError: the store has no index.
        UsageError: the limit or the offset is invalid.
    """
    if limit < 1 or offset < 0:
        raise UsageError(f"limit={limit}: at least 1; offset={offset}: at least 0")
    whole, down = await _statistics(library, query)
    count = offset + limit
    arranges = audience is not None and audience.arranges
    read = asking(
        _candidates, query=query, count=max(count, _ARRANGED) if arranges else count,
        by_importance=by_importance, whole=whole,
    )  # fmt: skip
    by_shard, gone = await library.each(lambda shard: None if shard in down else read)
    candidates, listed = _listed({shard: some for shard, (some, _) in by_shard.items()})
    if audience is not None and arranges:
        words = repr((query.terms, query.excluded, query.sites))
        seed = await library.one(0, asking(seed_of, words=words, now=now))
        listed = _arranged(audience, listed, count, seed)
    shown = enumerate(listed[offset:count], offset + 1)
    found, lost = await _with_snippets(library, query.terms, candidates, list(shown))
    indexed, told = map(sum, zip(*(counts for _, counts in by_shard.values()), strict=True))
    return found, (indexed, told), down | gone | lost


async def _statistics(
    library: Library, query: Query
) -> tuple[queries.Statistics | None, dict[int, str]]:
    """Return what all shards count of the terms, None for one store; which could not, and why."""
    if library.shards is None:
        return None, {}
    counted, down = await library.each(lambda _: asking(_counted, query=query))
    return queries.statistics(counted.values()), down


def _listed(
    by_shard: Mapping[int, Sequence[tuple[MatchingPage, float, bool]]],
) -> tuple[dict[tuple[int, int], MatchingPage], list[tuple[int, RankedPage]]]:
    """Return the candidates of all shards by shard and page, and in the order of their scores."""
    candidates, listed = dict[tuple[int, int], MatchingPage](), list[tuple[int, RankedPage]]()
    for shard, some in by_shard.items():
        for each, score, is_partial in some:
            candidates[shard, each.page_id] = each
            listed.append((shard, RankedPage(each.page_id, each.url, score, tier=int(is_partial))))
    if len(by_shard) > 1:
        listed.sort(key=lambda one: (one[1].tier, -one[1].worth))
    return candidates, listed


def _arranged(
    audience: Audience, listed: Iterable[tuple[int, RankedPage]], count: int, seed: int
) -> list[tuple[int, RankedPage]]:
    """Return the first pages in the order of an audience, which only a single store has."""
    return [(0, it) for it in audience.arranged([it for _, it in listed], count, seed)]


def _result(
    each: RankedPage, page: MatchingPage, shard: int, place: int,
    cuts: Mapping[int, Mapping[int, Snippet]],
) -> SearchResult:  # fmt: skip
    """Return a page of a list as its reader sees it."""
    cut = cuts[shard][each.page_id] if shard in cuts else Snippet("")
    return SearchResult(
        url=each.url,
        title=page.title or "",
        changed_at=calendar(page.changed_at),
        score=round(each.worth, 4),
        snippet=cut.text,
        marks=cut.marks,
        is_partial=bool(each.tier),
        is_new=each.promoted,
        showing=each.shown_at(place),
        shard=shard,
    )


_NO_INDEX: Final = "the store has no search index; `freshet search --index on` makes one"


async def _counted(db: Reader, query: Query) -> tuple[int, ...]:
    if not await tables.is_there(db):
        raise StoreError(_NO_INDEX)
    return await queries.later(db, queries.counting(list(map(str, query.terms))))


async def _candidates(
    db: Reader, query: Query, count: int, by_importance: bool, whole: queries.Statistics | None
) -> tuple[list[tuple[MatchingPage, float, bool]], tuple[int, int]]:
    """Return the best pages with their scores, and whether they hold some terms only; counts."""
    if (counts := await tables.counts(db)) is None:
        raise StoreError(_NO_INDEX)
    best = await _matching(db, query, count, by_importance=by_importance, whole=whole)
    return [(each, *best[each.page_id]) for each in await queries.pages(db, list(best))], counts


async def _snippets(
    made: Documents, found: Sequence[MatchingPage], terms: Sequence[SearchTerm]
) -> dict[int, Snippet]:
    async with page.snapshot(made.path) as db:
        return {each.page_id: await _snippet(db, made.parser, each, terms) for each in found}


async def _with_snippets(
    library: Library, terms: Sequence[SearchTerm],
    candidates: Mapping[tuple[int, int], MatchingPage],
    shown: Sequence[tuple[int, tuple[int, RankedPage]]],
) -> tuple[list[SearchResult], dict[int, str]]:  # fmt: skip
    """Return pages, given by place and shard, with snippets, and failed shards with reasons."""
    wanted = defaultdict[int, list[MatchingPage]](list)
    for _, (shard, each) in shown:
        wanted[shard].append(candidates[shard, each.page_id])
    cut = partial(_snippets, terms=terms)
    cuts, lost = await library.each(
        lambda it: partial(cut, found=wanted[it]) if it in wanted else None
    )
    results = [
        _result(each, candidates[shard, each.page_id], shard, place, cuts)
        for place, (shard, each) in shown
    ]
    return results, lost


async def note_list(
    library: Library, audience: Audience, kind: MadeFor, at: float, found: Sequence[SearchResult]
) -> None:
    """Note a list that was shown, each page in its shard."""
    note = partial(noting, record, audience=audience, made_for=kind, at=at)
    shown = defaultdict[int, list[Impression]](list)
    for each in found:
        shown[each.shard].append(each.showing)
    await library.each(lambda it: note(listed=shown[it]) if it in shown else None)


async def _matching(
    db: Reader, query: Query, count: int, *, by_importance: bool, whole: queries.Statistics | None
) -> dict[int, tuple[float, bool]]:
    """Return the best pages by BM25: their scores, and whether they hold some terms only."""
    among, without = await _admitted(db, query)
    best: dict[int, tuple[float, bool]] = {}
    for every in (True, False) if len(query.terms) > 1 else (True,):
        terms, excluded = list(map(str, query.terms)), list(map(str, query.excluded))
        enough = count if query.admits_all and not by_importance else None
        steps = queries.scoring(terms, excluded, every=every, wanted=enough, whole=whole)
        scored, _ = await queries.later(db, steps)
        if by_importance:
            for page_id, importance in (await queries.importances(db, list(scored))).items():
                scored[page_id] *= importance
        more = await asyncio.to_thread(_best, scored, among, without, count - len(best))
        best |= {page_id: (score, not every) for page_id, score in more}
        without |= best.keys()
        if len(best) == count:
            break
    return best


async def remember(library: Library, query: Query) -> None:
    """Count a search by its words alone, in each shard, while another process may write."""
    await library.each(lambda _: noting(_remember, query=query))


async def _remember(path: Path, query: Query) -> None:
    terms = " ".join(sorted({word for term in query.terms for word in term.words}))
    count = partial(tables.count_search, terms=terms)
    try:
        await asyncio.to_thread(write_beside, path, count)
    except StoreError as error:
        # The answer does not depend on it.
        log.warning("the search is not counted: %s", error)


def as_json(
    typed: str,
    found: Sequence[SearchResult],
    counted: tuple[int, int] | None,
    *,
    linked: bool = False,
) -> dict[str, object]:
    """Return results as verbs and ``/v1`` print them; ``counted`` as :func:`tables.counts`."""
    indexed, told = counted or (0, 0)
    results = [each.as_json(linked=linked) for each in found]
    return {"query": typed, "indexed": indexed, "not_indexed": told - indexed, "results": results}


async def _admitted(db: Reader, query: Query) -> tuple[set[int] | None, set[int]]:
    """Return the pages on a site, and of a time, that are wanted (None: all), and unwanted ones."""
    wanted, unwanted = None, set[int]()
    if query.sites or query.other_sites:
        origins = await queries.origins(db)
        unwanted = await queries.beginning(db, query.beginnings(origins, wanted=False))
        if query.sites:
            wanted = await queries.beginning(db, query.beginnings(origins, wanted=True))
    if (query.since, query.until) != (-inf, inf):
        changed = await queries.changed_within(db, query.since, query.until)
        wanted = changed if wanted is None else wanted & changed
    return wanted, unwanted


def _best(
    scored: Mapping[int, float], among: Container[int] | None, without: Iterable[int], most: int
) -> list[tuple[int, float]]:
    """Return the best pages with their scores, at most ``most``.

    Equal ones are ordered by number, so that an answer can be repeated.
    """
    left = scored.keys() - without
    some = ((i, scored[i]) for i in left if among is None or i in among)
    return heapq.nsmallest(most, some, key=lambda one: (-one[1], one[0]))


async def _snippet(
    db: Reader, parser: Parser, found: MatchingPage, terms: Sequence[SearchTerm]
) -> Snippet:
    """Return the part of a page's text with most of the terms, empty if the text is not kept."""
    parsed = await parsed_page(db, parser, found)
    if parsed is None:
        return Snippet("")
    return await asyncio.to_thread(snippet, parsed.blocks.texts, terms)


def snippet(texts: Sequence[str], terms: Sequence[SearchTerm]) -> Snippet:
    """Return the 240 characters of a text, given in blocks, that show most of the terms.

    Among equal ones the first wins. A block is not left before its end.
    """
    best, shown = (0, 0), Snippet(_beginning(texts))
    for number, text in enumerate(texts):
        words = f" {normalised(text)} "
        held = [t for t in terms if f" {' '.join(t.words)}{' ' * (not t.is_prefix)}" in words]
        if (len(held) <= best[0] and best[0]) or not held:
            continue
        marks = list(_marks(text, held))
        for place, (_, begin, _) in enumerate(marks):
            inside = list(_within_reach(marks, place, begin + _SNIPPET - _LEAD))
            worth = len({term for term, _, _ in inside}), len(inside)
            if worth > best:
                best, shown = worth, _cut([text, *texts[number + 1 : number + 4]], begin, inside)
    return shown


def _within_reach(
    marks: Sequence[tuple[SearchTerm, int, int]], place: int, end: int
) -> Iterator[tuple[SearchTerm, int, int]]:
    """Yield the marks from a place on that end by ``end``; a hostile text may have thousands."""
    for mark in islice(marks, place, None):
        if mark[1] >= end:
            return
        if mark[2] <= end:
            yield mark


def _beginning(texts: Sequence[str]) -> str:
    return _cut(texts[:8], 0, []).text


def _marks(text: str, terms: Sequence[SearchTerm]) -> Iterator[tuple[SearchTerm, int, int]]:
    """Yield the places of terms in a text, in order."""
    found = list(places(text[:_READ]))
    words = [word for word, _, _ in found]
    for i in range(len(found)):
        for term in terms:
            end = i + len(term.words)
            is_here = words[i].startswith(term.words[0]) and end <= len(words)
            if is_here and term.matches(words[i:end]):
                yield term, found[i][1], found[end - 1][2]


def _cut(texts: Sequence[str], begin: int, marks: Sequence[tuple[SearchTerm, int, int]]) -> Snippet:
    """Return the text around ``begin`` in the first block, with the marks in it."""
    first = texts[0] if texts else ""
    start = 0 if begin <= _LEAD else _word_begin(first, begin - _LEAD)
    whole = _lengthened(first[start : start + 2 * _SNIPPET], texts[1:])
    end = len(whole)
    if end > _SNIPPET:
        end = max(whole.rfind(" ", _SNIPPET // 2, _SNIPPET), 0) or _SNIPPET
    lead = "… " if start else ""
    shift = len(lead) - start
    inside = sorted(
        {(b + shift, e + shift) for _, b, e in marks if start <= b and e - start <= end}
    )
    shown = _printable(whole[:end])
    return Snippet(f"{lead}{shown}{' …' if end < len(whole) else ''}", tuple(inside))


def _lengthened(text: str, others: Iterable[str]) -> str:
    """Return a text; a short one is extended by the texts after it, to show its subject."""
    for each in others:
        if len(text) < _SNIPPET:
            text += f" · {each[:_SNIPPET]}"
    return text


def _printable(text: str) -> str:
    """Return the same number of characters, without those that would act on a terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _word_begin(text: str, at: int) -> int:
    """Return the start of the first word after a place, or the place if no word is near."""
    space = text.find(" ", at, at + _LEAD)
    return at if space < 0 else space + 1


async def parsed_page(
    db: Reader, parser: Parser, wanted: MatchingPage | PendingPage
) -> ParsedPage | None:
    """Parse a page's document; None if its bytes are not kept, or cannot be parsed."""
    try:
        body = await page.body(db, wanted.version_id)
        if body is None:
            return None
        hints = parser.hints(wanted.fetch_url, tuple(await runs.site_settings(db)))
        parsed = await parser.parse(body, wanted.fetch_url, wanted.content_type, hints)
    except (ParserLost, StoreError) as error:
        log.warning("%s: only the title is searched or shown: %s", wanted.fetch_url, error)
        return None
    return None if isinstance(parsed, Unparsable) else parsed


async def found(
    library: Library, settings: Settings, asked: SearchRequest
) -> tuple[list[SearchResult], dict[int, str]]:
    """Search for a program, as :class:`freshet.crawler.run.hooks.Searching` has it."""
    query = Query.parse(asked.query, asked.now, site=asked.site, since=asked.since)
    results, _, down = await search(
        library, query, asked.limit, offset=asked.offset, by_importance=asked.by_importance,
        now=asked.now, audience=await audience_of(library, settings, asked.now),
    )  # fmt: skip
    if settings.group(SearchSettings).remember:
        await remember(library, query)
    return results, down
