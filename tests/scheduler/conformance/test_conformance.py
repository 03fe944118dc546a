import itertools
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

from freshet.scheduler import arrays, policy
from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.conformance import ConformanceError, Objective, verdicts, verify
from freshet.scheduler.costs import changed_mean
from freshet.scheduler.policies.adaptive_intervals import StormCrawlerAdaptive
from freshet.scheduler.policy import CrawlPlan, Pace, Revisit
from freshet.scheduler.sources import SourceTable

ROOT = Path(__file__).resolve().parents[3]
GUIDE = ROOT / "docs" / "guide" / "write-a-policy.md"

OURS = {
    "binary_lambda_crawl", "binary_lambda_crawl_floor", "change_rate", "greedy_index",
    "greedy_index_binary", "lambda_crawl", "lambda_crawl_approx", "noisy_signal_index",
    "nutch_adaptive", "optimal_intervals", "site_clock", "stormcrawler_adaptive", "uniform",
}  # fmt: skip
OPTIMAL_FOR: dict[str, Objective] = {"lambda_crawl": "harmonic", "binary_lambda_crawl": "binary"}


def broken_laws(candidate: object, optimal_for: Objective | None = None) -> set[str]:
    try:
        verify(candidate, optimal_for=optimal_for)  # type: ignore[arg-type]
    except ConformanceError as error:
        return {verdict.law for verdict in error.broken}
    return set()


def test_all_of_ours_are_found_by_their_entry_points() -> None:
    assert set(policy.names()) >= OURS


@pytest.mark.parametrize("name", policy.names())
def test_every_shipped_policy_keeps_all_laws(name: str) -> None:
    verify(policy.load(name), optimal_for=OPTIMAL_FOR.get(name))


@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize("name", sorted(OPTIMAL_FOR))
def test_optimal_policies_keep_them_on_other_tables_too(name: str, seed: int) -> None:
    verify(policy.load(name), optimal_for=OPTIMAL_FOR[name], seed=seed)


Alter = Callable[[CrawlPlan, SourceTable, float], CrawlPlan]


@dataclass(frozen=True)
class Shares:
    """Crawl rates in proportion to weights, cut at capacities; a plan that can be altered."""

    weigh: Callable[[SourceTable], Floats] = lambda table: np.ones(len(table))
    alter: Alter = lambda plan, table, budget: plan
    check: Callable[[str, float], float] = arrays.budget

    def rates(self, table: SourceTable, budget: float) -> CrawlPlan:
        self.check("budget", budget)
        weight = self.weigh(table)
        rate = budget * weight / max(weight.sum(), 1e-300)
        total = np.bincount(table.host, rate, minlength=len(table.host_capacity))
        rate *= np.minimum(1, table.host_capacity / np.where(total > 0, total, 1))[table.host]
        n = len(table)
        left = max(budget - rate.sum(), 0.0)
        plan = CrawlPlan(rate, np.ones(n), np.zeros(n, np.bool_), budget, left)
        return self.alter(plan, table, budget)


def first_negative(plan: CrawlPlan, table: SourceTable, budget: float) -> CrawlPlan:
    plan.crawl_rate[:1] *= -1
    return plan


def uncapped(plan: CrawlPlan, table: SourceTable, budget: float) -> CrawlPlan:
    rate = np.full(len(table), budget / max(len(table), 1))
    return replace(plan, crawl_rate=rate, left_over=0.0 if len(table) else budget)


def overwriting(plan: CrawlPlan, table: SourceTable, budget: float) -> CrawlPlan:
    table.last_crawl[:] = 1.0
    return plan


CALLS = itertools.count()

RATE_LAW_BREAKERS: dict[str, Shares] = {
    "rates are finite and not negative": Shares(alter=first_negative),
    "the spent and the left over part sum to the budget": Shares(
        alter=lambda plan, table, budget: replace(plan, left_over=0.1 * budget)
    ),
    "host capacities are respected": Shares(alter=uncapped),
    "crawls on signals are a share of the signals": Shares(
        alter=lambda plan, table, budget: replace(plan, on_signals=table.complete_observations)
    ),
    "the plan does not depend on the order of sources": Shares(
        lambda table: np.arange(1.0, len(table) + 1)
    ),
    "the plan is deterministic": Shares(lambda table: table.importance + (next(CALLS) % 2)),
    "the plan does not modify the table": Shares(alter=overwriting),
    "an invalid budget is refused": Shares(check=lambda name, budget: budget),
}


def root(excess: Callable[[float], float]) -> float:
    """The price at which a total that falls with the price is met; 0 if it is never reached."""
    return float(np.exp(brentq(excess, -300, 300))) if excess(-300) > 0 else 0.0


class Optimum:
    """The harmonic optimum with capacities, by root finding in ln λ alone."""

    def rates(self, table: SourceTable, budget: float) -> CrawlPlan:
        arrays.budget("budget", budget)
        mu, delta, complete = table.importance, table.change_rate, table.complete_observations
        alive = (mu > 0) & (delta > 0)
        mu, delta = np.where(alive, mu, 0.0), np.where(alive, delta, 1.0)
        host_price = np.zeros(len(table.host_capacity))

        def rate(log_price: float) -> Floats:
            price = np.maximum(np.exp(log_price), host_price)[table.host]
            by_clock = 2 * (mu / price) / (1 + np.sqrt(1 + 4 * mu / (price * delta)))
            return np.where(complete, np.minimum(delta * alive, mu / price), by_clock)

        def surplus(rows: Bools, limit: float, log_price: float) -> float:
            return float(rate(log_price)[rows].sum() - limit)

        for host, capacity in enumerate(table.host_capacity):
            here = table.host == host
            if np.isfinite(capacity):
                host_price[host] = root(partial(surplus, here, capacity))
        price = root(partial(surplus, np.full(len(table), True), budget))
        plan = rate(np.log(price) if price else -300)
        p = np.where(complete, plan / delta, 1.0)
        left_over = 0.0 if price else budget - plan.sum()
        return CrawlPlan(plan, p, complete, budget, left_over, price)


@dataclass(frozen=True)
class Misled:
    """The optimal policy, asked about another table, and its answer altered."""

    mislead: Callable[[SourceTable], SourceTable] = lambda table: table
    alter: Callable[[CrawlPlan], CrawlPlan] = lambda plan: plan

    def rates(self, table: SourceTable, budget: float) -> CrawlPlan:
        return self.alter(Optimum().rates(self.mislead(table), budget))


def with_faster_changes(table: SourceTable) -> SourceTable:
    """Half a change a day added: a constant that has a unit."""
    faster = table.change_rate + np.where(table.complete_observations, 0.0, 0.5)
    return replace(table, change_rate=faster)


OPTIMAL_LAW_BREAKERS: dict[str, Misled] = {
    "the plan does not depend on the unit of time": Misled(with_faster_changes),
    "the plan does not depend on the unit of importance": Misled(
        lambda table: replace(table, importance=np.log1p(table.importance))
    ),
    "the price is the saving of one more crawl": Misled(
        alter=lambda plan: replace(plan, price=2 * (plan.price or 0.0))
    ),
    "no other plan costs less": Misled(
        lambda table: replace(table, importance=np.ones(len(table)))
    ),
}


def test_an_optimal_policy_for_one_cost_is_not_for_the_other() -> None:
    assert "no other plan costs less" in broken_laws(Optimum(), "binary")


def test_a_heuristic_is_not_optimal_and_has_no_price() -> None:
    broken = broken_laws(Shares(), "harmonic")
    assert "no other plan costs less" in broken
    assert "the price is the saving of one more crawl" in broken


@dataclass(frozen=True)
class Worth:
    """An index as a function of table, age and day."""

    value: Callable[[SourceTable, Floats, float], Floats]

    def index(self, table: SourceTable, now: float) -> Floats:
        return self.value(table, now - table.last_crawl, now)


def grown(table: SourceTable, age: Floats, now: float) -> Floats:
    return table.importance * age * changed_mean(table.change_rate * age)


INDEX_LAW_BREAKERS: dict[str, Worth] = {
    "values are finite and not negative": Worth(lambda *asked: grown(*asked) - 1),
    "the index does not decrease with time": Worth(
        lambda table, age, now: table.importance * table.change_rate * age * np.exp(-age / 50)
    ),
    "the index of a source depends on its row only": Worth(
        lambda *asked: grown(*asked) / (1 + grown(*asked).sum())
    ),
    "the index is zero right after a crawl": Worth(
        lambda table, age, now: table.importance * (table.change_rate > 0) * (age + 1)
    ),
    "the index is zero without importance or changes": Worth(
        lambda table, age, now: table.importance * age
    ),
    "the index is proportional to importance": Worth(
        lambda table, age, now: np.sqrt(grown(table, age, now))
    ),
    "the index does not depend on the calendar": Worth(
        lambda table, age, now: grown(table, age, now) * now
    ),
    "the index is deterministic and does not modify the table": Worth(
        lambda table, age, now: grown(table, age, now) * (1 + next(CALLS))
    ),
}


@dataclass(frozen=True)
class Paced:
    """StormCrawler's intervals, altered."""

    alter: Callable[[Pace, Pace | None, Revisit], Pace]

    def next_interval(self, previous: Pace | None, observation: Revisit) -> Pace:
        pace = StormCrawlerAdaptive().next_interval(previous, observation)
        return self.alter(pace, previous, observation)


def unbounded(pace: Pace, previous: Pace | None, seen: Revisit) -> Pace:
    interval = 1.0 if previous is None else previous.interval * (0.5 if seen.changed else 1.5)
    return Pace(interval, seen.at + 1)


INTERVAL_LAW_BREAKERS: dict[str, Paced] = {
    "intervals are positive and finite": Paced(unbounded),
    "the next crawl is in the future": Paced(
        lambda pace, previous, seen: replace(pace, due_at=seen.at)
    ),
    "a change does not lengthen the interval": Paced(
        lambda pace, previous, seen: replace(pace, interval=pace.interval + 99 * seen.changed)
    ),
    "the intervals are deterministic": Paced(
        lambda pace, previous, seen: replace(pace, interval=pace.interval + next(CALLS) % 7)
    ),
}


PLAIN: list[tuple[Any, Objective | None]] = [
    (Shares(), None), (Optimum(), "harmonic"), (Worth(grown), None), (StormCrawlerAdaptive(), None),
]  # fmt: skip
BREAKERS: dict[str, Any] = RATE_LAW_BREAKERS | INDEX_LAW_BREAKERS | INTERVAL_LAW_BREAKERS


@pytest.mark.parametrize(("plain", "optimal_for"), PLAIN)
def test_plain_policies_keep_the_laws_that_the_next_ones_break(
    plain: object, optimal_for: Objective | None
) -> None:
    assert broken_laws(plain, optimal_for) == set()


@pytest.mark.parametrize("law", BREAKERS)
def test_a_policy_that_breaks_a_law_is_caught_by_it(law: str) -> None:
    assert law in broken_laws(BREAKERS[law])


@pytest.mark.parametrize("law", OPTIMAL_LAW_BREAKERS)
def test_a_policy_that_is_not_optimal_is_caught_by_the_law_it_breaks(law: str) -> None:
    assert broken_laws(OPTIMAL_LAW_BREAKERS[law]) == set()
    assert law in broken_laws(OPTIMAL_LAW_BREAKERS[law], "harmonic")


def test_every_law_has_a_policy_that_breaks_it() -> None:
    laws = {
        verdict.law
        for plain, optimal_for in PLAIN
        for verdict in verdicts(plain, optimal_for=optimal_for)
    }
    assert laws == BREAKERS.keys() | OPTIMAL_LAW_BREAKERS.keys()


def test_all_broken_laws_are_listed_each_in_a_line_with_its_counter_example() -> None:
    with pytest.raises(ConformanceError) as caught:
        verify(Shares(alter=first_negative))
    head, *lines = str(caught.value).split("\n  ")
    assert head == f"Shares breaks {len(lines)} of the laws:"
    assert len(caught.value.broken) == len(lines)
    assert lines[0].startswith("rates are finite and not negative: one source: row 0 (importance ")
    assert lines[0].endswith("incomplete observations) gets -0.4")


def test_an_error_and_a_warning_of_the_policy_are_findings() -> None:
    def unfinished(table: SourceTable, age: Floats, now: float) -> Floats:
        raise NotImplementedError("later\nmuch later")

    told = {str(verdict) for verdict in verdicts(Worth(unfinished))}
    assert "values are finite and not negative: NotImplementedError: later" in told
    careless = Worth(lambda table, age, now: grown(table, age, now) / (table.importance * 0))
    assert any("RuntimeWarning: " in str(verdict) for verdict in verdicts(careless))


def test_what_is_no_policy_or_cannot_be_optimal_is_refused() -> None:
    with pytest.raises(TypeError, match="has none of the methods rates, index, next_interval"):
        verify(object())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="optimal_for: is accepted only for policies with"):
        verify(Worth(grown), optimal_for="harmonic")


def guide_blocks() -> list[str]:
    """The Python of the guide: an example, and its proof."""
    return re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)


def test_the_example_of_the_guide_keeps_all_laws() -> None:
    example, proof = guide_blocks()
    names: dict[str, Any] = {"__name__": "square_root"}
    exec(example, names)
    exec(proof, names)
    verify(names["SquareRootCrawl"](power=0.0))
    assert len(GUIDE.read_text().splitlines()) <= 120


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A directory with another distribution that declares policies."""
    (tmp_path / "square_root.py").write_text(guide_blocks()[0])
    (tmp_path / "careless.py").write_text(
        "class Careless:\n"
        "    def index(self, table, now):\n"
        "        return table.importance * 0 - 1\n"
    )
    info = tmp_path / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[freshet.policies]\n"
        "square_root = square_root:SquareRootCrawl\n"
        "careless = careless:Careless\n"
        "unfinished = no_such_module:Policy\n"
    )
    return tmp_path


def python(elsewhere: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(elsewhere), str(ROOT)])
    return subprocess.run(
        [sys.executable, *arguments], env=os.environ | {"PYTHONPATH": path}, capture_output=True,
        text=True, check=False, timeout=60,
    )  # fmt: skip


def test_a_policy_of_another_distribution_is_found_and_verified(elsewhere: Path) -> None:
    ran = python(
        elsewhere,
        "-c",
        "from freshet.scheduler import conformance, policy\n"
        "theirs = policy.load('square_root:power=0.3')\n"
        "conformance.verify(theirs)\n"
        "print(theirs)\n",
    )
    assert (ran.stdout, ran.stderr) == ("SquareRootCrawl(power=0.3)\n", "")


def test_the_command_tells_of_each_law_whether_it_is_kept(elsewhere: Path) -> None:
    ran = python(elsewhere, "-m", "freshet.scheduler.conformance", "square_root")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert {line.split()[0] for line in ran.stdout.splitlines()} == {"kept"}
    ran = python(elsewhere, "-m", "freshet.scheduler.conformance", "careless")
    assert (ran.returncode, ran.stderr) == (1, "")
    assert "BROKEN  values are finite and not negative: one source: row 0" in ran.stdout


def test_a_policy_that_cannot_be_loaded_is_told_in_one_line(elsewhere: Path) -> None:
    ran = python(elsewhere, "-m", "freshet.scheduler.conformance", "unfinished")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == (
        "policy unfinished: no_such_module:Policy cannot be loaded: "
        "No module named 'no_such_module'; name another\n"
    )
