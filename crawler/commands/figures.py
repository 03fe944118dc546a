"""Rates, costs and intervals in words: as many digits as people read, never a wrong unit."""

from __future__ import annotations

from math import ceil, inf

_MINUTES, _HOURS = 1_440.0, 24.0
#: 1/p that misses a whole number by rounding only stays that number.
_ROUNDING = 1e-9


def amount(value: float) -> str:
    """A number with three digits that count, or all before the point: ``12,345``, ``56.7``."""
    if abs(value) == inf:
        return "∞"
    rounded = float(f"{value:.3g}")
    if abs(rounded) >= 1e15 or 0 < abs(rounded) < 1e-4:
        return f"{value:.2e}"
    return f"{value:,.0f}" if abs(rounded) >= 1_000 else f"{rounded:g}"


def percent(share: float) -> str:
    """A share of 1 in per cent, to a tenth, but never 0 where it is not."""
    if 0 < share < 0.001:
        return f"{amount(100 * share)} %"
    return f"{100 * share:.1f} %"


def times(ratio: float | None) -> str:
    """A ratio to two decimals; None is one without end."""
    return "∞" if ratio is None else f"{ratio:,.2f}"


def counted(count: int, noun: str) -> str:
    """A number of things: ``1 page``, ``2,000 pages``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def every(days: float | None) -> str:
    """An interval: ``every 12 min``, ``every 5.2 hours``, ``every 3.2 days``, ``never``."""
    if days is None or days == inf:
        return "never"
    if days * _HOURS < 1:
        return f"every {_brief(days * _MINUTES)} min"
    if days < 2:
        return f"every {_brief(days * _HOURS)} hours"
    return f"every {_brief(days)} days"


def lasting(days: float) -> str:
    """A span of time to a tenth, below two days in hours: ``19.2 h``, ``2.5 d``."""
    return f"{days * _HOURS:.1f} h" if days < 2 else f"{days:,.1f} d"


def on_changes(probability: float, crawling: str) -> str:
    """Which of its signalled changes a source is crawled at."""
    if probability >= 1 - _ROUNDING:
        return "at each change"
    if crawling == "periodic":
        return f"1 change in {ceil(1 / probability * (1 - _ROUNDING)):,}"
    return f"{percent(probability)} of changes"


def _brief(value: float) -> str:
    """Two digits that count, or all before the point."""
    rounded = float(f"{value:.2g}")
    return amount(value if rounded >= 100 else rounded)
