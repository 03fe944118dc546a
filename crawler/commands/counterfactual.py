"""Which policy, and which budget, would have kept the pages of a store fresher?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from freshet.config.settings import Daemon
from freshet.crawler.commands import running, side_by_side
from freshet.crawler.commands.bars import progress_bars
from freshet.crawler.commands.console import err
from freshet.crawler.commands.sources.past import Past, read_past
from freshet.crawler.errors import CrawlError
from freshet.scheduler.evaluate import counterfactual
from freshet.scheduler.evaluate.captures import FAILED
from freshet.scheduler.evaluate.counterfactual import Terms
from freshet.scheduler.evaluate.verdicts import Comparison, compare

#: What is asked where nothing else is said: the daemon's own, the published one, all in turn.
DEFAULT_POLICIES: Final = ("greedy_index", "lambda_crawl", "uniform")


@dataclass(frozen=True, slots=True)
class Question:
    """Policies and budgets (fetches a day) that are to be compared on a store.

    Where there are no budgets it is what the archive itself spent on these pages. ``shown`` is the
    share of the archive's time that all policies have seen before they are judged.
    """

    db: Path
    policies: Sequence[str]
    budgets: Sequence[float]
    shown: float
    daemon: Daemon


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of it, with the pages and hosts to which its rows and codes belong."""

    question: Question
    past: Past
    comparison: Comparison


def require_policies(names: Sequence[str]) -> None:
    """Read the names of policies, before any work begins.

    Raises:
        PolicyError: one is not known, or an option of it.
    """
    for name in names:
        counterfactual.asker_of(name)


def ask(question: Question) -> Answer:
    """Let the policies ask.

    Raises:
        CrawlError: the store has seen too little to judge by.
        StoreError: it cannot be read.
        PolicyError: a policy fails.
    """
    with err.status("Reading the archive"):
        past = running.run(read_past(question.db, question.daemon))
    start, end = _span(question, past)
    budgets = question.budgets or [_spent(past, start, end)]
    terms = [Terms(budget, start, end) for budget in budgets]
    asks = len(question.policies) * sum(budgets) * (end - start)
    with progress_bars() as progress:
        comparison = compare(
            past.captures, question.policies, terms, progress, side_by_side.judging(asks)
        )
    return Answer(question, past, comparison)


def _span(question: Question, past: Past) -> tuple[float, float]:
    captures = past.captures
    if not len(captures):
        raise CrawlError(f"{question.db}: has seen no content of any page; there is nothing to ask")
    first, end = float(captures.at.min()), float(captures.until.max())
    start = first + question.shown * (end - first)
    judged = (captures.at > start) & (captures.content != FAILED)
    if not judged.any() or not np.any(np.diff(captures.offsets) > 1):
        raise CrawlError(
            f"{question.db}: has seen no page twice; policies are judged by what lies between "
            "two captures"
        )
    return start, end


def _spent(past: Past, start: float, end: float) -> float:
    """Fetches a day of the archive itself, in the time that is judged."""
    at = past.captures.at
    return float(((at > start) & (at <= end)).sum()) / (end - start)
