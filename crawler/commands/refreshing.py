"""What values the pages of a daemon, by the name of a policy."""

from __future__ import annotations

from freshet.crawler.errors import CrawlError
from freshet.scheduler import policy
from freshet.scheduler.agenda.rankers import ByIndex, ByRate, Guarded
from freshet.scheduler.agenda.site_clock_ranker import ByClock
from freshet.scheduler.policies.greedy_index import GreedyIndex
from freshet.scheduler.policy import IndexPolicy, PolicyError, RatePolicy


def refresher_of(specification: str) -> Guarded:
    """What values pages by the policy of this name.

    Raises:
        CrawlError: there is none of this name, or it is of a kind that a daemon cannot follow.
    """
    try:
        chosen = policy.load(specification)
    except PolicyError as error:
        raise CrawlError(str(error)) from error
    if isinstance(chosen, GreedyIndex):
        return Guarded(ByClock(), specification)
    if isinstance(chosen, IndexPolicy):
        return Guarded(ByIndex(chosen), specification)
    if isinstance(chosen, RatePolicy):
        return Guarded(ByRate(chosen), specification)
    raise CrawlError(
        f"policy {specification}: sets intervals and knows no budget; a daemon follows policies "
        "of indices and of rates"
    )
