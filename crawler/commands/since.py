"""A moment in the past, as people type it."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from freshet.crawler.commands.console import fail

_UNITS_S: Final = {"min": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_SPAN: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(min|h|d|w)")


def since(text: str, now: float) -> float:
    """Unix seconds of ``2d`` (two days ago), ``90min``, ``12h``, ``1w``, or of a date.

    A date (ISO 8601) without a time zone is one of the local clock. Ends the program (wrong
    usage) where the text is neither.
    """
    span = _SPAN.fullmatch(text.strip())
    if span is not None:
        return max(now - float(span[1]) * _UNITS_S[span[2]], 0.0)
    try:
        return datetime.fromisoformat(text.strip()).astimezone().timestamp()
    except (ValueError, OverflowError, OSError):
        fail(f"--since {text}: accepted are such as 90min, 12h, 2d, 1w or 2026-03-31T12:00", 2)
