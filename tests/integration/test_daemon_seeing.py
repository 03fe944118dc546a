"""What a daemon shows of itself, held against the web server's log."""

from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import pytest

from freshet.crawler.frontier.clock import VirtualClock
from freshet.crawler.run import status_recorder
from freshet.crawler.run.daemon_status import DaemonStatus, daemon_status
from freshet.storage.database import reading
from freshet.storage.entries import Outlook
from freshet.storage.tables import runs
from tests.integration.test_daemon import DAY_S, HOUR_S, Stage


async def shown(stage: Stage) -> DaemonStatus:
    async with reading(stage.db) as connection:
        last = await runs.latest(connection)
        found = await daemon_status(connection, stage.db, last, stage.clock.now())
    assert found is not None
    return found


async def last_noted(stage: Stage) -> Outlook:
    return (await shown(stage)).snapshot


def test_it_notes_soon_and_then_every_hour_how_it_stands(showcase_run: Stage) -> None:
    stage = showcase_run
    began = stage.web.start_at + 5 * DAY_S
    times = [float(str(at)) for (at,) in stage.rows("SELECT at FROM outlook ORDER BY at")]
    pause = DAY_S / 150
    assert times[0] == began
    assert times[1] <= began + 2 * pause
    assert times[-1] == stage.clock.now()
    assert max(b - a for a, b in pairwise(times)) <= HOUR_S + pause
    assert len(times) < 10 * 24 + 12
    assert sum(at % HOUR_S < pause for at in times) >= 239


async def test_what_it_says_it_spent_is_what_the_server_saw(
    showcase_run: Stage, tmp_path: Path
) -> None:
    stage = showcase_run.copy(tmp_path)
    stage.at(VirtualClock(stage.clock.now() + 0.4 * DAY_S))
    await stage.keep(300.0, 0.5)
    found, now = await shown(stage), stage.clock.now()
    midnight = now // DAY_S * DAY_S
    for spent, since in ((found.today, midnight), (found.day, now - DAY_S)):
        seen = sum(at > since for at, _ in stage.server.asked)
        assert spent.requests == pytest.approx(seen, abs=2)
        assert spent.requests == pytest.approx(spent.flowed, abs=3)
    assert found.snapshot.budget == 300.0


@pytest.mark.long
async def test_what_it_expects_is_what_an_outsider_measures(capped_run: Stage) -> None:
    found = await shown(capped_run)
    assert found.measured is not None
    assert found.snapshot.stale is not None
    assert found.snapshot.stale == pytest.approx(found.measured.binary.mean, abs=0.1)
    assert found.snapshot.captured == sum(found.snapshot.changing) > 100
    assert found.snapshot.price is not None
    assert found.snapshot.watched >= found.snapshot.captured + found.snapshot.gone
    # The outlook at the end is of all pages alone: that of sites is of the hour before.
    ((most, is_full, wanted, captured),) = capped_run.rows(
        "SELECT min(most), sum(capped) > 1, sum(wanted), sum(captured) FROM site_outlook"
    )
    assert (most, is_full) == (pytest.approx(96.0), True)
    assert wanted == pytest.approx(480.0, rel=0.01)
    assert captured == pytest.approx(found.snapshot.captured, abs=5)
    ((counted,),) = capped_run.rows("SELECT sum(new + changed + unchanged) FROM site_day")
    assert [(counted,)] == capped_run.rows(
        "SELECT count(*) FROM finding JOIN page ON page.id = page_id "
        "WHERE role = 'page' AND kind IN ('new', 'changed', 'unchanged')"
    )


@pytest.mark.long
async def test_a_full_host_takes_what_it_may_and_what_it_refuses_is_shown_and_goes_to_others(
    capped_run: Stage,
) -> None:
    await assert_shared_out(capped_run)


@pytest.mark.long
async def test_so_it_does_by_the_plan_of_a_rate_policy(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "crawl.db", delay_s=900.0, policy="lambda_crawl")
    await stage.keep(480.0, 3.0)
    await assert_shared_out(stage)


async def assert_shared_out(stage: Stage) -> None:
    # One visit in 15 minutes at each host, 96 a day, of one in three minutes in all.
    outlook, day = await last_noted(stage), stage.clock.now() - DAY_S
    asked = Counter(url.split("/")[2] for at, url in stage.server.asked if at > day)
    assert max(asked.values()) <= 96
    assert asked["news.localhost"] >= 90
    assert asked.total() == pytest.approx(480, abs=3)
    capped = {queue.queue: queue for queue in outlook.capped}
    assert all(queue.most == pytest.approx(96.0) for queue in outlook.capped)
    assert capped["news.localhost"].wanted > 96
    assert sum(queue.wanted for queue in outlook.capped) <= 480
    assert {name: asked[name] for name in capped if asked[name] < 84} == {}
    assert sum(asked[name] < 84 for name in asked) >= 2


@pytest.mark.long
async def test_no_page_of_a_full_host_is_forgotten(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "crawl.db", delay_s=900.0)
    await stage.keep(300.0, 5.0, ["news"])
    end = stage.clock.now()
    seen: defaultdict[object, list[float]] = defaultdict(list)
    for page, at in stage.rows("SELECT page_id, at FROM observation ORDER BY at"):
        seen[page].append(float(str(at)))
    known = stage.rows("SELECT id FROM page WHERE last_kind IN ('changed', 'unchanged', 'new')")
    assert len(known) > 60
    assert max(end - seen[page][-1] for (page,) in known) < 4 * DAY_S
    outlook = await last_noted(stage)
    assert outlook.forgone > 0.6 * 5 * 300
    assert outlook.flowed == pytest.approx(5 * 300)


async def test_without_a_page_there_is_an_outlook_all_the_same(stage: Stage) -> None:
    await stage.keep(24.0, 0.01, ["news"])
    outlook = await last_noted(stage)
    assert (outlook.stale, outlook.price, outlook.capped) == (None, None, ())
    async with reading(stage.db) as connection:
        assert len(await runs.spendings(connection, 0.0)) >= 2


async def test_many_pages_are_looked_over_in_the_background(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_recorder, "_MANY", 10)
    await stage.keep(480.0, 0.5, ["news"])
    noted = stage.rows("SELECT watched FROM outlook ORDER BY at")
    assert len(noted) >= 12
    assert int(str(noted[-1][0])) > 60
    # Virtual time goes on while a thread works, by how much depends on the machine.
    assert len(stage.server.asked) == pytest.approx((await last_noted(stage)).flowed, rel=0.1)
