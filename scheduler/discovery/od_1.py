"""OD-1: OD by the last recrawl alone (section 3.6.4). Pure.

After a step in which nothing was new it knows nothing and looks nowhere: so it is defined.
"""

from __future__ import annotations

from scheduler.arguments import Ints
from scheduler.discovery.od import od
from scheduler.discovery.past import Past


def od_1(past: Past, budget: int) -> Ints:
    """The pages that revealed most in the last recrawl."""
    return od(past.last.fractions(), budget)
