"""Search quality in a store: the queries by which it is measured, and what visits change of it."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from heapq import nlargest
from math import isfinite
from pathlib import Path
from sqlite3 import Connection
from typing import Final

import numpy as np
from aiosqlite import Connection as Reader

from freshet.config.settings import Settings
from freshet.crawler.errors import UsageError
from freshet.crawler.extensions.readers import quality_tables as measures
from freshet.crawler.extensions.readers.search_quality import (
    TOP,
    ScoreTable,
    Scoring,
    Workload,
    made_queries,
)
from freshet.crawler.extensions.search import queries
from freshet.crawler.extensions.search import tables as search
from freshet.crawler.extensions.search.settings import SearchSettings
from freshet.crawler.extensions.search.words import normalised
from freshet.storage.database import Database
from freshet.storage.errors import trouble
from freshet.storage.records import Observation

# -- the workload ------------------------------------------------------------

#: Queries that are made, or read of a list.
_QUERIES: Final = 1_000
_MOST_LISTED: Final = 10_000
#: Pages whose texts queries are made of.
_SAMPLE: Final = 20_000
#: Words in more than this share of so many of these pages say nothing of what is searched.
_USUAL: Final = 0.5
_WHOLE: Final = 2_000
_SEED: Final = 4
_WEIGHT: Final = re.compile(r"(.*)[\t,;] *([0-9.eE+-]+) *")


def listed_queries(path: Path) -> Workload:
    """Return the queries of a file: each line one, with its frequency after a tab or a comma.

    Raises:
        UsageError: the file cannot be read, a frequency is not a number above 0, or it has no
            query.
    """
    text = _text_of(path)
    found: list[tuple[list[str], float]] = []
    for number, line in enumerate(text.splitlines(), 1):
        said = _WEIGHT.fullmatch(line)
        words = normalised(said[1] if said else line).split()
        if not words or line.startswith("#") or (words[0] == "query" and not found and not said):
            continue
        weight = _frequency(said)
        if weight is None:
            raise UsageError(f"--queries {path}:{number}: a frequency is a number above 0: {line}")
        found.append((words, weight))
    if not found:
        raise UsageError(f"--queries {path}: it has no query; write one a line, and its frequency")
    return Workload.of(nlargest(_MOST_LISTED, found, key=lambda one: one[1]))


def _text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except OSError as error:
        raise UsageError(f"--queries {trouble(path, error)}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"--queries {path}: it is not UTF-8; save it as UTF-8") from error


def _frequency(said: re.Match[str] | None) -> float | None:
    """Return the frequency that a line states, 1 if it states none; None if it is not above 0."""
    if said is None:
        return 1.0
    try:
        number = float(said[2])
    except ValueError:
        return None
    return number if isfinite(number) and number > 0 else None


async def take_over_queries(database: Database, settings: SearchSettings) -> Workload:
    """Set the queries by which quality is measured, and return them.

    Searches that the store remembered count as well, half of all where there are others.
    """
    made, pages = Workload.of(()), 0
    if settings.queries == "made":
        made, pages = await _made(database.reader)
    base = made
    if settings.queries not in {"", "made"}:
        base = listed_queries(Path(settings.queries))
    asked = await search.asked(database.reader, _QUERIES) if settings.remember else []
    own = Workload.of((terms.split(" "), times) for terms, times in asked)
    half = 0.5 if base.queries and own.queries else 1.0
    found = Workload.of(
        (terms.split(" "), half * f) for part in (base, own) for terms, f in part.as_texts().items()
    )
    await database.write(
        partial(measures.set_queries, queries=found.as_texts(), made=made.as_texts(), pages=pages)
    )
    return found


async def _made(reader: Reader) -> tuple[Workload, int]:
    """Make queries of titles, headings and anchors; return them, and of how many pages they are.

    Those that are there hold until there are twice as many pages.
    """
    known, pages = await measures.made_queries(reader)
    now = (await search.counts(reader) or (0, 0))[0]
    if known and now < 2 * pages:
        return Workload.of((terms.split(" "), f) for terms, f in known.items()), pages
    lines = await measures.sampled(reader, _SAMPLE)
    anchors = await measures.anchors(reader, lines)
    return await asyncio.to_thread(_made_of, lines, anchors), now


def _made_of(pages: Mapping[int, str], anchors: Iterable[tuple[int, str]]) -> Workload:
    """Make queries of the indexed lines of pages and the anchors of links to them."""
    texts: dict[int, list[str]] = {}
    for page, lines in pages.items():
        title, headings, _ = lines.split("\n")
        texts[page] = [title, *headings.split("  ")]
    for page, anchor in anchors:
        texts[page].append(normalised(anchor))
    headlines = Counter(
        word for strings in texts.values() for word in set(" ".join(strings).split())
    )
    some = list(pages.values())[:: len(pages) // _WHOLE + 1]
    everywhere = Counter(word for lines in some for word in set(lines.split()))
    usual = {word for word, n in headlines.items() if n > _USUAL * len(texts) + 1}
    usual |= {word for word, n in everywhere.items() if n > _USUAL * len(some) + 1}

    def terms_of(text: str) -> list[str]:
        return [word for word in text.split() if word not in usual]

    return made_queries(texts.values(), terms_of, _QUERIES, np.random.default_rng(_SEED))


# -- measuring ---------------------------------------------------------------

#: A row is made anew, with the statistics of the day, after a visit to each page, or so many.
_LEAST_VISITS: Final = 10_000
#: Rows that are made in one transaction: commits wait for them.
_TOGETHER: Final = 10
#: Kinds of visits that found a stale copy.
_STALE: Final = frozenset({"changed", "gone"})
#: Draws of the pages that are stale.
_DRAWS: Final = 16


class QualityMeter:
    """Measures what visits change of search quality; as a meter of the search index.

    *Invariant.* A row of the score table is what the index holds, with the statistics of the time
    at which it was made. It is made when a page's change first concerns its query. Consequence: a
    start costs nothing, and after a transaction that was rolled back all rows are dropped.
    """

    def __init__(self, workload: Workload) -> None:
        """Measure by these queries; without any, nothing is measured."""
        self.workload = workload
        self.forget()

    def forget(self) -> None:
        """Drop all rows."""
        self._scoring = Scoring(self.workload, queries.WEIGHTS)
        self._table = ScoreTable(self.workload.frequency)
        #: Of each row the number of visits at which it is due again; 0: it was not made yet.
        self._due = np.zeros(len(self.workload.queries))
        self._visits = 0

    def measure(self, db: Connection, page_id: int, old: str | None, new: str | None) -> float:
        """Return ΔQ_A of a visit, and move the page in the rows, before the index has it."""
        self._visits += 1
        scores = self._scoring.scores
        before, after = scores(old), scores(new)
        due = (self._due <= self._visits) | self._table.have_shrunk()
        due &= (before != 0) | (after != 0)
        if due.any():
            for query in np.flatnonzero(due).tolist():
                self._make(db, query)
            before, after = scores(old), scores(new)
        return self._table.change(page_id, before, after)

    def keep(self, db: Connection, page_id: int, packed: bytes) -> None:
        """Keep the packed lines that a page had until now."""
        measures.keep_before(db, page_id, packed)

    def note_gains(
        self, db: Connection, seen: Sequence[Observation], gained: Mapping[int, float]
    ) -> None:
        """Enter what visits that found a stale copy have changed."""
        changes = [
            (each.page_id, each.at, gained[each.page_id])
            for each in seen
            if each.kind in _STALE and each.page_id in gained
        ]
        if changes:
            measures.append_changes(db, changes)

    async def keep_up(self, database: Database, settings: Settings, now: float) -> None:
        """Write what pages contribute, and the quality; make the queries if it is time."""
        await note_quality(database, settings.group(SearchSettings), self, now)

    def make_rows(self, db: Connection) -> bool:
        """Make some of the rows that were not needed yet; return whether there are more."""
        missing = np.flatnonzero(self._due == 0).tolist()
        for query in missing[:_TOGETHER]:
            self._make(db, query)
        return len(missing) > _TOGETHER

    def note(self, db: Connection, now: float, quality: float) -> None:
        """Write what the pages of all rows contribute to a search, and the quality ``now``."""
        pages, usefulness = self._table.usefulness()
        measures.note_use(db, list(zip(pages.tolist(), usefulness.tolist(), strict=True)))
        measures.note_quality(db, now, quality)

    def quality(
        self, before: Sequence[tuple[int, str, str | None, float, float]], now: float
    ) -> float:
        """Return the search quality of the copies ``now``, as the last visits tell; all rows exist.

        The live pages are not known. So the copies are compared with those that the last visits
        replaced: of a page that its last visit, after a gap g, found changed, a copy of age a
        differs as much with probability min(a/g, 1). The quality is exact for each of some draws.
        """
        told = [(0, 0, 0.0, 0.0, 0.0)][:0]
        for page_id, old, new, gap_s, at in before:
            one, other = (np.maximum(self._scoring.scores(text), 0.0) for text in (old, new))
            chance = min((now - at) / gap_s, 1.0) if gap_s > 0 else 1.0
            told += [
                (query, page_id, float(one[query]), float(other[query]), chance)
                for query in np.flatnonzero(one != other).tolist()
            ]
        if not told:
            return 1.0
        query, page, first, live, chances = map(np.array, zip(*told, strict=True))
        _, which = np.unique(page, return_inverse=True)
        rng = np.random.default_rng(_SEED)
        draws = [rng.random(which.max() + 1)[which] < chances for _ in range(_DRAWS)]
        found = [
            self._table.quality(query, page, np.where(drawn, first, live), live) for drawn in draws
        ]
        return float(np.mean(found))

    def _make(self, db: Connection, query: int) -> None:
        terms = [f'"{term}"' for term in self.workload.queries[query]]
        scores, told = queries.now(db, queries.scoring(terms))
        best = nlargest(TOP + 1, scores.items(), key=lambda one: (one[1], -one[0]))
        self._scoring.freeze(query, told.idf, told.mean_length)
        columns = np.array([page for page, _ in best], np.int64), np.array([s for _, s in best])
        self._table.refill(query, *columns)
        self._due[query] = self._visits + max(told.pages, _LEAST_VISITS)


async def note_quality(
    database: Database, settings: SearchSettings, meter: QualityMeter, now: float
) -> None:
    """Write what pages contribute to searches, and the quality; make the queries if it is time."""
    _, pages = await measures.made_queries(database.reader)
    indexed = (await search.counts(database.reader) or (0, 0))[0]
    if not meter.workload.queries or (settings.queries == "made" and indexed >= 2 * pages):
        meter.workload = await take_over_queries(database, settings)
        meter.forget()
    while await database.write(meter.make_rows):
        pass
    told = await measures.before(database.reader)
    quality = await asyncio.to_thread(meter.quality, told, now)
    await database.write(partial(meter.note, now=now, quality=quality))
