"""What hosts refuse of a daemon's budget is shown."""

from pathlib import Path
from random import Random

import pytest

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.run.daemon import keep
from freshet.crawler.run.orders import DaemonOrder
from tests.integration.quick import quick, unwatched
from tests.integration.test_daemon import DAY_S, Stage


@pytest.mark.long
async def test_what_the_only_host_refuses_is_told_each_day_and_in_the_report(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stage, days, budget, delay_s = Stage(tmp_path / "crawl.db"), 2, 480.0, 360.0
    seeds = seeds_from_arguments(["http://news.localhost/"]).seeds
    report = await keep(
        quick(politeness__delay_s=delay_s),
        DaemonOrder(stage.db, seeds, budget, time_limit_s=days * DAY_S),
        watch=unwatched, fetcher=stage.server, clock=stage.clock, rng=Random(1),
    )  # fmt: skip
    possible = days * DAY_S / delay_s
    assert len(stage.server.asked) == pytest.approx(possible, abs=2)
    assert report.unused_requests == pytest.approx(days * budget - possible, abs=3)
    told = [r.getMessage() for r in caplog.records if "requests of the budget" in r.getMessage()]
    assert len(told) == days
    assert told[1].startswith("240 of 480 requests of the budget were not used")
