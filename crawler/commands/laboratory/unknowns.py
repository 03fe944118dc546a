"""What a page says of its archive: what it holds, what it cannot know, and how it was asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import numpy as np

from freshet.crawler.commands.counterfactual import Answer
from freshet.crawler.commands.figures import amount, counted, percent

#: Rows of lists that may be as long as an archive.
_MOST: Final = 25
_DAY_S: Final = 86_400.0


def facts(answer: Answer) -> str:
    """The size of the archive, and the time that is judged."""
    comparison = answer.comparison
    return (
        f"{counted(comparison.pages, 'page')} of {counted(len(answer.past.origin), 'host')}, "
        f"{counted(comparison.captures, 'capture')}, judged from {_date(comparison.start)} to "
        f"{_date(comparison.end)} ({amount(comparison.end - comparison.start)} days)"
    )


def unknown(answer: Answer) -> list[str]:
    """What the archive does not say, in sentences."""
    comparison = answer.comparison
    misses = [
        f"{each.policy} {each.misses:,} times with {amount(each.budget)} fetches a day"
        for each in comparison.verdicts
        if each.misses
    ]
    failed = comparison.failed
    between = (
        "What pages were between two captures. Half of all captures came within "
        f"{amount(comparison.capture_gap_days)} days of the one before. So every cost is a range: "
        "from each change as late as the captures allow to each change as early as they allow. "
        "Beyond it, drawn faintly and in brackets, pages were others, too, whenever the archive "
        "did not look, which no archive can deny."
    )
    said = [between]
    if failed:
        said.append(
            f"What visits that failed would have found: {failed:,} of "
            f"{counted(comparison.captures, 'capture')}."
        )
    if misses:
        said.append(
            "What was there before a page’s first capture, and behind visits that failed. Fetches "
            f"that asked for it missed, and taught nothing: {'; '.join(misses[:_MOST])}"
            f"{'; and others' if len(misses) > _MOST else ''}."
        )
    said.append("What signals and limits of hosts would have done: none were heard or applied.")
    return said


@dataclass(frozen=True, slots=True)
class Flagged:
    """Pages that were asked for more often than the archive sampled them, the most often first.

    ``rows`` are URL, captures, and by how many of the ``of`` verdicts; ``left`` are not listed.
    """

    rows: Sequence[tuple[str, str, str]]
    left: int
    of: int


def flagged(answer: Answer) -> Flagged:
    """The pages that the page lists."""
    verdicts = answer.comparison.verdicts
    often = Counter(row for each in verdicts for row in each.flagged.tolist())
    number = np.diff(answer.past.captures.offsets)
    rows = [
        (answer.past.url[row], f"{number[row]:,}", f"{count:,}")
        for row, count in sorted(often.items(), key=lambda item: (-item[1], item[0]))[:_MOST]
    ]
    return Flagged(rows, len(often) - len(rows), len(verdicts))


def settings(answer: Answer) -> Mapping[str, str]:
    """How it was asked, by name."""
    question, comparison = answer.question, answer.comparison
    budgets = dict.fromkeys(amount(each.budget) for each in comparison.verdicts)
    rules = len(question.daemon.rules)
    return {
        "store": str(question.db),
        "policies": ", ".join(question.policies),
        "fetches a day": "; ".join(budgets)
        + ("" if question.budgets else " (what the store spent itself)"),
        "seen before it is judged": f"{percent(question.shown)} of the store's time",
        "importance of pages": question.daemon.importance
        + (f", with {counted(rules, 'page rule')}" if rules else ""),
    }


def _date(day: float) -> str:
    return f"{datetime.fromtimestamp(day * _DAY_S, UTC):%Y-%m-%d %H:%M} UTC"
