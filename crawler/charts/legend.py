"""What colours, dashes and marks stand for: samples beside which a page sets the names."""

from __future__ import annotations

from markupsafe import Markup

from freshet.crawler.charts.svg import element, line, marker, rectangle, stroke


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
