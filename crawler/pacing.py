"""Pacing of requests under a budget.

The budget flows in evenly; the unused part is kept for half a minute, or as one request if less
than one flows in by then, or as what the agenda saves for a session. *Invariant.* In any span of
time no more requests start than flow in during it, plus that reserve. Consequence: no burst at a
start, after a pause, or when a host that was down for a day is back, but for a session's.

Overdue visits need not wait for the budget: they may take requests ahead of it, as many as flow in
within an hour, and at least two. All others wait until these have flowed in.
"""

from math import inf
from typing import Final

_DAY_S: Final = 86_400.0
_KEPT_S: Final = 30.0
_AHEAD_S: Final = 3_600.0
_LEAST_AHEAD: Final = 2.0
#: Floats near the present Unix time differ by 2e-7 s: a request due within this is due.
_CLOCK_S: Final = 1e-6


class Pacer:
    """A token bucket; ``per_day`` is the budget (inf: no limit), ``now`` in seconds.

    It begins empty: the first request waits for its share of the day.

    Attributes:
        spent: requests started.
        forgone: requests that the budget allowed and no host could take.
        saves: requests that are kept for a session at most; 0: none are.

    Raises:
        ValueError: if the budget is not above 0.

    >>> pacer = Pacer(86_400 / 100, now=0)  # one in 100 seconds
    >>> pacer.allows(99), pacer.allows_at(99), pacer.allows(100)
    (False, 100.0, True)
    """

    def __init__(self, per_day: float, now: float) -> None:
        self.spent = 0
        self.forgone = self.saves = 0.0
        self._at = now
        self._balance = 0.0
        self._set(per_day)

    def _set(self, per_day: float) -> None:
        if not per_day > 0:
            raise ValueError(f"per_day is {per_day!r}; it must be above 0")
        self._per_s = per_day / _DAY_S
        self._reserve = self._most = max(1.0, self._per_s * _KEPT_S)
        self._ahead = max(_LEAST_AHEAD, self._per_s * _AHEAD_S)
        self._enough = 1.0 - min(0.5, 1e-9 + self._per_s * _CLOCK_S)

    @property
    def per_day(self) -> float:
        """The budget in force."""
        return self._per_s * _DAY_S

    def change(self, per_day: float, now: float) -> None:
        """Change the budget, which must be above 0; the balance stays."""
        self._flow(now)
        self._set(per_day)

    def save(self, most: float) -> None:
        """Keep so many requests for later, if they are more than half a minute's."""
        self.saves = most
        self._most = max(self._reserve, most)

    def saved(self, now: float) -> float:
        """Return how many requests may start at once."""
        self._flow(now)
        return max(0.0, self._balance)

    def flowed(self, now: float) -> float:
        """Return the number of requests that the budget has allowed since the start."""
        self._flow(now)
        return self.spent + self.forgone + self._balance

    def allows(self, now: float) -> bool:
        """Return whether a request may start."""
        if self._per_s == inf:
            return True
        self._flow(now)
        return self._balance >= self._enough

    def allows_at(self, now: float) -> float:
        """Return the time at which the next request may start, if none does before."""
        if self.allows(now):
            return now
        return now + (1.0 - self._balance) / self._per_s

    def presses_at(self, now: float, overdue_at: float) -> float:
        """Return when a visit that is overdue at a time may start ahead of the budget."""
        self._flow(now)
        balance = self._balance + self._ahead
        allowed_at = -inf if balance >= self._enough else now + (1.0 - balance) / self._per_s
        return max(overdue_at, allowed_at)

    def started(self, requests: int = 1) -> None:
        """Count a request that has started, or several."""
        self.spent += requests
        if self._per_s < inf:
            self._balance -= requests

    def put_back(self) -> None:
        """Forget a request that has started, and was not made."""
        self.spent -= 1
        if self._per_s < inf:
            self._balance += 1.0

    def shift(self, by: float) -> None:
        """Follow a jump of the time."""
        self._at += by

    def _flow(self, now: float) -> None:
        # A clock that was set back neither adds nor takes.
        balance = self._balance + max(0.0, now - self._at) * self._per_s
        self._at = now
        # What was saved stays, whatever may be saved from now on.
        self._balance = min(balance, max(self._most, self._balance))
        self.forgone += balance - self._balance
