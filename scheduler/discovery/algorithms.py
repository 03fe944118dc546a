"""The ways of choosing a cover by past recrawls, by name. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from scheduler.arguments import Ints
from scheduler.discovery.cliq_1 import cliq_1
from scheduler.discovery.cliq_win import cliq_win
from scheduler.discovery.cov import cov
from scheduler.discovery.od_1 import od_1
from scheduler.discovery.od_win import od_win
from scheduler.discovery.past import Past

#: What chooses old pages to look at: from the past, at most so many.
Algorithm: TypeAlias = Callable[[Past, int], Ints]

ALGORITHMS: Final[Mapping[str, Algorithm]] = {
    "od_win": od_win,
    "od_1": od_1,
    "cliq_win": cliq_win,
    "cliq_1": cliq_1,
    "cov": cov,
}
