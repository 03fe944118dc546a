"""Figure 4.2: what measuring search quality adds to the time of an index that is kept up to date.

Pages of 400 words, of which a batch gets another 5 % of its words, in one transaction, as visits
that found them changed bring them. The index is the store's own, in memory; the thesis had Lucene
and 7 to 8 %. Time is that of the processor.
"""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.random import Generator

from freshet.crawler.extensions.readers.quality import QualityMeter
from freshet.crawler.extensions.readers.search_quality import made_queries
from freshet.crawler.extensions.search import tables as search
from freshet.scheduler.arrays import Ints

QUERIES: Final = (0, 100, 300, 1_000)
BATCHES: Final = (50, 100, 200, 400)
_WORDS: Final = 400
_VOCABULARY: Final = 40_000
#: Words in more pages than this share are in no query.
_USUAL: Final = 0.5
_EDITED: Final = 0.05
_TABLES: Final = """
    CREATE TABLE page (id INTEGER PRIMARY KEY, version_id INT);
    CREATE TABLE change (page_id INTEGER PRIMARY KEY, version_id INT, kind TEXT);
"""


@dataclass(frozen=True, slots=True)
class Overhead:
    """Seconds to index batches of so many bytes, by the number of queries by which is measured."""

    size: Sequence[int]
    seconds: Mapping[int, Sequence[float]]

    def share(self, queries: int) -> float:
        """What these queries add to the time of all batches."""
        return sum(self.seconds[queries]) / sum(self.seconds[0]) - 1


def overhead(pages: int, seed: int, counts: Sequence[int] = QUERIES) -> Overhead:
    """Index the same batches with each of these numbers of queries; the first is 0."""
    rng = np.random.default_rng(seed)
    texts = {page: _drawn(rng, _WORDS) for page in range(1, pages + 1)}
    lines = {page: _lines(words) for page, words in texts.items()}
    holding = Counter(word for line in lines.values() for word in set(line.split()))

    def terms_of(title: str) -> list[str]:
        return [word for word in title.split() if holding[word] <= _USUAL * pages]

    titles = [line.splitlines()[:1] for line in lines.values()]
    batches: list[dict[int, str]] = []
    for size in BATCHES:
        some = rng.choice(pages, min(size, pages), replace=False) + 1
        texts |= {page: _edited(texts[page], rng) for page in some.tolist()}
        batches.append({page: _lines(texts[page]) for page in some.tolist()})
    seconds = {}
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as full:
        full.executescript(_TABLES)
        search.create(full)
        _enter(full, 1, lines, None)
        for queries in counts:
            made = made_queries(titles, terms_of, queries, rng) if queries else None
            seconds[queries] = _indexed(full, batches, QualityMeter(made) if made else None)
    return Overhead([sum(map(len, batch.values())) for batch in batches], seconds)


def _indexed(
    full: sqlite3.Connection, batches: Sequence[Mapping[int, str]], meter: QualityMeter | None
) -> list[float]:
    """Seconds of each batch, in a copy of an index that holds all pages."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        full.backup(db)
        while meter is not None and meter.make_rows(db):
            pass
        found = []
        for number, batch in enumerate(batches, 2):
            begin = time.process_time()
            _enter(db, number, batch, meter)
            found.append(time.process_time() - begin)
        return found


def _enter(
    db: sqlite3.Connection, version: int, lines: Mapping[int, str], meter: QualityMeter | None
) -> None:
    """Let the index follow one transaction that entered these versions."""
    db.execute("BEGIN")
    rows = [(page, version) for page in lines]
    db.executemany("INSERT OR REPLACE INTO page VALUES (?, ?)", rows)
    db.executemany("INSERT OR REPLACE INTO change VALUES (?, ?, 'changed')", rows)
    search.follow(db, lines, lines, meter)
    db.execute("COMMIT")


def _drawn(rng: Generator, count: int) -> Ints:
    """Words by Zipf's law."""
    return np.asarray(np.exp(rng.random(count) * np.log(_VOCABULARY)), np.int64)


def _edited(words: Ints, rng: Generator) -> Ints:
    new = words.copy()
    count = int(_EDITED * len(words))
    new[rng.choice(len(words), count, replace=False)] = _drawn(rng, count)
    return new


def _lines(words: Ints) -> str:
    """Title, headings and text of a page."""
    named = [f"w{word}" for word in words.tolist()]
    return "\n".join([" ".join(named[:6]), " ".join(named[6:18]), " ".join(named[18:])])
