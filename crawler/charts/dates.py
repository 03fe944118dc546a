"""Days of an archive as ticks of an axis of time (UTC)."""

from __future__ import annotations

from datetime import UTC, datetime
from math import ceil
from typing import Final

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
