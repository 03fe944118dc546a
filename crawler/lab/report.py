"""What came of policies before an archive as one HTML page: no script, no font, no network."""

from __future__ import annotations

import shlex
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import Enum
from importlib.resources import files
from itertools import groupby
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup
from numpy.typing import ArrayLike, NDArray

from freshet.crawler import __version__
from freshet.crawler.lab import beliefs
from freshet.crawler.lab.charts import (
    Axis,
    Band,
    Bound,
    Frame,
    Interval,
    Line,
    Linear,
    bound_sample,
    date_ticks,
    interval_chart,
    line_chart,
    line_sample,
    part_sample,
    scale_of_budgets,
)
from freshet.crawler.lab.counterfactual import Answer
from freshet.crawler.lab.counterfactual_view import HEADER, row_of
from freshet.crawler.lab.plan_files import UnusableFile, require_duckdb, write_parquet
from freshet.crawler.terminal import amount, counted, err, fail, percent, replacing, say
from freshet.scheduler.arrays import Floats
from freshet.scheduler.evaluate.verdicts import (
    RAREST,
    RATE_CLASSES,
    Bounded,
    Daily,
    Verdict,
    class_of,
)

# -- wording -----------------------------------------------------------------
#
# The answer in words: who came out freshest, and does the archive prove it? Pure.

#: Policies that a sentence names one by one.
_NAMED: Final = 3


class Proof(Enum):
    """How sure it is that the freshest policy is the fresher one, by the ranges of its cost."""

    ALONE = "there is nothing to compare it with"
    EQUAL = "another one cost the same"
    OVERLAP = "the ranges overlap: the archive does not prove it"
    SHOWN = "the ranges do not overlap, as far as the archive shows what changed"
    FEARED = (
        "the ranges do not overlap, even if pages were others, too, whenever the archive did not "
        "look"
    )


def ranked(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Verdicts on one budget, the freshest first: by the most that the archive proves."""
    return sorted(verdicts, key=lambda each: (each.harmonic.early, each.harmonic.optimistic))


def proof(verdicts: Sequence[Verdict]) -> Proof:
    """What the ranges of harmonic costs with one budget say of the freshest of at least one."""
    if len(verdicts) < 2:
        return Proof.ALONE
    best, *others = (each.harmonic for each in ranked(verdicts))
    if (best.optimistic, best.early) == (others[0].optimistic, others[0].early):
        return Proof.EQUAL
    least = min(each.optimistic for each in others)
    if best.pessimistic < least:
        return Proof.FEARED
    return Proof.SHOWN if best.early < least else Proof.OVERLAP


def sentence(verdicts: Sequence[Verdict]) -> str:
    """The answer for one budget."""
    best, *others = ranked(verdicts)
    budget = f"With {amount(best.budget)} fetches a day"
    cost = f"a harmonic cost of {_range(best.harmonic)}"
    stale = f"{_shares(best.binary)} of importance stale"
    how = proof(verdicts)
    if how is Proof.ALONE:
        return f"{budget} {best.policy} would have had {cost}, {stale}; {how.value}."
    if how is Proof.EQUAL:
        same = [each.policy for each in others if _same(each, best)]
        return f"{budget} {named([best.policy, *same])} come out alike: {cost}, {stale}."
    names = named([each.policy for each in others])
    if len(others) > _NAMED:
        names = f"the {len(others)} others"
    verb = "comes out fresher" if how is Proof.OVERLAP else "would have kept the pages fresher"
    against = f"{_range(others[0].harmonic)} of {others[0].policy}"
    return f"{budget} {best.policy} {verb} than {names}: {cost} against {against}; {how.value}."


def summary(budgets: Sequence[Sequence[Verdict]]) -> str:
    """The answer for all budgets; that for one budget is its sentence."""
    if len(budgets) == 1:
        return sentence(budgets[0])
    alone = all(proof(each) is Proof.ALONE for each in budgets)
    if alone:
        ends = ranked([verdicts[0] for verdicts in budgets])
        low, high = ends[0], ends[-1]
        return (
            f"{low.policy} would have had a harmonic cost of {_range(high.harmonic)} with "
            f"{amount(high.budget)} fetches a day, and of {_range(low.harmonic)} with "
            f"{amount(low.budget)}."
        )
    wins = Counter(ranked(each)[0].policy for each in budgets)
    first = ", ".join(
        f"{name} comes out freshest with {_times(won, len(budgets))}"
        for name, won in wins.most_common()
    )
    proved = sum(proof(each) in {Proof.SHOWN, Proof.FEARED} for each in budgets)
    if not proved:
        return f"{first}; the ranges of costs overlap with each: the archive does not prove it."
    return f"{first}; the ranges of costs do not overlap with {_times(proved, len(budgets))}."


def named(names: Sequence[str]) -> str:
    """A list in a sentence: ``a``, ``a and b``, ``a, b and c``."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def _times(count: int, of: int) -> str:
    if count == of:
        return f"all {of} budgets" if of > 2 else "both budgets"
    return f"{count} of {counted(of, 'budget')}"


def _same(one: Verdict, other: Verdict) -> bool:
    mine, its = one.harmonic, other.harmonic
    return (mine.optimistic, mine.early) == (its.optimistic, its.early)


def _range(cost: Bounded) -> str:
    return f"{amount(cost.optimistic)} – {amount(cost.early)}"


def _shares(cost: Bounded) -> str:
    return f"{percent(cost.optimistic)} – {percent(cost.early)}"


# -- costs -------------------------------------------------------------------
#
# Charts of what policies cost: in all, over budgets, and over time.

#: Points of a line over time: more cannot be told apart.
_POINTS: Final = 120
#: So many policies' bands can be told apart where they lie over one another.
BANDS: Final = 3


@dataclass(frozen=True, slots=True)
class Measure:
    """One of the costs: what it is called, how it is written, and where it is in a verdict."""

    name: str
    axis: str
    shown: Callable[[float], str]
    cost: Callable[[Verdict], Bounded]
    least: Callable[[Verdict], float]
    daily: Callable[[Daily], Floats]


def _share(value: float) -> str:
    return f"{amount(100 * value)} %"


HARMONIC: Final = Measure(
    "Harmonic cost",
    "harmonic cost (each further missed change adds less)",
    amount,
    lambda verdict: verdict.harmonic,
    lambda verdict: verdict.least_harmonic,
    lambda daily: daily.harmonic,
)
BINARY: Final = Measure(
    "Stale copies",
    "stale copies (share of importance)",
    _share,
    lambda verdict: verdict.binary,
    lambda verdict: verdict.least_binary,
    lambda daily: daily.binary,
)
#: The places of a policy in the order of colours, dashes and marks, by its name.
Styles = Mapping[str, int]


def in_all(measure: Measure, verdicts: Sequence[Verdict], styles: Styles) -> Markup:
    """The range of each policy with one budget."""
    rows = [
        Interval(
            each.policy,
            styles[each.policy],
            cost.optimistic,
            cost.early,
            cost.pessimistic,
            tip_of(measure, each),
        )
        for each in verdicts
        for cost in (measure.cost(each),)
    ]
    budget = amount(verdicts[0].budget)
    return interval_chart(
        f"{measure.name} with {budget} fetches a day",
        "; ".join(tip_of(measure, each) for each in verdicts),
        rows,
        axis=measure.axis,
        shown=measure.shown,
        bound=measure.least(verdicts[0]),
    )


def over_budgets(measure: Measure, verdicts: Sequence[Verdict], styles: Styles) -> Markup:
    """A line for each policy through the most that the archive proves, with each budget."""
    by_budget = sorted(verdicts, key=lambda each: each.budget)
    budgets = [each.budget for each in by_budget]
    costs = [measure.cost(each) for each in by_budget]
    scale = Linear.around([cost.early for cost in costs])
    asked = list(dict.fromkeys(budgets))
    x = Axis("fetches a day", scale_of_budgets(budgets), _told_apart(asked))
    frame = Frame(x, Axis.of(measure.axis, scale, measure.shown))
    marks: list[Line | Band | Bound] = []
    for name, style in styles.items():
        mine = [each for each in by_budget if each.policy == name]
        days, mine_cost = [each.budget for each in mine], [measure.cost(each) for each in mine]
        high = [cost.early for cost in mine_cost]
        if len(styles) <= BANDS:
            low = [cost.optimistic for cost in mine_cost]
            marks.append(Band(style, days, low, high, edged=True))
        tips = [tip_of(measure, each) for each in mine]
        marks.append(Line(name, style, days, high, tips))
    least = {each.budget: measure.least(each) for each in by_budget}
    marks.append(Bound(list(least), list(least.values())))
    title = f"{measure.name} against budget"
    told = "; ".join(tip_of(measure, each) for each in by_budget)
    # Bands first: no line is hidden by one.
    marks.sort(key=lambda mark: not isinstance(mark, Band))
    return line_chart(title, told, frame, marks)


def over_time(
    measure: Measure, verdicts: Sequence[Verdict], styles: Styles, start: float, end: float
) -> Markup:
    """A line for each policy through the most that the archive proves of each day."""
    means = [thinned(measure.daily(each.daily), start) for each in verdicts]
    frame = _time_frame(measure, [column[:, 1] for _, column in means], start, end)
    marks = [
        Line(each.policy, styles[each.policy], days, column[:, 1].tolist())
        for each, (days, column) in zip(verdicts, means, strict=True)
    ]
    title = f"{measure.name} over time with {amount(verdicts[0].budget)} fetches a day"
    names = ", ".join(each.policy for each in verdicts)
    return line_chart(title, f"One line for each of {names}.", frame, marks)


def range_over_time(
    measure: Measure, verdict: Verdict, others: Sequence[Verdict], style: int,
    span: tuple[float, float],
) -> Markup:  # fmt: skip
    """One policy's ranges of each day, on the axes of all ``others`` with its budget."""
    start, end = span
    days, column = thinned(measure.daily(verdict.daily), start)
    every = [thinned(measure.daily(each.daily), start)[1] for each in (verdict, *others)]
    frame = _time_frame(measure, [values.ravel() for values in every], start, end)
    low, high, highest = column.T.tolist()
    marks: list[Band | Line] = [
        Band(style, days, high, highest, faint=True),
        Band(style, days, low, high),
        Line(verdict.policy, style, days, high),
    ]
    title = f"{measure.name} of {verdict.policy} over time"
    return line_chart(title, tip_of(measure, verdict), frame, marks)


def thinned(daily: Floats, start: float) -> tuple[list[float], Floats]:
    """Days and costs (k, 3) of at most 120 groups of as many days each, which are averaged."""
    together = group_of(len(daily))
    rows = ceil(len(daily) / together)
    padded = np.full((rows * together, 3), np.nan)
    padded[: len(daily)] = daily
    groups = padded.reshape(rows, together, 3)
    number = np.isfinite(groups).sum(axis=1)
    total = np.nansum(groups, axis=1)
    means = np.where(number > 0, total / np.maximum(number, 1), np.nan)
    return [start + (row + 0.5) * together for row in range(rows)], means


def group_of(days: int) -> int:
    """How many days are averaged for one point."""
    return max(ceil(days / _POINTS), 1)


def tip_of(measure: Measure, verdict: Verdict) -> str:
    """A policy's cost with its budget, in words."""
    cost = measure.cost(verdict)
    return (
        f"{verdict.policy}, {amount(verdict.budget)} fetches a day: "
        f"{measure.shown(cost.optimistic)} – {measure.shown(cost.early)} "
        f"(at worst {measure.shown(cost.pessimistic)})"
    )


def _time_frame(measure: Measure, values: Sequence[Floats], start: float, end: float) -> Frame:
    scale = Linear.around(np.concatenate(values).tolist())
    # A last group may reach beyond the end.
    x = Axis("day (UTC)", Linear(start, max(end, start + 1)), date_ticks(start, end, 5))
    return Frame(x, Axis.of(measure.axis, scale, measure.shown))


def _told_apart(budgets: Sequence[float]) -> list[tuple[float, str]]:
    """The budgets as ticks, without those that would be written over others."""
    scale, ticks = scale_of_budgets(budgets), list[tuple[float, str]]()
    for budget in budgets:
        if not ticks or scale(budget) - scale(ticks[-1][0]) > 0.14:
            ticks.append((budget, amount(budget)))
    return ticks


# -- sections ----------------------------------------------------------------
#
# What is told of one budget on the page: a table, charts, and where the fetches went.

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


def section_of(answer: Answer, verdicts: Sequence[Verdict], styles: Styles) -> BudgetSection:
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
        sentence(verdicts),
        header,
        rows,
        f"Who knew all captures could do no better than a harmonic cost of "
        f"{amount(least.least_harmonic)} and {percent(least.least_binary)} of stale copies.",
        [Figure(measure.name, in_all(measure, verdicts, styles)) for measure in (HARMONIC, BINARY)],
        list(_time(answer, verdicts, styles)),
        told,
        named(silent),
        beliefs.spending(answer.comparison, verdicts),
        _hosts(answer, verdicts),
        [each.policy for each in verdicts],
        group_of(len(least.daily.harmonic)),
    )


def _time(answer: Answer, verdicts: Sequence[Verdict], styles: Styles) -> Iterator[Figure]:
    span = answer.comparison.start, answer.comparison.end
    measures: Sequence[Measure] = (HARMONIC, BINARY)
    if len(verdicts) > 1:
        for measure in measures:
            chart = over_time(measure, verdicts, styles, *span)
            yield Figure(f"{measure.name}, all policies", chart)
        # One measure with its ranges is enough to see how wide they are.
        measures = measures[:1]
    for measure in measures:
        for each in verdicts:
            others = [other for other in verdicts if other is not each]
            chart = range_over_time(measure, each, others, styles[each.policy], span)
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


@dataclass(frozen=True, slots=True)
class Origin:
    """How a page came about: the command, the version of the program, and the time (Unix)."""

    command: str
    version: str
    at: float


def page_of(answer: Answer, origin: Origin) -> str:
    """The page; it holds whatever the archive's hosts and URLs are, as plain words."""
    comparison = answer.comparison
    styles = {name: place for place, name in enumerate(dict.fromkeys(answer.question.policies))}
    budgets = [
        list(group) for _, group in groupby(comparison.verdicts, key=lambda each: each.budget)
    ]
    css = _text("charts.css", "freshet.crawler.lab") + _text("page.css")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(_text("page.html")).render(
        summary=summary(budgets),
        facts=beliefs.facts(answer),
        sections=[section_of(answer, group, styles) for group in budgets],
        across=_across(comparison.verdicts, styles) if len(budgets) > 1 else [],
        banded=len(styles) <= BANDS,
        rates=beliefs.rates(comparison),
        rate_names=[(part_sample(k), name) for k, name in enumerate(beliefs.RATE_NAMES)],
        legend=[(line_sample(style), name) for name, style in styles.items()],
        bound=bound_sample(),
        unknown=beliefs.unknown(answer),
        flagged=beliefs.flagged(answer),
        settings=beliefs.settings(answer),
        origin=origin,
        made=f"{datetime.fromtimestamp(origin.at, UTC):%Y-%m-%d %H:%M} UTC",
        css=Markup(css),  # noqa: S704 - files of our own
    )


def _text(name: str, package: str = __package__) -> str:
    return files(package).joinpath(name).read_text("utf-8")


def _across(verdicts: Sequence[Verdict], styles: Styles) -> list[Figure]:
    return [
        Figure(f"{measure.name} against budget", over_budgets(measure, verdicts, styles))
        for measure in (HARMONIC, BINARY)
    ]


# -- tables ------------------------------------------------------------------
#
# What came of policies before an archive as Parquet files, for whoever goes on computing.
#
# One folder holds five tables. Their rows are a verdict (a policy with a budget); a verdict and a
# day; a verdict and a bin of foretold probabilities; a page; a verdict and a page. Verdicts are
# joined by ``policy`` and ``budget_per_day``, pages by ``url``. Times are Unix seconds, rates are
# changes a day, and what is not known is NaN.

Columns = dict[str, NDArray[Any]]

_DAY_S: Final = 86_400.0
_BOUNDS: Final = ("optimistic", "early", "pessimistic")


def check_folder(folder: Path) -> None:
    """Find out before the work whether tables can be written there; nothing is written.

    Raises:
        UnusableFile: it is a file, what it would stand in is no folder, or an extra is missing.
    """
    require_duckdb(folder)
    if folder.exists() and not folder.is_dir():
        raise UnusableFile(f"{folder}: it is no folder; the tables are written into one")
    if not folder.absolute().parent.is_dir():
        raise UnusableFile(f"{folder}: there is no folder {folder.parent}")


def write_tables(answer: Answer, folder: Path) -> None:
    """Write all tables into a folder, which is made; they replace older ones when all are whole.

    Raises:
        UnusableFile: they cannot be written.
    """
    try:
        folder.mkdir(exist_ok=True)
        with TemporaryDirectory(dir=folder, prefix=".unfinished-") as unfinished:
            for name, columns in TABLES.items():
                write_parquet(Path(unfinished, f"{name}.parquet"), columns(answer))
            for name in TABLES:
                Path(unfinished, f"{name}.parquet").replace(folder / f"{name}.parquet")
    except OSError as error:
        raise UnusableFile(f"{folder}: {error.strerror or error}") from error


def _verdicts(answer: Answer) -> Columns:
    every = answer.comparison.verdicts
    return _named(every, np.ones(len(every), np.intp)) | {
        **_bounded("harmonic", [each.harmonic for each in every]),
        "harmonic_clairvoyant": _floats(each.least_harmonic for each in every),
        **_bounded("binary", [each.binary for each in every]),
        "binary_clairvoyant": _floats(each.least_binary for each in every),
        "age_days": _floats(each.age_days for each in every),
        "new_pages_appeared": _ints(each.discovery.appeared for each in every),
        "new_pages_found": _ints(each.discovery.found for each in every),
        "new_pages_delay_days": _floats(each.discovery.delay_days for each in every),
        "fetches": _ints(each.fetches for each in every),
        "budget": _floats(each.paid for each in every),
        "misses": _ints(each.misses for each in every),
        "asks_without_news": _floats(each.again for each in every),
        "flagged": _ints(len(each.flagged) for each in every),
    }


def _daily(answer: Answer) -> Columns:
    every, start = answer.comparison.verdicts, answer.comparison.start
    days = np.array([len(each.daily.harmonic) for each in every])
    columns = _named(every, days)
    columns["day"] = _joined([(start + np.arange(number)) * _DAY_S for number in days.tolist()])
    for place, bound in enumerate(_BOUNDS):
        columns[f"harmonic_{bound}"] = _joined([each.daily.harmonic[:, place] for each in every])
    for place, bound in enumerate(_BOUNDS):
        columns[f"binary_{bound}"] = _joined([each.daily.binary[:, place] for each in every])
    return columns


def _calibration(answer: Answer) -> Columns:
    every = answer.comparison.verdicts
    told = [each.calibration for each in every]
    bins = np.array([len(each.asks) for each in told])
    return _named(every, bins) | {
        "from_probability": _joined([np.arange(number) / number for number in bins.tolist()]),
        "asks": _joined([each.asks for each in told]),
        "expected": _joined([each.expected for each in told]),
        "changed": _joined([each.changed for each in told]),
    }


def _pages(answer: Answer) -> Columns:
    captures, rate = answer.past.captures, answer.comparison.rate
    names = np.array([*RATE_CLASSES, RAREST], object)
    return {
        "url": _texts(answer.past.url),
        "host": _texts(answer.past.origin)[captures.host],
        "importance": captures.importance,
        "found": captures.found * _DAY_S,
        "captures": np.diff(captures.offsets),
        "change_rate": rate,
        "rate_class": names[class_of(rate)],
    }


def _page_verdicts(answer: Answer) -> Columns:
    every, pages = answer.comparison.verdicts, answer.comparison.pages
    flagged = np.zeros((len(every), pages), np.bool_)
    for place, each in enumerate(every):
        flagged[place, each.flagged] = True
    return _named(every, np.full(len(every), pages)) | {
        "url": np.tile(_texts(answer.past.url), len(every)),
        "fetches": _joined([each.by_page for each in every]),
        "believed_rate": _joined([each.believed for each in every]),
        "flagged": flagged.ravel(),
    }


#: The files without their ending, and what they hold.
TABLES: Final[Mapping[str, Callable[[Answer], Columns]]] = {
    "verdicts": _verdicts,
    "daily": _daily,
    "calibration": _calibration,
    "pages": _pages,
    "page_verdicts": _page_verdicts,
}


def _named(verdicts: Sequence[Verdict], times: NDArray[np.intp]) -> Columns:
    """Policy and budget, each as many times as its verdict has rows."""
    return {
        "policy": np.repeat(_texts([each.policy for each in verdicts]), times),
        "budget_per_day": np.repeat([each.budget for each in verdicts], times),
    }


def _bounded(name: str, costs: Sequence[Bounded]) -> Columns:
    rows = [asdict(cost) for cost in costs]
    return {f"{name}_{bound}": _floats(row[bound] for row in rows) for bound in _BOUNDS}


def _texts(words: Sequence[str]) -> NDArray[Any]:
    """Words as objects: an array of strings is as wide as the longest."""
    column = np.empty(len(words), object)
    column[:] = words
    return column


def _floats(values: Iterable[float]) -> NDArray[np.float64]:
    return np.array([*values], np.float64)


def _ints(values: Iterable[int]) -> NDArray[np.int64]:
    return np.array([*values], np.int64)


def _joined(parts: Sequence[ArrayLike]) -> NDArray[Any]:
    return np.concatenate([np.asarray(part) for part in parts])


# -- outputs -----------------------------------------------------------------
#
# Where an answer is written to: a page, tables, or neither.


@dataclass(frozen=True, slots=True)
class Outputs:
    """A file for the page and a folder for the tables, where they are wanted."""

    html: Path | None
    parquet: Path | None

    def __bool__(self) -> bool:
        return self.html is not None or self.parquet is not None

    def check(self, sources: Sequence[Path]) -> None:
        """Find out before the work whether they can be written; ends the program if not.

        Raises:
            UnusableFile: the tables cannot be written.
        """
        if self.html is not None:
            _check_file(self.html, sources)
        if self.parquet is not None:
            check_folder(self.parquet)

    def write(self, answer: Answer, config: Path | None) -> None:
        """Write them, each whole or not at all, and say so.

        Raises:
            UnusableFile: the tables cannot be written.
        """
        if self.html is not None:
            origin = Origin(self._command(answer, config), __version__, time.time())
            with err.status("Writing the page"), replacing(self.html) as whole:
                whole.write_text(page_of(answer, origin), "utf-8")
            say("written:", "green", str(self.html))
        if self.parquet is not None:
            with err.status("Writing the tables"):
                write_tables(answer, self.parquet)
            say("written:", "green", f"{self.parquet} ({', '.join(TABLES)})")

    def _command(self, answer: Answer, config: Path | None) -> str:
        """What asks the same store the same again."""
        question = answer.question
        words = ["freshet", "replay", str(question.db)]
        for policy in question.policies:
            words += ["--policy", policy]
        for budget in question.budgets:
            words += ["--budget", f"{budget:.12g}/day"]
        words += ["--shown", f"{question.shown:g}"]
        for option, path in (
            ("--config", config), ("--html", self.html), ("--parquet", self.parquet)
        ):  # fmt: skip
            words += [option, str(path)] if path is not None else []
        return shlex.join(words)


def _check_file(file: Path, sources: Sequence[Path]) -> None:
    if file.exists() and not file.is_file():
        fail(f"--html {file}: it is no file, and is not replaced", 2)
    if not file.absolute().parent.is_dir():
        fail(f"--html {file}: there is no folder {file.parent}", 2)
    if any(file.exists() and each.exists() and file.samefile(each) for each in sources):
        fail(f"--html {file}: would replace what is asked", 2)
