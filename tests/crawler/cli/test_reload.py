"""``freshet reload`` finds the daemon of a store, and nobody else."""

import os
import signal
from pathlib import Path

import pytest

from freshet.storage.database import open_store, owner_of
from tests.console import freshet


async def test_who_writes_a_store_is_known(tmp_path: Path) -> None:
    path = tmp_path / "crawl.db"
    assert owner_of(path) is None
    database = await open_store(path, owner="daemon")
    assert owner_of(path) == ("daemon", os.getpid())
    await database.close()
    assert owner_of(path) is None


async def test_a_daemon_is_told_and_a_crawl_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda number, what: told.append((number, what)))
    path = tmp_path / "crawl.db"
    for owner, code in (("daemon", 0), ("freshet", 1)):
        database = await open_store(path, owner=owner)
        result = freshet("reload", "--db", path)
        assert result.exit_code == code
        await database.close()
    assert told == [(os.getpid(), signal.SIGHUP)]
    assert freshet("reload", "--db", path).exit_code == 1
