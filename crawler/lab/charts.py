"""Bars: a histogram, and shares of a whole in one bar for each row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from math import ceil, floor, isfinite, log10, sqrt
from typing import Final, Protocol

from markupsafe import Markup, escape

# -- scales ------------------------------------------------------------------
#
# Where a value stands on an axis, and which values are named there.
#
# Ticks are 1, 2 or 5 times a power of ten. Scales take whatever they are asked for: a range of
# zero width, or none at all, becomes one that can be drawn.

_STEPS: Final = (1.0, 2.0, 5.0, 10.0)
#: Of a step: what rounding may put a tick beside the end of the range.
_ROUNDING: Final = 1e-9


class Scale(Protocol):
    """From values to shares of an axis."""

    def __call__(self, value: float) -> float:
        """0 at the low end of the range, 1 at the high end; NaN for what has no place."""
        ...

    def ticks(self, most: int) -> list[float]:
        """Round values within the range, ascending, at most ``most`` (at least 2)."""
        ...


@dataclass(frozen=True, slots=True)
class Linear:
    """Equal steps are equally long; ``low`` < ``high``. Make one with :meth:`around`."""

    low: float
    high: float

    @classmethod
    def around(cls, values: Iterable[float], *, zero: bool = True) -> Linear:
        """A scale that holds these values, as far as they are finite, and 0 if wanted."""
        low, high = _ends(values)
        if zero:
            low, high = min(low, 0.0), max(high, 0.0)
        if not high > low:
            room = abs(high) / 2 or 1.0
            return cls(low if zero and low == 0 else low - room, high + room)
        return cls(low, high)

    def __call__(self, value: float) -> float:
        """The share of the way from ``low`` to ``high``."""
        return (value / 2 - self.low / 2) / (self.high / 2 - self.low / 2)

    def ticks(self, most: int) -> list[float]:
        """Multiples of a round step."""
        step = round_step((self.high / 2 - self.low / 2) / most * 2)
        while True:
            first, last = ceil(self.low / step - _ROUNDING), floor(self.high / step + _ROUNDING)
            if last - first < most:
                return [_round(number * step, step) for number in range(first, last + 1)]
            step = round_step(step * 1.5)


@dataclass(frozen=True, slots=True)
class Log:
    """Equal ratios are equally long; 0 < ``low`` < ``high``. Make one with :meth:`around`."""

    low: float
    high: float

    @classmethod
    def around(cls, values: Iterable[float]) -> Log:
        """A scale that holds these values, as far as they are finite and above 0."""
        low, high = _ends(value for value in values if value > 0)
        if not low > 0:
            return cls(1.0, 10.0)
        return cls(low, high) if high > low else cls(low / 2, high * 2)

    def __call__(self, value: float) -> float:
        """The share of the ratio between the ends."""
        if not value > 0:
            return float("nan")
        return (log10(value) - log10(self.low)) / (log10(self.high) - log10(self.low))

    def ticks(self, most: int) -> list[float]:
        """Powers of ten, some of them where there are many, and 2 and 5 times them if few."""
        for factors in ((1, 2, 5), (1, 3), (1,)):
            found = self._round_values(factors)
            if 2 <= len(found) <= most:
                return found
        powers = self._round_values((1,))
        return powers[:: ceil(len(powers) / most)] if len(powers) > most else self._ends_only()

    def _round_values(self, factors: Sequence[int]) -> list[float]:
        """All powers of ten within the range, times each of these factors."""
        powers = range(floor(log10(self.low)), ceil(log10(self.high)) + 1)
        values = (float(f"{factor}e{power}") for power in powers for factor in factors)
        least, most = self.low * (1 - _ROUNDING), self.high * (1 + _ROUNDING)
        return [value for value in values if least <= value <= most]

    def _ends_only(self) -> list[float]:
        """Where no round value lies in the range, its ends do."""
        return [float(f"{self.low:.3g}"), float(f"{self.high:.3g}")]


def scale_of_budgets(values: Sequence[float]) -> Scale:
    """By ratios where values above 0 differ by more than a factor of five."""
    low, high = _ends(values)
    return Log.around(values) if low > 0 and high > 5 * low else Linear.around(values, zero=False)


def round_step(least: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is at least ``least`` (above 0)."""
    power = floor(log10(least))
    found = (step * float(f"1e{power}") for step in _STEPS)
    return next(each for each in found if each >= least * (1 - _ROUNDING))


def _round(value: float, step: float) -> float:
    """A multiple of a step without what floating point added to it."""
    return round(value, max(-floor(log10(step)), 0)) + 0.0


def _ends(values: Iterable[float]) -> tuple[float, float]:
    told = [float(value) for value in values if isfinite(value)]
    return (min(told), max(told)) if told else (0.0, 0.0)


# -- svg ---------------------------------------------------------------------
#
# Elements of SVG with everything escaped, and a chart's root with its title and description.

#: Units, of which one is about a CSS pixel.
WIDTH: Final = 360.0

_MARKS: Final = 6
_COLOURS: Final = 8
_DASHES: Final = 5


def element(name: str, attributes: Mapping[str, object], *children: object) -> Markup:
    """An element; attributes that are None are left out, numbers lose what nobody sees."""
    words = "".join(
        f' {key}="{escape(_shown(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = "".join(escape(child) for child in children)
    return Markup(f"<{name}{words}>{inside}</{name}>")  # noqa: S704 - its parts are escaped


def text(
    words: str, x: float, y: float, anchor: str = "start", class_: str | None = None
) -> Markup:
    """One line of text."""
    return element("text", {"x": x, "y": y, "text-anchor": anchor, "class": class_}, words)


def line(x1: float, y1: float, x2: float, y2: float, class_: str, tip: str = "") -> Markup:
    """A straight line, with a tool tip unless that is empty."""
    return element("line", {"x1": x1, "y1": y1, "x2": x2, "y2": y2, "class": class_}, *_tip(tip))


def rectangle(
    x: float, y: float, width: float, height: float, class_: str, tip: str = ""
) -> Markup:
    """A rectangle, with a tool tip unless that is empty; sizes below 0 are 0."""
    size = {"width": max(width, 0.0), "height": max(height, 0.0)}
    return element("rect", {"x": x, "y": y, **size, "class": class_}, *_tip(tip))


def path(points: Iterable[tuple[float, float]], class_: str, *, closed: bool = False) -> Markup:
    """Straight lines from point to point; a point that is not finite is a gap."""
    words, pen = [], "M"
    for x, y in points:
        if not (isfinite(x) and isfinite(y)):
            pen = "M"
            continue
        words.append(f"{pen}{_shown(x)} {_shown(y)}")
        pen = "L"
    return element(
        "path", {"d": "".join(words) + ("Z" if closed and words else ""), "class": class_}
    )


def marker(x: float, y: float, style: int, tip: str, size: float = 3.6) -> Markup:
    """The mark of a style with a tool tip, about ``2 * size`` wide."""
    s = size
    shapes: tuple[tuple[tuple[float, float], ...], ...] = (
        (),
        ((-s, -s), (s, -s), (s, s), (-s, s)),
        ((0, -1.3 * s), (1.2 * s, 0.9 * s), (-1.2 * s, 0.9 * s)),
        ((0, -1.35 * s), (1.35 * s, 0), (0, 1.35 * s), (-1.35 * s, 0)),
        ((0, 1.3 * s), (1.2 * s, -0.9 * s), (-1.2 * s, -0.9 * s)),
        ((-0.45 * s, -1.4 * s), (0.45 * s, -1.4 * s), (0.45 * s, 1.4 * s), (-0.45 * s, 1.4 * s)),
    )
    shape, class_ = shapes[style % _MARKS], f"mark {colour(style)}"
    if not shape:
        return element("circle", {"cx": x, "cy": y, "r": s, "class": class_}, *_tip(tip))
    points = " ".join(f"{_shown(x + dx)},{_shown(y + dy)}" for dx, dy in shape)
    return element("polygon", {"points": points, "class": class_}, *_tip(tip))


def colour(style: int) -> str:
    """The class that gives a style its colour."""
    return f"c{style % _COLOURS}"


def stroke(style: int) -> str:
    """The classes that give a line its colour and dashes: 40 styles are all different."""
    return f"curve {colour(style)} d{style % _DASHES}"


def chart(title: str, description: str, height: float, children: Iterable[Markup]) -> Markup:
    """The root of a chart; a screen reader says its title, then its description."""
    box = f"0 0 {WIDTH:g} {_shown(height)}"
    return element(
        "svg",
        {"viewBox": box, "role": "img", "aria-label": title, "class": "chart"},
        element("title", {}, title),
        element("desc", {}, description),
        *children,
    )


def cut(words: str, most: int) -> str:
    """At most so many characters of a line; what is left out is shown by an ellipsis."""
    return words if len(words) <= most else words[: most - 1] + "…"


def _tip(words: str) -> tuple[Markup, ...]:
    return (element("title", {}, words),) if words else ()


def _shown(value: object) -> object:
    return f"{round(value, 2) + 0.0:g}" if isinstance(value, float) else value


# -- frame -------------------------------------------------------------------
#
# The plot within its axes: grid, ticks, what the axes are called, and where a value stands.

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


# -- dates -------------------------------------------------------------------
#
# Days of an archive as ticks of an axis of time (UTC).

_DAY_S: Final = 86_400.0
#: Days between two ticks: what a calendar makes of round numbers.
_DATE_STEPS: Final = (1, 2, 5, 7, 14, 30, 61, 91, 182, 365, 730, 1826, 3652)
#: From so many days on a day of the month says nothing.
_MONTHS: Final = 200


def date_ticks(start: float, end: float, most: int) -> list[tuple[float, str]]:
    """Days (Unix) within a span, whole ones where it has any, with what they are called."""
    first = ceil(start)
    whole = int(end) - first
    if whole < 1:
        return [(start, day_name(start, 0))]
    least = whole / max(most - 1, 1)
    step = next((each for each in _DATE_STEPS if each >= least), ceil(least))
    return [(float(day), day_name(day, whole)) for day in range(first, int(end) + 1, step)]


def day_name(day: float, span: float) -> str:
    """A day as people call it within so many days: ``4 Nov``, or ``Nov 2026``."""
    date = datetime.fromtimestamp(day * _DAY_S, UTC)
    return f"{date:%b %Y}" if span > _MONTHS else f"{date.day} {date:%b}"


# -- intervals ---------------------------------------------------------------
#
# A range for each row, named above it: which one lies lower, and do they overlap?

_INTERVAL_ROW: Final = 34.0
_INTERVAL_TOP: Final = 6.0
_INTERVAL_RIGHT: Final = 22.0


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


# -- legend ------------------------------------------------------------------
#
# What colours, dashes and marks stand for: samples beside which a page sets the names.


def line_sample(style: int) -> Markup:
    """A piece of a style's line, with its mark."""
    return _sample(line(1, 8, 33, 8, stroke(style)), marker(17, 8, style, ""))


def bound_sample() -> Markup:
    """A piece of a bound."""
    return _sample(line(1, 8, 33, 8, "bound"))


def part_sample(place: int) -> Markup:
    """A piece of a bar's part, by the place of its class."""
    return _sample(rectangle(1, 2, 32, 12, f"part p{place}"))


def _sample(*children: Markup) -> Markup:
    box = {"viewBox": "0 0 34 16", "width": 34, "height": 16, "aria-hidden": "true"}
    return element("svg", box, *children)


# -- lines -------------------------------------------------------------------
#
# Lines and bands over one axis: costs over time, costs over budgets.


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


# -- scatter -----------------------------------------------------------------
#
# What was foretold against what came: a point on the diagonal was right.

_LARGEST: Final = 8.0
_SMALLEST: Final = 1.6


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of ``weight`` cases foretold with probability ``expected`` the share ``came``.

    Between ``low`` and ``high`` lies what chance alone would make of the true probability.
    """

    expected: float
    came: float
    low: float
    high: float
    weight: float
    tip: str


def calibration_chart(
    title: str, description: str, style: int, outcomes: Sequence[Outcome], names: tuple[str, str]
) -> Markup:
    """Outcomes as discs whose areas are their weights; ``names`` are those of the axes."""
    unit = Linear(0.0, 1.0)
    ticks = [(share / 4, f"{25 * share} %") for share in range(5)]
    frame = Frame(Axis(names[0], unit, ticks), Axis(names[1], unit, ticks))
    diagonal = path([(frame.across(v), frame.down(v)) for v in (0.0, 1.0)], "bound")
    heaviest = max((each.weight for each in outcomes), default=0.0)
    drawn = [part for each in outcomes for part in _outcome(frame, each, style, heaviest)]
    return chart(title, description, HEIGHT, [*frame.drawn(), diagonal, *drawn])


def wilson(came: float, of: float, z: float = 1.96) -> tuple[float, float]:
    """Wilson's score interval of a share, for ``z`` standard deviations (95 %).

    Source: E. B. Wilson, Journal of the American Statistical Association 22 (1927), 209–212.

    Raises:
        ValueError: ``of`` is not above 0.
    """
    if not of > 0:
        raise ValueError("of: there is no share of nothing")
    share, square = came / of, z * z / of
    middle = (share + square / 2) / (1 + square)
    half = z * sqrt(max(share * (1 - share) / of + square / (4 * of), 0.0)) / (1 + square)
    return max(middle - half, 0.0), min(middle + half, 1.0)


def _outcome(frame: Frame, each: Outcome, style: int, heaviest: float) -> Iterator[Markup]:
    if not (isfinite(each.expected) and isfinite(each.came) and each.weight > 0):
        return
    x = frame.across(each.expected)
    yield line(x, frame.down(each.low), x, frame.down(each.high), f"whisker {colour(style)}")
    radius = max(_LARGEST * sqrt(each.weight / heaviest), _SMALLEST)
    disc = {"cx": x, "cy": frame.down(each.came), "r": radius, "class": f"disc {colour(style)}"}
    yield element("circle", disc, element("title", {}, each.tip))
