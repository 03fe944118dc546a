"""The adaptive scheduler of Apache StormCrawler, as a baseline.

It minimises no cost and keeps no budget: each source's interval follows its last answer.

    I ← (1 − d)·I + d·I_min          if the source has changed since the last fetch
    I ← min((1 + i)·I, I_max)        if it has not
    due = fetch time + I

A changed source comes closer to I_min by the share d, and never falls below it.

    symbol  argument             unit
    I       interval             days
    d, i    dec_rate, inc_rate   1

Reference: class org.apache.stormcrawler.persistence.AdaptiveScheduler of Apache StormCrawler
and its class documentation. Differs from it in: intervals are not cut to whole minutes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from freshet.scheduler.policy import Pace, Revisit


@dataclass(frozen=True, slots=True)
class StormCrawlerAdaptive:
    """Intervals that close in on a minimum after a change, and grow by a factor without.

    Attributes:
        inc_rate: i, above 0 and at most 1; 0.5 by default.
        dec_rate: d, above 0 and at most 1; 0.5 by default.
        first_days: I after the first capture; ``fetchInterval.default`` is a day.
        min_days: I_min; an hour by default.
        max_days: I_max; two weeks by default.

    Raises:
        ValueError: if a rate is out of its range, or not 0 < min ≤ first ≤ max < inf.

    >>> policy = StormCrawlerAdaptive(first_days=8.0, min_days=1.0)
    >>> pace = policy.next_interval(None, Revisit(at=0.0, changed=True))
    >>> pace = policy.next_interval(pace, Revisit(at=8.0, changed=False))  # 8 · 1.5
    >>> policy.next_interval(pace, Revisit(at=20.0, changed=True))  # (12 + 1)/2
    Pace(interval=6.5, due_at=26.5)
    """

    inc_rate: float = 0.5
    dec_rate: float = 0.5
    first_days: float = 1.0
    min_days: float = 1.0 / 24.0
    max_days: float = 14.0

    def __post_init__(self) -> None:
        if not 0 < self.min_days <= self.first_days <= self.max_days < inf:
            raise ValueError(
                f"min_days, first_days, max_days: are {self.min_days}, {self.first_days}, "
                f"{self.max_days}; accepted is 0 < min_days <= first_days <= max_days < inf"
            )
        for name in ("inc_rate", "dec_rate"):
            if not 0 < getattr(self, name) <= 1:
                raise ValueError(
                    f"{name}: is {getattr(self, name)}; accepted is above 0 and at most 1"
                )

    def next_interval(self, previous: Pace | None, observation: Revisit) -> Pace:
        """The pace after a capture; the first one, of which no change is known, only starts it."""
        if previous is None:
            interval = self.first_days
        elif observation.changed:
            interval = (1 - self.dec_rate) * previous.interval + self.dec_rate * self.min_days
        else:
            interval = min((1 + self.inc_rate) * previous.interval, self.max_days)
        return Pace(interval, observation.at + interval)
