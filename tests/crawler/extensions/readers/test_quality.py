"""What a visit adds to search quality is measured in its transaction."""

from dataclasses import replace
from functools import partial
from math import log
from pathlib import Path

import numpy as np
import pytest

from freshet.config.loading import load
from freshet.crawler.errors import UsageError
from freshet.crawler.extensions.readers import quality_tables as measures
from freshet.crawler.extensions.readers.quality import (
    QualityMeter,
    listed_queries,
    note_quality,
    take_over_queries,
)
from freshet.crawler.extensions.readers.search_quality import Workload
from freshet.crawler.extensions.search import tables as search
from freshet.crawler.extensions.search.index import FollowingIndex
from freshet.crawler.extensions.search.settings import SearchSettings
from freshet.scheduler.arrays import Floats
from freshet.storage.extensions import Recording
from freshet.storage.records import DueUrl, Visit
from tests.crawler.extensions.readers.listed_quality import search_quality, usefulness
from tests.storage.crawl_store import START, CrawlStore, capture, visit

TEXTS = ["a b b", "a c", "a a d e", "c d", "b d a c e e e"]
WORKLOAD = Workload.of([(["a"], 3), (["a", "b"], 2), (["d"], 1), (["nowhere"], 1)])


class Failing(Recording):
    """Fails after the index has followed."""

    def record(self, *_: object) -> None:
        raise ZeroDivisionError


def meter_of(store: CrawlStore) -> QualityMeter:
    """The meter of the index that follows the store."""
    (index,) = [it for it in store.tables.recorders if isinstance(it, FollowingIndex)]
    assert isinstance(index.meter, QualityMeter)
    return index.meter


def seen(due: DueUrl, words: str | None, at: float) -> Visit:
    """A visit that found these words, or that the page is gone."""
    if words is None:
        return visit(due, "gone", at)
    found = replace(capture(words), words=f"\n\n{words}")
    return replace(visit(due, "changed", at), capture=found)


async def filled(store: CrawlStore, workload: Workload = WORKLOAD) -> dict[int, DueUrl]:
    """Make an index of the texts, in pages /0, /1 …, and measure from now on."""
    await store.database.write(search.create)
    store.tables.recorders = [FollowingIndex(None)]
    await store.admit(*(f"/{n}" for n in range(len(TEXTS))))
    due = {n: await store.taken(f"/{n}") for n in range(len(TEXTS))}
    for n, text in enumerate(TEXTS):
        await store.apply(seen(due[n], text, START + n))
    store.tables.recorders = [FollowingIndex(QualityMeter(workload))]
    return due


def scores_of(texts: list[str], as_of: list[str]) -> Floats:
    """BM25 (queries, pages) of texts with the statistics of others."""
    mean = sum(len(text.split()) for text in as_of) / len(as_of)

    def score(text: str, terms: tuple[str, ...]) -> float:
        words, total = text.split(), 0.0
        for term in terms:
            df = sum(term in each.split() for each in as_of)
            f = words.count(term)
            idf = log(1 + (len(as_of) - df + 0.5) / (df + 0.5))
            total += idf * f * 2.2 / (f + 1.2 * (0.25 + 0.75 * len(words) / mean))
        return total if set(terms) <= set(words) else 0.0

    return np.array([[score(text, terms) for text in texts] for terms in WORKLOAD.queries])


@pytest.mark.parametrize("new", ["d d d", "a", "b b a a a", None])
async def test_a_change_is_worth_what_it_adds_to_the_answers(
    store: CrawlStore, new: str | None
) -> None:
    """The usefulness of the new order less that of the old one, both paid by the new scores."""
    due = await filled(store)
    texts = [*TEXTS[:1], new or "", *TEXTS[2:]]
    old, now = scores_of(TEXTS, TEXTS), scores_of(texts, TEXTS)
    f = WORKLOAD.frequency
    await store.apply(seen(due[1], new, START + 100))
    gained = usefulness(now, now, f) - usefulness(old, now, f)
    ((page_id, gap_s, change),) = await store.rows(
        "SELECT page_id, gap_s, change FROM quality_change"
    )
    assert (page_id, gap_s) == (due[1].page_id, 99)
    assert change == pytest.approx(gained)
    assert change > 0


async def test_nothing_is_entered_of_what_did_not_change(store: CrawlStore) -> None:
    due = await filled(store)
    await store.admit("/new")
    await store.apply(seen(await store.taken("/new"), "a b", START + 90))
    await store.apply(visit(due[0], "unchanged", START + 100))
    await store.apply(visit(due[0], "failed", START + 101))
    assert await store.rows("SELECT change FROM quality_change") == []


async def test_a_rolled_back_transaction_leaves_no_trace(store: CrawlStore) -> None:
    due = await filled(store)
    await store.apply(seen(due[0], "a b c", START + 100))
    meter = meter_of(store)
    store.tables.recorders = [*store.tables.recorders, Failing()]
    with pytest.raises(ZeroDivisionError):
        await store.apply(seen(due[1], "a a a a", START + 101))
    said = load(None, {})[0].group(SearchSettings)
    await note_quality(store.database, said, meter, START)
    noted = dict(await store.rows("SELECT page_id, usefulness FROM search_use"))
    other = QualityMeter(WORKLOAD)
    await note_quality(store.database, said, other, START)
    assert dict(await store.rows("SELECT page_id, usefulness FROM search_use")) == noted


async def test_what_was_searched_counts_half_beside_other_queries(
    store: CrawlStore, tmp_path: Path
) -> None:
    await filled(store)
    file = tmp_path / "queries.tsv"
    file.write_text("query,frequency\nGreen tea\t3\n# comment\ntea green, 1\nCafé\n")
    assert listed_queries(file).queries == (("green", "tea"), ("cafe",))
    for terms in ("tea", "tea", "green tea"):
        await store.database.write(partial(search.count_search, terms=terms))
    given = {"search.queries": str(file), "search.remember": True}
    said = load(None, given)[0].group(SearchSettings)
    await take_over_queries(store.database, said)
    assert await measures.queries(store.database.reader) == pytest.approx(
        {"green tea": 0.5 * 4 / 5 + 0.5 / 3, "cafe": 0.5 / 5, "tea": 0.5 * 2 / 3}
    )


async def test_queries_are_made_of_titles_headings_and_anchors_and_stay(store: CrawlStore) -> None:
    due = await filled(store)
    lines = [f"tea number{n}\nbrewing  storing leaves\ntext" for n in range(len(TEXTS))]
    for n, text in enumerate(lines):
        found = seen(due[n], "x", START + 50 + n)
        assert found.capture is not None
        await store.apply(replace(found, capture=replace(found.capture, words=text)))
    said = load(None, {"search.queries": "made"})[0].group(SearchSettings)
    made = await take_over_queries(store.database, said)
    assert ("number1",) in made.queries
    assert not {"tea", "text", "brewing"} & made.terms, "they stand on most pages, or in no title"
    assert (await take_over_queries(store.database, said)).queries == made.queries


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it has no query"),
        ("tea\t-1", ":1: a frequency is a number above 0"),
        ("a\ntea, 1e", ":2: a frequency"),
        (None, "No such file"),
        (b"\xff\xfe\xff", "it is not UTF-8"),
    ],
)
def test_a_wrong_list_of_queries_is_told_in_one_line(
    tmp_path: Path, text: str | bytes | None, why: str
) -> None:
    file = tmp_path / "queries"
    if text is not None:
        file.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(UsageError, match=why):
        listed_queries(file)


async def test_searches_are_counted_within_bounds(
    store: CrawlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_REMEMBERED", 3)
    await store.database.write(search.create)
    store.tables.recorders = [FollowingIndex(None)]
    for terms in ("often", "often", "a", "b", "x" * 999, "new"):
        await store.database.write(partial(search.count_search, terms=terms))
    assert await search.asked(store.database.reader, 9) == [("new", 1), ("often", 1)]


@pytest.mark.parametrize(
    "texts",
    [
        ("d d d", None, None), ("a", None, None), ("b b a a a", None, None), ("", None, None),
        ("a b c", "a", None), ("c c c", "b b b", "a a a"), (None, "a a a a b", "c"),
        (None, None, "a b c d"), ("a a", "b b", None), ("d", "d", "d"), ("", "", "a"),
        ("a b", "b a", "c a b"),
    ],
)  # fmt: skip
async def test_the_noted_quality_is_that_of_whole_lists(
    store: CrawlStore, texts: tuple[str | None, str | None, str | None]
) -> None:
    """Copies as old as those were that the last visits replaced are taken for these."""
    due = await filled(store)
    live = [text if new is None else new for text, new in zip(TEXTS, texts, strict=False)]
    live += TEXTS[len(live) :]
    for place, new in enumerate(texts):
        if new is not None:
            await store.apply(seen(due[place], new, START + 100))
    index = meter_of(store)
    said = load(None, {})[0].group(SearchSettings)
    index.forget()  # as a daemon that has just started
    # Since then as much time has passed as before.
    await note_quality(store.database, said, index, START + 100_000)
    ((_, quality),) = [await measures.noted_quality(store.database.reader) or (0, 0)]
    wanted = search_quality(scores_of(TEXTS, live), scores_of(live, live), WORKLOAD.frequency)
    assert quality == pytest.approx(wanted)
    # At the moment of the visits nothing was stale.
    await note_quality(store.database, said, index, START + 100)
    ((_, quality),) = [await measures.noted_quality(store.database.reader) or (0, 0)]
    assert quality == 1.0


async def test_a_page_that_a_later_visit_found_as_it_was_is_not_taken_for_stale(
    store: CrawlStore,
) -> None:
    due = await filled(store)
    await store.apply(seen(due[0], "c c c", START + 100))
    assert len(await measures.before(store.database.reader)) == 1
    await store.apply(visit(due[0], "unchanged", START + 200))
    assert await measures.before(store.database.reader) == []
