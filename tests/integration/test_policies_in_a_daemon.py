"""Policies of every kind, and of third parties, in a daemon on a web with sitemaps."""

import itertools
import json
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

import numpy as np
import pytest

from freshet.scheduler import policy
from freshet.scheduler.arrays import Floats
from freshet.scheduler.evaluate.changes import poisson
from freshet.scheduler.sources import SourceTable
from scripts.benchmarks.signals_daemon import Kept, kept
from scripts.benchmarks.signals_reference import Stage
from scripts.benchmarks.signals_web import Hosts
from tests.console import freshet

_PAGES = 40
_PER_DAY = 10.0


def web(days: float) -> tuple[Stage, Hosts]:
    """Pages on two hosts, each with an honest sitemap; a few change daily, most once in a month."""
    rng = np.random.default_rng(5)
    rates = np.exp(rng.normal(-2.5, 1.0, _PAGES))
    table = SourceTable.of(np.ones(_PAGES), rates, complete_observations=np.ones(_PAGES, np.bool_))
    stage = Stage(table, poisson(table, days, rng), days)
    return stage, Hosts(np.arange(_PAGES) % 2, {0: inf, 1: inf})


@dataclass(slots=True)
class Theirs:
    """An index policy of somebody else: a signal is worth ten days of waiting."""

    seen: list[tuple[SourceTable, Floats]] = field(default_factory=list)

    def index(self, table: SourceTable, now: float) -> Floats:
        found = table.importance * (now - table.last_crawl + 10.0 * table.pending_signals)
        self.seen.append((table.take(np.arange(len(table))), found.copy()))
        return np.maximum(found, 0.0)


def test_the_policy_of_a_third_party_sees_hosts_costs_and_signals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = Theirs()
    monkeypatch.setattr(policy, "load", lambda _name: theirs)
    stage, hosts = web(8.0)
    kept(stage, hosts, 20.0, tmp_path / "crawl.db", policy="theirs", politeness__delay_s=600.0)
    # An outlook asks it, too, and knows no signals.
    valued = [it for it in theirs.seen if it[0].signal_rate.any()]
    table, _ = valued[-1]
    assert set(table.host.tolist()) == {0, 1}
    assert table.host_capacity[:2] == pytest.approx(86_400 / 600, rel=0.01)
    assert table.host_cost[:2].tolist() == [1.0, 1.0]
    assert ((table.signal_rate > 0) == (table.signal_precision > 0)).all()
    assert (table.signal_rate > 0).sum() == _PAGES
    assert (table.signal_rate * table.signal_precision <= table.change_rate * (1 + 1e-9)).all()
    # What a sitemap claims moves the index from one valuation to the next.
    moved = 0
    for (before, was), (after, found) in itertools.pairwise(valued):
        n = len(before)
        same = before.last_crawl == after.last_crawl[:n]
        told = same & (after.pending_signals[:n] > before.pending_signals)
        moved += int(told.sum())
        assert (found[:n][told] >= was[told] + 10.0).all()
    assert moved > 10


def costs(stage: Stage, run: Kept) -> float:
    return float(stage.costs(run.crawls, 8.0, stage.days).mean())


@pytest.mark.long
def test_an_index_that_hears_honest_sitemaps_beats_one_that_does_not(tmp_path: Path) -> None:
    stage, hosts = web(25.0)
    deaf, hears = (
        kept(stage, hosts, _PER_DAY, tmp_path / f"{name}.db", policy=name)
        for name in ("greedy_index", "noisy_signal_index")
    )
    assert costs(stage, hears) < 0.7 * costs(stage, deaf)


@pytest.mark.long
@pytest.mark.parametrize("name", ["nutch_adaptive", "stormcrawler_adaptive"])
def test_an_interval_policy_visits_what_is_due_and_nothing_else(tmp_path: Path, name: str) -> None:
    stage, hosts = web(12.0)
    run = kept(
        stage, hosts, 200.0, tmp_path / "crawl.db", policy=f"{name}:first_days=2,min_days=0.5",
        robots__sitemaps=False, daemon__audit_share=0.0,
    )  # fmt: skip
    crawls = run.crawls
    visits = [np.sort(crawls.at[crawls.source == row]) for row in range(_PAGES)]
    assert min(len(days) for days in visits) >= 3
    # 200 visits a day were allowed; a page waits for its first interval, and for each later one.
    assert len(crawls.at) < 0.5 * 200 * stage.days
    # Looked for every 60 to 900 s; Nutch synchronises by at most 0.3 of the time since a change.
    assert all(1.99 <= days[1] - days[0] < 2.05 for days in visits)
    assert min(np.diff(days).min() for days in visits) > 0.3
    often = np.argsort(-stage.table.change_rate)
    number = np.array([len(days) for days in visits])
    assert number[often[:3]].mean() > 1.3 * number[often[-8:]].mean()


def test_complete_observations_act_in_daemon_plan_and_explain(tmp_path: Path) -> None:
    stage, hosts = web(8.0)
    db, said = tmp_path / "crawl.db", [{"match": "h0.localhost", "signals": "complete"}]
    kept(stage, hosts, 20.0, db, policy="lambda_crawl", sites=said)
    file = tmp_path / "freshet.toml"
    file.write_text('[[sites]]\nmatch = "h0.localhost"\nsignals = "complete"\n')
    shown = freshet("plan", "--db", db, "--budget", "20/day", "--config", file, "--json").stdout
    assert json.loads(shown)["split"]["complete_observations"]["sources"] == _PAGES // 2
    told = freshet("explain", hosts.url(0), "--db", db).stdout
    assert "Its [[sites]] table sets its signals as complete, so visits follow them" in told
    assert "Its signals" not in freshet("explain", hosts.url(1), "--db", db).stdout
    (source, *_) = json.loads(freshet("signals", "--db", db, "--json").stdout)["sources"]
    assert source["reputation"]["precision"] == source["reputation"]["recall"] == 1.0
    assert source["reputation"]["pages"] == _PAGES // 2
