"""A range for each row, named above it: which one lies lower, and do they overlap?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Final

from markupsafe import Markup

from freshet.crawler.charts.scales import Linear
from freshet.crawler.charts.svg import WIDTH, chart, colour, cut, line, marker, rectangle, text

_INTERVAL_ROW: Final = 34.0
_INTERVAL_TOP: Final = 6.0
_LEFT: Final = 8.0
_INTERVAL_RIGHT: Final = 22.0
_LONGEST: Final = 50


@dataclass(frozen=True, slots=True)
class Interval:
    """What is proved lies between ``low`` and ``high``; ``highest`` is not excluded either."""

    name: str
    style: int
    low: float
    high: float
    highest: float
    tip: str


def interval_chart(
    title: str,
    description: str,
    rows: Sequence[Interval],
    *,
    axis: str,
    shown: Callable[[float], str],
    bound: float = float("nan"),
) -> Markup:
    """Rows from the top down over an axis from 0; ``bound`` is a vertical line, NaN: none."""
    scale = Linear.around([value for row in rows for value in (row.low, row.high, row.highest)])

    def across(value: float) -> float:
        return _LEFT + (WIDTH - _LEFT - _INTERVAL_RIGHT) * scale(value)

    bottom = _INTERVAL_TOP + _INTERVAL_ROW * len(rows) + 2
    drawn: list[Markup] = []
    for value in scale.ticks(5):
        x = across(value)
        drawn += [
            line(x, _INTERVAL_TOP, x, bottom, "grid"),
            text(shown(value), x, bottom + 15, "start" if x < 20 else "middle", "tick"),
        ]
    drawn.append(line(_LEFT, bottom, WIDTH - _INTERVAL_RIGHT, bottom, "base"))
    if isfinite(bound):
        drawn.append(
            line(across(bound), _INTERVAL_TOP, across(bound), bottom, "bound", shown(bound))
        )
    for number, row in enumerate(rows):
        drawn += _interval_row(row, _INTERVAL_TOP + _INTERVAL_ROW * number, across)
    drawn.append(text(axis, (WIDTH + _LEFT - _INTERVAL_RIGHT) / 2, bottom + 33, "middle", "axis"))
    return chart(title, description, bottom + 40, drawn)


def _interval_row(row: Interval, top: float, across: Callable[[float], float]) -> Iterator[Markup]:
    yield text(cut(row.name, _LONGEST), _LEFT + 4, top + 12, class_="name")
    if not (isfinite(row.low) and isfinite(row.high)):
        return
    low, high, middle = across(row.low), across(row.high), top + 23
    if isfinite(row.highest):
        highest = across(row.highest)
        yield line(high, middle, highest, middle, f"whisker {colour(row.style)}", row.tip)
        yield line(highest, middle - 4, highest, middle + 4, f"whisker {colour(row.style)}")
    yield rectangle(low, middle - 4, high - low, 8, f"range {colour(row.style)}", row.tip)
    yield marker(high, middle, row.style, row.tip, 4.4)
