"""Weekly snapshots of texts, synthetic or recorded, with queries: what policies are compared on."""

from __future__ import annotations

import re
import sqlite3
import tempfile
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from selectolax.lexbor import LexborHTMLParser

from freshet.crawler.extensions.readers.search_quality import Workload, made_queries
from freshet.crawler.reduce.charset import decode
from freshet.crawler.reduce.page import parse
from freshet.scheduler.arrays import Bools, Floats, Ints
from scripts.benchmarks.command import say
from scripts.benchmarks.recorded import Recording
from scripts.reproductions.search_weeks import WeeklyScores, by_inlinks, tf_idf

WEEKS: Final = 48
#: The words of a page in order, by number; the same object where a week brought no change.
Words = NDArray[np.int32]

_WEEK_S: Final = 7 * 86_400.0
_TOKEN: Final = re.compile(r"[^\W_]{1,40}")
#: Those of Lucene's StandardAnalyzer.
STOP_WORDS: Final = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then "
    "there these they this to was will with".split()
)


@dataclass
class Snapshots:
    """The texts of n pages in W weeks, and a workload.

    Attributes:
        name: of the set.
        words: by week and page.
        queries: sets of columns of :attr:`vocabulary`.
        frequency: f.
        vocabulary: the words of the queries, by number, ascending.
        inlinks: (n,), links to each page at the start.
    """

    name: str
    words: Sequence[Sequence[Words]]
    queries: Sequence[Sequence[int]]
    frequency: Floats
    vocabulary: Ints
    inlinks: Ints
    _counts: dict[int, tuple[NDArray[np.uint16], Floats]] = field(default_factory=dict)

    @property
    def pages(self) -> int:
        """How many pages there are."""
        return len(self.words[0])

    @cached_property
    def changed(self) -> Bools:
        """(W − 1, n), whether the words differ from those of the week before."""
        return np.array(
            [[a is not b for a, b in zip(*pair, strict=True)] for pair in pairwise(self.words)]
        )

    @cached_property
    def share(self) -> Floats:
        """(W − 1, n), the share of shingles of four words that differ."""
        found = np.zeros(self.changed.shape)
        for week, page in zip(*np.nonzero(self.changed), strict=True):
            found[week, page] = _difference(self.words[week][page], self.words[week + 1][page])
        return found

    def counts(self, week: int) -> tuple[NDArray[np.uint16], Floats]:
        """Occurrences (n, T) of the vocabulary in a week, and lengths (n,) in words."""
        if week not in self._counts:
            before = self.counts(week - 1) if week else None
            tf = np.zeros((self.pages, len(self.vocabulary)), np.uint16)
            for page, words in enumerate(self.words[week]):
                if before is not None and words is self.words[week - 1][page]:
                    tf[page] = before[0][page]
                else:
                    place = np.minimum(
                        np.searchsorted(self.vocabulary, words), len(self.vocabulary) - 1
                    )
                    known = place[self.vocabulary[place] == words]
                    tf[page] = np.bincount(known, minlength=len(self.vocabulary))
            length = np.array([len(words) for words in self.words[week]], np.float64)
            self._counts[week] = tf, length
        return self._counts[week]

    @cached_property
    def by_tf_idf(self) -> tuple[WeeklyScores, WeeklyScores]:
        """Scores of the queries, and of single terms with the frequencies of their queries."""
        whole = tf_idf(self.counts, len(self.words), self.queries, self.frequency)
        single = [(column,) for column in range(len(self.vocabulary))]
        f = np.zeros(len(single))
        for query, frequency in zip(self.queries, self.frequency, strict=True):
            f[list(query)] += frequency
        return whole, tf_idf(self.counts, len(self.words), single, f)

    @cached_property
    def by_inlinks(self) -> tuple[WeeklyScores, WeeklyScores]:
        """The same by the number of inlinks."""
        whole, single = self.by_tf_idf
        return by_inlinks(whole, self.inlinks), by_inlinks(single, self.inlinks)


def _difference(one: Words, other: Words) -> float:
    """Share of the shingles of two texts that only one of them has."""
    a, b = _shingles(one), _shingles(other)
    common = len(np.intersect1d(a, b, assume_unique=True))
    return 1 - common / max(len(a) + len(b) - common, 1)


def _shingles(words: Words) -> NDArray[np.uint64]:
    """Numbers of all runs of four words; a shorter text is one run."""
    wide = words.astype(np.uint64) + np.uint64(1)
    if len(wide) < 4:
        wide = np.pad(wide, (0, 4 - len(wide)))
    mixed = np.zeros(len(wide) - 3, np.uint64)
    for each in range(4):
        mixed = mixed * np.uint64(0x9E3779B97F4A7C15) + wide[each : len(wide) - 3 + each]
        mixed ^= mixed >> np.uint64(29)
    return np.unique(mixed)


def _columns(workload: Workload, number: Callable[[str], int]) -> tuple[list[list[int]], Ints]:
    vocabulary = np.array(sorted(map(number, workload.terms)), np.int64)
    return [
        np.searchsorted(vocabulary, [number(term) for term in query]).tolist()
        for query in workload.queries
    ], vocabulary


# -- synthetic ---------------------------------------------------------------

_TOPICS, _TOPIC_WORDS, _BACKGROUND, _ADVERTS = 60, 250, 6_000, 4_000
#: Words of a title, each a different word of the page.
_TITLE: Final = 6
_FIRST_ADVERT: Final = _TOPICS * _TOPIC_WORDS + _BACKGROUND
_FIRST_STAMP: Final = _FIRST_ADVERT + _ADVERTS
#: Of classes of pages: their share of all; weekly chances of a change and shares of words changed,
#: from and to; what changes.
_CLASSES: Final = (0.35, 0.25, 0.15, 0.15, 0.10)
_SPANS: Final = (
    ((0.0, 0.0), (0.7, 1.0), (0.7, 1.0), (0.02, 0.15), (0.3, 1.0)),
    ((0.0, 0.0), (0.15, 0.60), (0.005, 0.02), (0.05, 0.40), (0.03, 0.30)),
)
_CHANGING: Final = ("content", "advert", "stamp", "content", "content")


def _zipf(rng: Generator, words: int, count: int) -> Ints:
    weight = 1 / np.arange(1, words + 1)
    return rng.choice(words, count, p=weight / weight.sum())


def synthetic(pages: int, weeks: int, queries: int, seed: int) -> Snapshots:
    """Pages of topics: static ones, with advertisements, with stamps, changed slowly and fast.

    Advertisements and stamps hold no word of a query; a change of content replaces words anywhere
    in the page. Titles, of which queries are made, are of words of a page's topic.
    """
    rng = np.random.default_rng(seed)
    weight = 1 / np.arange(1, _TOPICS + 1)
    topic = rng.choice(_TOPICS, pages, p=weight / weight.sum())
    kind = rng.choice(len(_CLASSES), pages, p=_CLASSES)
    length = np.maximum(np.exp(rng.normal(5.3, 0.7, pages)).astype(int), 20)
    chance, share = (np.array([rng.uniform(*_SPANS[column][k]) for k in kind]) for column in (0, 1))

    def content(page: int, count: int) -> Words:
        of_topic = rng.random(count) < 0.6
        background = _TOPICS * _TOPIC_WORDS + _zipf(rng, _BACKGROUND, count)
        own = topic[page] * _TOPIC_WORDS + _zipf(rng, _TOPIC_WORDS, count)
        return np.where(of_topic, own, background).astype(np.int32)

    def rewritten(page: int, words: Words, stamp: int) -> Words:
        new, what = words.copy(), _CHANGING[kind[page]]
        count = max(int(share[page] * len(words)), 1)
        if what == "content":
            new[rng.choice(len(words), count, replace=False)] = content(page, count)
        elif what == "advert":
            new[:count] = _FIRST_ADVERT + _zipf(rng, _ADVERTS, count)
        else:
            new[:count] = _FIRST_STAMP + stamp
        return new

    now = [content(page, length[page]) for page in range(pages)]
    now = [
        w if _CHANGING[k] == "content" else rewritten(p, w, 0)
        for p, (w, k) in enumerate(zip(now, kind, strict=True))
    ]
    words = [now]
    for week in range(1, weeks):
        draws = rng.random(pages) < chance
        now = [rewritten(p, w, week) if draws[p] else w for p, w in enumerate(now)]
        words.append(now)
    titles = [
        [" ".join(map(str, rng.permutation(np.unique(w[w // _TOPIC_WORDS == t]))[:_TITLE]))]
        for w, t in zip(words[0], topic.tolist(), strict=True)
    ]
    workload = made_queries(titles, str.split, queries, rng)
    columns, vocabulary = _columns(workload, int)
    none = np.zeros(pages, np.int64)
    return Snapshots("synthetic", words, columns, workload.frequency, vocabulary, none)


# -- recorded ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Text:
    """The words of a version, and the strings from which queries are made."""

    words: Words
    strings: frozenset[str]


def recorded(
    packed: Sequence[Path], *, queries: int, seed: int, full: bool, name: str
) -> Snapshots:
    """48 weeks of recorded sites, in one index: the pages that are there in all of them.

    They begin a year after the recording, or with it if it is too short. ``full`` takes all visible
    text of every page; else it is the main text, of pages that change at least once.
    """
    numbers: dict[str, int] = {}
    weeks: list[list[Words]] = [[] for _ in range(WEEKS)]
    strings: list[frozenset[str]] = []
    inlinks: list[int] = []
    for path in packed:
        say(f"{name}: reading {path.name}")
        for column, said, links in _pages(path, numbers, full=full):
            if full or any(a is not b for a, b in pairwise(column)):
                for week, words in enumerate(column):
                    weeks[week].append(words)
                strings.append(said)
                inlinks.append(links)

    def terms_of(text: str) -> list[str]:
        return [word for word in _tokens(text) if word in numbers]

    workload = made_queries(strings, terms_of, queries, np.random.default_rng(seed))
    columns, vocabulary = _columns(workload, numbers.__getitem__)
    return Snapshots(name, weeks, columns, workload.frequency, vocabulary, np.array(inlinks))


def _pages(
    packed: Path, numbers: dict[str, int], *, full: bool
) -> Iterable[tuple[list[Words], frozenset[str], int]]:
    """Yield the weekly words of each page of a site, its strings, and the links to it."""
    with tempfile.TemporaryDirectory(prefix="freshet-search-") as folder:
        recording = Recording(packed, Path(folder))
        path = Path(folder) / packed.name.removesuffix(".zst")
        with closing(recording), closing(sqlite3.connect(path)) as connection:
            times = _times(connection)
            texts: dict[int, _Text] = {}
            for page, url, links in connection.execute(_PAGES, {"start": times[0]}).fetchall():
                rows = connection.execute(_VERSIONS, (page,)).fetchall()
                places = [bisect_right(rows, (time, 1 << 62)) - 1 for time in times]
                found = [rows[place][1] if place >= 0 else None for place in places]
                blobs = [blob for blob in found if blob is not None]
                if len(blobs) < len(found):
                    continue
                for blob in set(blobs) - texts.keys():
                    texts[blob] = _text(recording.body(blob), url, numbers, full=full)
                column = [texts[blob].words for blob in blobs]
                for week in range(1, WEEKS):
                    if np.array_equal(column[week], column[week - 1]):
                        column[week] = column[week - 1]
                yield (
                    column,
                    frozenset().union(*(texts[blob].strings for blob in set(blobs))),
                    links,
                )


_PAGES: Final = """SELECT id, url, (SELECT count(DISTINCT src) FROM links WHERE dst = pages.id
    AND src <> dst AND t0 <= :start AND coalesce(t1, 9e15) > :start)
    FROM pages WHERE kind = 'html' ORDER BY id"""
_VERSIONS: Final = "SELECT time, blob FROM versions WHERE page = ? ORDER BY time"


def _times(connection: sqlite3.Connection) -> list[float]:
    begin, end = (
        float(row[0])
        for row in connection.execute(
            "SELECT value FROM meta WHERE key IN ('t_start', 't_end') ORDER BY key DESC"
        )
    )
    start = begin + 52 * _WEEK_S if begin + 100 * _WEEK_S <= end else begin
    return [start + week * _WEEK_S for week in range(WEEKS)]


def _tokens(text: str) -> list[str]:
    return [word for word in _TOKEN.findall(text.lower()) if word not in STOP_WORDS]


def _text(body: bytes, url: str, numbers: dict[str, int], *, full: bool) -> _Text:
    tree = LexborHTMLParser(decode(body, "text/html")[0])
    for node in tree.css("script, style, noscript, template"):
        node.decompose()
    strings = {node.text(separator=" ").strip() for node in tree.css("title, h1, h2, h3, a")}
    if full:
        shown = tree.body.text(separator=" ") if tree.body is not None else ""
    else:
        page = parse(body, url, "text/html")
        shown = "\n".join([page.title or "", *page.blocks.texts])
    words = [numbers.setdefault(word, len(numbers)) for word in _tokens(shown)]
    return _Text(np.array(words, np.int32), frozenset(strings))
