"""The greedy indices as compiled loops, for tables that are asked millions of times.

The formulas are those of :mod:`freshet.scheduler.policies.greedy_index` and
:mod:`freshet.scheduler.policies.greedy_index_binary`; the results are the same but for rounding
(relative 1e-13).
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, expm1
from typing import TypeAlias

import numpy as np

from freshet.scheduler import compiling
from freshet.scheduler.arguments import Bools, Floats, Ints
from freshet.scheduler.policies.greedy_index import GreedyIndex
from freshet.scheduler.policies.greedy_index_binary import GreedyIndexBinary
from freshet.scheduler.policy import IndexPolicy
from freshet.scheduler.sources import SourceTable

#: A table and a day → the index of each source, (n,).
Valuation: TypeAlias = Callable[[SourceTable, float], Floats]

#: Fewer sources do not win back the second that it takes to load the compiler.
COMPILED_FROM = 20_000


def valuation(policy: IndexPolicy, n: int) -> Valuation:
    """The policy's ``index`` in its fastest form for a table of n sources, and parts of it."""
    loop = _LOOPS.get(type(policy))
    if loop is None or n < COMPILED_FROM:
        return policy.index
    machine_code = compiling.compiled(loop)

    def index(table: SourceTable, now: float) -> Floats:
        worth = np.empty(table.importance.size)
        machine_code(
            table.importance,
            table.change_rate,
            table.complete_observations,
            table.last_crawl,
            table.pending_signals,
            now,
            worth,
        )
        return worth

    return index


def harmonic_loop(
    importance: Floats,
    change_rate: Floats,
    complete: Bools,
    last_crawl: Floats,
    pending: Ints,
    now: float,
    worth: Floats,
) -> None:
    """Write W of the harmonic cost into ``worth``."""
    for i in range(len(worth)):
        delta = change_rate[i]
        if complete[i]:
            worth[i] = importance[i] * pending[i] / delta if delta > 0 else 0.0
            continue
        age = max(now - last_crawl[i], 0.0)
        x = delta * age
        if x < 1e-2:
            share = x / 2 * (1 - x / 3 * (1 - x / 4 * (1 - x / 5 * (1 - x / 6 * (1 - x / 7)))))
        else:
            share = 1 + expm1(-x) / x
        worth[i] = importance[i] * age * share


def binary_loop(
    importance: Floats,
    change_rate: Floats,
    complete: Bools,
    last_crawl: Floats,
    pending: Ints,
    now: float,
    worth: Floats,
) -> None:
    """Write W of the binary cost into ``worth``."""
    for i in range(len(worth)):
        delta = change_rate[i]
        if complete[i]:
            worth[i] = importance[i] / delta if delta > 0 and pending[i] > 0 else 0.0
            continue
        age = max(now - last_crawl[i], 0.0)
        x = delta * age
        if x < 1e-2:
            share = x / 2 * (1 - x / 3 * (2 - x / 4 * (3 - x / 5 * (4 - x / 6 * (5 - x / 7 * 6)))))
        else:
            left = min(x, 800.0)
            share = (-expm1(-x) - left * exp(-left)) / x
        worth[i] = importance[i] * age * share


_LOOPS: dict[type, Callable[..., None]] = {
    GreedyIndex: harmonic_loop,
    GreedyIndexBinary: binary_loop,
}
