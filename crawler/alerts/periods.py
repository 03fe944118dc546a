"""When digests are due: the hours and days that they cover."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from enum import StrEnum
from math import inf
from zoneinfo import ZoneInfo

_HOUR_S = 3_600.0


class Mode(StrEnum):
    """When what happened is told."""

    IMMEDIATE = "immediate"
    HOURLY = "hourly"
    DAILY = "daily"


@dataclass(frozen=True, slots=True)
class Rhythm:
    """When a rule tells; a day ends at ``hour`` in ``zone``, whatever its clocks do that day."""

    mode: Mode
    hour: int = 0
    zone: str = "UTC"

    def period(self, at: float) -> tuple[float, float]:
        """The period (Unix seconds, the end not in it) that a moment belongs to.

        Each ends where the next begins. What is told at once belongs to one that is over.
        """
        if self.mode is Mode.IMMEDIATE:
            return -inf, -inf
        if self.mode is Mode.HOURLY:
            begin = at // _HOUR_S * _HOUR_S
            return begin, begin + _HOUR_S
        zone = UTC if self.zone == "UTC" else ZoneInfo(self.zone)
        day = datetime.fromtimestamp(at, zone).date()
        # The clocks may go back over midnight, so that a day may lie ahead of its date.
        ends = [
            datetime.combine(day + timedelta(days=n), time(self.hour), zone).timestamp()
            for n in range(-2, 3)
        ]
        return max(end for end in ends if end <= at), min(end for end in ends if end > at)
