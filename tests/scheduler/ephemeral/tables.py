"""Sources for the tests of ephemeral content."""

import numpy as np
from hypothesis import strategies as st

from freshet.scheduler.ephemeral.sources import EphemeralSources

#: Table 1 of Avrachenkov and Borkar.
TABLE_1 = EphemeralSources.of(250, [1.0, 0.7, 0.2, 0.08], [0.7, 0.35, 0.7, 0.21])


def random_sources(
    n: int, rng: np.random.Generator, *, slowest: float = 0.1, unequal: bool = False
) -> EphemeralSources:
    """n sources with utilities within a factor of ten and decays from ``slowest`` to 2."""
    return EphemeralSources.of(
        rng.uniform(1, 10, n),
        rng.uniform(0.1, 1, n),
        np.exp(rng.uniform(np.log(slowest), np.log(2), n)),
        cost=rng.uniform(0.5, 3, n) if unequal else 1.0,
    )


@st.composite
def sources(draw: st.DrawFn, most: int = 6, *, unequal: bool = False) -> EphemeralSources:
    """A table of 2 to ``most`` sources."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return random_sources(draw(st.integers(2, most)), rng, unequal=unequal)
