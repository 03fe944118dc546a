"""What is told of one budget on the page: a table, charts, and where the fetches went."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from markupsafe import Markup

from freshet.crawler.commands.counterfactual import Answer
from freshet.crawler.commands.counterfactual_view import HEADER, row_of
from freshet.crawler.commands.figures import amount, counted, percent
from freshet.crawler.commands.laboratory import beliefs, costs, wording
from freshet.scheduler.evaluate.verdicts import Verdict

#: Hosts that are named.
_HOSTS: Final = 12


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart with what it is called, and how it is to be read."""

    title: str
    chart: Markup
    caption: str = ""


@dataclass(frozen=True, slots=True)
class BudgetSection:
    """All that is told of one budget."""

    budget: str
    sentence: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    bounds: str
    ranges: Sequence[Figure]
    time: Sequence[Figure]
    calibration: Sequence[Figure]
    silent: str
    spending: Markup
    hosts: Sequence[tuple[str, Sequence[str]]]
    policies: Sequence[str]
    group: int


def section_of(answer: Answer, verdicts: Sequence[Verdict], styles: costs.Styles) -> BudgetSection:
    """The section of these verdicts on one budget, in the order in which they are shown."""
    header, rows = _table([HEADER, *map(row_of, verdicts)])
    least = verdicts[0]
    told = [
        Figure(each.policy, chart)
        for each in verdicts
        if (chart := beliefs.calibration(each, styles[each.policy])) is not None
    ]
    silent = [each.policy for each in verdicts if not each.calibration.asks.any()]
    return BudgetSection(
        amount(least.budget),
        wording.sentence(verdicts),
        header,
        rows,
        f"Who knew all captures could do no better than a harmonic cost of "
        f"{amount(least.least_harmonic)} and {percent(least.least_binary)} of stale copies.",
        [
            Figure(measure.name, costs.in_all(measure, verdicts, styles))
            for measure in (costs.HARMONIC, costs.BINARY)
        ],
        list(_time(answer, verdicts, styles)),
        told,
        wording.named(silent),
        beliefs.spending(answer.comparison, verdicts),
        _hosts(answer, verdicts),
        [each.policy for each in verdicts],
        costs.group_of(len(least.daily.harmonic)),
    )


def _time(answer: Answer, verdicts: Sequence[Verdict], styles: costs.Styles) -> Iterator[Figure]:
    span = answer.comparison.start, answer.comparison.end
    measures: Sequence[costs.Measure] = (costs.HARMONIC, costs.BINARY)
    if len(verdicts) > 1:
        for measure in measures:
            chart = costs.over_time(measure, verdicts, styles, *span)
            yield Figure(f"{measure.name}, all policies", chart)
        # One measure with its ranges is enough to see how wide they are.
        measures = measures[:1]
    for measure in measures:
        for each in verdicts:
            others = [other for other in verdicts if other is not each]
            chart = costs.range_over_time(measure, each, others, styles[each.policy], span)
            yield Figure(f"{measure.name}, {each.policy}", chart)


def _hosts(answer: Answer, verdicts: Sequence[Verdict]) -> list[tuple[str, Sequence[str]]]:
    """Shares of fetches of the hosts that got most, and of all others together."""
    fetches = np.array([each.by_host for each in verdicts], np.float64)
    shares = fetches / np.maximum(fetches.sum(axis=1, keepdims=True), 1.0)
    order = np.argsort(-shares.sum(axis=0), kind="stable")
    rows: list[tuple[str, Sequence[str]]] = [
        (answer.past.origin[host], [percent(share) for share in shares[:, host].tolist()])
        for host in order[:_HOSTS].tolist()
    ]
    left = order[_HOSTS:]
    if len(left):
        rest = shares[:, left].sum(axis=1).tolist()
        rows.append((counted(len(left), "other host"), [percent(share) for share in rest]))
    return rows


def _table(rows: Sequence[Sequence[object]]) -> tuple[list[str], list[list[str]]]:
    """Header and rows without the columns in which no row has anything."""
    columns = [
        column for column in zip(*rows, strict=True) if any(cell is not None for cell in column[1:])
    ]
    words = [
        [f"{cell:,}" if isinstance(cell, int) else str(cell or "") for cell in row]
        for row in zip(*columns, strict=True)
    ]
    return words[0], words[1:]
