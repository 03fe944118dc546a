"""A host that vanishes for a week, while a daemon keeps it and others fresh."""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.fetch.client import Request
from freshet.crawler.run.daemon import keep
from freshet.crawler.run.orders import DaemonOrder
from freshet.storage.records import FetchResult
from scripts.synthetic_truth import Truth
from tests.integration.quick import assert_consistent, quick, unwatched
from tests.integration.test_daemon import DAY_S, Server, Stage

BUDGET = 96.0
GONE = "news.localhost"


@dataclass(slots=True)
class Vanishing(Server):
    """One of its hosts cannot be reached from one time to another."""

    gone_from: float = 0.0
    back_at: float = 0.0
    reason: str = "dns"

    async def fetch(self, request: Request) -> FetchResult:
        now = self.clock.now()
        if GONE not in request.url or not self.gone_from <= now < self.back_at:
            return await Server.fetch(self, request)
        self.asked.append((now, request.url))
        return FetchResult(request.url, "failed", now, 0.0, None, self.reason, "gone")


async def kept(tmp_path: Path, reason: str) -> tuple[Stage, Vanishing]:
    """Twelve days, in seven of which a host is away."""
    stage = Stage(tmp_path / "crawl.db")
    begin = stage.clock.now()
    server = Vanishing(
        stage.server.web, stage.clock, gone_from=begin + 2 * DAY_S, back_at=begin + 9 * DAY_S,
        reason=reason,
    )  # fmt: skip
    urls = [f"http://{GONE}/", "http://docs.localhost/"]
    order = DaemonOrder(stage.db, seeds_from_arguments(urls).seeds, BUDGET, time_limit_s=12 * DAY_S)
    settings = quick(politeness__back_off_initial_s=5.0, politeness__back_off_factor=4.0)
    await keep(settings, order, watch=unwatched, fetcher=server, clock=stage.clock, rng=Random(1))
    return stage, server


@pytest.mark.long
@pytest.mark.parametrize("reason", ["no_such_host", "timeout_headers"])
async def test_a_host_that_vanishes_for_a_week_is_contained(
    tmp_path: Path, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    stage, server = await kept(tmp_path, reason)
    away = [(at, url) for at, url in server.asked if server.gone_from <= at < server.back_at]
    probes = [at for at, url in away if GONE in url]
    back = [at for at, url in server.asked if at >= server.back_at and GONE in url]
    # It is tried ever more rarely, and the rest of the budget goes to the other host.
    assert len(probes) < 60
    assert max(b - a for a, b in pairwise(probes[-10:])) > 4 * 3_600.0
    assert abs(len(away) - 7 * BUDGET) <= 2
    # Once it is back it gets its part, evenly, the pages that have changed meanwhile among it.
    assert back[0] - server.back_at < 0.4 * DAY_S
    again = {url for at, url in server.asked if at >= server.back_at and GONE in url}
    changed = alive(stage) & rewritten(stage, server)
    assert len(again & changed) > 0.8 * len(changed) > 0
    times = [at for at, _ in server.asked]
    assert min(b - a for a, b in pairwise(times)) > 0.99 * DAY_S / BUDGET
    told = [r.getMessage() for r in caplog.records if GONE in r.getMessage()]
    assert len(told) == 2
    assert told[0].startswith(f"{GONE} is unreachable ({reason}, ")
    assert told[1].startswith(f"{GONE} answers again after ")
    assert_consistent(stage.db)
    learnt = stage.rows(
        "SELECT count(*) FROM finding JOIN page ON page.id = page_id WHERE kind <> 'failed' "
        f"AND url LIKE '%{GONE}%' AND at > {server.gone_from} AND at < {server.back_at}"
    )
    assert learnt == [(0,)]


def rewritten(stage: Stage, server: Vanishing) -> set[str]:
    """The pages of the host that were rewritten while it was away."""
    truth, begin, end = Truth(stage.web), server.gone_from, server.back_at
    return {
        f"http://{GONE}{place.target}"
        for place in truth.alive(begin) & truth.alive(end)
        if place.host == "news" and truth.changed_significantly(place, begin, end)
    }


def alive(stage: Stage) -> set[str]:
    """The pages of the host that stood in the store, and were there when last asked for."""
    kept = stage.rows("SELECT url FROM page WHERE last_kind IN ('changed', 'unchanged', 'new')")
    return {str(url) for (url,) in kept}
