"""Coordinates of pictures, which templates draw as SVG."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from freshet.crawler.frontier.clock import calendar
from freshet.crawler.run.terminal import changed_share, counted
from freshet.storage.entries import REBASED
from freshet.storage.queries.page import PastObservation
from freshet.storage.tables.claims import HeardClaim

#: The ends of the axis in a picture that is 1,000 wide.
_LEFT, _RIGHT = 70.0, 930.0
#: Times between two ticks, in hours, and ticks at most.
_STEPS = (1 / 12, 0.25, 1, 3, 6, 12, 24, 48, 168, 336, 672, 2_184, 4_368, 8_736, 17_472, 87_360)
_TICKS = 7
#: The heights of the smallest change, and of one of the whole text.
_LOW, _HIGH = 8.0, 44.0


@dataclass(frozen=True, slots=True)
class PlotMark:
    """A mark of a kind at ``x``, ``size`` high or wide, with a sentence that describes it."""

    x: float
    kind: str
    title: str
    size: float = 0.0


def time_line(
    visits: Sequence[PastObservation], signals: Sequence[HeardClaim], now: float
) -> dict[str, Any] | None:
    """Return the marks, ticks and description of a page's visits and signals; None without any.

    The newest visit is first. Those of one kind at one place are one mark, as high as the largest
    of their changes.
    """
    if not visits:
        return None
    first = visits[-1].at
    scale = (_RIGHT - _LEFT) / max(now - first, 60.0)

    def place(at: float) -> float:
        return round(_LEFT + (min(max(at, first), now) - first) * scale)

    def where(it: PastObservation) -> tuple[float, str]:
        return place(it.at), kind_of(it)

    marks = [_visited(*at, list(some)) for at, some in groupby(sorted(visits, key=where), where)]
    heard = [
        PlotMark(place(it.since), "signal", f"{_utc(it.since)}: {it.kind} {it.url}", width)
        for it in signals
        for width in [place(it.until) - place(it.since)]
    ]
    told = f"{counted(len(visits), 'visit')} and {counted(len(signals), 'change signal')}"
    told = f"{told} from {_utc(first)} to {_utc(now)} UTC"
    ticks = list(_ticks(first, now, scale))
    return {"visits": marks, "signals": heard, "ticks": ticks, "told": told}


def kind_of(it: PastObservation) -> str:
    """Return the result of a visit, in a word."""
    return "reread" if it.reason == REBASED else it.kind


def _visited(x: float, kind: str, some: Sequence[PastObservation]) -> PlotMark:
    title = f"{_utc(some[-1].at)}: {kind}"
    if len(some) > 1:
        title = f"{title}, {len(some)} visits until {_utc(some[0].at)}"
    if kind != "changed":
        return PlotMark(x, kind, title)
    same = min(1.0 if it.resemblance is None else it.resemblance for it in some)
    title = f"{title}, {changed_share(same)} of the text"
    return PlotMark(x, kind, title, _HIGH - (_HIGH - _LOW) * same)


def _ticks(first: float, now: float, scale: float) -> Iterator[tuple[float, str]]:
    steps = (hours * 3_600 for hours in _STEPS)
    step = next((it for it in steps if (now - first) / it <= _TICKS), _STEPS[-1] * 3_600)
    at = -(-first // step) * step
    while at <= now:
        yield round(_LEFT + (at - first) * scale, 1), _utc(at)[: 10 if step >= 86_400 else None]
        at += step


def _utc(at: float) -> str:
    """Format a time in UTC, to the minute."""
    return f"{calendar(at):%Y-%m-%d %H:%M}"


def treemap(
    values: Sequence[float], width: float, height: float
) -> list[tuple[float, float, float, float]]:
    """Return x, y, width and height for each value above 0, with areas in proportion.

    Squarified (Bruls, Huizing and van Wijk, 2000): a row takes the next value while the worst of
    its rectangles gets closer to a square.
    """
    x, y, found, unit = 0.0, 0.0, [], width * height / (sum(values) or 1)
    left = [value * unit for value in values]
    while left:
        side, upright, count = min(width, height), height <= width, 1
        while count < len(left) and _worst(left[: count + 1], side) <= _worst(left[:count], side):
            count += 1
        depth, along = sum(left[:count]) / side, 0.0
        for area in left[:count]:
            long = area / depth
            across, down = (depth, long) if upright else (long, depth)
            found.append((x + along * (not upright), y + along * upright, across, down))
            along += long
        left = left[count:]
        x, y = x + depth * upright, y + depth * (not upright)
        width, height = width - depth * upright, height - depth * (not upright)
    return found


def _worst(row: Sequence[float], side: float) -> float:
    """Return the worst ratio of two sides among the rectangles of a row."""
    square = (sum(row) / side) ** 2
    return max(max(square / area, area / square) for area in row)
