"""Verbs on the folder of a sharded store: as on one store, and with a shard that is missing."""

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import pytest

from freshet.storage.shards import Shards
from tests.console import as_json, freshet, shown
from tests.storage.small_store import SmallStore, rows, small_store

#: By the hash, one.example belongs to shard 0, three.example to shard 1.
HOSTS = ("http://one.example", "http://three.example")


def fill(store: SmallStore, now: float, *hosts: str, stubs: bool) -> None:
    """Enter what a run found on these hosts, and pages of others as ``stubs`` of their shards."""
    store.run(now - 600.0, state="ended", ended_at=now - 60.0, fetches=4 * len(hosts))
    ids = {each: store.host(each) for each in hosts}
    for host in hosts:
        page = store.page(f"{host}/", host=ids[host], checked_at=now - 90.0)
        store.observe(page, now - 90.0, "new")
        store.due(store.page(f"{host}/due", host=ids[host]), now - 1.0, host=ids[host])
        store.page(f"{host}/kept-out", host=ids[host], held_back="nofollow")
        store.insert(
            "trap", host_id=ids[host], shape=f"/{len(host)}?d=*", kind="trap", admitted=9,
            refused=len(host),
        )  # fmt: skip
    for other in (each for each in HOSTS if each not in hosts and stubs):
        # One page of the other shard has been told, and another one has not.
        ids[other] = store.host(other)
        known = store.page(f"{other}/", host=ids[other], held_back="shard")
        store.page(f"{other}/due", host=ids[other], held_back="shard")
        store.execute("DELETE FROM outgoing WHERE page_id = ?", known)
        store.link(1, known, now, anchor="a secret word")


@pytest.fixture
def folder(tmp_path: Path, now: float) -> Path:
    """A store of two shards, each with one host and links to the other."""
    made = Shards(tmp_path / "crawl", 2)
    made.write()
    for number, host in enumerate(HOSTS):
        fill(asyncio.run(small_store(made.path(number))), now, host, stubs=True)
    return made.folder


@pytest.fixture
def single(small: SmallStore, now: float) -> Path:
    """One store that holds the same pages."""
    fill(small, now, *HOSTS, stubs=False)
    return small.path


@pytest.fixture
def lame(folder: Path) -> Path:
    """The same folder without the file of shard 1."""
    (folder / "0001.db").unlink()
    return folder


def test_the_status_of_a_folder_is_that_of_one_store(folder: Path, single: Path) -> None:
    told: dict[str, Any] = as_json("status", "--db", folder)
    whole: dict[str, Any] = as_json("status", "--db", single)
    links = told["holdings"].pop("links") - whole["holdings"].pop("links")
    assert links == 2  # those across shards, which the single store was not given
    # Its own fields, and those of another run or file.
    shards = told.pop("shards")
    assert told.pop("down") == {}
    for key in ("db", "at", "file_bytes"):
        del told[key], whole[key]
    assert told == whole
    assert [(it["shard"], it["pages"], it["due"], it["outgoing"]) for it in shards] == [
        (0, 1, 1, 1), (1, 1, 1, 1),
    ]  # fmt: skip


def test_a_shard_that_is_missing_is_named_in_the_status(lame: Path) -> None:
    told = freshet("status", "--db", lame)
    assert told.exit_code == 0
    assert "2 shards" in told.stdout
    assert "1  down" in told.stdout
    assert "shard 1: " in told.stderr
    assert "0001.db: there is no such file: bring it back" in " ".join(told.stderr.split())
    found = as_json("status", "--db", lame)
    assert found["holdings"]["pages"] == 1
    assert found["down"].keys() == {"1"}
    assert found["shards"][1].keys() == {"shard", "down"}
    (lame / "0000.db").write_text("a letter")
    lost = freshet("status", "--db", lame)
    assert lost.exit_code == 1
    assert "not a Freshet store" in " ".join(lost.stderr.split())


def test_what_is_told_of_a_page_is_told_by_its_shard(folder: Path) -> None:
    for host in HOSTS:
        assert as_json("explain", f"{host}/", "--db", folder)["known"]["url"] == f"{host}/"
        assert as_json("history", host.removeprefix("http://"), "--db", folder)["total"] == 1
    (folder / "0001.db").unlink()
    shown("history", f"{HOSTS[0]}/", "--db", folder)
    contact = "--contact", "me@example.org"
    for verb in ("explain", "history", "diff", "text", "check", "discover"):
        more = contact if verb == "check" else ()
        refused = freshet(verb, f"{HOSTS[1]}/", "--db", folder, *more)
        assert refused.exit_code == 1
        assert "0001.db: there is no such file: bring it back" in " ".join(refused.stderr.split())


# -- backup ------------------------------------------------------------------


def told(folder: Path) -> list[list[tuple[str]]]:
    """Return the pages that each shard has to tell others."""
    sql = "SELECT url FROM outgoing JOIN page ON page.id = page_id ORDER BY url"
    return [rows(path, sql) for path in Shards.read(folder).paths()]


def test_a_folder_is_backed_up_and_restored_with_its_links_in_flight(
    folder: Path, tmp_path: Path
) -> None:
    copy, elsewhere = tmp_path / "copy", tmp_path / "elsewhere"
    assert as_json("backup", copy, "--db", folder)["pages"] == 6  # stubs of other shards left out
    assert [path.name for path in sorted(copy.iterdir())] == ["0000.db", "0001.db", "shards.toml"]
    assert told(copy) == told(folder) == [[(f"{HOSTS[1]}/due",)], [(f"{HOSTS[0]}/due",)]]
    assert "sound" in shown("restore", copy, "--db", elsewhere)
    # What was acknowledged may have been so after the copy of the shard that did: it is told again.
    assert told(elsewhere) == [
        [(f"{HOSTS[1]}/",), (f"{HOSTS[1]}/due",)], [(f"{HOSTS[0]}/",), (f"{HOSTS[0]}/due",)],
    ]  # fmt: skip
    held = as_json("status", "--db", elsewhere)["holdings"]
    assert held == as_json("status", "--db", folder)["holdings"]


def test_a_shard_that_is_restored_alone_is_told_again(folder: Path, tmp_path: Path) -> None:
    copy, lost = tmp_path / "copy.db", folder / "0001.db"
    shown("backup", copy, "--db", lost)
    shown("restore", copy, "--db", lost, "--force")
    assert [len(each) for each in told(folder)] == [2, 2]


def test_a_folder_is_replaced_when_all_is_checked_and_with_force_alone(
    folder: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shown("backup", copy, "--db", folder)
    Shards(folder, 3).write()
    asyncio.run(small_store(folder / "0002.db"))
    (folder / "notes.txt").write_text("stays")
    for order in (["backup", copy, "--db", folder], ["restore", copy, "--db", folder]):
        refused = freshet(*order)
        assert refused.exit_code == 1
        assert "it is there already; --force replaces it" in " ".join(refused.stderr.split())
    good = (copy / "0001.db").read_bytes()
    (copy / "0001.db").write_bytes(good[: len(good) // 2])
    damaged = freshet("restore", copy, "--db", folder, "--force")
    assert damaged.exit_code == 1
    assert Shards.read(folder).count == 3
    assert told(folder)[0] == [(f"{HOSTS[1]}/due",)]
    (copy / "0001.db").write_bytes(good)
    shown("restore", copy, "--db", folder, "--force")
    assert Shards.read(folder).count == 2
    assert {path.name for path in folder.iterdir() if path.suffix != ".lock"} == {
        "0000.db", "0001.db", "shards.toml", "notes.txt",
    }  # fmt: skip


def test_a_backup_without_a_shard_is_none(lame: Path, tmp_path: Path) -> None:
    refused = freshet("backup", tmp_path / "copy", "--db", lame)
    assert refused.exit_code == 1
    assert "0001.db: there is no such file" in " ".join(refused.stderr.split())
    assert not (tmp_path / "copy").exists()
    (tmp_path / "empty").mkdir()
    gone = freshet("restore", tmp_path / "empty", "--db", tmp_path / "elsewhere")
    assert "name a store or a backup" in " ".join(gone.stderr.split())


def test_a_folder_of_backups_keeps_the_newest(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "backups"
    kept.mkdir()
    (kept / "crawl-20250101T000000Z").mkdir()  # not one that was finished
    deleted = []
    for hour in range(3):
        monkeypatch.setattr(time, "time", lambda now=3_600.0 * hour: now)
        found = as_json("backup", kept, "--db", folder, "--keep", 2)
        os.utime(found["path"], (hour, hour))
        deleted += found["deleted"]
    assert len(deleted) == 1
    assert sorted(path.name for path in kept.iterdir()) == [
        "crawl-19700101T010000Z", "crawl-19700101T020000Z", "crawl-20250101T000000Z",
    ]  # fmt: skip


# -- upkeep ------------------------------------------------------------------


def test_a_forgotten_page_is_in_no_shard(folder: Path, now: float) -> None:
    page = f"{HOSTS[1]}/"
    whole = SmallStore(folder / "0000.db")
    whole.page(f"{HOSTS[1]}/seed", host=2, held_back="shard")
    whole.insert("seed", url=f"{HOSTS[1]}/seed", text="three", added_at=now, page_id=6)
    assert b"a secret word" in whole.path.read_bytes()
    assert [it["url"] for it in as_json("forget", page, "--db", folder, "--dry-run")["pages"]] == [
        page
    ]
    told = as_json("forget", "--site", HOSTS[1], "--db", folder, "--keep-refusing")
    assert len(told["pages"]) == 4
    assert b"a secret word" not in whole.path.read_bytes()
    kept = "SELECT url, held_back FROM page JOIN host ON host.id = host_id WHERE origin = ?"
    # A seed's address stays where it is, and what is of another shard is not fetched here.
    assert rows(whole.path, kept, HOSTS[1]) == [(f"{HOSTS[1]}/seed", "shard")]
    assert rows(folder / "0001.db", kept, HOSTS[1]) == [
        (f"{HOSTS[1]}/{path}", "forgotten") for path in ("", "due", "kept-out")
    ]
    findings = as_json("doctor", "--db", folder)["findings"]
    assert {it["check"]: it["status"] for it in findings}["shard 0: store"] == "fine"


def test_nothing_is_forgotten_while_a_shard_is_missing(lame: Path) -> None:
    before = (lame / "0000.db").read_bytes()
    refused = freshet("forget", "--site", HOSTS[0], "--db", lame)
    assert refused.exit_code == 1
    assert "nothing is deleted until all shards can be read" in " ".join(refused.stderr.split())
    assert (lame / "0000.db").read_bytes() == before
    assert not (lame / "0001.db").exists()


def test_upkeep_sums_the_shards_and_goes_on_without_one(
    folder: Path, single: Path, now: float
) -> None:
    for path in (single, *Shards.read(folder).paths()):
        store = SmallStore(path)
        store.insert(
            "alert_message", rule="r", key=f"{path}", state="failed", made_at=now, since=now,
            next_at=now,
        )  # fmt: skip
        store.insert("claim_source", host_id=1, url=f"http://{path.stem}", kind="feed")
    verbs = (["gc", "--dry-run"], ["gc"], ["alerts"], ["duplicates"], ["signals"])
    for verb in verbs:
        told, whole = (as_json(*verb, "--db", db) for db in (folder, single))
        assert told.pop("down") == {}
        assert told.keys() == whole.keys()
    assert as_json("alerts", "--db", folder)["rules"][0]["failed"] == 2
    assert "2 messages will be sent again" in shown("alerts", "--retry", "--db", folder)
    assert len(as_json("signals", "--db", folder)["sources"]) == 2
    assert as_json("gc", "--db", folder)["after"]["size_bytes"] == sum(
        path.stat().st_size for path in Shards.read(folder).paths()
    )
    (folder / "0001.db").unlink()
    for verb in verbs:
        assert as_json(*verb, "--db", folder)["down"].keys() == {"1"}
    assert not (folder / "0001.db").exists()
    for command, why in [(("alerts", "--drop", "x"), "no alerts"), (("search", "x"), "no search")]:
        refused = " ".join(freshet(*command, "--db", folder).stderr.split())
        assert why in refused
        assert "0001.db: there is no such file" in refused
    ill = freshet("doctor", "--db", folder)
    assert ill.exit_code == 1
    assert "shard 1: store: it is lost, unless" in " ".join(ill.stdout.split())


@pytest.mark.parametrize("verb", [["plan", "--budget", "9/day"], ["rereduce"]])
def test_other_verbs_say_that_they_work_on_one_shard(folder: Path, verb: list[str]) -> None:
    refused = freshet(*verb, "--db", folder)
    assert refused.exit_code == 1
    assert "works on one shard of a sharded store, such as" in " ".join(refused.stderr.split())
    assert not folder.with_name("crawl.lock").exists()
