"""The index holds the words of exactly the documents that the changefeed tells."""

import asyncio
import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import log
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.crawler.extensions.readers import quality_tables
from freshet.crawler.extensions.search import queries
from freshet.crawler.extensions.search import tables as search
from freshet.crawler.extensions.search.index import FollowingIndex
from freshet.crawler.extensions.search.words import index_lines, normalised, places
from freshet.storage.forgetting import forget, forgettable
from freshet.storage.records import Visit
from tests.storage.crawl_store import CrawlStore, crawl_store, writing
from tests.storage.tables.test_changefeed import PATHS, VISITS, what_happens

LETTERS = st.text("aBé\u0301ß\u00ad東京กำ한हि_-.'1 ½ﬁ", max_size=30)


@given(LETTERS)
def test_places_are_where_the_words_of_a_text_stand(text: str) -> None:
    found = list(places(text))
    assert [word for word, _, _ in found] == normalised(text).split()
    for word, begin, end in found:
        assert word in normalised(text[begin:end]).split()


@given(st.text(max_size=40), st.text(max_size=40))
def test_words_are_stable_and_of_letters_and_digits_only(one: str, other: str) -> None:
    """What was indexed divides in the same way when it is read as a query."""
    words = normalised(f"{one} {other}")
    assert normalised(words) == words
    assert '"' not in words
    assert "\n" not in words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Straße, Ångström & naïve", "strasse angstrom naive"),
        ("don't run_in_executor(None)", "don t run in executor none"),
        ("co\u00adoperate e\u0301tude Ёлка", "cooperate etude елка"),
        ("機械学習を学ぶ", "機 械 学 習 を 学 ぶ"),
        ("हिन्दी में", "हिन्दी में"),
        ("한국어 검색", "한국어 검색"),
        ("x" * 99 + " y", "x" * 64 + " y"),
        ("\ud800 \0 ok", "ok"),
    ],
)
def test_texts_become_words(text: str, words: str) -> None:
    assert normalised(text) == words


def test_a_page_is_title_headings_and_other_blocks() -> None:
    lines = index_lines("A title", ("One", "two\nlines", "Three"), ("heading", "item", "heading"))
    assert lines == "a title\none  three\ntwo lines"
    assert index_lines(None) == "\n\n"


HISTORIES = st.lists(st.tuples(st.sampled_from(PATHS), st.sampled_from(VISITS)), max_size=25)


@given(HISTORIES)
@settings(max_examples=60, deadline=None)
def test_the_index_holds_what_the_changefeed_tells(history: list[tuple[str, str]]) -> None:
    """After each transaction, and to the last posting."""
    asyncio.run(_followed(history))


async def _followed(history: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with crawl_store(Path(folder, "db")) as store:
            await store.database.write(search.create)
            store.tables.recorders = [FollowingIndex(None)]
            await store.admit(*PATHS)
            due = {path: await store.taken(path) for path in PATHS}
            for n, (path, action) in enumerate(history):
                await store.apply(with_words(what_happens(due[path], action, n), n))
                await _is_whole(store)
            pending = await search.pending(store.database.reader, 0, 100)
            lines = [(p.page_id, p.version_id, f"late {p.version_id}\n\nx") for p in pending]
            await store.database.write(lambda db: search.fill(db, lines))
            await _is_whole(store)
            assert await search.pending(store.database.reader, 0, 1) == []
            counts = await search.counts(store.database.reader)
            assert counts is not None
            assert counts[0] == counts[1]


def with_words(visit: Visit, n: int) -> Visit:
    """The visit with words, as changed pages have them."""
    seen = visit.observation
    if visit.capture is None or (seen.kind == "unchanged" and seen.kinds is None):
        return visit
    return replace(visit, capture=replace(visit.capture, words=f"title {n}\nhead\nbody {n} body"))


async def _is_whole(store: CrawlStore) -> None:
    """Compare the index with the changefeed, and its postings with those of a new one."""
    rows = await store.rows("SELECT page_id, version_id, words FROM search_page")
    told = dict(
        await store.rows(
            "SELECT page_id, version_id FROM change WHERE kind <> 'noise' AND version_id > 0"
        )
    )
    pending = await search.pending(store.database.reader, 0, 100)
    assert {row[0]: row[1] for row in rows} | {p.page_id: p.version_id for p in pending} == told
    assert len(rows) + len(pending) == len(told)
    expected = Counter(
        (word, page_id, column, place)
        for page_id, _, packed in rows
        for column, line in zip(
            ("title", "headings", "body"), search.unpacked(packed).split("\n"), strict=True
        )
        for place, word in enumerate(line.split())
    )
    with writing(store.database) as db:
        db.execute("CREATE VIRTUAL TABLE temp.v USING fts5vocab(main, search_words, instance)")
        found = Counter(db.execute("SELECT term, doc, col, offset FROM temp.v").fetchall())
        db.execute("DROP TABLE temp.v")
        db.execute("INSERT INTO search_words (search_words) VALUES ('integrity-check')")
    assert found == expected


async def indexed(store: CrawlStore, *texts: str) -> None:
    """Make an index of pages with these lines, /0, /1 and so on."""
    await store.database.write(search.create)
    store.tables.recorders = [FollowingIndex(None)]
    paths = [f"/{n}" for n in range(len(texts))]
    await store.admit(*paths)
    for n, (path, text) in enumerate(zip(paths, texts, strict=True)):
        visit = what_happens(await store.taken(path), "changed", n)
        assert visit.capture is not None
        await store.apply(replace(visit, capture=replace(visit.capture, words=text)))


async def scores(
    store: CrawlStore, terms: list[str], excluded: Sequence[str] = (), *, every: bool = True
) -> dict[int, float]:
    """Return the same scores from both kinds of connection."""
    steps = partial(queries.scoring, terms, excluded, every=every)
    found, _ = await queries.later(store.database.reader, steps())
    with writing(store.database) as db:
        assert queries.now(db, steps())[0] == found
    return found


@pytest.mark.parametrize("terms", [["a"], ["a", "b"], ["a", "b", "c"], ["c", "a b"]])
async def test_scores_are_bm25_also_of_words_that_stand_everywhere(
    store: CrawlStore, terms: list[str]
) -> None:
    """The sum over the terms, computed from the texts themselves."""
    bodies = ["a b c d", "a a b", "a b b b c", "a", "a c c e e e e e e", "a b", "e a b c a b"]
    texts = [f"\n{'b' if n == 1 else ''}\n{body}" for n, body in enumerate(bodies)]
    texts[0] = "b\n\na b c d"
    await indexed(store, *texts)
    expressions = [f'"{term}"' for term in terms]
    rows = await store.rows("SELECT id, url FROM page")
    numbers = {page_id: int(url.rpartition("/")[2]) for page_id, url in rows}

    def count(text: str, term: str) -> tuple[float, int]:
        """Return the weighted count of a term in a page, and the length of the page."""
        lines = text.split("\n")
        found = [len(re.findall(rf"\b{term}\b", line)) for line in lines]
        return 3 * found[0] + 2 * found[1] + found[2], len(text.split())

    mean = sum(len(text.split()) for text in texts) / len(texts)
    for every in (True, False):
        expected = {}
        for n, text in enumerate(texts):
            score, held = 0.0, 0
            for term in terms:
                f, length = count(text, term)
                df = sum(count(each, term)[0] > 0 for each in texts)
                idf = log(1 + (len(texts) - df + 0.5) / (df + 0.5))
                score += idf * f * 2.2 / (f + 1.2 * (0.25 + 0.75 * length / mean))
                held += f > 0
            if held == len(terms) or (held and not every):
                expected[n] = score
        found = await scores(store, expressions, every=every)
        assert {numbers[i]: s for i, s in found.items()} == pytest.approx(expected, rel=1e-6)


async def test_the_best_pages_are_the_same_where_only_they_are_wanted(store: CrawlStore) -> None:
    """Also if frequent words are not counted on all pages."""
    rng = Random(1)
    chances = {"rare": 0.1, "odd": 0.3, "usual": 0.6, "the": 0.95}
    texts = [
        "\n\n"
        + " ".join(w for w, p in chances.items() for _ in range(4) if rng.random() < p)
        + " x"
        for _ in range(60)
    ]
    await indexed(store, *texts)
    saved = 0
    for terms in (["rare", "the"], ["the", "usual", "odd"], ["usual", "rare", "odd", "the"]):
        whole, _ = await queries.later(store.database.reader, queries.scoring(terms, every=False))
        for wanted in (1, 3, 8):
            steps = queries.scoring(terms, every=False, wanted=wanted)
            some, _ = await queries.later(store.database.reader, steps)
            best = sorted(whole.values(), reverse=True)[:wanted]
            assert sorted(some.values(), reverse=True)[:wanted] == pytest.approx(best, rel=1e-6)
            assert some == pytest.approx({i: whole[i] for i in some}, rel=1e-6)
            saved += len(whole) - len(some)
    assert saved > 0


async def test_excluded_words_exclude(store: CrawlStore) -> None:
    await indexed(store, "\n\na b", "\n\na c", "\n\na")
    for every in (True, False):
        found = await scores(store, ['"a"'], ['"b"', '"c"'], every=every)
        assert len(found) == 1


async def test_nothing_of_a_forgotten_page_stays_in_the_file(store: CrawlStore) -> None:
    await indexed(store, "\n\nremarkableword", "\n\nother")
    pages = await forgettable(store.database.reader, urls=["https://a.example/0"])
    ((page_id, at),) = await store.rows(
        "SELECT o.page_id, o.at FROM observation AS o JOIN page AS p ON p.id = o.page_id "
        "WHERE p.url = 'https://a.example/0'"
    )
    with writing(store.database) as db:
        quality_tables.append_changes(db, [(page_id, at, 0.5)])
        quality_tables.note_use(db, [(page_id, 0.5)])
    await forget(store.database, pages, 0.0, refused=True)
    assert await store.rows("SELECT page_id FROM quality_change") == []
    assert await store.rows("SELECT page_id FROM search_use") == []
    assert await scores(store, ['"remarkableword"']) == {}
    files = [store.database.path, Path(f"{store.database.path}-wal")]
    assert not any(b"remarkablew" in each.read_bytes() for each in files)


async def test_an_index_is_made_kept_and_deleted(store: CrawlStore) -> None:
    assert await search.counts(store.database.reader) is None
    with writing(store.database) as db:
        assert not search.take_over(db, "keep")
        assert search.take_over(db, "on")
    await indexed(store, "\n\na")
    with writing(store.database) as db:
        assert search.take_over(db, "keep")
    assert await search.counts(store.database.reader) == (1, 1)
    with writing(store.database) as db:
        db.execute("UPDATE search_index SET format = 0")
        assert not search.take_over(db, "keep"), "its words are those of another version"
        assert search.take_over(db, "on")
    assert await search.counts(store.database.reader) == (0, 1)
    with writing(store.database) as db:
        assert not search.take_over(db, "off")
    assert await store.rows("SELECT name FROM sqlite_master WHERE name LIKE 'search%'") == []
