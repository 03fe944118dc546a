"""Whatever is thrown away, a daemon knows the same afterwards."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from freshet.crawler.frontier.clock import VirtualClock
from freshet.storage import maintenance
from freshet.storage.database import open_store, reading
from freshet.storage.maintenance import Retention
from freshet.storage.queries import columns
from scripts.benchmarks.daemon_replay import differences, learnt_at_once
from tests.integration.quick import assert_consistent
from tests.integration.test_daemon import DAY_S, Stage

BUDGET = 240.0
#: As little as the settings allow, and less.
NOTHING = Retention(1, 0.0, 0.0, 3, 0.0, 0.0)


@pytest.mark.long
async def test_the_tightest_retention_changes_nothing_that_is_learnt(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "crawl.db", audit_share=0.05)
    await stage.keep(BUDGET, 5.0)
    async with reading(stage.db) as connection:
        pages, visits = await columns.pages(connection), await columns.visit_columns(connection)
        moves = await columns.moves(connection)
        kept = await columns.page_histories(connection)
    database = await open_store(stage.db)
    thrown_away = await maintenance.prune(database, NOTHING, stage.clock.now())
    await database.close()
    gone = {each.what: each.rows for each in thrown_away if each.rows}
    assert {"bodies", "failures", "removed links"} <= gone.keys()
    assert_consistent(stage.db)
    async with reading(stage.db) as connection:
        pages_then, visits_then = (
            await columns.pages(connection),
            await columns.visit_columns(connection),
        )
        assert await columns.moves(connection) == moves
        assert (await columns.page_histories(connection)).url == kept.url
    for each in fields(visits):
        assert np.array_equal(getattr(visits, each.name), getattr(visits_then, each.name))
    for each in fields(pages):
        assert np.array_equal(getattr(pages, each.name), getattr(pages_then, each.name))
    before = learnt_at_once(pages, visits, stage.policy, BUDGET)
    after = learnt_at_once(pages_then, visits_then, stage.policy, BUDGET)
    apart = differences(before, after, float(visits.at.max()) / DAY_S + 0.01)
    assert (apart.worth, apart.stale) == (0.0, 0.0)
    stage.at(VirtualClock(stage.clock.now()))
    report = await stage.keep(BUDGET, 1.0)
    assert abs(report.fetches - BUDGET) <= 2
    assert_consistent(stage.db)
