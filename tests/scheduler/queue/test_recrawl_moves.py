"""What was learnt of a page that moves is known of it where it stands now."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

import numpy as np
import pytest

from freshet.scheduler.arrays import Floats, Ints
from freshet.scheduler.estimate.evidence import SignalBatch, VisitResults
from freshet.scheduler.queue.page_rules import PageRules
from freshet.scheduler.queue.ranker import Beliefs
from freshet.scheduler.queue.recrawl import RecrawlAgenda
from freshet.scheduler.sources import Rows
from freshet.storage.database import reading
from freshet.storage.entries import AliasKind, Kind
from freshet.storage.records import Acknowledged, Alias, DueUrl, Observation, Visit
from tests.storage.small_store import HOST, SmallStore

DAY_S = 86_400.0
OLD, NEW, OTHER = 1, 2, 3


@dataclass(slots=True)
class Told:
    """A refresher that learns nothing, and notes what it is told."""

    n: int = 0
    found_on: list[float] = field(default_factory=list)
    received: list[tuple[object, ...]] = field(default_factory=list)

    def add(
        self, site: Rows, area: Rows, importance: Floats, at: Floats, pace: Floats | None = None
    ) -> None:
        self.n += len(site)
        self.found_on += at.tolist()

    def receive(self, said: SignalBatch) -> None:
        """Claims are not listened to."""

    def learn(self, visits: VisitResults) -> None:
        for k in range(len(visits)):
            found = bool(visits.changed[k]) if visits.compared[k] else None
            what = "gone" if visits.gone[k] else "visited"
            self.received.append((what, int(visits.row[k]), float(visits.at[k]), found))

    def inherit(self, old: int, new: int) -> None:
        self.received.append(("inherited", old, new))

    def values(self, now: float) -> Floats:
        return np.ones(self.n)

    def beliefs(self, now: float) -> Beliefs:
        return Beliefs(np.zeros(self.n), np.zeros(self.n), np.zeros(self.n))

    def credible_interval(self, rows: Rows) -> tuple[Floats, Floats]:
        return np.zeros(len(rows)), np.zeros(len(rows))

    def reweigh(self, rows: Rows, importance: Floats) -> None:
        pass


def alike(page_id: Ints, urls: Sequence[str], origins: Sequence[str]) -> PageRules:
    n = len(urls)
    none, free = np.zeros(n, np.bool_), np.full(n, np.inf)
    return PageRules(np.zeros(n, np.intp), np.ones(n), none, np.zeros(n), free, np.zeros(n), none)


@pytest.fixture
def store(site: SmallStore) -> SmallStore:
    """/old, seen on three days; /new, that was found on day 9; /other."""
    site.page("/old", found_at=DAY_S, checked_at=5 * DAY_S, version_id=7, body_digest=b"d" * 16)
    site.page("/new", found_at=9 * DAY_S)
    site.page("/other", found_at=DAY_S, checked_at=5 * DAY_S, body_digest=b"d" * 16)
    for day, kind in ((1, "new"), (3, "changed"), (5, "unchanged")):
        site.observe(OLD, day * DAY_S, kind)
    return site


def settled(page_id: int, day: float, kind: Kind, alias: Alias | None = None) -> Acknowledged:
    due = DueUrl(page_id, "", "", 1, 0.0)
    return Acknowledged(Visit(due, Observation(page_id, day * DAY_S, kind), alias=alias))


def redirect(store: SmallStore, kind: AliasKind = "permanent") -> Acknowledged:
    """/old leads to /new on day 10, committed."""
    store.execute(
        f"UPDATE page SET alias_of = {NEW}, alias_kind = ?, alias_at = ?, "
        f"last_kind = 'redirected', last_at = ? WHERE id = {OLD}",
        kind, 10 * DAY_S, 10 * DAY_S,
    )  # fmt: skip
    store.observe(OLD, 10 * DAY_S, "redirected")
    return settled(OLD, 10, "redirected", Alias(f"{HOST}/new", kind))


def visit(store: SmallStore, kind: Kind, day: float = 11.0) -> Acknowledged:
    store.observe(NEW, day * DAY_S, kind)
    store.execute(f"UPDATE page SET checked_at = ? WHERE id = {NEW}", day * DAY_S)
    return settled(NEW, day, kind)


async def told(store: SmallStore, *happens: object) -> tuple[RecrawlAgenda, Told]:
    """An agenda to which this happens, one after the other."""
    refresher = Told()
    async with reading(store.path) as connection:
        agenda = RecrawlAgenda(connection, refresher, alike, Random(0))
        await agenda.open()
        refresher.received.clear()
        now = 12 * DAY_S
        for each in happens:
            assert callable(each)
            agenda.done(each(store))
            # All pages are valued, and what has come is learnt, once a minute at most.
            now += 0.1 * DAY_S
            await agenda.replenish(now)
    return agenda, refresher


async def test_the_first_copy_at_the_new_url_is_a_look_at_a_page_long_known(
    store: SmallStore,
) -> None:
    agenda, refresher = await told(store, redirect, lambda s: visit(s, "changed"))
    assert refresher.received == [("inherited", 0, 1), ("visited", 1, 11.0, True)]
    assert agenda.pages["captured"].tolist() == [False, True, True]


async def test_it_waits_for_its_look_since_the_old_copy_was_right(store: SmallStore) -> None:
    agenda, _ = await told(store, redirect)
    assert agenda.pages["since"].tolist() == [5.0, 5.0, 5.0]
    assert agenda.pages["away"].tolist() == [True, False, False]


@pytest.mark.parametrize("kind", ["temporary", "refresh"])
async def test_what_leads_elsewhere_for_now_moves_nothing(
    store: SmallStore, kind: AliasKind
) -> None:
    agenda, refresher = await told(
        store, lambda s: redirect(s, kind), lambda s: visit(s, "unchanged")
    )
    assert agenda.pages["since"].tolist() == [5.0, 11.0, 5.0]
    assert refresher.received == [("visited", 1, 11.0, False)]


async def test_another_page_at_the_new_url_has_a_history_of_its_own(store: SmallStore) -> None:
    _, refresher = await told(store, redirect, lambda s: visit(s, "new"))
    assert refresher.received == [("visited", 1, 11.0, None)]


async def test_what_proves_to_have_moved_later_is_still_compared_with_its_last_look(
    store: SmallStore,
) -> None:
    refresher = Told()
    async with reading(store.path) as connection:
        agenda = RecrawlAgenda(connection, refresher, alike, Random(0))
        await agenda.open()
        agenda.done(visit(store, "new"))
        agenda.done(redirect(store))
        await agenda.replenish(12 * DAY_S)
        store.insert(
            "amendment", observation_id=4, kind="changed", reason="it moved", at=12 * DAY_S
        )
        refresher.received.clear()
        await agenda.learner.inherit([NEW])
    assert refresher.received == [("inherited", 0, 1)]


async def test_after_a_restart_the_same_is_known(store: SmallStore) -> None:
    redirect(store)
    visit(store, "changed")
    refresher = Told()
    async with reading(store.path) as connection:
        agenda = RecrawlAgenda(connection, refresher, alike, Random(0))
        await agenda.open()
    assert refresher.received == [
        ("visited", 1, 1.0, None), ("visited", 1, 3.0, True), ("visited", 1, 5.0, False),
        ("visited", 1, 11.0, True),
    ]  # fmt: skip
    assert refresher.found_on == [1.0, 1.0, 1.0]
    assert agenda.pages["not_before"].tolist() == [40.0, -np.inf, -np.inf]
    assert agenda.pages["captured"].tolist() == [False, True, True]


async def test_a_url_that_is_answered_again_is_a_page_again(store: SmallStore) -> None:
    def answered(_: SmallStore) -> Acknowledged:
        return settled(OLD, 50.0, "unchanged")

    agenda, refresher = await told(store, redirect, answered)
    assert agenda.pages["away"].tolist() == [False, False, False]
    assert agenda.pages["captured"].tolist() == [True, False, True]
    assert refresher.received[-1] == ("visited", 0, 50.0, False)
