"""What is known of pages and of a site, as arrays that compiled functions write into."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freshet.scheduler.arguments import Floats
from freshet.scheduler.recrawl.change_posterior import even, unfitted_rate
from freshet.scheduler.recrawl.site_clock import AREAS
from freshet.scheduler.sources import Rows

#: Looks before the priors are fitted for the first time.
FIRST_FIT: Final = 32
PAGE: Final = np.dtype(
    [
        ("known", np.bool_),
        ("alive", np.bool_),
        ("pending", np.bool_),
        ("changed", np.bool_),
        ("area", np.int16),
        # The number of the pending interval in the ring of its clock; -1: it is not there.
        ("number", np.int64),
        ("last", np.float64),
        ("begin", np.float64),
        ("end", np.float64),
        ("rate", np.float64),
        ("plain_rate", np.float64),
        # Where the clock stood at the last look, if that is before all of its bins.
        ("shared", np.float64),
        ("cold", np.float64),
    ],
    align=True,
)
LOOK: Final = np.dtype(
    [
        ("row", np.int64),
        ("at", np.float64),
        ("compared", np.bool_),
        ("changed", np.bool_),
        ("gone", np.bool_),
        # Whether its bytes were others, changed or not.
        ("moved", np.bool_),
        # The mean days from one look at a page to the next, were all looked at in turn.
        ("turn", np.float64),
        # Filled in: the day of the look before, −inf if there was none, and the changes expected.
        ("begin", np.float64),
        ("hazard", np.float64),
    ],
    align=True,
)
_FACTS: Final = np.dtype(
    [
        ("known", np.int64),
        ("alive", np.int64),
        ("looks", np.int64),
        # How many there are when the priors are fitted again.
        ("fit_at", np.int64),
        ("clocked", np.bool_),
        # Decayed log loss of the clock, less that of the days.
        ("loss", np.float64),
        # The geometric mean of the rates.
        ("mean_rate", np.float64),
    ],
    align=True,
)


class Pages(NamedTuple):
    """All pages of all sites: (n,) records, and (n, 48) log-likelihoods by either time."""

    page: NDArray[np.void]
    likelihood: NDArray[np.float32]
    plain_likelihood: NDArray[np.float32]


class Site(NamedTuple):
    """A site: its facts, the priors by either time, and the rows of its pages as they came.

    A prior is (areas + 1, 48): that of each area, and in the last row that of the whole site.
    """

    facts: NDArray[np.void]
    prior: Floats
    plain_prior: Floats
    rows: Rows


def unknown_site() -> Site:
    """A site at which nobody has looked."""
    facts = np.zeros(1, _FACTS)
    facts["mean_rate"] = unfitted_rate()
    facts["fit_at"] = FIRST_FIT
    prior = np.tile(even(), (AREAS + 1, 1))
    return Site(facts, prior, prior.copy(), np.empty(0, np.intp))
