"""What a budget was spent on since a time, from how far runs had come at some moments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from freshet.storage.tables.runs import Spending


@dataclass(frozen=True, slots=True)
class Spent:
    """Requests made, and those that the budget had room for in the same time."""

    requests: int
    flowed: float

    @property
    def share(self) -> float | None:
        """How much of what flowed was spent; None as long as it is less than a request."""
        return self.requests / self.flowed if self.flowed >= 1 else None


def spent(moments: Sequence[Spending], since: float) -> Spent:
    """What was spent from ``since`` to the last moment; the earliest comes first.

    ``moments`` go back to the last one before ``since``; between two of them it is taken to have
    been spent evenly. What a run made before the first of its moments counts as made before.
    """
    requests, flowed = 0.0, 0.0
    ordered = sorted(moments, key=lambda m: m.run_id)
    for _, run in groupby(ordered, key=lambda m: m.run_id):
        mine = list(run)
        requests += _grown([(m.at, m.fetches) for m in mine], since)
        for _, invocation in groupby(mine, key=lambda m: m.began_at):
            flowed += _grown([(m.at, m.flowed) for m in invocation], since)
    return Spent(round(requests), flowed)


def _grown(counts: Sequence[tuple[float, float]], since: float) -> float:
    """How much a count has grown since a time, or since its first value."""
    at, count = zip(*counts, strict=True)
    return float(count[-1] - np.interp(since, at, count))
