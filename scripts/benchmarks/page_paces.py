"""How often pages of recorded sites change, by their depth and their URLs, beside the usual page.

A Poisson regression: a site's rate, times a factor of the depth (that of the second links is 1),
times one where the URL is dated. Sites weigh the same. The range is that of the fits without one of
the sites; :func:`freshet.scheduler.queue.pages.presumed_pace` uses more cautious factors.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from scipy.optimize import minimize

from freshet.scheduler.queue.pages import is_dated
from scripts.benchmarks.recorded_web import Recording
from scripts.benchmarks.site_windows import DAY_S, Window

NAMES: Final = ("seed", "first links", "third links and deeper", "dated URL")
_DEPTHS: Final = (0, 1, 3)
#: The paths of a site are followed once in so many days.
_EVERY_DAYS: Final = 30
_RIDGE: Final = 1e-3


class Row(NamedTuple):
    """A page in a window: its site, which of NAMES hold, days there, and changes."""

    site: str
    marks: tuple[bool, ...]
    days: float
    changes: int


def rows_of(window: Window) -> list[Row]:
    """The pages of a window that links lead to."""
    depths: dict[int, int] = {}
    for day in range(0, int(window.days), _EVERY_DAYS):
        for number, depth in _depths(window.site, window.begin + day * DAY_S).items():
            depths.setdefault(number, depth)
    paths = {number: path for path, number in window.site.ids.items()}
    found = []
    for number, page in window.pages.items():
        if number in depths:
            depth = min(depths[number], _DEPTHS[-1])
            marks = (
                *(depth == each for each in _DEPTHS),
                is_dated(window.site.origin + paths[number]),
            )
            since = max(page.start, 0.0)
            changes = sum(since < day < page.end for day in page.changes)
            found.append(Row(window.site.path.stem, marks, page.end - since, changes))
    return found


def _depths(site: Recording, now: float) -> Mapping[int, int]:
    """How many links lead from the start page to each page at a time."""
    start = site.ids[site.root]
    found, waiting = {start: 0}, deque([start])
    while waiting:
        page = waiting.popleft()
        for to in site.linked(page, now):
            if to not in found:
                found[to] = found[page] + 1
                waiting.append(to)
    return found


def factors(rows: Sequence[Row]) -> Sequence[float]:
    """The factors of NAMES."""
    sites = sorted({row.site for row in rows})
    code = np.array([sites.index(row.site) for row in rows])
    marks = np.array([row.marks for row in rows], np.float64)
    changes = np.array([row.changes for row in rows], np.float64)
    log_days = np.log(np.array([max(row.days, 1.0) for row in rows]))
    weight = 1 / np.maximum(np.bincount(code, changes, len(sites)), 1.0)[code]

    def loss(given: np.ndarray) -> tuple[float, np.ndarray]:
        site, factor = given[: len(sites)], given[len(sites) :]
        log_mean = site[code] + marks @ factor + log_days
        mean = np.exp(log_mean)
        off = weight * (mean - changes)
        value = float((weight * (mean - changes * log_mean)).sum() + _RIDGE * (given @ given))
        slope = np.concatenate([np.bincount(code, off, len(sites)), marks.T @ off])
        return value, slope + 2 * _RIDGE * given

    begin = np.concatenate([np.full(len(sites), -5.0), np.zeros(len(NAMES))])
    best = minimize(loss, begin, jac=True, method="L-BFGS-B")
    found: list[float] = np.exp(best.x[len(sites) :]).tolist()
    return found


def table(rows: Sequence[Row]) -> str:
    """The factors, with their range over the fits without one site, in Markdown."""
    whole, sites = factors(rows), sorted({row.site for row in rows})
    without = np.array([factors([r for r in rows if r.site != site]) for site in sites])
    lines = ["| pages | of the usual page | without one site |", "|---|---|---|"]
    for k, name in enumerate(NAMES):
        lines.append(
            f"| {name} | {whole[k]:.2f} | {without[:, k].min():.2f} to {without[:, k].max():.2f} |"
        )
    return "\n".join(lines)
