"""Terms on which pages are kept fresh."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from freshet.scheduler.arrays import Bools, Floats, Ints
from freshet.scheduler.discovery.hub_covers import AREAS, Discovery
from freshet.scheduler.ephemeral.openings import NOTHING, LearntItems
from freshet.scheduler.sources import Rows


@dataclass(frozen=True, slots=True)
class PageRules:
    """Terms of m pages; every column has length m.

    Attributes:
        area: the part of its site that a page is in, a small integer.
        importance: μ.
        never: True for those that are not requested at all.
        least_days: days from one visit to the next at least.
        most_days: days after which a visit comes before all that are not overdue; inf: none.
        half_life_days: in which what appears at an ephemeral source loses half of its worth; inf:
            it is one with the usual half-life, 0: it is none, nan: that is to be found out.
        complete: True where signals are said to tell of every change.
    """

    area: Rows
    importance: Floats
    never: Bools
    least_days: Floats
    most_days: Floats
    half_life_days: Floats
    complete: Bools


#: The terms of pages, by their ids, their URLs and the origins of their hosts.
TermsOf: TypeAlias = Callable[[Ints, Sequence[str], Sequence[str]], PageRules]


@dataclass(frozen=True, slots=True)
class DiscoveryTerms:
    """Terms on which new pages and ephemeral sources compete with copies, in days of a stale copy.

    Attributes:
        missing: what a day costs on which a page is missing.
        item_worth: E, the worth of an item.
        half_life: days in which an item loses half of its worth, where a page says nothing else.
        learnt: what openings teach of the items of sources for which nothing else says it.
        recognise: whether pages whose links churn are taken for sources though nobody declared
            them.
        by_delay: whether a visit to a host that wants a longer delay costs as much more.
        least, most: shares of the visits for discovery, 0 to 1.
        discovery: what chooses the pages that are visited for new links.
        come: whether there can be others than the known pages.
    """

    missing: float = 1.0
    item_worth: float = 7.0
    half_life: float = 0.25
    recognise: bool = True
    by_delay: bool = False
    least: float = 0.0
    most: float = 1.0
    discovery: Discovery = AREAS
    come: bool = True
    learnt: LearntItems = NOTHING
