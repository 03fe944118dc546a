import numpy as np
import pytest

from freshet.scheduler.arrays import Floats
from freshet.scheduler.ephemeral.policies import PolicyInput
from freshet.scheduler.ephemeral.sources import EphemeralSources, UtilityLaw
from scripts.reproductions.whittle_items import Items, Told, Watched, arriving
from scripts.reproductions.whittle_periods import run
from tests.scheduler.ephemeral.tables import TABLE_1

LAWS = [
    UtilityLaw(),
    UtilityLaw("exponential"),
    UtilityLaw("lognormal", 0.8),
    UtilityLaw("pareto", 3.0),
]


class Notes:
    """Crawls all in turn, and notes what it is told."""

    def __init__(self) -> None:
        self.found_: list[tuple[int, Floats, float]] = []
        self.watched_: list[tuple[int, Watched]] = []

    def __call__(self, seen: PolicyInput) -> Floats:
        return seen.since_crawl

    def found(self, row: int, ages: Floats, elapsed: float) -> None:
        self.found_.append((row, ages, elapsed))

    def watched(self, row: int, seen: Watched) -> None:
        self.watched_.append((row, seen))


def test_what_arrives_has_the_mean_u_and_the_spread_of_a_poisson_process() -> None:
    table = EphemeralSources.of([250, 3], [1.0, 0.7], [0.7, 0.0], period=0.5)
    drawn = Items.drawn(table, 4000, np.random.default_rng(1)).arriving(table)
    error = drawn.std(axis=0) / 4000**0.5
    assert (np.abs(drawn.mean(axis=0) - table.fresh) < 4 * error).all()
    # Campbell's theorem: Var U = Λ ∫ ξ² e^{−2μs} ds.
    assert drawn[:, 0].var() == pytest.approx(250 * (1 - np.exp(-0.7)) / 1.4, rel=0.1)


def test_a_crawl_shows_the_items_whose_utility_it_earns() -> None:
    table = EphemeralSources.of([30, 5, 9], [1.0, 0.7, 0.3], [0.7, 0.2, 0.1], period=2.0)
    items = Items.drawn(table, 30, np.random.default_rng(2))
    notes = Notes()
    outcome = run(table, Told(notes, table, items), 1, 30, arriving=items.arriving(table))
    # What the last crawl brought would have been told in a next period.
    assert len(notes.found_) == 29
    for (row, ages, elapsed), earned, who in zip(
        notes.found_, outcome.reward[:-1], outcome.crawled[:-1], strict=True
    ):
        assert who[row]
        assert (ages <= elapsed).all()
        assert (ages >= 0).all()
        worth = table.mean_utility[row] * np.exp(-table.decay[row] * ages).sum()
        assert worth == pytest.approx(earned)
    assert notes.watched_ == []


def test_clicks_are_those_expected_of_items_of_their_ages() -> None:
    items = Items.drawn(TABLE_1, 200, np.random.default_rng(3))
    notes = Notes()
    run(TABLE_1, Told(notes, TABLE_1, items, np.random.default_rng(4)), 2, 200)
    for row in range(4):
        seen = [each for told, each in notes.watched_ if told == row]
        mu, xi = TABLE_1.decay[row], TABLE_1.mean_utility[row]
        expected = sum(
            float((np.exp(-mu * each.since) - np.exp(-mu * each.until)).sum()) * xi for each in seen
        )
        ages = np.concatenate([each.ages for each in seen])
        begin = np.concatenate([each.since[each.item] for each in seen])
        assert len(ages) == pytest.approx(expected, abs=4 * expected**0.5)
        # Watched for two periods: the mean of an exponential that is cut off there.
        mean = 1 / mu - 2 / np.expm1(2 * mu)
        assert (ages - begin).mean() == pytest.approx(mean, abs=4 * 0.6 / len(ages) ** 0.5)
        assert (ages - begin).max() <= 2


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.family)
@pytest.mark.parametrize("together", [False, True])
def test_every_law_has_the_mean_u(law: UtilityLaw, together: bool) -> None:
    law = UtilityLaw(law.family, law.shape, together)
    drawn = arriving(TABLE_1, law, 4000, np.random.default_rng(1))
    error = drawn.std(axis=0) / 4000**0.5
    assert (np.abs(drawn.mean(axis=0) - TABLE_1.fresh) < 4 * error).all()


def test_items_that_share_a_draw_vary_as_it_does_and_others_hardly() -> None:
    apart, together = (
        arriving(TABLE_1, UtilityLaw("exponential", together=each), 4000, np.random.default_rng(1))
        for each in (False, True)
    )
    assert apart.std(axis=0) == pytest.approx(TABLE_1.fresh * (2 / 250) ** 0.5, rel=0.1)
    assert together.std(axis=0) == pytest.approx(TABLE_1.fresh, rel=0.1)


def test_the_same_seed_gives_the_same_periods() -> None:
    first, second = (
        arriving(TABLE_1, UtilityLaw("pareto", 2.0), 50, np.random.default_rng(8)) for _ in range(2)
    )
    assert (first == second).all()
