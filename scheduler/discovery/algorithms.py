"""The ways of choosing a cover by past recrawls, by name.

None knows the future. GREEDY, OD and CLIQ, which the thesis gives the recrawl itself, are given the
last one that brought anything new; COV, OD-1 and CLIQ-1 the last one, whatever it brought. OD-ALL
is OD-WIN where every step was a full recrawl (section 3.6.4): where steps are all there is, both
choose the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import numpy as np

from freshet.scheduler.arguments import Ints
from freshet.scheduler.discovery.bandit import told_bandit
from freshet.scheduler.discovery.cliq import cliq
from freshet.scheduler.discovery.cliq_1 import cliq_1
from freshet.scheduler.discovery.cliq_win import cliq_win
from freshet.scheduler.discovery.cov import cov
from freshet.scheduler.discovery.cov_win import cov_win
from freshet.scheduler.discovery.greedy import greedy
from freshet.scheduler.discovery.od import od
from freshet.scheduler.discovery.od_1 import od_1
from freshet.scheduler.discovery.od_win import od_win
from freshet.scheduler.discovery.past import Past
from freshet.scheduler.discovery.reveals import Reveals

#: What chooses old pages to look at: from the past, at most so many.
Algorithm: TypeAlias = Callable[[Past, int], Ints]


def _by_last_news(choose: Callable[[Reveals, int], Ints]) -> Algorithm:
    def chosen(past: Past, budget: int) -> Ints:
        last = past.last_news
        return np.zeros(0, np.int64) if last is None else choose(last, budget)

    return chosen


ALGORITHMS: Final[Mapping[str, Algorithm]] = {
    "cov_win": cov_win,
    "greedy": _by_last_news(lambda last, budget: greedy(last, budget=budget)),
    "od": _by_last_news(lambda last, budget: od(last.fractions, budget)),
    "od_1": od_1,
    "od_win": od_win,
    "od_all": od_win,
    "cliq": _by_last_news(cliq),
    "cliq_1": cliq_1,
    "cliq_win": cliq_win,
    "cov": cov,
    "bandit": told_bandit,
}
#: What chooses where nothing else is said.
BEST: Final = "cov_win"
