"""A crawl budget as people write it: ``1000/day`` or ``50/hour``."""

from __future__ import annotations

from math import isfinite

from freshet.crawler.commands.console import fail

_PER_DAY = {"day": 1.0, "hour": 24.0}


def crawls_per_day(text: str) -> float:
    """The crawls per day that ``text`` says; ends the program (wrong usage) otherwise."""
    try:
        return parsed(text)
    except ValueError as error:
        fail(f"--budget {error}", 2)


def parsed(text: str) -> float:
    """The crawls per day that ``text`` says.

    Raises:
        ValueError: saying what is accepted.
    """
    number, slash, unit = text.partition("/")
    try:
        count = float(number)
    except ValueError:
        count = 0.0
    if not slash or unit.strip() not in _PER_DAY or not isfinite(count) or count <= 0:
        raise ValueError(
            f"{text}: accepted is a number of crawls above 0 and its unit, "
            "such as 1000/day or 50/hour"
        )
    return count * _PER_DAY[unit.strip()]
