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
    assert owner_of(path) == ("daemon", os.getpid(), "")
    await database.close()
    assert owner_of(path) is None


@pytest.mark.parametrize(
    ("owner", "answer", "code", "words"),
    [
        ("daemon", "reloaded: 5 requests a day", 0, "has reloaded: 5 requests a day"),
        ("daemon", "refused: crawl.scope", 1, "refused: crawl.scope; process"),
        ("freshet", "", 1, "no daemon is running"),
    ],
)
async def test_a_daemon_is_notified_and_what_it_answers_is_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: str, answer: str, code: int, words: str
) -> None:
    path = tmp_path / "crawl.db"
    database = await open_store(path, owner=owner)
    notified: list[tuple[int, int]] = []

    def kill(process: int, number: int) -> None:
        notified.append((process, number))
        database.answer(answer)

    monkeypatch.setattr(os, "kill", kill)
    result = freshet("reload", "--db", path)
    await database.close()
    assert (result.exit_code, words in result.output) == (code, True)
    assert notified == [(os.getpid(), signal.SIGHUP)] * (owner == "daemon")
    assert freshet("reload", "--db", path).exit_code == 1
