"""Rules for revisiting pages and for ranking discovery."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from freshet.scheduler.arrays import Bools, Floats, Ints
from freshet.scheduler.discovery.hub_covers import AREAS, Discovery
from freshet.scheduler.ephemeral.openings import NOTHING, LearntItems
from freshet.scheduler.sources import Rows


@dataclass(frozen=True, slots=True)
class PageRules:
    """The rules of m pages; every column has length m.

    Attributes:
        area: the area of its site that a page is in, a small integer.
        importance: μ.
        never: True for pages that are never requested.
        least_days: minimum number of days between two visits.
        most_days: days after which the page is overdue and ranks before all others; inf: never.
        half_life_days: half-life of the value of new items, for an ephemeral source; inf: the
            default half-life; 0: not an ephemeral source; nan: to be found out.
        complete: True where signals are declared to announce every change.
    """

    area: Rows
    importance: Floats
    never: Bools
    least_days: Floats
    most_days: Floats
    half_life_days: Floats
    complete: Bools


#: The rules of pages, by their ids, their URLs and the origins of their hosts.
TermsOf: TypeAlias = Callable[[Ints, Sequence[str], Sequence[str]], PageRules]


@dataclass(frozen=True, slots=True)
class DiscoveryTerms:
    """Settings that weigh new pages and new items against refreshes, in days of a stale copy.

    Attributes:
        missing: the cost of a day on which a page is missing.
        item_worth: E, the value of an item.
        half_life: days in which an item loses half of its value, if the page rules set no other.
        learnt: the half-lives and values of items that were learnt from clicks, for sources without
            a set half-life.
        recognise: whether pages with a high turnover of links count as sources without being
            declared.
        by_delay: whether a visit to a host with a longer delay costs proportionally more.
        least, most: limits of the share of visits for discovery, 0 to 1.
        discovery: the rule that chooses the pages to visit for new links.
        come: whether pages other than the known ones can appear.
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
