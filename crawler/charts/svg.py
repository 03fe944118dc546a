"""Elements of SVG with everything escaped, and a chart's root with its title and description."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Final

from markupsafe import Markup, escape

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
