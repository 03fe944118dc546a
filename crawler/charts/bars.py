"""Bars: a histogram, and shares of a whole in one bar for each row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from freshet.crawler.charts.frame import HEIGHT, Axis, Frame
from freshet.crawler.charts.scales import Linear
from freshet.crawler.charts.svg import WIDTH, chart, cut, rectangle, text

_ROW: Final = 38.0
_LEFT: Final = 8.0
_LONGEST: Final = 50
#: Units of a bar that its share in per cent takes.
_LABEL: Final = 30.0


@dataclass(frozen=True, slots=True)
class Shares:
    """A row of parts, in the order of the classes; none is negative."""

    name: str
    parts: Sequence[float]


def histogram(
    title: str,
    description: str,
    x: Axis,
    edges: Sequence[float],
    counts: Sequence[int],
    *,
    axis: str,
    tips: Callable[[int], str],
) -> Markup:
    """Counts between edges, one more than they; ``axis`` says what is counted."""
    scale = Linear.around([*counts, 1.0])
    whole = [(value, f"{value:,.0f}") for value in scale.ticks(5) if value == int(value)]
    frame = Frame(x, Axis(axis, scale, whole))
    floor = frame.down(0.0)
    drawn = []
    for place, count in enumerate(counts):
        left, right = frame.across(edges[place]), frame.across(edges[place + 1])
        top = frame.down(count)
        drawn.append(rectangle(left + 0.5, top, right - left - 1, floor - top, "bar", tips(place)))
    return chart(title, description, HEIGHT, [*frame.drawn(), *drawn])


def share_chart(
    title: str, description: str, classes: Sequence[str], rows: Sequence[Shares]
) -> Markup:
    """Each row's parts as shares of their sum; a row whose sum is 0 has no bar."""
    drawn = [part for number, row in enumerate(rows) for part in _row(row, _ROW * number, classes)]
    return chart(title, description, _ROW * len(rows) + 6, drawn)


def _row(row: Shares, top: float, classes: Sequence[str]) -> Iterator[Markup]:
    yield text(cut(row.name, _LONGEST), _LEFT, top + 13, class_="name")
    total, x = sum(row.parts), _LEFT
    if not total > 0:
        return
    for place, (name, part) in enumerate(zip(classes, row.parts, strict=True)):
        width = (WIDTH - 2 * _LEFT) * part / total
        share = f"{100 * part / total:.0f} %"
        if width > 0:
            tip = f"{name}: {part:,.0f} ({share})"
            yield rectangle(x, top + 18, width, 16, f"part p{place}", tip)
        if width > _LABEL:
            yield text(share, x + width / 2, top + 30, "middle", f"inside i{place}")
        x += width
