"""What came of policies before an archive as one HTML page: no script, no font, no network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from itertools import groupby

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from freshet.crawler.charts.legend import bound_sample, line_sample, part_sample
from freshet.crawler.commands.counterfactual import Answer
from freshet.crawler.commands.laboratory import beliefs, costs, unknowns, wording
from freshet.crawler.commands.laboratory.sections import Figure, section_of
from freshet.scheduler.evaluate.verdicts import Verdict


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
    css = _text("charts.css", "freshet.crawler.charts") + _text("page.css")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(_text("page.html")).render(
        summary=wording.summary(budgets),
        facts=unknowns.facts(answer),
        sections=[section_of(answer, group, styles) for group in budgets],
        across=_across(comparison.verdicts, styles) if len(budgets) > 1 else [],
        banded=len(styles) <= costs.BANDS,
        rates=beliefs.rates(comparison),
        rate_names=[(part_sample(k), name) for k, name in enumerate(beliefs.RATE_NAMES)],
        legend=[(line_sample(style), name) for name, style in styles.items()],
        bound=bound_sample(),
        unknown=unknowns.unknown(answer),
        flagged=unknowns.flagged(answer),
        settings=unknowns.settings(answer),
        origin=origin,
        made=f"{datetime.fromtimestamp(origin.at, UTC):%Y-%m-%d %H:%M} UTC",
        css=Markup(css),  # noqa: S704 - files of our own
    )


def _text(name: str, package: str = __package__) -> str:
    return files(package).joinpath(name).read_text("utf-8")


def _across(verdicts: Sequence[Verdict], styles: costs.Styles) -> list[Figure]:
    return [
        Figure(f"{measure.name} against budget", costs.over_budgets(measure, verdicts, styles))
        for measure in (costs.HARMONIC, costs.BINARY)
    ]
