"""Lists are ordered by what was opened, and stay as they are where nothing was."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from freshet.crawler.extensions.readers import tables as openings
from freshet.crawler.extensions.readers.audience import OpenedLists
from freshet.crawler.extensions.readers.settings import PresentationSettings
from freshet.crawler.read.lists import Impression, RankedPage, seed_of
from freshet.storage.database import reading, write_beside
from tests.storage.small_store import SmallStore, small_store

DAY_S = 86_400.0
NOW = 100 * DAY_S
#: An hour before, for what was opened counts from the next full hour on.
SHOWN = NOW - 3_600
PAGES = 40


def settings(promotion: str = "off", *, record: bool = True) -> PresentationSettings:
    return PresentationSettings(record=record, links=False, promotion=promotion)


def audience(store: SmallStore, promotion: str = "off") -> OpenedLists:
    async def read() -> OpenedLists | None:
        async with reading(store.path) as db:
            return await OpenedLists.of(db, settings(promotion), NOW)

    found = asyncio.run(read())
    assert found is not None
    return found


def show(store: SmallStore, page_ids: Sequence[int], opened: Sequence[int] = ()) -> None:
    """Show a list, in which these pages are opened."""

    def write(db: object) -> None:
        listed = [Impression.of(page_id, place) for place, page_id in enumerate(page_ids, 1)]
        openings.record(db, "http", SHOWN, listed, lambda place: 1 / place)  # type: ignore[arg-type]
        for each in listed:
            if each.page_id in opened:
                openings.note_opening(db, each.showing_id, SHOWN)  # type: ignore[arg-type]

    write_beside(store.path, write)


def listed(*page_ids: int, tier: int = 0, worth: float = 1.0) -> list[RankedPage]:
    """Return pages of which each is worth a little less than the one before."""
    return [
        RankedPage(i, f"http://one.example/{'a' if i % 2 else 'b'}/{i}", worth - 0.001 * n, tier)
        for n, i in enumerate(page_ids)
    ]


def order(
    who: OpenedLists, pages: Sequence[RankedPage], count: int = 99, seed: int = 1
) -> list[int]:
    return [each.page_id for each in who.arranged(pages, count, seed)]


@pytest.fixture
def store(tmp_path: Path) -> SmallStore:
    made = asyncio.run(small_store(tmp_path / "s.db"))
    made.host()
    made.run(0.0)
    for i in range(1, PAGES + 1):
        path = f"/{'a' if i % 2 else 'b'}/{i}"
        made.page(path, version_id=i, found_at=NOW - DAY_S if i > 30 else 0.0)
    return made


def test_a_list_stays_as_it_is_where_nothing_was_ever_opened(store: SmallStore) -> None:
    show(store, [3, 1, 2])
    who = audience(store)
    assert (who.appeal, who.degree, who.arranges) == (None, 0.0, False)
    assert order(who, listed(3, 1, 2, 4)) == [3, 1, 2, 4]
    assert who.appeals([1], ["http://one.example/1"])[1].tolist() == [1]
    assert asyncio.run(_unrecorded(store)) is None


async def _unrecorded(store: SmallStore) -> OpenedLists | None:
    async with reading(store.path) as db:
        return await OpenedLists.of(db, settings(record=False), NOW)


def test_what_is_shown_and_opened_counts_from_the_next_full_hour_on(store: SmallStore) -> None:
    show(store, [1, 2], opened=[2])
    store.execute("UPDATE showing SET at = ?, opened_at = opened_at + ?", NOW, NOW - SHOWN)
    assert audience(store).appeal is None
    store.execute("UPDATE showing SET at = at - 1, opened_at = opened_at - 1")
    assert order(audience(store), listed(1, 2)) == [2, 1]


def test_a_page_that_is_opened_rises_and_one_that_is_passed_over_falls(store: SmallStore) -> None:
    for _ in range(5):
        show(store, [1, 2, 3], opened=[2])
    who = audience(store)
    assert order(who, listed(1, 2, 3)) == [2, 3, 1]
    mean, index = who.appeals([1, 2, 3], [each.url for each in listed(1, 2, 3)])
    assert mean[0] < mean[2] < mean[1]
    assert (index > mean).all()


def test_an_unseen_page_has_the_appeal_of_its_section_an_unknown_site_that_of_all(
    store: SmallStore,
) -> None:
    for i in range(1, 31, 2):
        show(store, [i + 1, i], opened=[i])
    who = audience(store)
    urls = ["http://one.example/a/77", "http://one.example/b/78", "http://other.example/a/1"]
    mean, index = who.appeals([77, 78, 79], urls)
    assert mean[1] < mean[2] < mean[0]
    assert (index > mean).all()


def test_pages_of_a_later_tier_stay_behind(store: SmallStore) -> None:
    show(store, [9, 2], opened=[9])
    pages = listed(1, 2) + listed(9, tier=1)
    assert order(audience(store), pages) == [1, 2, 9]


def test_promotion_puts_unseen_pages_first_by_chance_and_a_longer_list_begins_alike(
    store: SmallStore,
) -> None:
    for _ in range(4):
        show(store, range(1, 11), opened=[1, 2])
    who = audience(store, "0.3")
    assert who.degree == 0.3
    pages = listed(*range(1, PAGES + 1)) + listed(99, tier=1)
    found = [who.arranged(pages, 10, seed) for seed in range(300)]
    promoted = Counter(place for each in found for place, it in enumerate(each, 1) if it.promoted)
    assert promoted[1] == 0
    # Of the places from the second on three in ten; the rest goes by worth.
    assert np.array([promoted[i] for i in range(2, 11)]) == pytest.approx(90, abs=30)
    new = {it.page_id for each in found for it in each if it.promoted}
    assert new <= {4, *range(5, PAGES + 1)}
    for seed, short in enumerate(found[:20]):
        assert who.arranged(pages, 25, seed)[:10] == short


@pytest.mark.parametrize("lists", [0, 1, 4])
@pytest.mark.parametrize("promotion", ["0.1", "0.3", "1.0", "auto"])
def test_where_nothing_was_opened_unseen_pages_are_promoted_and_the_others_stay_in_order(
    store: SmallStore, promotion: str, lists: int
) -> None:
    for _ in range(lists):
        show(store, range(1, 11))
    who = audience(store, promotion)
    assert (who.appeal, who.arranges) == (None, True)
    pages = listed(*range(PAGES, 0, -1)) + listed(99, tier=1)
    unseen = {it.page_id for it in pages if it.tier == 0} - who.seen
    found = [who.arranged(pages, 10, seed) for seed in range(200)]
    promoted = [[it for it in each if it.promoted] for each in found]
    assert not any(each[0].promoted for each in found)
    assert sum(map(len, promoted)) == pytest.approx(200 * 9 * who.degree, rel=0.25)
    assert {it.page_id for each in promoted for it in each} <= unseen
    for each in found:
        others = [it.page_id for it in each if not it.promoted]
        assert others == sorted(others, reverse=True)
    assert (99 in order(who, pages)[:PAGES]) is False


@pytest.mark.parametrize("opened_s_ago", [10, 1_800, 3_599])
def test_an_opening_since_the_last_full_hour_is_not_waited_for(
    store: SmallStore, opened_s_ago: float
) -> None:
    show(store, [1, 2], opened=[2])
    at = NOW + 3_599 - opened_s_ago
    store.execute("UPDATE showing SET at = ?, opened_at = ?", at, at)

    async def read() -> OpenedLists | None:
        async with reading(store.path) as db:
            return await OpenedLists.of(db, settings("0.2"), NOW + 3_599)

    found = asyncio.run(read())
    assert found is not None
    assert (found.appeal, found.degree) == (None, 0.2)


@pytest.mark.parametrize("days", [0.01, 1, 3, 6.9])
def test_automatic_promotion_is_the_most_in_the_first_week_of_a_store(
    store: SmallStore, days: float
) -> None:
    store.execute("UPDATE page SET found_at = ?", NOW - days * DAY_S)
    assert audience(store, "auto").degree == 0.2


@pytest.mark.long
@pytest.mark.parametrize("days", [8, 10, 20, 36])
def test_rates_of_a_young_store_are_those_of_the_days_that_it_has(
    store: SmallStore, days: float
) -> None:
    store.execute("UPDATE page SET found_at = ? WHERE id <= 30", NOW - days * DAY_S)
    store.execute("UPDATE page SET found_at = ? WHERE id > 30", NOW - 0.5 * DAY_S)
    for _ in range(1_000):
        show(store, [1, 2, 3])
    who = audience(store, "auto")
    new, lists = 10 / (days - 7), 1_000 / min(days, 30)
    share = sum(who.attention.of(np.arange(2, 11)))
    assert who.degree == pytest.approx(min(1.1 * new / (lists * share), 0.2))


def test_automatic_promotion_is_a_little_above_the_critical_degree(store: SmallStore) -> None:
    for _ in range(300):
        show(store, [1, 2, 3], opened=[1])
    who = audience(store, "auto")
    # Ten pages in thirty days; 300 lists give as many views as places from the second on have.
    share = sum(who.attention.of(np.arange(2, 11)))
    assert who.degree == pytest.approx(1.1 * 10 / (300 * share))
    for _ in range(20):
        store.page(f"/more/{_}", version_id=1, found_at=NOW - 5.0)
    assert audience(store, "auto").degree > who.degree
    assert audience(store, "off").degree == 0


def test_a_seed_is_of_the_words_the_store_and_the_day(store: SmallStore) -> None:
    async def seeds() -> list[int]:
        async with reading(store.path) as db:
            return [
                await seed_of(db, words, at)
                for words, at in (("a", NOW), ("a", NOW + 9), ("b", NOW), ("a", NOW + DAY_S))
            ]

    found = asyncio.run(seeds())
    assert found[0] == found[1]
    assert len(set(found)) == 3
