"""Small tables of sources, random and edgy, that several policies are tried on."""

import numpy as np
from hypothesis import strategies as st

from freshet.scheduler.arrays import Floats
from freshet.scheduler.sources import SourceTable

BUDGETS = st.floats(1e-3, 1e3)


@st.composite
def source_tables(
    draw: st.DrawFn, *, spread: float = 3.0, complete: bool = True, hosts: bool = False
) -> SourceTable:
    """Up to 40 sources; magnitudes over 2·``spread`` powers of ten, some zeros."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, 40))
    alive = rng.random((2, n)) > 0.1
    importance, change_rate = alive * 10 ** rng.uniform(-spread, spread, (2, n))
    code = rng.integers(0, 5, n)
    return SourceTable.of(
        importance, change_rate, complete_observations=rng.random(n) < 0.3 if complete else None,
        host=code if hosts else None,
        host_capacity=rng.choice([0.01, 1.0, 50.0, np.inf], 5) if hosts else None,
    )  # fmt: skip


def host_totals(table: SourceTable, rates: Floats) -> Floats:
    """Crawls per day of each host, (H,)."""
    return np.bincount(table.host, rates, minlength=len(table.host_capacity)).astype(np.float64)
