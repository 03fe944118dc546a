"""Lines and bands over one axis: costs over time, costs over budgets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import isfinite

from markupsafe import Markup

from freshet.crawler.charts.frame import HEIGHT, Frame
from freshet.crawler.charts.svg import chart, colour, marker, path, stroke


@dataclass(frozen=True, slots=True)
class Line:
    """One line; NaN is a gap. ``tips`` (as many as points) make marks, of which each has one."""

    name: str
    style: int
    x: Sequence[float]
    y: Sequence[float]
    tips: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Band:
    """The range between ``low`` and ``high``; where either is NaN there is none.

    A ``faint`` one is the range of what cannot be excluded, around that of what is proved. One of
    several that lie over one another is ``edged``: a thin line tells where it ends.
    """

    style: int
    x: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    faint: bool = False
    edged: bool = False


@dataclass(frozen=True, slots=True)
class Bound:
    """A line that no data goes below, drawn dotted in the colour of text."""

    x: Sequence[float]
    y: Sequence[float]


def line_chart(
    title: str, description: str, frame: Frame, marks: Iterable[Line | Band | Bound]
) -> Markup:
    """Bands, lines and bounds in the order in which they lie over one another."""
    drawn = [each for mark in marks for each in _drawn(frame, mark)]
    return chart(title, description, HEIGHT, [*frame.drawn(), *drawn])


def _drawn(frame: Frame, mark: Line | Band | Bound) -> Iterator[Markup]:
    match mark:
        case Line():
            yield from _line(frame, mark)
        case Band():
            yield from _band(frame, mark)
        case Bound():
            yield path(_placed(frame, mark.x, mark.y), "bound")


def _line(frame: Frame, mark: Line) -> Iterator[Markup]:
    points = _placed(frame, mark.x, mark.y)
    yield path(points, stroke(mark.style))
    tips = mark.tips or _lonely(points)
    for (x, y), tip in zip(points, tips, strict=False):
        if tip is not None and isfinite(x) and isfinite(y):
            yield marker(x, y, mark.style, tip)


def _lonely(points: Sequence[tuple[float, float]]) -> list[str | None]:
    """A point between two gaps is no line: without a mark it would not be seen."""
    there = [False, *(isfinite(x) and isfinite(y) for x, y in points), False]
    return [None if there[k] or there[k + 2] else "" for k in range(len(points))]


def _band(frame: Frame, mark: Band) -> Iterator[Markup]:
    low, high = _placed(frame, mark.x, mark.low), _placed(frame, mark.x, mark.high)
    both = zip(low, high, strict=True)
    for whole, pieces in groupby(both, key=lambda pair: isfinite(pair[0][1] + pair[1][1])):
        if whole:
            below, above = zip(*pieces, strict=True)
            class_ = f"band {colour(mark.style)}{' faint' if mark.faint or mark.edged else ''}"
            yield path([*above, *reversed(below)], class_, closed=True)
            if mark.edged:
                yield path(below, f"{stroke(mark.style)} edge")


def _placed(frame: Frame, x: Sequence[float], y: Sequence[float]) -> list[tuple[float, float]]:
    return [(frame.across(a), frame.down(b)) for a, b in zip(x, y, strict=True)]
