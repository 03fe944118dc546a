"""Table crawl_run: one row a crawl, however many invocations it takes."""

from pathlib import Path

from freshet.storage.database import Database, open_store
from freshet.storage.tables import runs
from freshet.storage.tables.runs import CrawlRun
from tests.storage.crawl_store import START, writing


async def started(database: Database, at: float = START) -> int:
    with writing(database) as connection:
        return runs.start(connection, at, "{}")


async def test_a_new_store_has_no_run(tmp_path: Path) -> None:
    database = await open_store(tmp_path / "db")
    assert await runs.latest(database.reader) is None
    await database.close()


async def test_a_run_is_left_and_resumed_until_it_ends(tmp_path: Path) -> None:
    database = await open_store(tmp_path / "db")
    run_id = await started(database)
    for state in ("interrupted", "limit"):
        with writing(database) as connection:
            runs.close(connection, run_id, state, START + 60)
        assert await runs.latest(database.reader) == CrawlRun(run_id, START, None, state, 0)
        with writing(database) as connection:
            runs.reopen(connection, run_id)
        latest = await runs.latest(database.reader)
        assert latest == CrawlRun(run_id, START, None, "running", 0)
    with writing(database) as connection:
        runs.count_fetches(connection, run_id, 3)
        runs.count_fetches(connection, run_id, 4)
        runs.close(connection, run_id, "ended", START + 99)
    ended = CrawlRun(run_id, START, START + 99, "ended", 7)
    assert await runs.latest(database.reader) == ended
    await database.close()


async def test_a_run_that_was_killed_is_still_running_in_the_store(tmp_path: Path) -> None:
    database = await open_store(tmp_path / "db")
    run_id = await started(database)
    await database.close()
    database = await open_store(tmp_path / "db")
    latest = await runs.latest(database.reader)
    assert latest == CrawlRun(run_id, START, None, "running", 0)
    await database.close()


async def test_the_first_run_is_known_as_such(tmp_path: Path) -> None:
    database = await open_store(tmp_path / "db")
    first, second = await started(database), await started(database, START + 60)
    assert await runs.is_first(database.reader, first)
    assert not await runs.is_first(database.reader, second)
    latest = await runs.latest(database.reader)
    assert latest is not None
    assert latest.run_id == second
    await database.close()


async def test_a_run_says_since_when_it_reaches_no_host_until_it_does_or_ends(
    tmp_path: Path,
) -> None:
    database = await open_store(tmp_path / "db")

    async def since() -> float | None:
        found = await runs.latest(database.reader)
        return None if found is None else found.no_network_since

    run_id = await started(database)
    assert await since() is None
    for at in (START + 1, None, START + 2):
        with writing(database) as connection:
            runs.note_network(connection, run_id, at)
        assert await since() == at
    with writing(database) as connection:
        runs.close(connection, run_id, "ended", START + 3)
    assert await since() is None
    await database.close()
