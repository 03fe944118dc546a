"""What a search ranks first, beside BM25 by another implementation, on judged collections.

A collection is a folder with the files of one in SMART's format: ``cran.all.1400``, ``cran.qry``
and ``cranqrel`` (Cranfield), or ``cacm.all``, ``query.text`` and ``qrels.text`` (CACM). Titles and
texts of documents, and the queries' texts, are used; each document that is judged relevant counts
the same. The reference (bm25s, method lucene) has the same words, k₁ and b, and no fields. Queries
with an even and an odd number are printed apart: what is chosen is chosen by the even ones.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log2
from pathlib import Path
from statistics import fmean
from typing import TypeAlias

import bm25s  # type: ignore[import-not-found]  # an extra of this benchmark

from freshet.crawler.extensions.search import queries
from freshet.crawler.extensions.search.searching import Query, search
from freshet.crawler.extensions.search.words import normalised
from freshet.crawler.read.library import Library
from freshet.crawler.reduce.parser_process import Parser
from freshet.storage.queries import page
from scripts.benchmarks.search import Written, filled, indexed

_RESULTS = 10
#: Words of a query that count, as many as the command takes.
_MOST_WORDS = 32
_FILES = {
    "cranfield": ("cran.all.1400", "cran.qry", "cranqrel"),
    "cacm": ("cacm.all", "query.text", "qrels.text"),
}

Ranking: TypeAlias = list[int]


@dataclass(frozen=True, slots=True)
class Collection:
    """Documents (title, text) by number, queries by number, and what is relevant to each."""

    name: str
    documents: Mapping[int, tuple[str, str]]
    queries: Mapping[int, str]
    relevant: Mapping[int, frozenset[int]]


def read(folder: Path) -> Collection:
    """Read the collection that a folder has.

    Raises:
        FileNotFoundError: it has none that is known.
    """
    for name, files in _FILES.items():
        if (folder / files[0]).exists():
            documents, asked, judged = (
                folder.joinpath(file).read_text("latin-1") for file in files
            )
            return _collection(name, documents, asked, judged)
    raise FileNotFoundError(f"{folder}: none of {', '.join(f[0] for f in _FILES.values())}")


def _collection(name: str, documents: str, asked: str, judged: str) -> Collection:
    texts = {
        number: (parts.get("T", ""), parts.get("W", "")) for number, parts in _parts(documents)
    }
    typed = list(_parts(asked))
    # Cranfield's judgements count the queries, whatever their numbers are.
    counted = name == "cranfield"
    numbered = {
        place if counted else number: parts.get("W", "")
        for place, (number, parts) in enumerate(typed, 1)
    }
    relevant = defaultdict[int, set[int]](set)
    for line in judged.splitlines():
        query, document, *rest = line.split()
        # Of Cranfield's codes -1 means no interest.
        if not counted or int(rest[0]) > 0:
            relevant[int(query)].add(int(document))
    judged_ones = {q: text for q, text in numbered.items() if text and q in relevant}
    return Collection(name, texts, judged_ones, {q: frozenset(d) for q, d in relevant.items()})


def _parts(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    for entry in re.split(r"^\.I\s+", text, flags=re.MULTILINE)[1:]:
        number, _, rest = entry.partition("\n")
        fields = re.split(r"^\.([A-Z])\s*$", rest, flags=re.MULTILINE)[1:]
        yield int(number), dict(zip(fields[::2], map(_line, fields[1::2]), strict=True))


def _line(text: str) -> str:
    return " ".join(text.split())


def ndcg(ranking: Sequence[int], relevant: frozenset[int]) -> float:
    """The nDCG@10, with a gain of 1 for each relevant document.

    >>> round(ndcg([5, 7], frozenset({7})), 4)
    0.6309
    """
    gain = sum(1 / log2(place + 2) for place, it in enumerate(ranking[:_RESULTS]) if it in relevant)
    best = sum(1 / log2(place + 2) for place in range(min(_RESULTS, len(relevant))))
    return gain / best


def _words(query: str) -> list[str]:
    return list(dict.fromkeys(normalised(query).split()))[:_MOST_WORDS]


def reference(it: Collection) -> dict[int, Ranking]:
    """Rank by bm25s."""
    numbers = list(it.documents)
    index = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
    corpus = [normalised(" ".join(it.documents[n])).split() for n in numbers]
    index.index(corpus, show_progress=False)
    found = {}
    for number, query in it.queries.items():
        scores = index.get_scores([w for w in _words(query) if w in index.vocab_dict])
        best = sorted(range(len(numbers)), key=lambda i: (-scores[i], numbers[i]))[:_RESULTS]
        found[number] = [numbers[i] for i in best]
    return found


def ours(it: Collection) -> dict[str, dict[int, Ranking]]:
    """Rank as a search does (pages with all words, then with some), and by some words alone."""
    pages = [Written(title, (text,), ("paragraph",)) for title, text in it.documents.values()]
    with tempfile.TemporaryDirectory() as folder:
        filled(store := Path(folder, "store.db"), pages)
        asyncio.run(indexed(store, pages))
        return asyncio.run(_ours(it, store))


async def _ours(it: Collection, store: Path) -> dict[str, dict[int, Ranking]]:
    numbers, library = list(it.documents), Library(store, parser := Parser())
    found: dict[str, dict[int, Ranking]] = {"all words first": {}, "any words": {}}
    try:
        async with page.snapshot(store) as db:
            for number, query in it.queries.items():
                asked = Query.parse(" ".join(_words(query)), 0.0)
                results, _, _ = await search(library, asked, _RESULTS)
                ids = [int(each.url.rpartition("/")[2]) for each in results]
                found["all words first"][number] = [numbers[n - 1] for n in ids]
                steps = queries.scoring(list(map(str, asked.terms)), every=False)
                scored, _ = await queries.later(db, steps)
                found["any words"][number] = [numbers[n - 1] for n in _best(scored)]
    finally:
        await parser.close()
    return found


def _best(scored: Mapping[int, float]) -> Ranking:
    return [n for n, _ in sorted(scored.items(), key=lambda one: (-one[1], one[0]))[:_RESULTS]]


def ranked(folder: Path) -> dict[str, object]:
    """The mean nDCG@10 over both halves of a collection's judged queries."""
    it = read(folder)
    rankings = {"reference": reference(it)} | ours(it)
    judged = sorted(it.queries)
    return {
        "collection": it.name,
        "documents": len(it.documents),
        "queries": len(judged),
        "ndcg@10": {
            name: {
                half: round(fmean(ndcg(found[q], it.relevant[q]) for q in those), 4)
                for half, those in _halves(judged).items()
            }
            for name, found in rankings.items()
        },
    }


def _halves(numbers: Sequence[int]) -> dict[str, list[int]]:
    halves = {"even": [n for n in numbers if not n % 2], "odd": [n for n in numbers if n % 2]}
    return halves | {"all": list(numbers)}
