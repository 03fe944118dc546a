"""The pages that hold the words of a query, scored by BM25 over the search index. Read-only.

    score(d, q) = Σ_{t∈q} idf(t) · f (k₁ + 1) / (f + k₁ (1 − b + b |d| / mean |d|))
    idf(t) = ln(1 + (N − n + ½) / (n + ½)),   k₁ = 1.2, b = 0.75

with n of N pages that hold t, and f the weighted count of t in a page of |d| words (S. Robertson
and H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009, section 3; this idf
as in Lucene). FTS5's ``bm25()`` has ln((N − n + ½) / (n + ½)) instead, and 10⁻⁶ where that is below
0: on one site half of the pages hold the site's own words, and their counts would not matter. So
the fraction of each term is recovered from FTS5's sums: a term that occurs twice in an expression
counts twice.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf, log, log1p
from sqlite3 import Connection
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from aiosqlite import Connection as Reader

from freshet.storage.database import as_json, columns_of, row_to

if TYPE_CHECKING:
    pass

#: Weights of a word in the title, in a heading and elsewhere.
WEIGHTS: Final = (3, 2, 1)
#: A count of a term, however high, is worth less than k₁ + 1 of its idf.
_K1, _B = 1.2, 0.75
_MOST_OF_IDF: Final = _K1 + 1
#: FTS5's idf of a term in at least half of all rows.
_LEAST_IDF: Final = 1e-6
_MATCHING: Final = "FROM search_words WHERE search_words MATCH ?"
#: Pages that match an expression in their order, with FTS5's score, negated as it gives it.
_SUMS: Final = f"SELECT rowid, bm25(search_words, {', '.join(map(str, WEIGHTS))}) {_MATCHING}"

_LENGTHS: Final = (
    "SELECT id, sz FROM search_words_docsize WHERE id IN (SELECT value FROM json_each(?))"
)

T = TypeVar("T")
#: Yields SQL with its values, takes the rows, and returns a result.
Steps: TypeAlias = Generator[tuple[str, tuple[Any, ...]], list[tuple[Any, ...]], T]


@dataclass(frozen=True, slots=True)
class MatchingPage:
    """A page that matches a query; its document is version ``version_id``, changed at that time."""

    page_id: int
    url: str
    fetch_url: str
    version_id: int
    content_type: str | None
    title: str | None
    changed_at: float


@dataclass(frozen=True, slots=True)
class Statistics:
    """Numbers of the whole index in scores: the idfs of some terms, and the mean page's words."""

    idf: tuple[float, ...]
    mean_length: float
    pages: int


def scoring(
    terms: Sequence[str],
    excluded: Sequence[str] = (),
    *,
    every: bool = True,
    wanted: int | None = None,
    whole: Statistics | None = None,
) -> Steps[tuple[dict[int, float], Statistics]]:
    """Score the pages that hold ``every`` term, or else any, and none of the ``excluded``.

    ``terms`` and ``excluded`` are phrases in the syntax of FTS5, at least one term. If only the
    ``wanted`` best pages matter, others may be left out. Yields queries, takes their rows, and
    returns the scores by page: for a connection of any kind (:func:`now`, :func:`later`). Scores
    are those of the ``whole`` if the index is one of a shard.
    """
    total, words, *holdings = yield from counting(terms)
    here = statistics([(total, words, *holdings)])
    without = f" NOT ({' OR '.join(excluded)})" if excluded else ""
    ours = list((whole or here).idf)
    factors = [own / _fts5_idf(total, n) for own, n in zip(ours, holdings, strict=True)]
    found = dict[int, float]()
    mean = None if whole is None else whole.mean_length
    add = partial(_add, found, {}, here.mean_length, mean)
    if every:
        sums = yield from _all(terms, without)
        if whole is None:
            return _merged(sums, factors), here
        for place, (own, factor) in enumerate(zip(ours, factors, strict=True)):
            parts = _merged(sums, [float(place == each) for each in range(len(terms))])
            yield from add(parts, own, factor)
    else:
        weighed = sorted(zip(ours, factors, terms, strict=True), reverse=True)
        yield from _any(weighed, without, inf if wanted is None else wanted, found, add)
    return found, here


def counting(terms: Sequence[str]) -> Steps[tuple[int, ...]]:
    """Count the pages of the index, their words, and the pages that hold each term."""
    ((total, words),) = yield "SELECT pages, words FROM search_index", ()
    holdings = []
    for term in terms:
        ((holding,),) = yield f"SELECT count(*) {_MATCHING}", (term,)
        holdings.append(holding)
    return total, words, *holdings


def statistics(counts: Iterable[Sequence[int]]) -> Statistics:
    """Return the sums over all shards that :func:`counting` has counted."""
    total, words, *holdings = map(sum, zip(*counts, strict=True))
    idf = [log1p((total - holding + 0.5) / (holding + 0.5)) for holding in holdings]
    return Statistics(tuple(idf), words / max(total, 1), total)


def _add(
    found: dict[int, float], lengths: dict[int, int], here: float, mean: float | None,
    parts: Mapping[int, float], idf: float, factor: float,
) -> Steps[None]:  # fmt: skip
    """Add a term's contribution to the scores of pages, from its contribution to FTS5's.

    With K = k₁ (1 − b + b |d| / mean), a fraction is φ = f (k₁ + 1) / (f + K). It determines f, and
    so the fraction with another K: φ (k₁ + 1) K / (φ K + (k₁ + 1 − φ) K'). So scores are with the
    ``mean`` page's words of all shards, if it is given, where FTS5 takes those ``here``.
    """
    if mean is not None and (missing := parts.keys() - lengths):
        rows = yield _LENGTHS, (as_json(list(missing)),)
        lengths.update((page_id, _length(sizes)) for page_id, sizes in rows)
    for page_id, part in parts.items():
        score = part * factor
        if mean is not None:
            phi = min(max(score / idf, 0.0), _MOST_OF_IDF)
            k, k_whole = (_K1 * (1 - _B + _B * lengths[page_id] / it) for it in (here, mean))
            score = idf * phi * _MOST_OF_IDF * k / (phi * k + (_MOST_OF_IDF - phi) * k_whole)
        found[page_id] = found.get(page_id, 0.0) + score


def _length(sizes: bytes) -> int:
    """Return the sum of SQLite's varints: the words of a page by columns."""
    total = value = 0
    for byte in sizes:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            total, value = total + value, 0
    return total


def _merged(
    sums: Sequence[Sequence[tuple[int, float]]], factors: Sequence[float]
) -> dict[int, float]:
    """Return the scores by the sums, negated, in which each term in turn counts twice.

    With t twice the sum S is S + idf(t) · fraction(t); so n of these sums make (n + 1) S.
    """
    mean = sum(factors) / (len(factors) + 1)
    scores = [0.0] * len(sums[0])
    for column, factor in zip(sums, factors, strict=True):
        part = mean - factor
        scores = [score + part * each for score, (_, each) in zip(scores, column, strict=True)]
    return {page_id: score for (page_id, _), score in zip(sums[0], scores, strict=True)}


def _fts5_idf(total: int, holding: int) -> float:
    """Return the idf that FTS5 gives to a term in ``holding`` of all rows."""
    odds = (total - holding + 0.5) / (holding + 0.5)
    return log(odds) if odds > 1 else _LEAST_IDF


def _all(terms: Sequence[str], without: str) -> Steps[list[list[tuple[Any, ...]]]]:
    """Return the pages that hold all terms with FTS5's scores, for each term once more."""
    together, sums = " AND ".join(terms), []
    for term in terms:
        sums += [(yield _SUMS, (f"({together} AND {term}){without}",))]
    return sums


def _any(
    weighed: Sequence[tuple[float, float, str]],
    without: str,
    wanted: float,
    found: dict[int, float],
    add: Callable[[Mapping[int, float], float, float], Steps[None]],
) -> Steps[None]:
    """Score the pages with any of the terms, each with its idf and factor, the rarest ones first.

    Terms find pages until those that are left could not lift another page among the best; these
    are counted only on the pages that were found (H. Turtle and J. Flood, "Query evaluation:
    strategies and optimizations", 1995: max score).
    """
    theirs, finding = dict[int, float](), list[str]()
    for place, (idf, factor, term) in enumerate(weighed):
        is_known = len(finding) < place
        if not is_known and len(found) >= wanted:
            left = _MOST_OF_IDF * sum(ours for ours, _, _ in weighed[place:])
            is_known = left <= heapq.nlargest(int(wanted), found.values())[-1]
        if is_known:
            expression = f"(({' OR '.join(finding)}) AND {term})"
        else:
            finding.append(expression := term)
        rows, parts = (yield _SUMS, (f"{expression}{without}",)), {}
        for page_id, negated in rows:
            before = theirs.get(page_id, 0.0)
            if is_known:
                # The sum of such an expression includes the finding terms.
                gained = -negated - before
            else:
                gained = -negated
                theirs[page_id] = before + gained
            parts[page_id] = gained
        yield from add(parts, idf, factor)


def now(db: Connection, steps: Steps[T]) -> T:
    """Take these steps on a connection."""
    rows: list[tuple[Any, ...]] | None = None
    while True:
        query, ended = _advanced(steps, rows)
        if query is None:
            result: T = ended
            return result
        rows = db.execute(*query).fetchall()


async def later(db: Reader, steps: Steps[T]) -> T:
    """Take these steps on a reader, which others may use between them.

    They may be long where many pages match, so the event loop does not take them itself.
    """
    rows: list[tuple[Any, ...]] | None = None
    while True:
        query, ended = await asyncio.to_thread(_advanced, steps, rows)
        if query is None:
            result: T = ended
            return result
        async with db.execute(*query) as cursor:
            cursor.row_factory = None
            rows = list(await cursor.fetchall())  # type: ignore[arg-type]  # tuples, by no factory


def _advanced(
    steps: Steps[T], rows: list[tuple[Any, ...]] | None
) -> tuple[tuple[str, tuple[Any, ...]] | None, Any]:
    """Return the next query, or None and the result."""
    try:
        return next(steps) if rows is None else steps.send(rows), None
    except StopIteration as end:
        return None, end.value


async def importances(db: Reader, page_ids: Sequence[int]) -> dict[int, float]:
    """Return the importances of those pages that a daemon has valued."""
    rows = await db.execute_fetchall(
        "SELECT page_id, importance FROM json_each(?) JOIN estimate ON page_id = value",
        (as_json(list(page_ids)),),
    )
    return {row[0]: row[1] for row in rows}


async def origins(db: Reader) -> list[str]:
    """Return all hosts, each as scheme, name and port."""
    return [row[0] for row in await db.execute_fetchall("SELECT origin FROM host")]


async def beginning(db: Reader, beginnings: Sequence[str]) -> set[int]:
    """Return the pages with URLs that begin with any of these."""
    sql = (
        "SELECT p.id FROM json_each(?) AS wanted CROSS JOIN page AS p "
        "ON p.url >= wanted.value AND p.url < wanted.value || char(0x10ffff)"
    )
    return {row[0] for row in await db.execute_fetchall(sql, (as_json(list(beginnings)),))}


async def changed_within(db: Reader, since: float, until: float) -> set[int]:
    """Return the pages with the last change of their document in [since, until)."""
    sql = (
        "SELECT page_id FROM change "
        "WHERE kind <> 'noise' AND coalesce(changed_at, at) >= ? AND coalesce(changed_at, at) < ?"
    )
    return {row[0] for row in await db.execute_fetchall(sql, (since, until))}


async def pages(db: Reader, page_ids: Sequence[int]) -> list[MatchingPage]:
    """Return indexed pages in this order."""
    columns = columns_of(
        MatchingPage, "p", page_id="p.id", version_id="v.id", content_type="v.content_type",
        title="c.title", changed_at="coalesce(c.changed_at, c.at)",
    )  # fmt: skip
    rows = await db.execute_fetchall(
        f"SELECT {columns} FROM json_each(?) AS wanted JOIN page AS p ON p.id = wanted.value "
        "JOIN change AS c ON c.page_id = p.id AND c.kind <> 'noise' "
        "JOIN version AS v ON v.id = c.version_id ORDER BY wanted.key",
        (as_json(list(page_ids)),),
    )
    return list(map(row_to(MatchingPage), rows))
