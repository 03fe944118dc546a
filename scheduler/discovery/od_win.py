"""OD-WIN: OD by all periodic recrawls, older ones counting less (section 3.6.4). Pure.

OD-ALL is the same where every step was a recrawl.
"""

from __future__ import annotations

from scheduler.arguments import Ints
from scheduler.discovery.od import od
from scheduler.discovery.past import Past


def od_win(past: Past, budget: int, alpha: float = 1.0) -> Ints:
    """The pages that revealed most in all recrawls together."""
    return od(past.fractions(alpha), budget)
