"""What is told of a page's worth to searchers, and where that decides its importance."""

from dataclasses import replace
from random import Random

import pytest

from freshet.config.loading import load
from freshet.crawler.extensions.readers import quality_tables
from freshet.crawler.extensions.readers.marks import SearchMarks, judge_next, read_marks
from freshet.crawler.extensions.readers.quality import QualityMeter, note_quality
from freshet.crawler.extensions.readers.search_quality import Workload
from freshet.crawler.extensions.search import tables as search
from freshet.crawler.extensions.search.index import FollowingIndex
from freshet.crawler.extensions.search.settings import SearchSettings
from freshet.crawler.run.importance import ImportanceData
from freshet.crawler.run.state import steady
from freshet.storage.records import Estimate
from freshet.storage.tables import observations
from tests.storage.crawl_store import DAY_S, START, CrawlStore, capture, visit, writing

PAGES = 12
#: The word that searchers look for stands only in the first pages.
WORKLOAD = Workload.of([(["sought"], 1)])


async def searched(store: CrawlStore, days: int = 240) -> None:
    """A year of visits every second day to pages that change every four days."""
    rng = Random(1)
    await store.database.write(search.create)
    meter = QualityMeter(WORKLOAD)
    store.tables.recorders = [FollowingIndex(meter)]
    await store.admit(*(f"/{n}" for n in range(PAGES)))
    due = {n: await store.taken(f"/{n}") for n in range(PAGES)}
    for day in range(0, days, 2):
        batch = []
        for n, page in due.items():
            at = START + day * DAY_S + n
            if day and rng.random() < 0.5:
                batch.append(visit(page, "unchanged", at))
                continue
            sought = "sought " * rng.randrange(1, 9) if n < 5 else ""
            words = f"\n\n{sought}{' '.join('x' for _ in range(20))} day{day}"
            seen = replace(capture(f"{n} {day}"), words=words)
            batch.append(replace(visit(page, "changed" if day else "new", at), capture=seen))
        await store.apply(*batch)
    with writing(store.database) as db:
        observations.write(
            db,
            [
                Estimate(page.page_id, at=START + days * DAY_S, visited_at=START + days * DAY_S,
                         rate=0.25, low=0.2, high=0.3, hazard=0.1, importance=1.0)
                for page in due.values()
            ],
        )  # fmt: skip
    said = load(None, {})[0].group(SearchSettings)
    now = START + days * DAY_S
    await note_quality(store.database, said, meter, now)


@pytest.mark.long
async def test_marks_decide_where_the_past_of_a_host_shows_a_gain(store: CrawlStore) -> None:
    await searched(store)
    now, reader = START + 241 * DAY_S, store.database.reader
    before = await read_marks(reader)
    assert before.factor == {}
    noted = await quality_tables.noted_quality(reader)
    assert noted is not None
    # Of the last day: where no page has passed another, the order is still the right one.
    assert 0.7 < noted[1] <= 1
    host_id = await store.value("SELECT id FROM host")
    told = before.said(await store.page_id("/0"), host_id, now, decides=True)
    assert told is not None
    assert "shows too little to go by" in told
    choice = await judge_next(store.database, now)
    assert choice is not None
    assert choice.is_gain, choice
    marks = await read_marks(reader)
    sought, other = await store.page_id("/0"), await store.page_id("/9")
    assert marks.factor[sought] > 2 * marks.factor[other]
    assert sum(marks.factor.values()) == pytest.approx(PAGES)
    said = marks.said(sought, host_id, now, decides=True)
    assert said is not None
    assert "importance goes by it." in said
    with writing(store.database) as db:
        db.execute(
            "INSERT INTO amendment (observation_id, kind, rung, reason, at) "
            "SELECT observation_id, 'unchanged', 'frame', 'why', 0 FROM quality_change "
            "WHERE page_id = ?", (sought,),
        )  # fmt: skip
    assert sought not in (await read_marks(reader)).measured
    assert await judge_next(store.database, now + DAY_S) is None, "a week has not passed"
    assert await judge_next(store.database, now + 8 * DAY_S) is not None


async def test_nothing_is_told_where_nothing_is_measured(store: CrawlStore) -> None:
    assert await read_marks(store.database.reader) == SearchMarks()
    await store.database.write(search.create)
    marks = await read_marks(store.database.reader)
    assert marks.said(1, 1, START, decides=True) is None
    assert await judge_next(store.database, START) is None


def test_only_marks_that_moved_touch_pages() -> None:
    before = ImportanceData("list", (), marks={1: 1.0, 2: 2.0, 3: 1.0})
    marks = steady({1: 1.01, 2: 1.0, 4: 3.0}, before.marks)
    assert marks == {1: 1.0, 2: 1.0, 4: 3.0}
    assert replace(before, marks=marks).touched(before) == [2, 3, 4]
