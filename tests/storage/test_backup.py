"""A copy of a store is whole, sound and on the disk, or it is not there."""

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from freshet.storage import backup
from freshet.storage.backup import back_up, restore
from freshet.storage.database import held
from freshet.storage.errors import StoreError, StoreUnavailable
from tests.storage.small_store import SmallStore, rows

#: Copies a store with a step a page, as a process of its own that ends in some way.
PROGRAM = """
import os, resource, signal, sys
from pathlib import Path
from freshet.storage import backup as backups
backups._STEP_PAGES = 1
def progress(what, share):
    if sys.argv[3] == "killed" and share > 0.5:
        os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[3] == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, 65_536))
try:
    backups.back_up(Path(sys.argv[1]), Path(sys.argv[2]), replace=True, progress=progress)
except backups.StoreError as error:
    sys.exit(str(error))
"""


def silent(_what: str, _share: float) -> None:
    pass


def asked(path: Path, query: str = "SELECT count(*) FROM observation") -> object:
    ((value,),) = rows(path, query)
    return value


def files(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir() if not each.name.startswith("crawl.db")}


@pytest.fixture
def store(site: SmallStore) -> SmallStore:
    for number in range(60):
        page = site.page(f"/{number}/{'long' * 100}")
        site.observe(page, float(number), "new")
    return site


@pytest.fixture
def writer(store: SmallStore) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        yield connection


def test_a_copy_has_what_the_store_has_and_says_so(store: SmallStore, tmp_path: Path) -> None:
    copied = back_up(store.path, tmp_path / "copy.db", replace=False, progress=silent)
    assert (copied.pages, copied.observations, copied.newest_at) == (60, 60, 59.0)
    assert copied.size_bytes == (tmp_path / "copy.db").stat().st_size
    assert files(tmp_path) == {"copy.db"}
    assert asked(tmp_path / "copy.db", "PRAGMA journal_mode") == "delete"


def test_what_was_committed_before_it_began_is_in_it_and_nothing_later(
    store: SmallStore, writer: sqlite3.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup, "_STEP_PAGES", 1)
    told: list[float] = []

    def commit(_what: str, share: float) -> None:
        told.append(share)
        writer.execute("INSERT INTO host (origin) VALUES (?)", (f"http://{len(told)}.example",))

    writer.execute("INSERT INTO host (origin) VALUES ('http://before.example')")
    back_up(store.path, tmp_path / "copy.db", replace=False, progress=commit)
    # One step a page: SQLite never began again.
    pages = asked(tmp_path / "copy.db", "PRAGMA page_count")
    assert len(told) == int(str(pages)) + 1
    assert told[:-1] == sorted(told[:-1])
    assert asked(tmp_path / "copy.db", "SELECT count(*) FROM host") == 2
    assert asked(store.path, "SELECT count(*) FROM host") == 2 + len(told)


def test_a_copy_that_is_there_is_replaced_only_on_demand(store: SmallStore, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    target.write_text("a letter")
    with pytest.raises(StoreError, match=r"copy.db: it is there already; --force replaces it"):
        back_up(store.path, target, replace=False, progress=silent)
    assert target.read_text() == "a letter"
    back_up(store.path, target, replace=True, progress=silent)
    assert asked(target) == 60


@pytest.mark.parametrize("ending", ["-wal", "-journal"])
def test_the_log_of_another_store_is_never_taken_for_that_of_the_copy(
    store: SmallStore, tmp_path: Path, ending: str
) -> None:
    log = tmp_path / f"copy.db{ending}"
    log.write_bytes(b"left behind")
    with pytest.raises(StoreError, match=rf"copy.db{ending}: it is there already"):
        back_up(store.path, tmp_path / "copy.db", replace=False, progress=silent)
    back_up(store.path, tmp_path / "copy.db", replace=True, progress=silent)
    assert not log.exists()


def test_the_store_and_its_own_files_are_no_target(store: SmallStore, tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(store.path)
    (tmp_path / "hard.db").hardlink_to(store.path)
    for name in ("crawl.db", "link.db", "hard.db"):
        with pytest.raises(StoreError, match="it is the store itself"):
            back_up(store.path, tmp_path / name, replace=True, progress=silent)
    for name in ("crawl.db-wal", "crawl.db-shm", "crawl.db.lock"):
        with pytest.raises(StoreError, match="a file of its own"):
            back_up(store.path, tmp_path / name, replace=True, progress=silent)
    with pytest.raises(StoreError, match="there is no folder"):
        back_up(store.path, tmp_path / "none" / "copy.db", replace=True, progress=silent)
    assert asked(store.path) == 60


def test_a_store_that_is_written_is_no_target(store: SmallStore, tmp_path: Path) -> None:
    back_up(store.path, tmp_path / "copy.db", replace=False, progress=silent)
    with closing(held(store.path, "daemon")):
        with pytest.raises(StoreError, match=r"a freshet daemon .* is writing it"):
            back_up(tmp_path / "copy.db", store.path, replace=True, progress=silent)
        with pytest.raises(StoreError, match=r"a freshet daemon .* is writing it"):
            restore(tmp_path / "copy.db", store.path, replace=True, progress=silent)


def test_what_is_no_store_is_not_copied(tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("Dear Sir or Madam, " * 20)
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection, connection:
        connection.execute("CREATE TABLE t (a)")
    (tmp_path / "empty.db").touch()
    for name in ("letter", "other.db", "empty.db"):
        with pytest.raises(StoreError, match="it is not a Freshet store"):
            restore(tmp_path / name, tmp_path / "new.db", replace=False, progress=silent)
    with pytest.raises(StoreError, match="there is no such file"):
        restore(tmp_path / "none", tmp_path / "new.db", replace=False, progress=silent)
    assert not (tmp_path / "new.db").exists()


def test_a_store_of_a_later_freshet_is_not_copied(store: SmallStore, tmp_path: Path) -> None:
    store.execute("PRAGMA user_version = 999")
    with pytest.raises(StoreError, match="schema 999 is newer"):
        back_up(store.path, tmp_path / "copy.db", replace=False, progress=silent)


def test_a_damaged_store_gives_no_copy(store: SmallStore, tmp_path: Path) -> None:
    store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(store.path.read_bytes())
    content[4_096 * 30 : 4_096 * 40] = b"\xff" * (4_096 * 10)
    store.path.write_bytes(content)
    with pytest.raises(StoreError, match=r"crawl.db: .*damaged"):
        back_up(store.path, tmp_path / "copy.db", replace=False, progress=silent)
    assert files(tmp_path) == set()


def test_without_room_it_does_not_begin(
    store: SmallStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup, "SPARE_BYTES", 10**18)
    with pytest.raises(StoreUnavailable, match=r"MB free, and the copy takes"):
        back_up(store.path, tmp_path / "copy.db", replace=False, progress=silent)
    assert files(tmp_path) == set()


@pytest.mark.parametrize("how", ["killed", "full"])
def test_a_copy_that_is_broken_off_leaves_what_was_there(
    store: SmallStore, tmp_path: Path, how: str
) -> None:
    target = tmp_path / "copy.db"
    target.write_text("the copy of yesterday")
    program = [sys.executable, "-c", PROGRAM, str(store.path), str(target), how]
    ended = subprocess.run(program, check=False, capture_output=True, text=True)
    assert ended.returncode == (-signal.SIGKILL if how == "killed" else 1), ended.stderr
    assert target.read_text() == "the copy of yesterday"
    if how == "full":
        assert "copy.db: the disk failed or is full" in ended.stderr
        assert files(tmp_path) == {"copy.db"}
    # What a killed process has left is used again.
    back_up(store.path, target, replace=True, progress=silent)
    assert asked(target) == asked(store.path) == 60
    assert files(tmp_path) == {"copy.db"}


def test_ctrl_c_leaves_nothing_behind(store: SmallStore, tmp_path: Path) -> None:
    def interrupt(_what: str, _share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        back_up(store.path, tmp_path / "copy.db", replace=False, progress=interrupt)
    assert files(tmp_path) == set()


def test_two_copies_to_one_file_do_not_mix(store: SmallStore, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"

    def another(_what: str, _share: float) -> None:
        with pytest.raises(StoreError, match="another freshet is writing it"):
            back_up(store.path, target, replace=True, progress=silent)

    back_up(store.path, target, replace=False, progress=another)
    assert asked(target) == 60


def test_a_copy_is_as_private_as_the_store(store: SmallStore, tmp_path: Path) -> None:
    store.path.chmod(0o600)
    back_up(store.path, tmp_path / "copy.db", replace=False, progress=silent)
    assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600


def test_a_backup_on_a_medium_that_cannot_be_written_is_restored(
    store: SmallStore, tmp_path: Path
) -> None:
    medium = tmp_path / "medium"
    medium.mkdir()
    back_up(store.path, medium / "copy.db", replace=False, progress=silent)
    medium.chmod(0o500)
    try:
        restore(medium / "copy.db", tmp_path / "new.db", replace=False, progress=silent)
        assert files(medium) == {"copy.db"}
    finally:
        medium.chmod(0o700)
    assert asked(tmp_path / "new.db") == 60
