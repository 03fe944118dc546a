"""The adaptive fetch schedule of Apache Nutch, as a baseline.

It does not minimise a cost or respect a budget: each source's interval follows from its last
result.

    I ← (1 − d)·I      if the source has changed since the last fetch
    I ← (1 + i)·I      if it has not; then, with a = fetch time − time of the last change:
    I ← a              if a > I (synchronising: a source without a change for long is left alone)
    I ← I clamped to [I_min, I_max]
    due = fetch time − s·a + I, which moves the fetches towards the time of the change

with a = 0 for a changed source, and for one with an unknown last change.

    symbol  argument             unit
    I       interval             days
    d, i    dec_rate, inc_rate   1
    a       at − modified_at     days
    s       sync_delta_rate      1

Reference: class org.apache.nutch.crawl.AdaptiveFetchSchedule of Apache Nutch 1, its class
documentation and conf/nutch-default.xml. Differs from it in: times are not rounded to seconds; a
last change in the future counts as unknown; a is capped at I_max in the due time, which otherwise
is in the past for sources unchanged for longer than I_max/s (NUTCH-1564).
"""

from dataclasses import dataclass
from math import inf

from freshet.scheduler.policy import Pace, Revisit


@dataclass(frozen=True, slots=True)
class NutchAdaptive:
    """A policy that shortens intervals by a factor after a change, and else lengthens them.

    Attributes:
        inc_rate: i, at least 0; 0.2 is the default of the class (nutch-default.xml has 0.4).
        dec_rate: d, at least 0 and below 1; 0.2 is the default of the class.
        first_days: I after the first capture; ``db.fetch.interval.default`` is 30 days.
        min_days: I_min; a minute by default.
        max_days: I_max; a year by default.
        sync_delta: whether to synchronise with the time of the last change; by default yes.
        sync_delta_rate: s, at least 0 and below 1; nutch-default.xml has 0.3 (the class 0.2).

    Raises:
        ValueError: if a rate is out of its range, or not 0 < min ≤ first ≤ max < inf.

    >>> pace = NutchAdaptive().next_interval(None, Revisit(at=0.0, changed=True))
    >>> NutchAdaptive().next_interval(pace, Revisit(at=30.0, changed=False))  # 30 · 1.2
    Pace(interval=36.0, due_at=66.0)
    """

    inc_rate: float = 0.2
    dec_rate: float = 0.2
    first_days: float = 30.0
    min_days: float = 60.0 / 86_400.0
    max_days: float = 365.0
    sync_delta: bool = True
    sync_delta_rate: float = 0.3

    def __post_init__(self) -> None:
        _check_days(self.min_days, self.first_days, self.max_days)
        if not 0 <= self.inc_rate < inf:
            raise ValueError(f"inc_rate: is {self.inc_rate}; accepted is a number of at least 0")
        for name in ("dec_rate", "sync_delta_rate"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(
                    f"{name}: is {getattr(self, name)}; accepted is at least 0 and below 1"
                )

    def next_interval(self, previous: Pace | None, observation: Revisit) -> Pace:
        """Return the pace after a visit; the first visit only starts it."""
        if previous is None:
            return Pace(self.first_days, observation.at + self.first_days)
        rested = self._rested(observation)
        factor = 1 - self.dec_rate if observation.changed else 1 + self.inc_rate
        interval = max(previous.interval * factor, rested)
        interval = min(max(interval, self.min_days), self.max_days)
        shift = self.sync_delta_rate * min(rested, self.max_days)
        return Pace(interval, observation.at - shift + interval)

    def _rested(self, observation: Revisit) -> float:
        """Return days since the last change, 0 if it is unknown or not used."""
        if observation.changed or observation.modified_at is None or not self.sync_delta:
            return 0.0
        return max(observation.at - observation.modified_at, 0.0)


def _check_days(least: float, first: float, most: float) -> None:
    if not 0 < least <= first <= most < inf:
        raise ValueError(
            f"min_days, first_days, max_days: are {least}, {first}, {most}; "
            "accepted is 0 < min_days <= first_days <= max_days < inf"
        )


# -- stormcrawler adaptive --
#
# The adaptive scheduler of Apache StormCrawler, as a baseline without cost or budget.
#
#     I ← (1 − d)·I + d·I_min          if the source has changed since the last fetch
#     I ← min((1 + i)·I, I_max)        if it has not
#     due = fetch time + I
#
# where I is the interval in days, d ``dec_rate``, i ``inc_rate``.
#
# Reference: class org.apache.stormcrawler.persistence.AdaptiveScheduler of Apache StormCrawler
# and its class documentation. Differs from it in: intervals are not cut to whole minutes.


@dataclass(frozen=True, slots=True)
class StormCrawlerAdaptive:
    """A policy that moves intervals towards a minimum after a change, and else lengthens them.

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
        _check_days(self.min_days, self.first_days, self.max_days)
        for name in ("inc_rate", "dec_rate"):
            if not 0 < getattr(self, name) <= 1:
                raise ValueError(
                    f"{name}: is {getattr(self, name)}; accepted is above 0 and at most 1"
                )

    def next_interval(self, previous: Pace | None, observation: Revisit) -> Pace:
        """Return the pace after a visit; the first visit only starts it."""
        if previous is None:
            interval = self.first_days
        elif observation.changed:
            interval = (1 - self.dec_rate) * previous.interval + self.dec_rate * self.min_days
        else:
            interval = min((1 + self.inc_rate) * previous.interval, self.max_days)
        return Pace(interval, observation.at + interval)
