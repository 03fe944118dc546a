"""A daemon on a news-like site whose links churn reaches what is new, within the same budget."""

from pathlib import Path

import pytest

from freshet.crawler.lab.rehearsal import Plan, Rehearsal, rehearse
from freshet.crawler.synthetic_web.web import WebSpec, newsroom
from tests.integration.quick import quick
from tests.storage.small_store import rows

BUDGET, DAYS, SEED = 60.0, 6.0, 2
FRONTS = [
    f"http://{host}.localhost{path}"
    for host in ("courier", "gazette")
    for path in ("/", "/feed.atom")
]


async def kept(db: Path, **changes: object) -> Rehearsal:
    web = newsroom(WebSpec(3, 40, SEED, DAYS), items=36.0)
    settings = quick(politeness__key="host", **changes)
    found = await rehearse(settings, web, Plan(BUDGET, "site_clock", DAYS, SEED), db)
    assert found is not None
    return found


@pytest.mark.long
async def test_what_appears_is_reached_sooner_and_at_once(tmp_path: Path) -> None:
    plain = await kept(tmp_path / "plain.db", ephemeral__recognise=False)
    rules = [{"match": url, "ephemeral": True} for url in FRONTS]
    found = await kept(tmp_path / "crawl.db", sites=rules)
    assert found.requests == pytest.approx(plain.requests, rel=0.01)
    assert found.new.utility is not None
    assert plain.new.utility is not None
    assert found.new.utility > 1.1 * plain.new.utility
    assert found.freshness is not None
    assert plain.freshness is not None
    assert found.freshness.fresh > plain.freshness.fresh - 0.05
    # Between the visit that shows an item and its first fetch hardly anything else is asked for.
    assert others_between(tmp_path / "crawl.db") < 0.2


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
