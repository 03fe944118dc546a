"""`freshet backup` and `freshet restore`, as they are typed."""

import json
import os
import time
from pathlib import Path

import pytest

from tests.console import as_json, freshet, shown
from tests.storage.small_store import SmallStore
from tests.storage.versioned_store import versioned_store

T0 = 1_760_000_000.0


@pytest.fixture
def store(tmp_path: Path) -> SmallStore:
    store = versioned_store(tmp_path / "crawl.db", T0)
    store.observe(store.page("/"), T0, "new")
    return store


def test_a_backup_is_restored_on_another_path(store: SmallStore, tmp_path: Path) -> None:
    made = shown("backup", tmp_path / "copy.db", "--db", store.path)
    assert "1 page, 1 observation until 2025-" in made
    elsewhere = tmp_path / "elsewhere.db"
    assert as_json("restore", tmp_path / "copy.db", "--db", elsewhere)["observations"] == 1
    pages = [freshet("export", "pages", "--db", db) for db in (store.path, elsewhere)]
    assert [each.exit_code for each in pages] == [0, 0]
    assert pages[0].stdout == pages[1].stdout


def test_nothing_is_replaced_unless_told(store: SmallStore, tmp_path: Path) -> None:
    for verb in ("backup", "restore"):
        old = tmp_path / f"{verb}.db"
        old.write_text("a letter")
        order = (
            [verb, old, "--db", store.path] if verb == "backup" else [verb, store.path, "--db", old]
        )
        refused = freshet(*order)
        assert refused.exit_code == 1
        assert refused.stderr.endswith("it is there already; --force replaces it\n")
        assert old.read_text() == "a letter"
        assert freshet(*order, "--force").exit_code == 0


def test_a_folder_keeps_the_newest_of_this_store_alone(
    store: SmallStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    others = ["crawl-20250101T000000Z.db.part", "other-20250101T000000Z.db", "crawl-notes.db"]
    for name in others:
        (folder / name).write_text("not to be deleted")
    made = []
    for hour in (3, 2, 1, 0):  # of a clock that goes back
        monkeypatch.setattr(time, "time", lambda now=T0 + 3_600 * hour: now)
        made.append(freshet("backup", folder, "--db", store.path, "--keep", 2, "--json"))
        os.utime(json.loads(made[-1].stdout)["path"], (hour, hour))
    assert [each.exit_code for each in made] == [0, 0, 0, 0]
    first, last = (json.loads(made[index].stdout)["path"] for index in (0, -1))
    assert {each.name for each in folder.iterdir()} == {Path(first).name, Path(last).name, *others}


def test_keeping_some_needs_a_folder(store: SmallStore, tmp_path: Path) -> None:
    refused = freshet("backup", tmp_path / "copy.db", "--db", store.path, "--keep", 2)
    assert refused.exit_code == 2
    assert "must be a folder" in refused.stderr


def test_a_folder_that_is_missing_is_no_file_name(store: SmallStore, tmp_path: Path) -> None:
    made = freshet("backup", tmp_path / "backups", "--db", store.path)
    assert made.exit_code == 2
    assert "there is no such folder; make it" in made.stderr
    assert not (tmp_path / "backups").exists()
