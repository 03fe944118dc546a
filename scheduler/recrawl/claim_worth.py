"""What looks are worth where claims are listened to: at pages, and at those who claim.

Where signals of mean precision q come at rate ν, each says that a page has changed with that
probability, and the n-th unanswered one makes the cost rate C(n), a look at the n-th is worth
(n C(n) − Σ_{k<n} C(k))/ν (:mod:`scheduler.policies.noisy_signal_index`). By the expected changes
y, and with what comes without claims, that is

    W = μ (y − 1 + e^{−y} + ½ q (1 − e^{−s})) / (q (ν + κ/T) + ω D),

where s is the part of y that was claimed: what comes without a claim comes at no moment of its own.

T is the days from one look to the next at a page, were all looked at in turn: after an event that
changes a whole site a look gains no more than the days until the page's turn would come, so a
signal counts for T/κ days at most.

The functions are compiled.
"""

from __future__ import annotations

from math import exp, expm1
from typing import Final

import numpy as np
from numpy.typing import NDArray

from freshet.scheduler.arguments import Floats
from freshet.scheduler.compiling import compiled
from freshet.scheduler.recrawl.claim_learning import shares, unclaimed
from freshet.scheduler.recrawl.claim_state import Told

_QUEUE: Final = 1.0
#: So many moves at the rate of the site stand beside a page's own, to tell their rate.
_MOVES_BEFORE: Final = 1.0
_LEAST: Final = 1e-6
#: Claims count where they foretell better by so much of the log loss.
_LEAST_GAIN: Final = 0.12
#: Who is not believed is asked now and then.
_NOW_AND_THEN: Final = 0.001
#: Part of what a source tells that comes of hearing it: some of its pages would have been looked at
#: anyway, or wait for their turn. By trial on recorded sites, where 0.1 to 1 are much alike.
_POLL: Final = 0.3
#: How much more asking a source is worth after a surprise: a change that it had not claimed.
_NEWS: Final = 20.0


@compiled
def against(told: Told) -> float:
    """The evidence (nats) against the claims, negative where it speaks for them."""
    facts = told.facts[0]
    return float(facts.loss - (1 - _LEAST_GAIN) * facts.loss_without)


@compiled
def proven(told: Told) -> bool:
    """Whether claims foretell better than nothing."""
    return against(told) < 0


@compiled
def value(
    told: Told, pages: NDArray[np.void], now: float, turn: float, hazard: Floats, rate: Floats,
    jump: Floats, per: Floats,
) -> None:  # fmt: skip
    """Write what claims say of pages: y, changes a day, what is added to W, what divides it."""
    facts = told.facts[0]
    moves, days = 0.0, 1.0
    for slot in range(facts.pages):
        page = told.page[slot]
        if pages[page.row].alive:
            moves += page.moves
            days += max(now - page.since, 0.0)
    mean = facts.share_sum / facts.shares
    for slot in range(facts.pages):
        page = told.page[slot]
        row = page.row
        own = max(now - page.since, 0.0)
        signals = (page.moves + _MOVES_BEFORE) / (own + _MOVES_BEFORE * days / max(moves, 1.0))
        other = unclaimed(told, pages[row].last, now)
        q = -expm1(-page.weight * mean)
        claimed = page.weight * shares(told, slot)
        hazard[row] = max(claimed + other * hazard[row], _LEAST)
        # Only what is claimed is a signal; jump > 0 says that there may be some.
        jump[row] = max(q * expm1(-claimed) / expm1(-hazard[row]), _LEAST)
        per[row] = max(q * (signals + _QUEUE / turn) + other * rate[row], _LEAST)
        rate[row] = q * signals + other * rate[row]


@compiled
def value_polls(told: Told, now: float, worth: Floats) -> None:
    """Let asking a source be worth what it tells, as far as it is believed, where that is more."""
    part_of = _POLL * min(max(exp(-against(told)), _NOW_AND_THEN), 1.0)
    if told.facts[0].news:
        part_of *= 1 + _NEWS
    for j in range(told.facts[0].sources):
        source = told.source[j]
        if source.asked >= 0:
            since = max(now - source.heard, 0.0)
            found = part_of * source.told / source.days * since * since / 2
            worth[source.asked] = max(worth[source.asked], found)
