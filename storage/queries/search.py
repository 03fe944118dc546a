"""Which pages hold the words of a query, and how well: BM25 over the search index. Read-only.

    score(d, q) = Σ_{t∈q} idf(t) · f (k₁ + 1) / (f + k₁ (1 − b + b |d| / mean |d|))
    idf(t) = ln(1 + (N − n + ½) / (n + ½)),   k₁ = 1.2, b = 0.75

with n of N pages that hold t, and f the weighted count of t in a page of |d| words (S. Robertson
and H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009, section 3; this idf
as in Lucene). FTS5's ``bm25()`` has ln((N − n + ½) / (n + ½)) instead, and 10⁻⁶ where that is below
0: on one site half of the pages hold the site's own words, and their counts would not matter. So
the fraction of each term is recovered from FTS5's sums: a term that stands twice in an expression
counts twice.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from math import log, log1p
from sqlite3 import Connection
from typing import Any, Final, TypeAlias, TypeVar

from aiosqlite import Connection as Reader

from freshet.storage.database import as_json, columns_of, row_to

#: Weights of a word in the title, in a heading and elsewhere.
WEIGHTS: Final = (3, 2, 1)
#: FTS5's idf where a term stands in at least half of all rows.
_LEAST_IDF: Final = 1e-6
_MATCHING: Final = "FROM search_words WHERE search_words MATCH ?"
#: Pages that match an expression in their order, with FTS5's score, negated as it gives it.
_SUMS: Final = f"SELECT rowid, bm25(search_words, {', '.join(map(str, WEIGHTS))}) {_MATCHING}"

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
    """What scores take from the whole index: the idfs of some terms, and the mean page's words."""

    idf: tuple[float, ...]
    mean_length: float
    pages: int


def scoring(
    terms: Sequence[str], excluded: Sequence[str] = (), *, every: bool = True
) -> Steps[tuple[dict[int, float], Statistics]]:
    """Score the pages that hold ``every`` term, or else any, and none of the ``excluded``.

    ``terms`` and ``excluded`` are phrases in the syntax of FTS5, at least one term. Yields queries,
    takes their rows, and returns the scores by page: for a connection of any kind (:func:`now`,
    :func:`later`).
    """
    ((total, words),) = yield "SELECT pages, words FROM search_index", ()
    without = f" NOT ({' OR '.join(excluded)})" if excluded else ""
    theirs, ours = [], []
    for term in terms:
        ((holding,),) = yield f"SELECT count(*) {_MATCHING}", (term,)
        odds = (total - holding + 0.5) / (holding + 0.5)
        theirs.append(log(odds) if odds > 1 else _LEAST_IDF)
        ours.append(log1p(odds))
    factors = [own / their for own, their in zip(ours, theirs, strict=True)]
    together, sums = " AND ".join(terms), []
    for term in terms:
        rows = yield _SUMS, (f"({f'{together} AND {term}' if every else term}){without}",)
        sums += [rows]
    found: dict[int, float] = {}
    if every:
        # With t twice the sum S is S + idf(t) · fraction(t); so n of these sums make (n + 1) S.
        for columns in zip(*sums, strict=True):
            alone = sum(score for _, score in columns) / (len(terms) + 1)
            rest = zip(columns, factors, strict=True)
            found[columns[0][0]] = sum((alone - score) * factor for (_, score), factor in rest)
    else:
        for rows, factor in zip(sums, factors, strict=True):
            for page_id, score in rows:
                found[page_id] = found.get(page_id, 0.0) - score * factor
    return found, Statistics(tuple(ours), words / max(total, 1), total)


def now(db: Connection, steps: Steps[T]) -> T:
    """Take these steps on a connection."""
    rows: list[tuple[Any, ...]] | None = None
    while True:
        try:
            query = steps.send(rows) if rows is not None else next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        rows = db.execute(*query).fetchall()


async def later(db: Reader, steps: Steps[T]) -> T:
    """Take these steps on a reader, which others may use between them."""
    rows: list[tuple[Any, ...]] | None = None
    while True:
        try:
            query = steps.send(rows) if rows is not None else next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        async with db.execute(*query) as cursor:
            cursor.row_factory = None
            rows = list(await cursor.fetchall())  # type: ignore[arg-type]  # tuples, by no factory


async def importances(db: Reader, page_ids: Sequence[int]) -> dict[int, float]:
    """Return the importances of those pages that a daemon has valued."""
    rows = await db.execute_fetchall(
        "SELECT page_id, importance FROM json_each(?) JOIN estimate ON page_id = value",
        (as_json(list(page_ids)),),
    )
    return {row[0]: row[1] for row in rows}


async def pages(db: Reader, page_ids: Sequence[int]) -> list[MatchingPage]:
    """Return indexed pages in this order."""
    columns = columns_of(
        MatchingPage, "p", page_id="p.id", version_id="v.id", content_type="v.content_type",
        title="c.title", changed_at="c.at",
    )  # fmt: skip
    rows = await db.execute_fetchall(
        f"SELECT {columns} FROM json_each(?) AS wanted JOIN page AS p ON p.id = wanted.value "
        "JOIN change AS c ON c.page_id = p.id AND c.kind <> 'noise' "
        "JOIN version AS v ON v.id = c.version_id ORDER BY wanted.key",
        (as_json(list(page_ids)),),
    )
    return list(map(row_to(MatchingPage), rows))
