"""`freshet replay` fills a store from archives."""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from sqlite3 import Connection

import pytest

from freshet.storage.records import Visit
from freshet.storage.tables import observations
from tests.console import as_json, freshet
from tests.crawler.archive.archives import OK, gzipped, page, record
from tests.storage.small_store import SmallStore, rows, small_store

NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n\r\nnothing here"
RULES = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nUser-agent: *\nDisallow: /secret\n"
replay = partial(freshet, "replay")


def archive(path: Path, *records: bytes) -> Path:
    path.write_bytes(gzipped(*records))
    return path


def kinds(db: Path) -> dict[str, str]:
    found = "SELECT p.url, o.kind FROM observation AS o JOIN page AS p ON p.id = o.page_id"
    return dict(rows(db, found))


def at(second: int) -> str:
    return f"2026-03-01T12:00:{second:02}Z"


def test_an_archive_of_others_goes_through_its_robots_txt(tmp_path: Path) -> None:
    past = archive(
        tmp_path / "others.warc.gz",
        record("response", RULES, url="http://a.test/robots.txt", date=at(0)),
        record("response", OK + b"<p>open to all", url="http://a.test/", date=at(1)),
        record("response", OK + b"<p>closed", url="http://a.test/secret", date=at(2)),
        record("response", NOT_FOUND, url="http://a.test/lost", date=at(3)),
    )
    found = as_json("replay", past, "--db", tmp_path / "new.db")
    assert found["other_exchanges"]["refused_again"] == 1
    assert found["damages"] == {}
    assert kinds(tmp_path / "new.db") == {
        "http://a.test/": "new", "http://a.test/secret": "refused", "http://a.test/lost": "gone",
    }  # fmt: skip


@pytest.mark.parametrize(
    "url", ["http://[", "http://a.test:99999/", "ftp://a.test/robots.txt", "http:///", "about:x"]
)
def test_an_address_that_is_none_is_counted_and_loses_nothing(tmp_path: Path, url: str) -> None:
    past = archive(
        tmp_path / "odd.warc.gz",
        record("response", OK + b"<p>what?", url=url, date=at(0)),
        page(1, date=at(1)),
    )
    told = as_json("replay", past, "--db", tmp_path / "new.db")
    assert told["other_exchanges"]["not_http"] <= 1
    assert kinds(tmp_path / "new.db") == {"http://a.test/1": "new"}


def test_a_replay_again_adds_nothing_and_one_that_grew_its_rest(tmp_path: Path) -> None:
    db = tmp_path / "new.db"
    first = archive(tmp_path / "1.warc.gz", page(1, date=at(1)))
    assert replay(first, "--db", db).exit_code == 0
    assert replay(first, "--db", db).exit_code == 0
    later = archive(tmp_path / "2.warc.gz", page(2, date=at(2)))
    assert replay(first, later, "--db", db).exit_code == 0
    assert kinds(db) == {"http://a.test/1": "new", "http://a.test/2": "new"}


def test_captures_of_known_pages_commit_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    links = "".join(f"<a href=/{number}>{number}</a>" for number in range(1, 151)).encode()
    pages = [page(n, date=f"2026-03-01T12:{n // 60 + 1:02}:{n % 60:02}Z") for n in range(1, 151)]
    first, last = page(0, body=links, date=at(0)), page(7, date="2026-03-01T13:00:00Z")
    past = archive(tmp_path / "known.warc.gz", first, *pages, last)
    sizes, append = list[int](), observations.append

    def counted(db: Connection, run_id: int, visits: Sequence[Visit]) -> None:
        sizes.append(len(visits))
        append(db, run_id, visits)

    monkeypatch.setattr(observations, "append", counted)
    assert replay(past, "--db", tmp_path / "new.db").exit_code == 0
    # The first page leads to the others: they wait for its commit.
    assert [size for size in sizes if size] == [1, 64, 64, 23]
    found = rows(tmp_path / "new.db", "SELECT kind FROM observation ORDER BY id")
    assert found == [("new",)] * 151 + [("unchanged",)]


def test_two_captures_in_one_second_and_records_out_of_order_are_all_taken_in(
    tmp_path: Path,
) -> None:
    words = " ".join(f"word{number}" for number in range(200)).encode()
    past = archive(
        tmp_path / "odd.warc.gz",
        page(1, body=b"<p>" + words[::-1], date=at(5)),
        page(1, body=b"<p>" + words, date=at(1)),
        page(1, body=b"<p>quite another text", date=at(1)),
    )
    db = tmp_path / "new.db"
    assert replay(past, "--db", db).exit_code == 0
    found = rows(db, "SELECT kind FROM observation ORDER BY id")
    assert found == [("new",), ("changed",), ("changed",)]
    # As a replay that was killed between the two would have left it.
    SmallStore(db).execute("DROP TRIGGER observation_is_not_deleted")
    SmallStore(db).execute("DELETE FROM observation WHERE id > 1")
    assert replay(past, "--db", db).exit_code == 0
    assert rows(db, "SELECT count(*) FROM observation") == [(3,)]


def test_what_is_no_html_and_charsets_that_lie_cost_nothing_else(tmp_path: Path) -> None:
    def answer(content_type: str, body: bytes) -> bytes:
        return f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n\r\n".encode() + body

    past = archive(
        tmp_path / "odd.warc.gz",
        record("response", answer("image/png", b"\x89PNG"), url="http://a.test/i", date=at(1)),
        record(
            "response",
            answer("text/html; charset=utf-8", "<p>größer".encode("latin-1")),
            url="http://a.test/l",
            date=at(2),
        ),
        record("response", answer("text/html; charset=no-such", b"<p>x"), url="http://a.test/n"),
        page(1, date=at(4)),
    )
    assert as_json("replay", past, "--db", tmp_path / "new.db")["damages"] == {}
    found = kinds(tmp_path / "new.db")
    assert found.pop("http://a.test/i") == "skipped"
    assert set(found.values()) == {"new"}
    assert len(found) == 3


def test_what_is_wrong_is_said_before_anything_is_done(tmp_path: Path) -> None:
    past = archive(tmp_path / "past.warc.gz", page(1))
    db = tmp_path / "new.db"
    for arguments, word in (
        ((tmp_path / "none.warc", "--db", db), "there is no such file"),
        ((past,), "--db FILE"),
        ((past, "--db", db, "--policy", "nothing"), "nothing"),
        ((past, "--db", db, "--budget", "many"), "many"),
    ):
        result = replay(*arguments)
        assert result.exit_code == 2
        assert word in result.stderr
        assert result.stderr.count("\n") == 1
        assert not db.exists()


def test_archives_that_hold_nothing_leave_nothing_behind(tmp_path: Path) -> None:
    past = archive(tmp_path / "past.warc.gz", record("warcinfo", b"", url=None))
    result = replay(past, "--db", tmp_path / "new.db")
    assert result.exit_code == 1
    assert "no HTTP exchange in it" in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["past.warc.gz"]


def test_a_store_that_no_replay_made_is_left_as_it_is(tmp_path: Path) -> None:
    past = archive(tmp_path / "past.warc.gz", page(1))
    live = asyncio.run(small_store(tmp_path / "live.db")).path
    before = live.read_bytes()
    result = replay(past, "--db", live)
    assert result.exit_code == 1
    assert "not made by a replay" in result.stderr
    assert live.read_bytes() == before
    assert not live.with_name("live.db.order").exists()
