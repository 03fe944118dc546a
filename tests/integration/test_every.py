"""Pages that are visited at a fixed interval (``every``), by a daemon under a virtual clock."""

from itertools import pairwise
from pathlib import Path

import pytest

from freshet.crawler.run.logs import REPORTS
from tests.integration.test_daemon import HOUR_S, Stage

ABOUT = "http://news.localhost/about"


def table(url: str, every: str) -> dict[str, object]:
    return {"match": url, "every": every}


def gaps(stage: Stage, url: str) -> list[float]:
    return [b - a for a, b in pairwise([at for at, other in stage.server.asked if other == url])]


@pytest.mark.parametrize(
    "policy",
    [
        "site_clock",
        pytest.param("lambda_crawl", marks=pytest.mark.long),
        pytest.param("nutch_adaptive", marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize(
    ("every", "budget"), [pytest.param("1 hour", 60.0, marks=pytest.mark.long), ("4 h", 30.0)]
)
async def test_a_page_is_visited_at_its_interval_though_the_budget_is_small(
    tmp_path: Path, policy: str, every: str, budget: float
) -> None:
    stage = Stage(tmp_path / "crawl.db", policy=policy, sites=[table(ABOUT, every)])
    report = await stage.keep(budget, 4.0, ["news"])
    wanted = HOUR_S * float(every.split(maxsplit=1)[0])
    later = gaps(stage, ABOUT)[-8:]
    assert len(later) == 8
    # A robots.txt may come between.
    assert all(wanted <= gap <= wanted * 1.05 + 60 for gap in later), later
    assert report.fetches <= budget * 4.0 + max(2.0, budget / 24) + 1
    others = {url for _, url in stage.server.asked if url != ABOUT}
    assert len(others) > 10


@pytest.mark.long
async def test_pages_that_want_more_than_the_budget_share_it_and_it_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", REPORTS)
    stage = Stage(tmp_path / "crawl.db")
    await stage.keep(240.0, 1.0, ["news"])
    stage.sites = [table("http://news.localhost/*", "30 minutes")]
    seen = len(stage.server.asked)
    caplog.clear()
    report = await stage.keep(240.0, 2.0, ["news"])
    assert report.fetches <= 240.0 * 2 + 240.0 / 24 + 1
    visits = [url for _, url in stage.server.asked[seen:]]
    assert len(visits) >= 400
    (said,) = [r.getMessage() for r in caplog.records if r.getMessage().startswith("every: ")]
    assert "that is more than the budget: they are visited first but late" in said
