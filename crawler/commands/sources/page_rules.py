"""Rules for pages by the pattern of their URL (``daemon.rules``)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from config.settings import PageRule
from crawler.commands.sources.patterns import pattern
from scheduler.arguments import Floats
from scheduler.recrawl.terms import Terms
from scheduler.sources import Rows


def terms(urls: Sequence[str], area: Rows, importance: Floats, rules: Sequence[PageRule]) -> Terms:
    """The terms of pages of these importances; for each term the first rule that sets it counts."""
    n = len(urls)
    found = Terms(area, importance.copy(), np.zeros(n, np.bool_), np.zeros(n), np.full(n, np.inf))
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
    return found


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
