"""Rules for pages by the pattern of their URL (``daemon.rules``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from freshet.config.settings import PageRule
from freshet.crawler.commands.sources.patterns import pattern
from freshet.scheduler.agenda.pages import Terms
from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.sources import Rows

_DAY_HOURS: Final = 24.0


def terms(
    urls: Sequence[str],
    area: Rows,
    importance: Floats,
    rules: Sequence[PageRule],
    half_life_days: Floats | None = None,
) -> Terms:
    """The terms of pages of these importances; for each term the first rule that sets it counts.

    ``half_life_days`` (m,) are those that the site list says, None where it says none.
    """
    n = len(urls)
    found = Terms(
        area, importance.copy(), np.zeros(n, np.bool_), np.zeros(n), np.full(n, np.inf),
        np.full(n, np.nan) if half_life_days is None else half_life_days.copy(),
    )  # fmt: skip
    # From the last to the first, so that the first has the last word.
    for rule in reversed(rules):
        matching = pattern(rule.match)
        rows = np.array([matching.fullmatch(url) is not None for url in urls], np.bool_)
        if rule.importance is not None:
            found.importance[rows] = rule.importance
        if rule.never is not None:
            found.never[rows] = rule.never
        if rule.least_days is not None:
            found.least_days[rows] = rule.least_days
        if rule.most_days is not None:
            found.most_days[rows] = rule.most_days
        _declare(found.half_life_days, rows, rule)
    return found


def _declare(half_life: Floats, rows: Bools, rule: PageRule) -> None:
    """Say what a rule says of whether these pages are ephemeral sources."""
    if rule.ephemeral is False:
        half_life[rows] = 0.0
    elif rule.half_life_hours is not None:
        half_life[rows] = rule.half_life_hours / _DAY_HOURS
    elif rule.ephemeral:
        # A rule further down, or the site list, may have said how fast.
        own = np.isfinite(half_life) & (half_life > 0)
        half_life[rows & ~own] = np.inf


def ruling(url: str, rules: Sequence[PageRule], term: str) -> PageRule | None:
    """The rule that sets a term of the page with this URL, or None."""
    return next(
        (
            rule
            for rule in rules
            if getattr(rule, term) is not None and pattern(rule.match).fullmatch(url)
        ),
        None,
    )
