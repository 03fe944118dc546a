"""The pages of a store become sources whose change rates were learned from their histories."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from freshet.config.loading import load
from freshet.config.settings import Settings
from freshet.crawler.extensions.lab.counterfactual import read_past
from freshet.crawler.extensions.lab.plan_sources import PlanSources, RateLearning, read_store
from freshet.scheduler.estimate import ESTIMATORS, poisson
from freshet.scheduler.estimate.bayes import EmpiricalBayes
from tests.scheduler.estimate.pieces import pieces
from tests.storage.small_store import HOST, SmallStore, small_store

DAY_S = 86_400.0


@pytest.fixture
def store(small: SmallStore) -> SmallStore:
    """A page that changes daily, one that never does, one seen once, and one that is gone."""
    small.run(0.0)
    small.host(queue="one.example", delay_s=4.0, last_exchange_at=1.0)
    other = small.host("https://other.example")
    lively, still = small.page("/lively", checked_at=9.0), small.page("/still", checked_at=9.0)
    for day in range(5):
        small.observe(lively, day * DAY_S, "changed" if day else "new")
        small.observe(still, day * DAY_S, "unchanged" if day else "new")
        small.observe(still, (day + 0.5) * DAY_S, "failed")
    once = small.page("https://other.example/once", host=other, checked_at=9.0)
    small.observe(once, 0.0, "new")
    gone = small.page("/gone", checked_at=9.0, last_kind="gone")
    small.observe(gone, 0.0, "new")
    small.insert(
        "seed", text="one", url="https://one.example/", importance=3.0, added_at=0.0, page_id=lively
    )
    return small


def said(importance: str = "list", sites: Sequence[object] = ()) -> Settings:
    settings, _ = load(None, {"daemon.importance": importance, "sites": sites})
    return settings


def learned(store: SmallStore, estimator: str) -> tuple[PlanSources, RateLearning]:
    sources, _, told, _ = read_store(store.path, estimator, said())
    return sources, told


def test_pages_stand_with_their_queue_their_importance_and_their_rate(store: SmallStore) -> None:
    sources, told = learned(store, "poisson_mle")
    assert list(sources.url) == [f"{HOST}/lively", f"{HOST}/still", "https://other.example/once"]
    assert [sources.hosts[row] for row in sources.host] == [
        "one.example", "one.example", "https://other.example",
    ]  # fmt: skip
    assert sources.importance.tolist() == [3.0, 3.0, 1.0]
    assert sources.change_rate.tolist() == pytest.approx(
        [
            poisson.estimate([1.0] * 4, [True] * 4),
            poisson.estimate([1.0] * 4, [False] * 4),
            poisson.PoissonMle(1).change_rate()[0],
        ]
    )
    assert told == RateLearning(
        "poisson_mle", observations=16, intervals=8, without_evidence=1, gone=1
    )


def test_empirical_bayes_takes_the_pages_of_a_host_to_be_alike(store: SmallStore) -> None:
    sources, _ = learned(store, "empirical_bayes")
    expected = EmpiricalBayes(3, group=[0, 0, 1])
    expected.observe(pieces([0] * 4 + [1] * 4, [1, 2, 3, 4] * 2, [1.0] * 8, [1] * 4 + [0] * 4))
    assert sources.change_rate.tolist() == pytest.approx(expected.change_rate().tolist())


def test_pages_weigh_what_they_would_weigh_to_a_daemon(store: SmallStore) -> None:
    home = store.page("/", checked_at=9.0)
    for page in (1, 2):
        store.link(page, home, 0.0)
    daemon = said(importance="pagerank", sites=[{"match": "/still", "importance": 8.0}])
    store.insert("site_setting", match="other.example", key="importance", value="2.5", at=0.0)
    sources, *_ = read_store(store.path, "poisson_mle", daemon)
    lively, still, other, linked = sources.importance.tolist()
    assert (still, other) == (8.0, 2.5)
    past, urls, _ = asyncio.run(read_past(store.path, daemon))
    assert dict(zip(urls, past.importance, strict=True))["https://other.example/once"] == 2.5
    assert linked > 3.0 > lively


def test_what_was_learnt_of_a_page_at_its_old_url_counts_where_it_stands_now(
    store: SmallStore,
) -> None:
    _, before = learned(store, "poisson_mle")
    lively, new = 1, store.page("/lively-now", checked_at=9.0)
    store.execute(
        "UPDATE page SET alias_of = ?, alias_kind = 'permanent', alias_at = ?, version_id = 1 "
        "WHERE id = ?", new, 5 * DAY_S, lively,
    )  # fmt: skip
    store.observe(new, 5 * DAY_S, "changed")
    sources, told = learned(store, "poisson_mle")
    assert told.intervals == before.intervals + 1
    rate = dict(zip(sources.url, sources.change_rate.tolist(), strict=True))
    assert rate[f"{HOST}/lively-now"] == pytest.approx(poisson.estimate([1.0] * 5, [True] * 5))
    assert f"{HOST}/lively" not in rate


def test_each_queue_has_the_delay_of_its_hosts(store: SmallStore) -> None:
    store.host("https://one.example", queue="one.example", delay_s=1.0, last_exchange_at=0.0)
    sources, delays_s, *_ = read_store(store.path, "poisson_mle", said())
    assert dict(zip(sources.hosts, delays_s, strict=True)) == {
        "one.example": 4.0,
        "https://other.example": None,
    }


@pytest.mark.parametrize("estimator", sorted(ESTIMATORS))
def test_an_empty_store_has_no_sources(tmp_path: Path, estimator: str) -> None:
    sources, told = learned(asyncio.run(small_store(tmp_path / "empty.db")), estimator)
    assert len(sources) == 0
    assert told == RateLearning(estimator, 0, 0, 0, 0)


@pytest.mark.parametrize("estimator", sorted(ESTIMATORS))
def test_every_page_gets_a_rate_even_without_evidence(store: SmallStore, estimator: str) -> None:
    sources, _ = learned(store, estimator)
    assert np.isfinite(sources.change_rate).all()
    assert (sources.change_rate > 0).all()
