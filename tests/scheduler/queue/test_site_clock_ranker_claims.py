"""Claims of changes: believed where they prove true, and no longer."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.scheduler.arrays import Floats
from freshet.scheduler.estimate.evidence import UNASKED, SignalBatch, VisitResults
from freshet.scheduler.estimate.sources_trust import SiteTrust
from freshet.scheduler.queue.history import NewEvidence
from freshet.scheduler.queue.site_clock_ranker import SiteClockRanker

_PAGES = 60
_PER_DAY = 12.0


@dataclass
class Site:
    """Pages 1 to n of a site with a sitemap, row 0; a visit is taken 12 times a day.

    From day ``lies_from`` on the sitemap says every day that every page has changed.
    """

    seed: int
    asks: bool = True
    lies_from: float = np.inf
    days: float = 60.0
    cost: float = 0.0
    polls: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        self.rates = np.exp(rng.normal(-3.0, 1.0, _PAGES))
        self.changes = [
            np.sort(rng.uniform(0, self.days, rng.poisson(rate * self.days))) for rate in self.rates
        ]
        self.last = np.zeros(_PAGES)
        self.said = np.full(_PAGES, -2.0)
        self.ranker = SiteClockRanker(_PER_DAY)
        n = _PAGES + 1
        self.ranker.add(np.zeros(n, np.intp), np.zeros(n, np.intp), np.ones(n), np.zeros(n))
        rows, none = np.arange(1, n), np.zeros(_PAGES, np.bool_)
        self.ranker.learn(VisitResults(rows, np.zeros(_PAGES), none, none, none, none))
        if self.asks:
            self.poll(0.0)

    def last_change(self, page: int, now: float) -> float:
        place = int(np.searchsorted(self.changes[page], now, "right"))
        return float(self.changes[page][place - 1]) if place else -1.0

    def claims(self, now: float) -> Floats:
        if now >= self.lies_from:
            return np.full(_PAGES, np.floor(now))
        return np.array([self.last_change(page, now) for page in range(_PAGES)])

    def poll(self, now: float) -> None:
        said = self.claims(now)
        moved = np.flatnonzero(said != self.said)
        self.said = said
        self.polls.append(now)
        self.ranker.receive(SignalBatch(0, 0, now, moved + 1, said[moved], said[moved]))

    def visit(self, now: float) -> None:
        worth = self.ranker.values(now)
        best = int(np.argmax(worth))
        if best == 0:
            self.poll(now)
            return
        page = best - 1
        changed = self.last_change(page, now) > self.last[page]
        self.pay(page, now)
        self.ranker.learn(VisitResults.one(best, now, changed=changed, moved=changed))

    def pay(self, page: int, now: float) -> None:
        missed = self.changes[page][
            (self.changes[page] > self.last[page]) & (self.changes[page] <= now)
        ]
        self.cost += float(((now - missed) / np.arange(1, len(missed) + 1)).sum())
        self.last[page] = now

    def run(self, until: float | None = None) -> "Site":
        begun = self.polls[-1] if self.polls else 0.0
        for k in range(1, int(((until or self.days) - begun) * _PER_DAY)):
            self.visit(begun + k / _PER_DAY)
        return self

    def settle(self) -> float:
        for page in range(_PAGES):
            self.pay(page, self.days)
        return self.cost

    @property
    def site_trust(self) -> SiteTrust:
        found = self.ranker.site_trust(0)
        assert found is not None
        return found


def test_a_true_sitemap_is_believed_and_halves_the_cost() -> None:
    received, deaf = Site(1), Site(1, asks=False)
    received.run(3.0)
    assert received.site_trust.proven
    costs = [each.run().settle() for each in (Site(1), deaf)]
    assert costs[0] < 0.5 * costs[1]


def test_a_sitemap_that_stamps_everything_every_day_costs_next_to_nothing() -> None:
    seeds = range(2, 6)
    liars = [Site(seed, lies_from=0.0).run() for seed in seeds]
    deaf = sum(Site(seed, asks=False).run().settle() for seed in seeds)
    assert sum(liar.settle() for liar in liars) < 1.04 * deaf
    # After a week it is asked now and then.
    asked = sum(at > 7 for liar in liars for at in liar.polls)
    assert asked < 0.04 * _PER_DAY * 53 * len(liars)


def test_a_sitemap_that_begins_to_lie_is_found_out_within_days() -> None:
    site = Site(3, lies_from=30.0)
    site.run()
    honest = sum(10 < at < 30 for at in site.polls) / 20
    lying = sum(at > 37 for at in site.polls) / 23
    assert lying < honest / 2
    # What it says of a page then means next to nothing.
    told = site.site_trust.state
    assert told.event["share"][(int(told.facts[0]["events"]) - 1) % len(told.event)] < 0.2


HEARD = st.lists(
    st.one_of(
        st.tuples(
            st.just("visit"), st.integers(1, 11), st.floats(0.05, 3.0),
            st.sampled_from([True, False, None]),
        ),
        st.tuples(
            st.just("receive"), st.integers(0, 1), st.floats(0.0, 1.0),
            st.frozensets(st.integers(1, 11), max_size=8),
        ),
    ),
    max_size=80,
)  # fmt: skip


def small() -> SiteClockRanker:
    ranker = SiteClockRanker(4.0)
    sites = np.arange(12) % 2
    ranker.add(sites, np.zeros(12, np.intp), np.ones(12), np.zeros(12))
    none = np.zeros(12, np.bool_)
    ranker.learn(VisitResults(np.arange(12), np.zeros(12), none, none, none, none))
    return ranker


@given(HEARD)
@settings(deadline=None, max_examples=60)
def test_in_which_batches_looks_come_between_claims_does_not_show(
    received: list[tuple[str, int, float, object]],
) -> None:
    one_by_one, batched = small(), small()
    now = 0.0
    batch: list[tuple[int, float, bool | None]] = []

    def flush() -> None:
        if batch:
            row, at, found = zip(*batch, strict=True)
            changed = np.array([bool(each) for each in found])
            compared = np.array([each is not None for each in found])
            none = np.zeros(len(batch), np.bool_)
            batched.learn(
                VisitResults(np.array(row, np.intp), np.array(at), compared, changed, none, changed)
            )
            batch.clear()

    for kind, number, pause, what in received:
        now += pause
        if kind == "visit":
            assert what is None or isinstance(what, bool)
            one_by_one.learn(VisitResults.one(number, now, changed=what))
            batch.append((number, now, what))
        else:
            assert isinstance(what, frozenset)
            rows = np.array(sorted(what), np.intp)
            days = np.full(len(rows), now - 0.01) + 1e-3 * (rows % 2)
            said = SignalBatch(number, 0 if number else UNASKED, now, rows, days, days)
            flush()
            for each in (one_by_one, batched):
                each.receive(said)
    flush()
    worth = one_by_one.values(now + 1)
    assert np.array_equal(worth, batched.values(now + 1))
    assert np.isfinite(worth).all()
    assert (worth >= 0).all()
    hazard = one_by_one.beliefs(now + 1).hazard
    assert np.isfinite(hazard).all()


def test_pages_of_which_nothing_is_claimed_keep_their_worth() -> None:
    told, untold = small(), small()
    told.receive(SignalBatch(0, UNASKED, 1.0, np.array([2]), np.array([0.9]), np.array([0.9])))
    others = np.arange(12) != 2
    assert np.array_equal(told.values(3.0)[others], untold.values(3.0)[others])


def test_more_events_than_the_ring_holds_push_out_the_oldest() -> None:
    ranker = small()
    for k in range(700):
        at = 1.0 + k / 10
        rows = np.array([2, 4, 6])
        days = at - np.array([0.01, 0.02, 0.03])
        ranker.receive(SignalBatch(0, UNASKED, at, rows, days, days))
    found = ranker.site_trust(0)
    assert found is not None
    assert found.state.facts[0]["events"] == 2_100
    assert len(found.state.event) <= 4_096
    assert np.isfinite(ranker.values(80.0)).all()


def test_pages_that_are_said_to_have_changed_at_one_time_are_one_event() -> None:
    said = SignalBatch(
        0, UNASKED, 9.0, np.array([5, 3, 8, 1]), np.array([2.0, 1.0, 2.0, 1.0]),
        np.array([2.0, 1.0, 2.0, 1.5]),
    )  # fmt: skip
    order, numbers = said.events()
    assert said.row[order].tolist() == [3, 1, 5, 8]
    assert numbers.tolist() == [0, 1, 2, 2]


@pytest.mark.parametrize("lies_from", [0.0, np.inf])
def test_the_same_is_learnt_from_the_same(lies_from: float) -> None:
    one, other = (Site(5, lies_from=lies_from, days=20.0).run() for _ in range(2))
    assert np.array_equal(one.ranker.values(20.0), other.ranker.values(20.0))


def test_all_that_was_heard_after_one_visit_is_learnt() -> None:
    """As when a page is a sitemap and a feed, or two hubs push between two visits."""
    none = np.empty(0)
    said = [
        SignalBatch(source, UNASKED, 1.5, none.astype(np.intp), none, none) for source in range(3)
    ]
    received: list[object] = []

    class Hearing(SiteClockRanker):
        def learn(self, visits: VisitResults) -> None:
            received.append(visits.row.tolist())

        def receive(self, said: SignalBatch) -> None:
            received.append(said.source)

    visits = VisitResults(np.array([1, 2]), np.array([1.0, 2.0]), *(np.zeros(2, np.bool_),) * 4)
    NewEvidence(visits, [(0, said[0]), (1, said[1]), (1, said[2])]).teach(Hearing(1.0))
    assert received == [0, [1], 1, 2, [2]]
