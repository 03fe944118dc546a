"""``freshet shards``: domains move to other shards, and nothing is lost, doubled or told twice."""

import asyncio
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from hashlib import blake2b
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from freshet.crawler.cli.verbs import application
from freshet.crawler.extensions.search import tables as search
from freshet.crawler.extensions.shards import moving
from freshet.crawler.extensions.shards.cli import shards as verbs
from freshet.storage.backup import back_up
from freshet.storage.database import held, open_store, opened, reading
from freshet.storage.errors import StoreError
from freshet.storage.shards import Shards
from freshet.storage.tables import changefeed
from freshet.storage.tables.observations import dictionary_id, unpacked
from freshet.storage.tables.runs import lease_of
from tests.storage.sharded_store import sharded_store
from tests.storage.small_store import SmallStore, rows


def run(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(application(["shards"]), ["shards", *map(str, arguments)])
    assert result.exit_code == code, (result.output, result.exception)
    return result.output


def verified(folder: Path, code: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run("verify", "--db", folder, "--json", code=code))
    return found


def digests(folder: Path) -> list[tuple[int, str]]:
    found = verified(folder)
    assert found["problems"] == []
    return [(each["shard"], each["digest"]) for each in found["shards"]]


def copy_of(folder: Path, name: str) -> Path:
    return Path(shutil.copytree(folder, folder.with_name(name)))


@pytest.mark.long
@settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.integers(0, 9_999), st.integers(1, 3), st.integers(1, 3), st.data())
def test_a_split_and_a_merge_lead_back(
    tmp_path_factory: pytest.TempPathFactory, seed: int, before: int, more: int, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("web") / "crawl"
    sharded_store(folder, before, seed)
    had, links = digests(folder), sorted(_links(folder))
    planned = run("split", before + more, "--db", folder, "--dry-run", "--json")
    said = run("split", before + more, "--db", folder)
    assert "the same before and after" in said
    assert Shards.read(folder) == Shards(folder, before + more, 2)
    held_now = digests(folder)
    assert len(held_now) == before + more
    assert sorted(_links(folder)) == links
    assert (json.loads(planned)["domains"] == 0) == (held_now[:before] == had)
    run("merge", before, "--db", folder)
    assert digests(folder) == had
    assert sorted(_links(folder)) == links
    assert not [path for path in folder.iterdir() if path.name.startswith(f"{before:04}")]


def _links(folder: Path) -> list[Any]:
    """All links and claims, once for each shard that has them."""
    sql = (
        "SELECT a.url, b.url FROM link JOIN page a ON a.id = src_id JOIN page b ON b.id = dst_id "
        "UNION ALL SELECT s.url, p.url FROM claim c JOIN claim_source s ON s.id = c.source_id "
        "JOIN page p ON p.id = c.page_id UNION ALL SELECT key, body FROM alert_message "
        "WHERE body IS NOT NULL UNION ALL SELECT digest, zstd FROM body WHERE false"
    )
    return [tuple(map(str, row)) for path in Shards.read(folder).paths() for row in rows(path, sql)]


@pytest.mark.parametrize("seed", range(3))
def test_bodies_are_read_on_wherever_the_dictionaries_of_their_hosts_are(
    tmp_path: Path, seed: int
) -> None:
    folder = tmp_path / "crawl"
    sharded_store(folder, 2, seed)
    for path in Shards.read(folder).paths():
        _pack(path)
    had = _bodies(folder)
    assert had == {digest: digest for digest in had} != {}
    for verb in (("split", 5), ("merge", 2)):
        run(*verb, "--db", folder)
        assert _bodies(folder) == had
    # A body that two hosts have may have gone without the dictionary of the other one.
    for path in Shards.read(folder).paths():
        origins = {row[0] for row in rows(path, "SELECT origin FROM host")}
        kept = {row[0] for row in rows(path, "SELECT origin FROM dictionary")}
        assert kept <= origins


def _pack(path: Path) -> None:
    """Pack the bodies of a store, which are plain, with a dictionary of each host."""
    with closing(sqlite3.connect(path)) as db:
        for host, origin in db.execute("SELECT id, origin FROM host").fetchall():
            key = 40_000 + int.from_bytes(origin.encode()) % 1_000_000
            samples: list[Any] = [f"{origin} says {n} and {n * n}".encode() * 9 for n in range(99)]
            made = zstandard.train_dictionary(512, samples, k=64, d=8, dict_id=key)
            packer = zstandard.ZstdCompressor(dict_data=made)
            sql = (
                "SELECT DISTINCT b.digest, b.zstd FROM body AS b JOIN version AS v "
                "ON v.body_digest = b.digest JOIN page AS p ON p.id = v.page_id "
                "WHERE p.host_id = ? AND length(b.zstd) = 2"
            )
            for digest, body in db.execute(sql, (host,)).fetchall():
                frame = packer.compress(body)
                db.execute("UPDATE body SET zstd = ? WHERE digest = ?", (frame, digest))
            packed = zstandard.compress(made.as_bytes())
            db.execute("INSERT INTO dictionary VALUES (?, ?, 0, 60, ?)", (key, origin, packed))
        db.commit()


def _bodies(folder: Path) -> dict[bytes, bytes]:
    """The digests of all bodies as stored, and of what is read of them."""
    found = {}
    for path in Shards.read(folder).paths():
        words = dict(rows(path, "SELECT id, zstd FROM dictionary"))
        for digest, frame in rows(path, "SELECT digest, zstd FROM body"):
            body = unpacked(frame, 2, words.get(dictionary_id(frame)))
            found[digest] = blake2b(body, digest_size=16).digest()
    return found


class KilledError(BaseException):
    """What ends the process at some step."""


def kill_at(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Die at the given one of all moments between two writes."""
    steps = count()

    def dying(work: Callable[..., Any]) -> Callable[..., Any]:
        def done(*arguments: Any, **named: Any) -> Any:
            if next(steps) == step:
                raise KilledError
            result = work(*arguments, **named)
            if next(steps) == step:
                raise KilledError
            return result

        return done

    for of, name in [(verbs, "transact"), (verbs, "_delete"), (verbs, "back_up"), (verbs, "sync"),
                     (Shards, "write"), (Path, "replace"), (Path, "symlink_to")]:  # fmt: skip
        monkeypatch.setattr(of, name, dying(getattr(of, name)))


@pytest.mark.long
@pytest.mark.parametrize("verb", [("split", 3), ("merge", 1), ("move", 1)])
def test_after_a_kill_at_any_step_the_same_command_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: tuple[str, int]
) -> None:
    sharded_store(tmp_path / "made", 2, 1)
    arguments: list[object] = [*verb, tmp_path / "other"] if verb[0] == "move" else [*verb]
    expected: list[Any] = []
    for step in count():
        folder = copy_of(tmp_path / "made", "crawl")
        with monkeypatch.context() as patched:
            kill_at(patched, step)
            try:
                CliRunner().invoke(
                    application(["shards"]), ["shards", *map(str, arguments), "--db", str(folder)]
                )
                killed = False
            except KilledError:
                killed = True
        run(*arguments, "--db", folder)
        found = digests(folder)
        shutil.rmtree(folder)
        shutil.rmtree(tmp_path / "other", ignore_errors=True)
        expected.append(found)
        assert found == expected[0], step
        if not killed:
            break
    assert len(expected) > 9


def test_while_it_is_under_way_nothing_else_may_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "crawl"
    sharded_store(folder, 2, 1)
    with monkeypatch.context() as patched:
        kill_at(patched, 8)
        with pytest.raises(KilledError):
            run("split", 4, "--db", folder)
    said = f"a split from 2 to 4 is under way: `freshet shards split 4 --db {folder}` goes on"
    for other in (["split", 5], ["merge", 2], ["move", 0, tmp_path / "x"], ["verify"]):
        assert said in run(*other, "--db", folder, code=1)
    # Its stores would be copied at different moments.
    with pytest.raises(StoreError, match="is under way"):
        back_up(folder, tmp_path / "copy", replace=False, progress=lambda *_: None)
    run("split", 4, "--db", folder)
    Shards.read(folder).require_settled()


def test_what_is_wrong_is_said_in_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "crawl"
    shards = sharded_store(folder, 2, 1)
    assert "`freshet shards merge 1`" in run("split", 1, "--db", folder, code=2)
    assert "`freshet shards split 3`" in run("merge", 3, "--db", folder, code=2)
    assert "no shards.toml" in run("split", 3, "--db", tmp_path, code=1)
    assert "the shards 0 to 1" in run("move", 2, tmp_path, "--db", folder, code=2)
    assert "the folder of the store itself" in run("move", 1, folder, "--db", folder, code=2)
    with closing(held(shards.path(1), "daemon")):
        assert "a freshet daemon" in run("split", 3, "--db", folder, code=1)
    run("split", 3, "--db", folder)


def test_a_consumer_of_the_changefeed_has_the_same_after_a_split(tmp_path: Path) -> None:
    folder = tmp_path / "crawl"
    for seed in range(2):
        sharded_store(folder, 2, seed, domains=12)
        copy, cursors = dict[str, int | None](), dict[int, str]()
        consume(folder, copy, cursors, limit=3)
        run("split", 4, "--db", folder)
        consume(folder, copy, cursors, limit=10_000)
        anew = dict[str, int | None]()
        consume(folder, anew, {}, limit=10_000)
        assert copy == anew
        assert any(copy.values())
        shutil.rmtree(folder)


def consume(folder: Path, copy: dict[str, Any], cursors: dict[int, str], limit: int) -> None:
    """Apply the changes since the cursors of the shards to a copy of the documents."""

    async def told(shard: int, path: Path) -> None:
        async with reading(path) as db:
            place = await changefeed.position(db, cursors.get(shard, "0"))
            found, place = await changefeed.changes(db, place, limit)
            cursors[shard] = str(place)
            for change in found:
                copy.pop(change.url, None)
                sql = "SELECT body_digest FROM version WHERE id = ?"
                for row in await db.execute_fetchall(sql, (change.version_id,)):
                    copy[change.url] = row[0]

    for shard, path in enumerate(Shards.read(folder).paths()):
        asyncio.run(told(shard, path))


def test_verify_finds_what_is_wrong(tmp_path: Path) -> None:
    folder = tmp_path / "crawl"
    shards = sharded_store(folder, 2, 1)
    digests(folder)
    swapped = Shards(copy_of(folder, "swapped"), 2)
    swapped.path(0).rename(tmp_path / "one")
    swapped.path(1).rename(swapped.path(0))
    (tmp_path / "one").rename(swapped.path(1))
    first, second = verified(swapped.folder, code=1)["problems"]
    assert "0000.db: it is the store of shard 1" in first
    assert "0001.db: it is the store of shard 0" in second
    missing = Shards(copy_of(folder, "missing"), 2)
    missing.path(1).unlink()
    (missing.folder / "0007.db").touch()
    foreign, gone = verified(missing.folder, code=1)["problems"]
    assert "0001.db: there is no such file: bring it back" in gone
    assert "0007.db: it is of no shard" in foreign
    assert "0001.db" in run("split", 3, "--db", missing.folder, code=1)
    # Doubled: copied and not deleted. The same number of shards again mends it.
    with opened(shards.path(1)) as db, moving.attached(db, shards.path(0)):
        sql = (
            "SELECT h.id, h.origin FROM old.host h JOIN old.page p ON p.host_id = h.id "
            "WHERE p.held_back IS NULL"
        )
        moving.copy(db, {host: origin[8:] for host, origin in db.execute(sql)})
    misplaced, doubled = verified(folder, code=1)["problems"]
    assert "belong to other shards, such as site" in misplaced
    assert "with pages in another shard, too" in doubled
    run("split", 2, "--db", folder)
    digests(folder)
    SmallStore(shards.path(0)).execute(
        "INSERT INTO outgoing SELECT id FROM page WHERE held_back IS NULL LIMIT 1"
    )
    assert "in outgoing that no other" in verified(folder, code=1)["problems"][0]


def test_a_domain_that_differs_in_two_shards_is_left_in_both(tmp_path: Path) -> None:
    folder = tmp_path / "crawl"
    shards = sharded_store(folder, 2, 1)
    url = next(
        row[0] for row in rows(shards.path(0), "SELECT url FROM page WHERE held_back IS NULL")
    )
    SmallStore(shards.path(1)).execute("UPDATE page SET held_back = NULL WHERE url = ?", url)
    SmallStore(shards.path(1)).execute("DELETE FROM outgoing")
    assert "another shard has other pages of site" in run("split", 2, "--db", folder, code=1)
    assert rows(shards.path(0), "SELECT count(*) FROM page WHERE url = ?", url) == [(1,)]


def test_a_shard_moves_with_its_cursors_and_may_move_again(tmp_path: Path) -> None:
    folder = tmp_path / "crawl"
    shards = sharded_store(folder, 2, 1)
    had, path = digests(folder), shards.path(1)
    (epoch,) = rows(path, "SELECT epoch FROM changefeed")
    for number, name in enumerate(["disk", "other"]):
        (tmp_path / name).mkdir()
        run("move", 1, tmp_path / name, "--db", folder)
        assert path.readlink() == tmp_path / name / "0001.db"
        assert digests(folder) == had
        assert rows(path, "SELECT epoch FROM changefeed") == [epoch]
        with opened(path) as db:
            assert lease_of(db) == (1, number + 2)
        assert Shards.read(tmp_path / name).count == 2
    assert [each.name for each in (tmp_path / "disk").iterdir()] == ["shards.toml"]
    assert "of another store" in run("move", 0, _other(tmp_path), "--db", folder, code=1)


def _other(tmp_path: Path) -> Path:
    return sharded_store(tmp_path / "foreign", 3, 5).folder


def test_every_table_and_reference_is_dealt_with(tmp_path: Path) -> None:
    async def made() -> None:
        database = await open_store(tmp_path / "a.db")
        await database.write(search.create)
        await database.close()

    asyncio.run(made())
    # Digests and what stands for one page or host: none of them holds ids.
    without_ids = {
        "body_digest", "text_digest", "rejected_digest", "sketch", "data", "body", "still",
        "channels",
    }  # fmt: skip
    with opened(tmp_path / "a.db") as db:
        tables = moving.moved_tables(db)
        names = {
            row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        assert moving.STAY.keys() <= names
        for table in tables:
            ids = [c for c in table.plain if c.endswith("_id") and c != "list_id"]
            assert ids == [], table.name
            info = db.execute(f"PRAGMA table_info({table.name})").fetchall()
            assert {row[1] for row in info if row[2] == "BLOB"} <= without_ids, table.name
        db.execute("CREATE TABLE later (id INTEGER PRIMARY KEY)")
        with pytest.raises(StoreError, match="table later is none of Freshet's"):
            moving.moved_tables(db)
