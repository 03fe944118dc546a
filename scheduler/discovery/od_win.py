"""OD-WIN: OD by all periodic recrawls, older ones counting less (section 3.6.4).

OD-ALL is the same where every step was a recrawl.
"""

from __future__ import annotations

from freshet.scheduler.arguments import Ints
from freshet.scheduler.discovery.od import od
from freshet.scheduler.discovery.past import Past


def od_win(past: Past, budget: int, alpha: float = 1.0) -> Ints:
    """The pages that revealed most in all recrawls together."""
    return od(past.fractions(alpha), budget)
