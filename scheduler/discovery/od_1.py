"""OD-1: OD by the last recrawl alone (section 3.6.4).

After a step in which nothing was new it knows nothing and looks nowhere: so it is defined.
"""

from __future__ import annotations

from freshet.scheduler.arguments import Ints
from freshet.scheduler.discovery.od import od
from freshet.scheduler.discovery.past import Past


def od_1(past: Past, budget: int) -> Ints:
    """The pages that revealed most in the last recrawl."""
    return od(past.last.fractions(), budget)
