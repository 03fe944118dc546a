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

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, log1p
from typing import Final

from aiosqlite import Connection as Reader

from freshet.storage.database import as_json, columns_of, row_to

#: Weights of a word in the title, in a heading and elsewhere.
_WEIGHTS: Final = "3, 2, 1"
#: FTS5's idf where a term stands in at least half of all rows.
_LEAST_IDF: Final = 1e-6


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


async def scores(
    db: Reader, terms: Sequence[str], excluded: Sequence[str] = (), *, every: bool = True
) -> dict[int, float]:
    """Return the scores of the pages that hold ``every`` term, or else any, by page.

    ``terms`` and ``excluded`` are phrases in the syntax of FTS5, at least one term.
    """
    ((total,),) = await db.execute_fetchall("SELECT pages FROM search_index")
    without = f" NOT ({' OR '.join(excluded)})" if excluded else ""
    weights = [await _idfs(db, term, total) for term in terms]
    found: dict[int, float] = {}
    if not every:
        for term, (theirs, ours) in zip(terms, weights, strict=True):
            for page_id, score in await _sums(db, f"{term}{without}"):
                found[page_id] = found.get(page_id, 0.0) - score * ours / theirs
        return found
    together = " AND ".join(terms)
    # With t twice the sum S is S + idf(t) · fraction(t); so n of these sums make (n + 1) S.
    sums = [await _sums(db, f"({together} AND {term}){without}") for term in terms]
    for columns in zip(*sums, strict=True):
        alone = sum(score for _, score in columns) / (len(terms) + 1)
        found[columns[0][0]] = -sum(
            (score - alone) * ours / theirs
            for (_, score), (theirs, ours) in zip(columns, weights, strict=True)
        )
    return found


async def _idfs(db: Reader, term: str, total: int) -> tuple[float, float]:
    """Return FTS5's idf of a term, and ours."""
    sql = "SELECT count(*) FROM search_words WHERE search_words MATCH ?"
    ((holding,),) = await db.execute_fetchall(sql, (term,))
    odds = (total - holding + 0.5) / (holding + 0.5)
    return log(odds) if odds > 1 else _LEAST_IDF, log1p(odds)


async def _sums(db: Reader, expression: str) -> list[tuple[int, float]]:
    """Return the matching pages in their order with FTS5's score, negated as it gives it."""
    sql = (
        f"SELECT rowid, bm25(search_words, {_WEIGHTS}) FROM search_words WHERE search_words MATCH ?"
    )
    async with db.execute(sql, (expression,)) as cursor:
        cursor.row_factory = None
        return list(await cursor.fetchall())  # type: ignore[arg-type]  # tuples, without a factory


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
