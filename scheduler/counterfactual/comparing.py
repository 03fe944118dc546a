"""Policies and budgets before one archive, each from the same start."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from freshet.scheduler.arguments import Floats, Ints
from freshet.scheduler.counterfactual import askers, clairvoyant, running
from freshet.scheduler.counterfactual.captures import FAILED, Captures
from freshet.scheduler.counterfactual.running import Terms
from freshet.scheduler.counterfactual.timeline import Timeline
from freshet.scheduler.counterfactual.verdicts import (
    RAREST,
    RATE_CLASSES,
    Bench,
    Verdict,
    class_of,
    judged,
)
from freshet.scheduler.estimators.empirical_bayes import EmpiricalBayes
from freshet.scheduler.estimators.estimator import Evidence
from freshet.scheduler.policy import PolicyError

#: Told the policy and budget at work, and the share of it that is done.
Progress: TypeAlias = Callable[[str, float], None]
#: A policy by its name, and on which terms it asks.
Trial: TypeAlias = tuple[str, Terms]
#: Gives the verdicts on these trials, in their order.
Judging: TypeAlias = Callable[[Bench, Sequence[Trial], Progress | None], Iterable[Verdict]]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What came of all policies with all budgets.

    Attributes:
        start, end: the days between which they were judged.
        pages, captures: how many the archive has; ``failed`` of the captures are visits that
            failed.
        capture_gap_days: the median time between two captures of a page.
        rate: (n,), changes a day of each page, as the whole archive shows them.
        by_class: pages by class of change rate.
        verdicts: by budget, then as the policies were named.
    """

    start: float
    end: float
    pages: int
    captures: int
    failed: int
    capture_gap_days: float
    rate: Floats
    by_class: dict[str, int]
    verdicts: tuple[Verdict, ...]


class Judge:
    """Puts policies before one archive, and says what came of each."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._least: dict[Terms, tuple[float, float]] = {}

    def verdict(self, name: str, terms: Terms, progress: Progress | None) -> Verdict:
        """What comes of a policy on these terms.

        Raises:
            PolicyError: it is not known, or it fails.
        """
        asks = _asked(name, self._bench.captures, terms, progress)
        if terms not in self._least:
            # Whoever asks, the copies of the start are the same.
            self._least[terms] = _least(self._bench, asks.copy, terms)
        return judged(name, self._bench, asks, terms, self._least[terms])


def in_turn(bench: Bench, trials: Sequence[Trial], progress: Progress | None) -> Iterable[Verdict]:
    """One trial after the other."""
    judge = Judge(bench)
    return [judge.verdict(name, terms, progress) for name, terms in trials]


def compare(
    captures: Captures,
    policies: Sequence[str],
    terms: Sequence[Terms],
    progress: Progress | None = None,
    judging: Judging = in_turn,
) -> Comparison:
    """Let each policy ask on each of these terms, which have the same start and end.

    Raises:
        ValueError: nothing can be judged: no page has content between two captures after the
            start.
        PolicyError: a policy is not known, or it fails.
    """
    bench = Bench(captures, Timeline.of(captures), rates(captures))
    trials = [(name, each) for each in terms for name in policies]
    verdicts = judging(bench, trials, progress)
    gaps = np.diff(captures.at)[np.diff(captures.page) == 0]
    classes = np.bincount(class_of(bench.rate), minlength=len(RATE_CLASSES) + 1)
    return Comparison(
        terms[0].start, terms[0].end, len(captures), len(captures.at),
        int((captures.content == FAILED).sum()),
        float(np.median(gaps)) if len(gaps) else np.nan,
        bench.rate,
        dict(zip([*RATE_CLASSES, RAREST], classes.tolist(), strict=True)),
        tuple(verdicts),
    )  # fmt: skip


def rates(captures: Captures) -> Floats:
    """(n,), the change rates that all captures show, by empirical Bayes."""
    learner = EmpiricalBayes(len(captures))
    page, told = captures.page, captures.content >= 0
    page, at, content = page[told], captures.at[told], captures.content[told]
    follows = np.flatnonzero(np.diff(page) == 0)
    changed: Ints = (content[follows + 1] != content[follows]).astype(np.int64)
    learner.observe(
        Evidence(
            page[follows + 1], at[follows + 1], at[follows + 1] - at[follows], changed,
            np.zeros(len(follows), np.bool_),
        )
    )  # fmt: skip
    return learner.change_rate()


def _asked(name: str, captures: Captures, terms: Terms, progress: Progress | None) -> running.Asks:
    asker = askers.asker_of(name)
    label = f"{name}, {terms.budget:g} a day"

    def tell(day: float) -> None:
        if progress is not None:
            progress(label, (day - terms.start) / (terms.end - terms.start))

    try:
        return running.run(captures, asker, terms, tell)
    except Exception as error:
        # Somebody else's code: whatever goes wrong in it is told under its name.
        raise PolicyError(f"policy {name}: {str(error) or type(error).__name__}") from error


def _least(bench: Bench, copy: Floats, terms: Terms) -> tuple[float, float]:
    looks = int(terms.budget * (terms.end - terms.start) * (1 + 1e-12))
    span = terms.start, terms.end
    harmonic, binary = (
        clairvoyant.least_cost(
            bench.timeline, copy, bench.captures.importance, span, looks, harmonic=harmonic
        )
        for harmonic in (True, False)
    )
    return harmonic, binary
