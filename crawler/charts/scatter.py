"""What was foretold against what came: a point on the diagonal was right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite, sqrt
from typing import Final

from markupsafe import Markup

from freshet.crawler.charts.frame import HEIGHT, Axis, Frame
from freshet.crawler.charts.scales import Linear
from freshet.crawler.charts.svg import chart, colour, element, line, path

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
