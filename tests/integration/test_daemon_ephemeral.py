"""A daemon on a news-like site whose links churn reaches what is new, within the same budget."""

from pathlib import Path

import pytest

from freshet.crawler.extensions.lab.daemon_trial import Plan, Rehearsal, rehearse
from freshet.crawler.extensions.lab.synthetic_web.web import WebSpec, newsroom
from tests.integration.quick import quick
from tests.storage.small_store import rows

BUDGET, DAYS, SEEDS = 60.0, 6.0, (1, 2, 3)
FRONTS = [
    f"http://{host}.localhost{path}"
    for host in ("courier", "gazette")
    for path in ("/", "/feed.atom")
]


async def kept(db: Path, seed: int, **changes: object) -> Rehearsal:
    web = newsroom(WebSpec(3, 40, seed, DAYS), items=36.0)
    settings = quick(politeness__key="host", **changes)
    found = await rehearse(settings, web, Plan(BUDGET, "site_clock", DAYS, seed), db)
    assert found is not None
    return found


def means(runs: list[Rehearsal]) -> tuple[float, float]:
    """The utility of new pages and the freshness of all, over the seeds: one alone is chance."""
    utility, fresh = 0.0, 0.0
    for run in runs:
        assert run.new.utility is not None
        assert run.freshness is not None
        utility, fresh = utility + run.new.utility, fresh + run.freshness.fresh
    return utility / len(runs), fresh / len(runs)


@pytest.mark.long
async def test_what_appears_is_reached_sooner_and_at_once(tmp_path: Path) -> None:
    rules = [{"match": url, "ephemeral": True} for url in FRONTS]
    plain, found, others = [], [], []
    for seed in SEEDS:
        plain.append(await kept(tmp_path / f"plain-{seed}.db", seed, ephemeral__recognise=False))
        found.append(await kept(tmp_path / f"crawl-{seed}.db", seed, sites=rules))
        assert found[-1].requests == pytest.approx(plain[-1].requests, rel=0.01)
        others.append(others_between(tmp_path / f"crawl-{seed}.db"))
    (plain_utility, plain_fresh), (utility, fresh) = means(plain), means(found)
    assert utility > 1.1 * plain_utility
    assert fresh > plain_fresh - 0.05
    # Between the visit that shows an item and its first fetch hardly anything else is asked for,
    # but for the first pages of hosts that have just opened.
    assert sum(others) / len(others) < 0.3


def others_between(db: Path) -> float:
    """How many visits to captured pages come between finding a new page and fetching it, mean."""
    ((mean,),) = rows(
        db,
        "WITH item AS (SELECT p.id, p.found_at, min(o.at) AS at FROM page AS p "
        "  JOIN observation AS o ON o.page_id = p.id WHERE p.role = 'page' "
        "  AND p.url NOT LIKE '%docs.%' AND p.found_at > (SELECT min(at) + ? FROM observation) "
        "  GROUP BY p.id) "
        "SELECT avg((SELECT count(*) FROM observation AS o WHERE o.at > item.found_at "
        "  AND o.at < item.at AND o.kind <> 'new')) FROM item",
        DAYS / 2 * 86_400.0,
    )
    return float(mean)
