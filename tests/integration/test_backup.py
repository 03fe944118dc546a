"""A store that is backed up while a daemon writes it goes on elsewhere, and knows the same."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from freshet.crawler.fetch.client import Fetcher, Request
from freshet.crawler.frontier.clock import VirtualClock
from freshet.storage.backup import back_up, restore
from freshet.storage.database import reading
from freshet.storage.queries import columns
from freshet.storage.queries.columns import VisitColumns
from freshet.storage.records import FetchResult
from scripts.benchmarks.daemon_replay import differences, learnt_at_once
from tests.console import as_json
from tests.integration.quick import assert_consistent
from tests.integration.test_daemon import DAY_S, Stage
from tests.storage.small_store import rows

BUDGET = 150.0


@dataclass(slots=True)
class BackingUp:
    """Passes requests on; before one of them, a backup is made of what is committed."""

    server: Fetcher
    db: Path
    target: Path
    left: int
    committed: int = 0

    async def fetch(self, request: Request) -> FetchResult:
        self.left -= 1
        if self.left == 0:
            self.committed = count(self.db)
            back_up(self.db, self.target, replace=False, progress=lambda _what, _share: None)
        return await self.server.fetch(request)


def count(db: Path, where: str = "true") -> int:
    return len(rows(db, f"SELECT 1 FROM observation WHERE {where}"))


async def looks_of(db: Path) -> VisitColumns:
    async with reading(db) as connection:
        return await columns.visit_columns(connection)


def early(visits: VisitColumns, many: int) -> VisitColumns:
    first = slice(many)
    return VisitColumns(
        visits.page_id[first], visits.at[first], visits.compared[first], visits.changed[first],
        visits.gone[first], visits.moved[first],
    )  # fmt: skip


async def backed_up_in_between(folder: Path) -> tuple[Stage, BackingUp]:
    """A daemon of four days, with a backup in the middle."""
    stage = Stage(folder / "crawl.db", audit_share=0.05)
    backing_up = BackingUp(stage.server.web, stage.db, folder / "backup.db", int(2 * BUDGET))
    stage.server.web = backing_up
    await stage.keep(BUDGET, 4.0)
    return stage, backing_up


async def ask(*arguments: str) -> dict[str, object]:
    """What a verb says as JSON; it has an event loop of its own."""
    found: dict[str, object] = await asyncio.to_thread(as_json, *arguments)
    return found


@pytest.mark.long
async def test_a_restored_daemon_knows_what_the_first_one_knew_and_goes_on_from_there(
    tmp_path: Path,
) -> None:
    stage, backing_up = await backed_up_in_between(tmp_path)
    elsewhere = tmp_path / "another machine" / "restored.db"
    elsewhere.parent.mkdir()
    restore(backing_up.target, elsewhere, replace=False, progress=lambda _what, _share: None)
    assert_consistent(elsewhere)
    # All that was committed when it began, and nothing of later.
    assert backing_up.committed == count(elsewhere) < count(stage.db)
    known, all_of_them = await looks_of(elsewhere), await looks_of(stage.db)
    assert len(known) > 100
    assert np.array_equal(known.page_id, all_of_them.page_id[: len(known)])
    assert np.array_equal(known.at, all_of_them.at[: len(known)])
    async with reading(elsewhere) as connection:
        pages = await columns.pages(connection)
    async with reading(stage.db) as connection:
        of_then = await columns.pages(connection, pages.page_id.tolist())
    first = learnt_at_once(of_then, early(all_of_them, len(known)), stage.policy, BUDGET)
    restored = learnt_at_once(pages, known, stage.policy, BUDGET)
    apart = differences(first, restored, float(known.at.max()) / DAY_S + 0.01)
    assert apart.pages > 50
    assert (apart.worth, apart.stale) == (0.0, 0.0)
    await goes_on(stage, elsewhere)


async def goes_on(stage: Stage, restored: Path) -> None:
    """A daemon on the restored store goes on where the backup was made."""
    before, new = count(restored), count(restored, "kind = 'new'")
    second = Stage(restored, web=stage.web)
    second.at(VirtualClock(stage.clock.now()))
    report = await second.keep(BUDGET, 2.0)
    assert abs(report.fetches - 2 * BUDGET) <= 2
    assert count(restored) > before
    assert new > 50
    # Nothing that it knows is met for the first time.
    met = f"SELECT page_id FROM observation WHERE id <= {before} AND kind = 'new'"
    assert count(restored, f"kind = 'new' AND id > {before} AND page_id IN ({met})") == 0
    assert [state for (state,) in second.rows("SELECT state FROM crawl_run")] == ["ended"]
    assert_consistent(restored)
    status = await ask("status", "--db", str(restored))
    assert status
    (url,) = second.rows("SELECT url FROM page WHERE last_kind = 'unchanged' LIMIT 1")[0]
    assert await ask("explain", str(url), "--db", str(restored))
