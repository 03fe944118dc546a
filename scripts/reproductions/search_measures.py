"""What is measured of a set of snapshots: quality changes, and what each policy loses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from scipy.stats import spearmanr

from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.queue.rankers import ranker_of
from scripts.reproductions import search_policies as policies
from scripts.reproductions.search_snapshots import Snapshots
from scripts.reproductions.search_weeks import (
    WEEK,
    Policy,
    WeeklyScores,
    estimated_changes,
    run,
    weekly_changes,
)
from tests.crawler.extensions.readers.listed_quality import search_quality

#: τ of SBR and EBR in the thesis, which names the best for each budget.
THRESHOLDS: Final = tuple(round(0.1 * tenth, 1) for tenth in range(1, 11))
#: B/n, looks a week and page.
BUDGETS: Final = (0.02, 0.05, 0.1, 0.2, 0.35, 0.7)
UNIFORM, KNOWN = "uniform", "offline ΔQ"
BEST = "SBR, best τ", "EBR, best τ"
#: Losses by policy and budget.
Losses = Mapping[str, Mapping[float, float]]


@dataclass(frozen=True, slots=True)
class Compared:
    """A set with a scoring function.

    Attributes:
        name: of both.
        pages: n.
        losses: mean of 1 − Q over the weeks, with all parameters fitted on them.
        halves: (2, n), the thesis' δQ_A of weeks 1 to 24 and 25 to 48.
        facts: what the measurements of quality changes are like.
        on_line: losses where policies learn from their own looks.
    """

    name: str
    pages: int
    losses: Losses
    halves: Floats
    facts: Mapping[str, float]
    on_line: Losses


def compared(
    of: Snapshots, *, by: str, budgets: Sequence[float], say: Callable[[str], None]
) -> Compared:
    """Measure a set by TF-IDF or by inlinks (``by``)."""
    name = f"{of.name}, {by}"
    whole, single = of.by_inlinks if by == "inlinks" else of.by_tf_idf
    say(f"{name}: {of.pages} pages, {len(of.queries)} queries")
    estimated = estimated_changes(single)
    losses: dict[str, dict[float, float]] = {}
    on_line: dict[str, dict[float, float]] = {}
    for budget in budgets:
        say(f"{name}: {budget:.0%} of the pages a week")
        for policy, loss in offline(of, whole, estimated, budget * of.pages):
            losses.setdefault(policy, {})[budget] = loss
        if budget in ON_LINE_BUDGETS:
            for policy, loss in learning(of, whole, budget * of.pages):
                on_line.setdefault(policy, {})[budget] = loss
    half = len(of.changed) // 2
    halves = np.array(
        [
            policies.mean_of_ratios(estimated[:half], of.changed[:half]),
            policies.mean_of_ratios(estimated[half:], of.changed[half:]),
        ]
    )
    facts = accuracy(whole, single, estimated) | consistency(halves)
    return Compared(name, of.pages, losses, halves, facts, on_line)


def offline(
    of: Snapshots, scores: WeeklyScores, estimated: Floats, looks: float
) -> Iterator[tuple[str, float]]:
    """The loss of each policy that is fitted on the weeks on which it is judged."""
    changed, share = of.changed, of.share
    known: dict[bytes, float] = {}

    def loss(policy: Policy) -> float:
        return 1 - float(run(scores, changed, policy, looks).mean())

    def planned(plan: Bools) -> float:
        key = plan.tobytes()
        if key not in known:
            known[key] = loss(policies.scheduled(plan))
        return known[key]

    shown = np.mean([scores.views(week) for week in range(scores.weeks)], axis=0)
    plans: tuple[Callable[[float], Bools], ...] = (
        lambda tau: policies.sbr(share, changed, tau, looks),
        lambda tau: policies.ebr(share, changed, tau, looks, shown),
    )
    yield UNIFORM, loss(policies.uniform)
    for name, plan in zip(BEST, plans, strict=True):
        yield name, min(planned(plan(threshold)) for threshold in THRESHOLDS)
        yield name.replace("best τ", "τ = 0"), planned(plan(0.0))
    fitted, sums = policies.mean_of_ratios(estimated, changed), policies.ratio_of_sums(estimated)
    yield "thesis", loss(policies.thesis(fitted))
    yield "ratio of sums", loss(policies.thesis(sums))
    yield "δτ²/2", loss(policies.saving(sums))
    exact = policies.ratio_of_sums(np.maximum(weekly_changes(scores), 0.0))
    yield "δτ²/2, exact ΔQ_A", loss(policies.saving(exact))
    yield KNOWN, loss(policies.known)


#: One look a page and 20 weeks, and 20 days.
ON_LINE_BUDGETS: Final = (0.05, 0.35)


def learning(of: Snapshots, scores: WeeklyScores, looks: float) -> Iterator[tuple[str, float]]:
    """The loss of each policy that learns from nothing, by its own looks."""

    def ranked(name: str, *, marked: bool = False) -> Policy:
        kind = policies.Marked if marked else policies.Ranked
        return lambda copies: kind(copies, ranker_of(name, looks / WEEK, archived=True))

    def by_gain(power: int, *, shrunk: bool) -> Policy:
        return lambda copies: policies.OnLine(copies, power=power, shrunk=shrunk)

    for name, policy in {
        UNIFORM: policies.uniform,
        "harmonic index, a rate per page": ranked("greedy_index"),
        "SBR on line (binary index)": ranked("greedy_index_binary"),
        "site clock": ranked("site_clock"),
        "site clock × marks": ranked("site_clock", marked=True),
        "thesis, two first looks": by_gain(1, shrunk=False),
        "thesis, shrunk by 40 days": by_gain(1, shrunk=True),
        "δτ²/2, shrunk by 40 days": by_gain(2, shrunk=True),
        "true ΔQ known": policies.known,
    }.items():
        yield name, 1 - float(run(scores, of.changed, policy, looks).mean())


def accuracy(whole: WeeklyScores, single: WeeklyScores, estimated: Floats) -> dict[str, float]:
    """How measured quality changes of weekly updates agree with what they are."""
    local, true = weekly_changes(whole), weekly_changes(whole, "new")
    exact = weekly_changes(single)
    some = local > 1e-15
    found = {
        "local over true": float(local.sum() / true.sum()),
        "truly negative": float((true[some] < 0).mean()),
        "rank correlation of local and true": rank_correlation(local[some], true[some]),
    }
    for buckets in (3, 16):
        by = estimated if buckets == 3 else estimated_changes(single, buckets)
        one = exact > 1e-15
        found |= {
            f"{buckets} buckets over exact": float(by.sum() / exact.sum()),
            f"{buckets} buckets, rank correlation": rank_correlation(by[one], exact[one]),
            f"{buckets} buckets, Σ|error|": float(np.abs(by - exact).sum() / exact.sum()),
        }
    return found


def consistency(halves: Floats) -> dict[str, float]:
    """How δQ_A of the two halves agree, of pages where it is above 0 in either."""
    first, second = halves[:, (halves > 0).any(axis=0)]
    both = (first > 0) & (second > 0)
    a, b = np.log(first[both]), np.log(second[both])
    related = float(np.corrcoef(a, b)[0, 1]) if len(a) > 2 else float("nan")
    return {
        "log-log correlation of the halves": related,
        "within a factor of 2": float((np.abs(a - b) <= np.log(2)).mean()) if len(a) else 0.0,
        "above 0 in both": float(both.mean()) if len(both) else 0.0,
    }


def rank_correlation(one: Floats, other: Floats) -> float:
    """Spearman's, with little to correlate not a number."""
    return float(spearmanr(one, other).statistic) if len(one) > 2 else float("nan")


def needed(losses: Mapping[float, float], loss: float) -> float | None:
    """B/n at which a policy loses so much, by the logarithms of both; None: more than all."""
    budgets = sorted(losses)
    for low, high in pairwise(budgets):
        if losses[low] > loss >= losses[high]:
            x = np.log([max(losses[high], 1e-9), losses[low]])
            return float(np.exp(np.interp(np.log(loss), x, np.log([high, low]))))
    return budgets[0] if losses[budgets[0]] <= loss else None


#: Table 4.1 for the query "cancer": whether each copy and each live page holds the word.
EXAMPLE: Final = {"p1": (0.0, 1.0), "p2": (1.0, 0.0), "p3": (0.0, 1.0), "p4": (1.0, 0.0)}


def example() -> list[tuple[str, str, float]]:
    """The answer to "cancer" and Q of the thesis' example, page after page brought up to date."""
    copies, live = np.array(list(EXAMPLE.values())).T
    one, names = np.ones(1), list(EXAMPLE)
    found = []
    for last in ("as in the table", *names):
        if last in EXAMPLE:
            copies[names.index(last)] = live[names.index(last)]
        answer = ", ".join(n for n, s in zip(names, copies, strict=True) if s > 0)
        found.append((last, answer, search_quality(copies[None], live[None], one)))
    return found
