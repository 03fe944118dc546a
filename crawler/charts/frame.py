"""The plot within its axes: grid, ticks, what the axes are called, and where a value stands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from freshet.crawler.charts.scales import Scale
from freshet.crawler.charts.svg import WIDTH, line, text

HEIGHT: Final = 236.0
_TOP: Final = 26.0
_BOTTOM: Final = 44.0
_RIGHT: Final = 14.0
#: Units that a character of a tick takes.
_CHARACTER: Final = 6.8

Tick = tuple[float, str]


@dataclass(frozen=True, slots=True)
class Axis:
    """A scale with its ticks, and the quantity with its unit in words."""

    name: str
    scale: Scale
    ticks: Sequence[Tick]

    @classmethod
    def of(cls, name: str, scale: Scale, shown: Callable[[float], str], most: int = 5) -> Axis:
        """An axis whose ticks are the scale's round values."""
        return cls(name, scale, [(value, shown(value)) for value in scale.ticks(most)])


@dataclass(frozen=True, slots=True)
class Frame:
    """A horizontal and a vertical axis; the vertical one is named above the plot."""

    x: Axis
    y: Axis

    @property
    def left(self) -> float:
        """Units from the left edge to the plot: the longest tick fits."""
        return 14.0 + _CHARACTER * max((len(label) for _, label in self.y.ticks), default=0)

    def across(self, value: float) -> float:
        """Units from the left edge of the chart to a value."""
        return self.left + (WIDTH - _RIGHT - self.left) * self.x.scale(value)

    def down(self, value: float) -> float:
        """Units from the top of the chart to a value."""
        return HEIGHT - _BOTTOM - (HEIGHT - _BOTTOM - _TOP) * self.y.scale(value)

    def drawn(self) -> Iterator[Markup]:
        """Everything but the data."""
        bottom, right = HEIGHT - _BOTTOM, WIDTH - _RIGHT
        yield text(self.y.name, 2, 13, class_="axis")
        for value, label in self.y.ticks:
            y = self.down(value)
            yield line(self.left, y, right, y, "grid")
            yield text(label, self.left - 6, y + 4, "end", "tick")
        yield line(self.left, bottom, right, bottom, "base")
        for value, label in self.x.ticks:
            x = self.across(value)
            yield line(x, bottom, x, bottom + 4, "base")
            yield text(label, *self._under(x, label), class_="tick")
        yield text(self.x.name, (self.left + right) / 2, HEIGHT - 5, "middle", "axis")

    def _under(self, x: float, label: str) -> tuple[float, float, str]:
        """Place and anchor of a label: in the middle, but not beyond the right edge."""
        y = HEIGHT - _BOTTOM + 17
        if x + _CHARACTER * len(label) / 2 > WIDTH:
            return WIDTH - 1, y, "end"
        return x, y, "middle"
