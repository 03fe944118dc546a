"""`freshet doctor` says whether a crawl can do its work here."""

import resource
import time
from functools import partial
from pathlib import Path

import pytest

from freshet.crawler.cli import doctor as doctor_cli
from freshet.storage.maintenance import StoreHealth
from tests.console import as_json, freshet
from tests.storage.small_store import SmallStore
from tests.storage.versioned_store import versioned_store

CHECKS = ["versions", "store", "log", "disk", "clock", "contact", "DNS", "limits", "parser"]
doctor = partial(freshet, "doctor", "--db")


@pytest.fixture
def store(tmp_path: Path) -> SmallStore:
    store = versioned_store(tmp_path / "crawl.db", time.time() - 100)
    store.observe(store.page("/"), time.time() - 60, "new")
    return store


def test_a_sound_machine_has_nothing_but_a_note_on_the_contact(store: SmallStore) -> None:
    findings = as_json("doctor", "--db", store.path, "--thorough")["findings"]
    assert [finding["check"] for finding in findings] == CHECKS
    notes = [finding["check"] for finding in findings if finding["status"] != "fine"]
    assert set(notes) <= {"versions", "contact", "disk"}


def test_libraries_with_known_faults_are_named() -> None:
    old = doctor_cli.versions({"expat": (2, 5, 0), "SQLite": (3, 50, 2)})
    assert old.status == "warning"
    assert "expat 2.5.0 has known faults" in (old.advice or "")
    assert "SQLite" not in (old.advice or "")
    assert doctor_cli.versions({"expat": (2, 7, 2), "SQLite": (3, 51, 0)}).status == "fine"


def test_people_get_a_table_and_what_to_do(store: SmallStore) -> None:
    result = doctor(store.path)
    assert "sound: " in result.stdout
    assert "contact: set crawl.contact in freshet.toml" in result.stdout


def test_without_a_store_the_rest_is_checked(tmp_path: Path) -> None:
    result = doctor(tmp_path / "none.db")
    assert result.exit_code == 0
    assert "does not exist yet" in result.stdout


def test_a_damaged_store_is_a_problem_and_the_exit_code_says_so(store: SmallStore) -> None:
    store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(store.path.read_bytes())
    content[4_096 * 3 : 4_096 * 12] = b"\xff" * (4_096 * 9)
    store.path.write_bytes(content)
    result = doctor(store.path)
    assert result.exit_code == 1
    assert "PROBLEM" in result.stdout


def test_rows_that_point_nowhere_are_a_problem(store: SmallStore) -> None:
    store.due(999, 0.0)
    result = doctor(store.path)
    assert result.exit_code == 1
    assert "1 rows of frontier refer to a missing page" in result.stdout


def test_what_is_no_store_is_a_problem(tmp_path: Path) -> None:
    file = tmp_path / "letter.db"
    file.write_text("Dear Sir or Madam, " * 20)
    result = doctor(file)
    assert result.exit_code == 1
    assert "it is not a Freshet store" in result.stdout


def test_a_clock_behind_the_newest_observation_is_a_problem() -> None:
    now = 1_800_000_000.0
    assert doctor_cli.clock(now, now + 10).status == "fine"
    assert doctor_cli.clock(now, now + 1_000).status == "problem"
    assert doctor_cli.clock(1_000_000.0, None).status == "problem"


def test_too_few_files_for_the_exchanges_are_a_problem() -> None:
    assert doctor_cli.files(256, 1_024).status == "fine"
    assert doctor_cli.files(256, resource.RLIM_INFINITY).status == "fine"
    few = doctor_cli.files(1_000, 1_024)
    assert few.status == "problem"
    assert few.advice is not None
    assert "ulimit -n 1064" in few.advice


def test_a_log_that_only_grows_is_noted() -> None:
    health = StoreHealth((), 10, 1_000_000_000, 1, None, None)
    assert doctor_cli.log(health).status == "warning"


def test_a_contact_is_shown_as_servers_see_it() -> None:
    found = doctor_cli.contact("Freshet", "https://example.org/bot")
    assert found.status == "fine"
    assert "(+https://example.org/bot)" in found.found
