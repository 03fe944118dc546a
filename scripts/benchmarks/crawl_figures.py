"""The figures of the crawl benchmark: runs, stages, and ratios of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

_EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class Run:
    """One crawl by one crawler: its CPU time is that of the whole process tree."""

    crawler: str
    pages: frozenset[str]
    requests: int
    not_modified: int
    other_answers: int
    cpu_s: float
    wall_s: float
    peak_mb: float
    report: Mapping[str, object] = field(default_factory=dict)

    @property
    def pages_per_cpu_s(self) -> float:
        """Different pages that answered 200 or 304, for each second of CPU time."""
        return len(self.pages) / self.cpu_s


def spread(values: Iterable[float], digits: int = 2) -> dict[str, float]:
    """Median, least and greatest."""
    ordered = sorted(values)
    figures = {"median": median(ordered), "min": ordered[0], "max": ordered[-1]}
    return {name: round(value, digits) for name, value in figures.items()}


def summary(rounds: Sequence[Sequence[Run]], ours: str) -> dict[str, object]:
    """The figures of each crawler over the rounds, and ours divided by each other's.

    A ratio is taken within its round, where all had the same machine to themselves.
    """
    names = [run.crawler for run in rounds[0]]
    by_name = {n: [run for runs in rounds for run in runs if run.crawler == n] for n in names}
    return {
        "crawlers": {name: _figures(runs) for name, runs in by_name.items()},
        "ratios": {
            f"{ours} / {other}": spread(
                mine.pages_per_cpu_s / theirs.pages_per_cpu_s
                for mine, theirs in zip(by_name[ours], by_name[other], strict=True)
            )
            for other in names
            if other != ours
        },
        "same_pages": same_pages(rounds[0]),
    }


def _figures(runs: Sequence[Run]) -> dict[str, object]:
    last = runs[-1]
    return {
        "pages": len(last.pages),
        "requests": last.requests,
        "not_modified": last.not_modified,
        "other_answers": last.other_answers,
        "pages_per_cpu_s": spread((run.pages_per_cpu_s for run in runs), 1),
        "cpu_s": spread(run.cpu_s for run in runs),
        "wall_s": spread(run.wall_s for run in runs),
        "peak_mb": spread((run.peak_mb for run in runs), 1),
        **({"report": dict(last.report)} if last.report else {}),
    }


def same_pages(runs: Sequence[Run]) -> dict[str, object]:
    """Whether the crawlers fetched the same pages; what each left out that others had."""
    together = frozenset[str]().union(*(run.pages for run in runs))
    left_out = {run.crawler: sorted(together - run.pages) for run in runs}
    return {
        "all_together": len(together),
        "left_out": {
            name: {"count": len(urls), "examples": urls[:_EXAMPLES]}
            for name, urls in left_out.items()
            if urls
        },
    }


def table(figures: Mapping[str, float]) -> str:
    """The figures for people, a line each; parts are indented."""
    lines = [f"{'':<46}CPU µs a page"]
    for name, us in figures.items():
        label = "  " * name.count("/") + name.rpartition("/")[2]
        lines.append(f"{label:<46}{us:>13.1f}")
    return "\n".join(lines)
