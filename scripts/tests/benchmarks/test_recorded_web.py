"""A recorded site answers as it was."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import zstandard

from freshet.crawler.fetch.client import Request
from freshet.crawler.frontier.clock import VirtualClock
from freshet.storage.records import FetchResult, Validators
from scripts.benchmarks.recorded_web import RecordedWeb, Recording

ORIGIN = "https://site.example"
FIRST, SECOND = b"<title>Home</title><p>one and the same", b"<title>Home</title><p>another one"


@pytest.fixture
def recording(tmp_path: Path) -> Iterator[Recording]:
    path = tmp_path / "site.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE meta (key, value); CREATE TABLE pages (id, url, kind);"
            "CREATE TABLE versions (page, time, blob); CREATE TABLE blobs (id, base, data);"
            "CREATE TABLE links (src, dst, t0, t1);"
            "INSERT INTO meta VALUES ('hosts', 'site.example'), ('base', '/docs'),"
            " ('t_start', '0'), ('t_end', '1000');"
            "INSERT INTO pages VALUES (1, '/docs/', 'html'), (2, '/docs/a.html', 'html'),"
            " (3, '/docs/b/', 'html'), (4, '/robots.txt', 'aux');"
            "INSERT INTO versions VALUES (1, 0, 10), (1, 100, 11), (2, 50, 10), (2, 200, NULL),"
            " (3, 0, 10), (4, 0, 10);"
            "INSERT INTO links VALUES (1, 2, 0, NULL), (2, 3, 0, 150);"
        )
        like = zstandard.ZstdCompressionDict(FIRST, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
        blobs = [
            (10, None, zstandard.ZstdCompressor().compress(FIRST)),
            (11, 10, zstandard.ZstdCompressor(dict_data=like).compress(SECOND)),
        ]
        connection.executemany("INSERT INTO blobs VALUES (?, ?, ?)", blobs)
        connection.commit()
    with closing(Recording(path)) as recording:
        yield recording


async def asked(
    recording: Recording, at: float, target: str, validators: Validators | None = None
) -> FetchResult:
    web = RecordedWeb(recording, VirtualClock(at))
    url = target if "://" in target else ORIGIN + target
    return await web.fetch(Request(url, validators=validators))


async def test_a_page_is_what_it_was_at_the_time_and_still_is_what_it_was(
    recording: Recording,
) -> None:
    first = await asked(recording, 99.0, "/docs/")
    second = await asked(recording, 100.0, "/docs/")
    assert (first.body, second.body) == (FIRST, SECOND)
    tag = Validators(first.header("ETag"), first.header("Last-Modified"))
    assert (await asked(recording, 99.0, "/docs/", tag)).outcome == "not_modified"
    assert (await asked(recording, 100.0, "/docs/", tag)).body == SECOND
    dated = Validators(None, second.header("Last-Modified"))
    assert (await asked(recording, 100.0, "/docs/", dated)).outcome == "not_modified"
    assert (await asked(recording, 100.0, "/robots.txt")).header("Content-Type") == (
        "text/plain; charset=utf-8"
    )


async def test_before_its_birth_and_after_its_death_it_is_not_found(recording: Recording) -> None:
    statuses = [(await asked(recording, at, "/docs/a.html")).status for at in (49.0, 50.0, 200.0)]
    assert statuses == [404, 200, 404]
    assert (await asked(recording, 60.0, "/docs/a")).status == 200
    assert (await asked(recording, 60.0, "/docs/none")).outcome == "gone"


@pytest.mark.parametrize(
    ("target", "location"),
    [
        ("/", f"{ORIGIN}/docs/"),
        ("/docs", f"{ORIGIN}/docs/"),
        ("/docs/b", f"{ORIGIN}/docs/b/"),
        ("/docs/b/index.html", f"{ORIGIN}/docs/b/"),
        ("http://site.example/docs/a.html?x=1", f"{ORIGIN}/docs/a.html?x=1"),
    ],
)
async def test_other_names_of_a_page_lead_to_it(
    recording: Recording, target: str, location: str
) -> None:
    assert (await asked(recording, 60.0, target)).location == location


async def test_what_was_shown_is_noted_and_other_hosts_do_not_exist(recording: Recording) -> None:
    web = RecordedWeb(recording, VirtualClock(60.0))
    urls = (f"{ORIGIN}/docs/a.html", f"{ORIGIN}/none", "https://other.example/")
    results = [await web.fetch(Request(url)) for url in urls]
    assert [result.reason for result in results] == [None, "http_404", "no_such_host"]
    assert web.asked == [60.0, 60.0, 60.0]
    assert web.shown == [(2, 60.0)]


def test_links_lead_to_what_stands_at_the_time(recording: Recording) -> None:
    assert [recording.reachable(at) for at in (40.0, 60.0, 160.0, 300.0)] == [
        {1}, {1, 2, 3}, {1, 2}, {1},
    ]  # fmt: skip
