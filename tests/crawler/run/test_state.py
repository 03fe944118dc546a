"""The state of a daemon is what the store has, and its notes say what its ranker believes."""

from collections.abc import AsyncIterator, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.config.loading import load
from freshet.config.settings import Settings
from freshet.crawler.frontier.politeness import Pacer
from freshet.crawler.run import status_recorder as notes_run
from freshet.crawler.run.state import DaemonState, load_state
from freshet.crawler.run.status_recorder import StatusRecorder
from freshet.storage.database import Database, open_store
from freshet.storage.records import Acknowledged, DueUrl, Estimate, Observation, StoreUpdate, Visit
from tests.storage.small_store import HOST, SmallStore

DAY_S = 86_400.0
NOW = 100 * DAY_S


def settings(policy: str = "greedy_index") -> Settings:
    said = {"daemon.budget": "24/day", "daemon.policy": policy, "daemon.audit_share": 0.0}
    return load(None, said)[0]


@pytest.fixture
def store(small: SmallStore) -> SmallStore:
    """Six pages, of which the first changes most often; the last one was not visited yet."""
    small.run(0.0)
    small.host(queue="one.example", last_exchange_at=NOW, delay_s=1.0)
    small.insert("seed", text="one", url=f"{HOST}/", importance=2.0, added_at=0.0)
    for n in range(5):
        page = small.page(
            f"/{n}", found_at=50 * DAY_S, checked_at=(98 + n / 10) * DAY_S, last_kind="unchanged",
            last_at=(98 + n / 10) * DAY_S, body_digest=b"d" * 16,
        )  # fmt: skip
        for day in range(50, 99, 4):
            kind = "new" if day == 50 else "changed" if day % (n + 2) == 0 else "unchanged"
            small.observe(page, (day + n / 10) * DAY_S, kind)
    small.page("/new", found_at=99 * DAY_S)
    return small


@pytest.fixture
async def database(store: SmallStore) -> AsyncIterator[Database]:
    database = await open_store(store.path)
    yield database
    await database.close()


async def valued(
    database: Database, policy: str = "greedy_index"
) -> tuple[DaemonState, StatusRecorder]:
    state = await load_state(database.reader, settings(policy))
    await state.agenda.replenish(NOW)
    return state, StatusRecorder(state, Pacer(24.0, NOW), NOW)


async def noted(notes: StatusRecorder) -> list[Estimate]:
    return [each async for batch in notes.estimates() for each in batch.estimates]


async def test_a_state_has_all_pages_with_their_importance_and_limits(database: Database) -> None:
    state = await load_state(database.reader, settings())
    assert state.agenda.pages["page_id"].tolist() == [1, 2, 3, 4, 5, 6]
    assert state.agenda.pages["importance"].tolist() == [2.0] * 6
    assert [host.origin for host in await state.hosts()] == [HOST]
    # A delay of a second, and a tenth for each request.
    assert (await state.limits()).per_day.tolist() == [pytest.approx(DAY_S / 1.1)]


@pytest.mark.parametrize("policy", ["greedy_index", "greedy_index_binary", "lambda_crawl"])
async def test_estimates_are_what_the_ranker_believes(database: Database, policy: str) -> None:
    state, notes = await valued(database, policy)
    found, beliefs = await noted(notes), state.ranker.beliefs(NOW / DAY_S)
    low, high = state.ranker.credible_interval(np.arange(6))
    appraisal = state.agenda.valuation
    assert appraisal is not None
    assert [each.page_id for each in found] == [1, 2, 3, 4, 5, 6]
    assert [each.rate for each in found] == beliefs.rate.tolist()
    assert [each.hazard for each in found] == beliefs.hazard.tolist()
    assert {each.at for each in found} == {NOW}
    assert [each.visited_at for each in found] == pytest.approx(
        [(98 + n / 10) * DAY_S for n in range(5)] + [99 * DAY_S]
    )
    for n, each in enumerate(found[:5]):
        assert (each.low, each.high) == (min(low[n], each.rate), max(high[n], each.rate))
        assert low[n] < high[n]
    if policy == "lambda_crawl":
        assert {each.worth for each in found} == {None}
        assert beliefs.planned is not None
        assert [each.planned for each in found] == beliefs.planned.tolist()
        assert sum(each.planned or 0.0 for each in found) == pytest.approx(24.0)
    else:
        assert [each.worth for each in found] == appraisal.worth.tolist()
        assert {each.planned for each in found} == {None}


async def test_a_page_is_due_when_it_is_worth_what_the_last_one_was(database: Database) -> None:
    state, notes = await valued(database)
    assert {each.due_at for each in await noted(notes)} == {None}
    assert state.agenda.next([1], NOW) is not None
    (price,) = state.agenda.queue.paid
    notes = StatusRecorder(state, Pacer(24.0, NOW), NOW)
    due = {each.page_id: each.due_at for each in await noted(notes)}
    waits = {page: at for page, at in due.items() if at is not None and at > NOW and page < 6}
    assert waits
    for page, at in waits.items():
        row = state.agenda.pages.row(page)
        assert state.ranker.values(at / DAY_S)[row] == pytest.approx(price, rel=0.5)


@given(
    hazard=st.floats(1e-9, 3.0), rate=st.floats(1e-3, 5.0), days=st.floats(0.01, 1_000.0),
    worth=st.floats(1e-9, 10.0),
)  # fmt: skip
def test_the_wait_for_a_price_is_the_time_in_which_the_index_grows_to_it(
    hazard: float, rate: float, days: float, worth: float
) -> None:
    now, then = notes_run._grown(np.array([hazard, hazard + rate * days]))
    price = worth * then / now
    found = notes_run._wait(np.array([worth, np.nan]), np.full(2, hazard), np.full(2, rate), price)
    assert found[0] == pytest.approx(days, rel=1e-4, abs=1e-3)
    assert np.isnan(found[1])
    late = notes_run._wait(np.array([worth]), np.array([hazard]), np.array([0.0]), 2 * worth)
    assert late.tolist() == [np.inf]


def rates(found: Sequence[Estimate]) -> dict[int, float]:
    return {each.page_id: each.rate for each in found}


async def test_of_many_pages_only_those_are_noted_again_that_were_visited_or_moved(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notes_run, "_BATCH", 2)
    monkeypatch.setattr(notes_run, "_FEW", 2)
    state, notes = await valued(database, "greedy_index_binary")
    sizes = [len(batch.estimates) async for batch in notes.estimates()]
    assert sizes == [2, 2, 2]
    assert await noted(notes) == []
    due = state.agenda.next([1], NOW)
    assert due is not None
    seen = Visit(due, Observation(due.page_id, NOW + 60, "unchanged"))
    state.agenda.done(Acknowledged(seen))
    # A visit that was not learnt yet waits for the next valuation.
    assert await noted(notes) == []
    await state.agenda.replenish(NOW + 3_600)
    again = await noted(notes)
    assert due.page_id in rates(again)
    assert len(again) < 6
    await state.agenda.replenish(NOW + 1.5 * DAY_S)
    assert len(await noted(notes)) == 6


async def test_after_a_restart_everything_is_noted_and_nothing_is_believed_otherwise(
    database: Database,
) -> None:
    before = await noted((await valued(database))[1])
    after = await noted((await valued(database))[1])
    assert before == after
    assert len(after) == 6


async def test_what_a_page_was_worth_when_it_was_chosen_is_noted(database: Database) -> None:
    state, notes = await valued(database)
    worth = {each.page_id: each.worth for each in await noted(notes)}
    due = state.agenda.next([1], NOW)
    assert due is not None
    seen = Visit(
        DueUrl(due.page_id, due.url, due.url, 1, NOW),
        Observation(due.page_id, NOW + 60, "unchanged"),
    )
    state.agenda.done(Acknowledged(seen))
    await state.agenda.replenish(NOW + 3_600)
    (found,) = [each for each in await noted(notes) if each.page_id == due.page_id]
    assert found.paid == worth[due.page_id]
    assert found.visited_at == pytest.approx(NOW + 60)


async def test_openings_teach_the_half_life_of_items_at_the_start_and_with_a_note(
    store: SmallStore, database: Database
) -> None:
    sites = [{"match": f"{HOST}/0", "ephemeral": True}, {"match": "/1", "half_life_hours": 9.0}]
    said = load(None, {"daemon.budget": "24/day", "daemon.policy": "greedy_index", "sites": sites})[
        0
    ]

    async def half_lives(state: DaemonState) -> dict[int, float]:
        await state.agenda.replenish(NOW)
        notes = StatusRecorder(state, Pacer(24.0, NOW), NOW)
        return {it.page_id: it.half_life_hours for it in await noted(notes) if it.half_life_hours}

    state = await load_state(database.reader, said)
    assert await half_lives(state) == pytest.approx({1: 6.0, 2: 9.0})
    for source in (1, 2):
        store.items(source, [90.0 * DAY_S + n for n in range(12)], [0.0, 3_600.0, DAY_S])
    # An item that the first visit showed may be of any age.
    old = store.page("/old", found_at=50 * DAY_S)
    store.link(1, old, 50 * DAY_S)
    store.show(old, 99 * DAY_S, opened=True)
    notes = StatusRecorder(state, Pacer(24.0, NOW), NOW)

    async def submit(_note: StoreUpdate) -> None: ...

    await notes.chore(NOW, submit)
    learnt = state.agenda.quota.terms.learnt
    assert learnt.opens.tolist() == [24.0, 24.0]
    hours = float(learnt.half_life[0]) * 24.0
    again = await load_state(database.reader, said)
    assert (await half_lives(again))[1] == pytest.approx(hours)
    assert (await half_lives(again))[2] == pytest.approx(9.0)
    assert hours != pytest.approx(6.0, rel=0.1)
    again.follow(said)
    assert again.agenda.quota.terms.learnt.opens.tolist() == [24.0, 24.0]
