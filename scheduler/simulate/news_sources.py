"""A population of sources whose items fade, as feeds of news and blogs do. Pure, seeded."""

from __future__ import annotations

from math import log
from typing import Final

import numpy as np

from freshet.scheduler.arguments import Floats
from freshet.scheduler.ephemeral.ephemeral_sources import EphemeralSources
from freshet.scheduler.ephemeral.utility_laws import UtilityLaw

#: One decision an hour; rates are per day.
PERIODS_A_DAY: Final = 24
#: What items of one source are worth, as a share of its mean.
ITEMS: Final = UtilityLaw("lognormal", 1.0)

#: ln Λ before clipping: mean and standard deviation; the most items a day.
_LOG_RATE, _RATE_SIGMA, _BUSIEST = -2.4326, 3.0204, 1_000.0
#: Half-lives in days: the median, σ of the logarithm, least and most.
_HALF_LIFE, _HALF_LIFE_SIGMA = 1.0, 0.9
_SHORTEST, _LONGEST = 1 / 24, 14.0
_UTILITY_SIGMA = 1.0


def news_sources(n: int, rng: np.random.Generator) -> EphemeralSources:
    """So many sources, n, with rates per day and a period of an hour; a crawl costs 1.

        Λ   items a day    ln Λ ~ N(−2.433, 3.020²), at most 1,000
        h   half-life      ln h ~ N(ln 24 hours, 0.9²), from 1 hour to 14 days; μ = ln 2 / h
        ξ̄   mean utility   log-normal, mean 1, σ 1

    all three independent. What an item is worth varies about ξ̄ by :data:`ITEMS`, log-normal
    with σ 1, too.

    Λ is fitted to two figures of 8,155 feeds that were watched for eight months (Travers et al.):
    they published 10,794,285 items, 5.4 a feed and day, and 17 % of them 97 % of it. The
    half-life has the mean of 36 hours within which half of the readers of an item of a large news
    site have come (Dezső et al.). The spread of half-lives and of utilities, and that they hang
    together neither with each other nor with Λ, are a guess.

    References: N. Travers et al., "RSS feeds behavior analysis, structure and vocabulary", Int. J.
    Web Information Systems 10(3), 2014, abstract; Z. Dezső et al., "Dynamics of information access
    on the web", Phys. Rev. E 73, 066132, 2006. Readers come by a power law there; the model of
    Avrachenkov and Borkar has exponentials.
    """
    rate, life, utility = rng.standard_normal((3, n))
    half_life = np.clip(_HALF_LIFE * np.exp(_HALF_LIFE_SIGMA * life), _SHORTEST, _LONGEST)
    return EphemeralSources.of(
        np.minimum(np.exp(_LOG_RATE + _RATE_SIGMA * rate), _BUSIEST),
        _of_mean_one(utility),
        log(2) / half_life,
        period=1 / PERIODS_A_DAY,
    )


def _of_mean_one(normal: Floats) -> Floats:
    # The mean of a log-normal variable is e^{σ²/2} times its median.
    drawn: Floats = np.exp(_UTILITY_SIGMA * normal - _UTILITY_SIGMA**2 / 2)
    return drawn
