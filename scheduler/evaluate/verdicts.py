"""Evaluations of policies on an archive, for tables, reports and programs.

Costs are means over the time that counts (:mod:`scheduler.evaluate.captures`), weighted with
importance: ``binary`` is the share of importance with a stale copy.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from freshet.scheduler import PolicyError
from freshet.scheduler.arrays import Floats, Ints
from freshet.scheduler.estimate.bayes import EmpiricalBayes
from freshet.scheduler.estimate.evidence import Evidence
from freshet.scheduler.evaluate import bounds
from freshet.scheduler.evaluate.captures import FAILED, Captures, Timeline
from freshet.scheduler.evaluate.changes import offsets_of
from freshet.scheduler.evaluate.counterfactual import AskedVisits, ReplayTerms, run
from freshet.scheduler.evaluate.serving import PolicyProgress, silent
from freshet.scheduler.queue.rankers import ranker_of
from freshet.scheduler.sources import Rows

#: Minimum changes a day of each class; the last class has no minimum.
RATE_CLASSES: Final = {"daily": 1.0, "weekly": 1 / 7, "monthly": 1 / 30, "yearly": 1 / 365}
RAREST: Final = "rarer"
#: The bounds of a cost, in the order of the columns of days; the last one has no column.
BOUNDS: Final = ("optimistic", "early", "pessimistic", "clairvoyant")
#: Bins of forecast probabilities.
_BINS: Final = 20
#: A page is flagged if more than this share of its requests returned the capture that it had.
_FLAGGED: Final = 0.5


@dataclass(frozen=True, slots=True)
class BoundedCost:
    """A cost with its bounds, as in :mod:`freshet.scheduler.evaluate.bounds`.

    ``clairvoyant`` is the lower bound of the optimistic cost; ``daily`` are the costs of each day,
    (d, 3): optimistic, early, pessimistic; NaN on days without time that counts.
    """

    optimistic: float
    early: float
    pessimistic: float
    clairvoyant: float
    daily: Floats


@dataclass(frozen=True, slots=True)
class _Calibration:
    """Comparing visits, by the forecast probability of change, in bins of equal width.

    Of ``asks`` (20,) visits in each bin, ``changed`` (20,) found a change; ``expected`` (20,) is
    the sum of the forecasts. All are 0 if a policy makes no forecasts.
    """

    asks: Ints
    expected: Floats
    changed: Ints


@dataclass(frozen=True, slots=True)
class PolicyVerdict:
    """The evaluation of a policy with a budget.

    Attributes:
        policy, budget: its name, and fetches a day.
        harmonic, binary: costs.
        age_days: mean age of a copy.
        appeared, found: pages that appeared in the archive after the start, and how many the policy
            found.
        delay_days: the mean time from the first capture of a found page to its first answer; NaN if
            no page was found.
        fetches, paid: requests made, and the number that the budget pays for.
        misses: requests without a capture in the archive, or with a failed visit.
        flagged: (f,), rows of pages that were requested more often than the archive sampled them:
            more than half of their requests, and at least two, returned the capture that they had.
        again: the share of all requests that did.
        calibration: forecasts and results.
        believed: (n,), estimated changes a day of each page at the end; NaN: no estimate.
        by_page: (n,), requests by page.
        by_host: (H,), requests by host.
        by_class: requests by class of change rate, estimated from the whole archive.
    """

    policy: str
    budget: float
    harmonic: BoundedCost
    binary: BoundedCost
    age_days: float
    appeared: int
    found: int
    delay_days: float
    fetches: int
    paid: float
    misses: int
    flagged: Rows
    again: float
    calibration: _Calibration
    believed: Floats
    by_page: Ints
    by_host: Ints
    by_class: dict[str, int]


class JudgedArchive:
    """An archive for evaluating policies.

    Attributes:
        captures, timeline: the archive.
        rate: (n,), changes a day of each page, estimated from the whole archive.
    """

    def __init__(self, captures: Captures) -> None:
        self.captures, self.timeline = captures, Timeline.of(captures)
        self.rate = _rates(captures)
        self._least: dict[ReplayTerms, tuple[float, float]] = {}

    def verdict(self, name: str, terms: ReplayTerms, progress: PolicyProgress) -> PolicyVerdict:
        """Return the evaluation of a policy with these settings.

        Raises:
            PolicyError: if the policy is not known, or fails.
        """
        asks = _asked(name, self.captures, terms, progress)
        if terms not in self._least:
            # The copies at the start are the same for all policies.
            visits = int(terms.budget * (terms.end - terms.start) * (1 + 1e-12))
            span, mu = (terms.start, terms.end), self.captures.importance
            self._least[terms] = (
                bounds.least_cost(self.timeline, asks.copy, mu, span, visits, harmonic=True),
                bounds.least_cost(self.timeline, asks.copy, mu, span, visits, harmonic=False),
            )
        return _judged(name, self, asks, terms, self._least[terms])


def _judged(
    name: str,
    bench: JudgedArchive,
    asks: AskedVisits,
    terms: ReplayTerms,
    least: tuple[float, float],
) -> PolicyVerdict:
    """Return the evaluation of visits; ``least`` are the clairvoyant sums, harmonic and binary."""
    captures = bench.captures
    page, at = asks.page[asks.answered], asks.at[asks.answered]
    order = np.lexsort((at, page))
    offsets = offsets_of(np.bincount(page, minlength=len(captures)))
    visited = bounds.PageVisits(offsets, at[order], asks.copy)
    mu = captures.importance
    pages, days = bounds.bill(bench.timeline, visited, mu, terms.start, terms.end)
    total = pages.T @ mu
    counted, copied = max(float(total[bounds.COUNTED]), np.finfo(float).tiny), total[bounds.COPIED]
    by_day = np.where(days[:, bounds.COUNTED] > 0, days[:, bounds.COUNTED], np.nan)[:, None]
    costs = []
    for cost, bound in zip((bounds.HARMONIC, bounds.BINARY), least, strict=True):
        low, early, high = (total[cost] / counted).tolist()
        costs.append(BoundedCost(low, early, high, bound / counted, days[:, cost] / by_day))
    appeared, found, delay_days = _discovery(bench.timeline, asks, terms)
    # Whether a visit returned the former capture on a day that the archive does not cover.
    blind = asks.again.copy()
    blind[blind] = asks.at[blind] > captures.until[asks.capture[blind]]
    number = np.bincount(asks.page, minlength=len(captures))
    again = np.bincount(asks.page[blind], minlength=len(captures))
    hosts = int(captures.host.max(initial=-1)) + 1
    return PolicyVerdict(
        policy=name,
        budget=terms.budget,
        harmonic=costs[0],
        binary=costs[1],
        age_days=float(total[bounds.AGE] / copied) if copied else np.nan,
        appeared=appeared,
        found=found,
        delay_days=delay_days,
        fetches=len(asks),
        paid=terms.budget * (terms.end - terms.start),
        misses=int((~asks.answered).sum()),
        flagged=np.flatnonzero((number >= 2) & (again > _FLAGGED * number)),
        again=float(blind.mean()) if len(asks) else 0.0,
        calibration=_calibration(asks),
        believed=asks.rate,
        by_page=number,
        by_host=np.bincount(captures.host[asks.page], minlength=hosts),
        by_class=_by_class(bench.rate[asks.page]),
    )


def class_of(rate: Floats) -> Ints:
    """Return (n,), the index of each change rate's class; the last one is :data:`RAREST`."""
    bars = np.array(list(RATE_CLASSES.values()))
    return np.asarray((rate[:, None] < bars).sum(axis=1), np.int64)


def _by_class(rate: Floats) -> dict[str, int]:
    names = [*RATE_CLASSES, RAREST]
    number = np.bincount(class_of(rate), minlength=len(names))
    return dict(zip(names, number.tolist(), strict=True))


def _discovery(timeline: Timeline, asks: AskedVisits, terms: ReplayTerms) -> tuple[int, int, float]:
    """Return the numbers of pages that appeared and were found, and their mean delay in days."""
    appeared = timeline.first_content
    new = np.isneginf(asks.copy) & (appeared >= terms.start) & (appeared < terms.end)
    first = np.full(len(asks.copy), np.inf)
    np.minimum.at(first, asks.page[asks.answered], asks.at[asks.answered])
    delays = (first - appeared)[new & np.isfinite(first)]
    mean = float(np.maximum(delays, 0).mean()) if len(delays) else np.nan
    return int(new.sum()), len(delays), mean


def _calibration(asks: AskedVisits) -> _Calibration:
    read = asks.compared & np.isfinite(asks.expected)
    expected, changed = asks.expected[read], asks.changed[read]
    place = np.minimum((expected * _BINS).astype(np.intp), _BINS - 1)
    return _Calibration(
        np.bincount(place, minlength=_BINS),
        np.asarray(np.bincount(place, expected, minlength=_BINS), np.float64),
        np.bincount(place[changed], minlength=_BINS),
    )


# -- comparison of policies and budgets from the same start --

#: A policy's name, and the settings of its replay.
Trial: TypeAlias = tuple[str, ReplayTerms]
#: Evaluates these trials, in their order.
Judging: TypeAlias = Callable[
    [JudgedArchive, Sequence[Trial], PolicyProgress], Iterable[PolicyVerdict]
]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Evaluations of all policies with all budgets.

    Attributes:
        start, end: the days between which they were evaluated.
        pages, captures: numbers in the archive; ``failed`` of the captures are visits that failed.
        capture_gap_days: the median time between two captures of a page.
        rate: (n,), changes a day of each page, estimated from the whole archive.
        by_class: pages by class of change rate.
        verdicts: by budget, then in the order of the policies.
    """

    start: float
    end: float
    pages: int
    captures: int
    failed: int
    capture_gap_days: float
    rate: Floats
    by_class: dict[str, int]
    verdicts: tuple[PolicyVerdict, ...]


def in_turn(
    bench: JudgedArchive, trials: Sequence[Trial], progress: PolicyProgress
) -> Iterable[PolicyVerdict]:
    """Run the trials one after the other."""
    return [bench.verdict(name, terms, progress) for name, terms in trials]


def compare(
    captures: Captures,
    policies: Sequence[str],
    terms: Sequence[ReplayTerms],
    progress: PolicyProgress = silent,
    judging: Judging = in_turn,
) -> Comparison:
    """Run each policy with each of these settings, which have the same start and end.

    Raises:
        ValueError: no page has content between two captures after the start. Also raises as
            :meth:`JudgedArchive.verdict`.
    """
    bench = JudgedArchive(captures)
    verdicts = judging(bench, [(name, each) for each in terms for name in policies], progress)
    gaps = np.diff(captures.at)[np.diff(captures.page) == 0]
    return Comparison(
        start=terms[0].start,
        end=terms[0].end,
        pages=len(captures),
        captures=len(captures.at),
        failed=int((captures.content == FAILED).sum()),
        capture_gap_days=float(np.median(gaps)) if len(gaps) else np.nan,
        rate=bench.rate,
        by_class=_by_class(bench.rate),
        verdicts=tuple(verdicts),
    )


def _rates(captures: Captures) -> Floats:
    """Return (n,), the change rates over all captures, by empirical Bayes."""
    learner = EmpiricalBayes(len(captures))
    page, read = captures.page, captures.content >= 0
    page, at, content = page[read], captures.at[read], captures.content[read]
    before = np.flatnonzero(np.diff(page) == 0)
    after, counted = before + 1, np.zeros(len(before), np.bool_)
    changed: Ints = (content[after] != content[before]).astype(np.int64)
    learner.observe(Evidence(page[after], at[after], at[after] - at[before], changed, counted))
    return learner.change_rate()


def _asked(
    name: str, captures: Captures, terms: ReplayTerms, progress: PolicyProgress
) -> AskedVisits:
    ranker = ranker_of(name, terms.budget, archived=True)
    label = f"{name}, {terms.budget:g} a day"

    def report(day: float) -> None:
        progress(label, (day - terms.start) / (terms.end - terms.start))

    try:
        return run(captures, ranker, terms, report)
    except Exception as error:
        # Third-party code: any error is reported under the policy's name.
        raise PolicyError(f"policy {name}: {str(error) or type(error).__name__}") from error
