"""What an archive holds of an exchange, read back in the order of time."""

import zipfile
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.crawler.archive.index import ArchiveIndex
from freshet.crawler.archive.inputs import inputs_of
from freshet.crawler.archive.reader import ExchangeReader
from freshet.crawler.archive.records import ArchivedExchange
from freshet.crawler.errors import CrawlError
from tests.crawler.archive.archives import (
    OK,
    Read,
    by_warcio,
    digest,
    gzipped,
    page,
    record,
    zstandardised,
)


def named(record_id: str, **more: str) -> dict[str, str]:
    fields = {"WARC-Record-ID": f"<urn:{record_id}>"}
    return fields | {name.replace("_", "-"): value for name, value in more.items()}


def ours(url: str, date: str, took_ms: str, facts: str) -> bytes:
    more = {"Content-Type": "application/warc-fields"}
    block = f"fetchTimeMs: {took_ms}\r\n{facts}".encode()
    return record("metadata", block, url=url, date=date, more=more)


def write(path: Path, *records: bytes) -> Path:
    path.write_bytes(gzipped(*records))
    return path


def test_the_records_of_an_exchange_come_together(tmp_path: Path) -> None:
    url = "http://a.test/x"
    request = record(
        "request", b"GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n", url=url,
        more=named("1", WARC_Concurrent_To="<urn:2>"),
    )  # fmt: skip
    answer = record(
        "response", OK + b"hello", url=url, date="2026-03-01T12:00:00.25Z",
        more=named("2", WARC_Concurrent_To="<urn:1>", WARC_IP_Address="192.0.2.1"),
    )  # fmt: skip
    facts = record(
        "metadata", b"fetchTimeMs: 1500.125\r\noutcome: fetched\r\naccept: page\r\n", url=url,
        more=named("3", WARC_Concurrent_To="<urn:1>"),
    )  # fmt: skip
    for name, *records in (("a", request, answer, facts), ("b", facts, answer, request)):
        (exchange,) = Read(tmp_path, write(tmp_path / f"{name}.warc.gz", *records)).exchanges
        assert exchange.kind == "response"
        assert exchange.wire_body == b"hello"
        assert exchange.headers == ((b"Content-Type", b"text/html"),)
        assert exchange.request_headers == ((b"Host", b"a.test"),)
        assert exchange.peer == "192.0.2.1"
        assert exchange.ended_at - exchange.started_at == pytest.approx(1.500125)
        assert exchange.facts.accept == "page"


def test_exchanges_that_were_written_at_once_are_told_apart(tmp_path: Path) -> None:
    requests = [
        record("request", b"GET / HTTP/1.1\r\nX: %d\r\n\r\n" % n, more=named(f"q{n}"))
        for n in range(20)
    ]
    answers = [
        record("response", OK + b"%d" % n, more=named(f"a{n}", WARC_Concurrent_To=f"<urn:q{n}>"))
        for n in range(20)
    ]
    read = Read(tmp_path, write(tmp_path / "a.warc.gz", *requests, *answers[::-1]))
    assert len(read.exchanges) == 20
    assert all(e.request_headers[0][1] == e.wire_body for e in read.exchanges)


def test_the_order_is_that_of_the_ends_then_of_the_files(tmp_path: Path) -> None:
    late, early = "2026-03-01T12:00:09Z", "2026-03-01T12:00:01Z"
    slow = ours("http://a.test/slow", early, "9500", "outcome: failed\r\nreason: timeout\r\n")
    one = write(tmp_path / "1.warc.gz", page(3, date=late), page(4, date=late), slow)
    two = write(
        tmp_path / "2.warc.gz", page(1, date=early), page(5, date=late), page(2, date=early)
    )
    names = [url.rpartition("/")[2] for url in Read(tmp_path, one, two).urls]
    assert names == ["1", "2", "3", "4", "5", "slow"]


def test_a_replay_goes_on_from_a_time(tmp_path: Path) -> None:
    dates = [f"2026-03-01T12:{n // 60:02}:{n % 60:02}Z" for n in range(1200)]
    path = write(tmp_path / "a.warc.gz", *(page(n, date=dates[n]) for n in range(1200)))
    with closing(ArchiveIndex(tmp_path / "index.db")) as order:
        order.build(inputs_of([path]))
        entries = list(order.entries())
        assert len(entries) == 1200
        assert entries == sorted(entries, key=lambda entry: entry[:4])
        assert list(order.entries(entries[700].ended_at)) == entries[700:]


def test_files_say_who_wrote_them(tmp_path: Path) -> None:
    infos = [
        record("warcinfo", b"software: x/%d\r\nfreshet-seeds: []" % n, url=None, date=date)
        for n, date in enumerate(("2026-03-01T12:00:09Z", "2026-03-01T12:00:01Z"))
    ]
    path = write(tmp_path / "a.warc.gz", *infos, page(1))
    with closing(ArchiveIndex(tmp_path / "index.db")) as order:
        order.build(inputs_of([path]))
        reading = ExchangeReader(order)
        found = list(reading.infos())
        reading.close()
    assert found == [{"software": f"x/{n}", "freshet-seeds": "[]"} for n in (1, 0)]


@pytest.mark.parametrize("framing", [b"", b"Transfer-Encoding: chunked\r\n"])
def test_of_a_foreign_body_no_more_is_read_than_a_page_may_have(
    tmp_path: Path, framing: bytes
) -> None:
    body = b"1000\r\n" + b"x" * 4096 + b"\r\n0\r\n\r\n" if framing else b"x" * 4096
    head = b"HTTP/1.1 200 OK\r\n" + framing + b"\r\n"
    path = write(tmp_path / "a.warc.gz", record("response", head + body + b"x" * 2**20))
    with closing(ArchiveIndex(tmp_path / "index.db")) as order:
        order.build(inputs_of([path]))
        with closing(ExchangeReader(order, page_bytes=1000)) as reading:
            (found,) = reading.exchanges()
    assert isinstance(found, ArchivedExchange)
    assert found.wire_body == b"x" * 1001
    assert found.is_cut


def test_what_is_not_http_is_counted_by_kind(tmp_path: Path) -> None:
    records = [
        record("warcinfo", b"software: x", url=None),
        record("resource", b"png", url="urn:view:http://a.test/"),
        record("response", b"20260301 93.184.216.34", url="dns:a.test"),
        record("response", b"<p>bare", url="http://a.test/bare"),
        record("metadata", b"hopsFromSeed: L", url="http://a.test/"),
        record("conversion", b"text"),
        record("request", b"POST / HTTP/1.1\r\n\r\n", more=named("p")),
        record("response", OK, more=named("r", WARC_Concurrent_To="<urn:p>")),
        page(1),
    ]
    read = Read(tmp_path, write(tmp_path / "a.warc.gz", *records))
    assert read.urls == ["http://a.test/1"]
    assert read.damages == []
    assert read.skipped == {
        "answer to POST": 1, "conversion": 1, "dns:": 1, "metadata": 1,
        "response that is not HTTP": 1, "urn:": 1, "warcinfo": 1,
    }  # fmt: skip


def test_a_file_that_somebody_put_under_a_url_is_an_answer(tmp_path: Path) -> None:
    body = b"<p>a file\r\n\r\nwithout a head"
    labels = named("r", WARC_Payload_Digest=digest(body), WARC_Block_Digest=digest(body))
    same = {"WARC-Profile": "x/identical-payload-digest", "WARC-Payload-Digest": digest(body)}
    wrong = {"WARC-Payload-Digest": digest(b"another")}
    read = Read(
        tmp_path,
        write(
            tmp_path / "a.warc.gz",
            record("resource", body, more={"Content-Type": "text/html"} | labels),
            record("revisit", b"", url="http://a.test/again", more=same),
            record("resource", b"spoiled", url="http://a.test/spoiled", more=wrong),
        ),
    )
    assert read.urls == ["http://a.test/", "http://a.test/again", "http://a.test/spoiled"]
    for exchange in read.exchanges[:2]:
        assert (exchange.status, exchange.wire_body) == (200, body)
        assert exchange.headers == ((b"Content-Type", b"text/html"),)
    assert [damage.flaw for damage in read.damages] == ["wrong_digest"]


def test_failures_are_exchanges_only_where_somebody_says_how_they_ended(tmp_path: Path) -> None:
    refused = ours("http://a.test/no", "2026-03-01T12:00:00Z", "0", "outcome: refused\r\n")
    lost = ours("http://a.test/lost", "2026-03-01T12:00:00Z", "5", "outcome: fetched\r\n")
    asked = record("request", b"GET / HTTP/1.1\r\n\r\n")
    read = Read(tmp_path, write(tmp_path / "a.warc.gz", refused, lost, asked))
    (exchange,) = read.exchanges
    assert (exchange.kind, exchange.url) == ("bare", "http://a.test/no")
    assert read.skipped == {
        "metadata of an answer that is lost": 1, "request without an answer": 1,
    }  # fmt: skip


REVISIT = {"WARC-Profile": "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"}
OLD = "2026-01-01T00:00:00Z"
ORIGINAL = record(
    "response", OK + b"the same", url="http://a.test/old", date=OLD, more=named("old")
)


@pytest.mark.parametrize(
    "reference",
    [
        {"WARC-Refers-To": "<urn:old>"},
        {
            "WARC-Refers-To-Target-URI": "http://a.test/old",
            "WARC-Refers-To-Date": "2026-01-01T00:00:00Z",
        },
        {"WARC-Payload-Digest": digest(b"the same")},
    ],
)
def test_a_revisit_has_the_body_of_its_original(tmp_path: Path, reference: dict[str, str]) -> None:
    head = b"HTTP/1.1 200 OK\r\nETag: new\r\n\r\n"
    revisit = record("revisit", head, url="http://a.test/new", more=REVISIT | reference)
    # The original may come later, in another file.
    one = write(tmp_path / "1.warc.gz", revisit)
    two = write(tmp_path / "2.warc.gz", ORIGINAL)
    exchange = Read(tmp_path, one, two).exchanges[1]
    assert (exchange.kind, exchange.url) == ("same", "http://a.test/new")
    assert (exchange.status, exchange.wire_body) == (200, b"the same")
    assert exchange.headers == ((b"ETag", b"new"),)


def test_a_revisit_whose_original_is_elsewhere_is_told_of(tmp_path: Path) -> None:
    more = REVISIT | {"WARC-Refers-To": "<urn:gone>"}
    other = REVISIT | {"WARC-Refers-To": "<urn:old>", "WARC-Payload-Digest": digest(b"other")}
    read = Read(tmp_path, write(
        tmp_path / "a.warc.gz", page(1), record("revisit", more=more), ORIGINAL,
        record("revisit", more=other),
    ))  # fmt: skip
    assert read.urls == ["http://a.test/old", "http://a.test/1"]
    assert [each.flaw for each in read.damages] == ["unresolved_revisit"] * 2
    assert read.damages[0].offset == len(gzipped(page(1)))


def test_answers_with_wrong_digests_are_told_of_and_kept(tmp_path: Path) -> None:
    wrong = record("response", OK + b"x", more={"WARC-Payload-Digest": digest(b"y")})
    path = write(tmp_path / "a.warc.gz", page(1), wrong)
    read = Read(tmp_path, path)
    assert read.urls == ["http://a.test/1", "http://a.test/"]
    assert [each.flaw for each in read.damages] == ["wrong_digest"]
    assert "read all the same" in read.damages[0].reason


def test_bodies_are_cut_at_the_limit(tmp_path: Path) -> None:
    long = page(1, body=b"x" * 3_000_000)
    for data in (long, gzipped(long), zstandardised(long), gzipped(long + page(2))):
        path = tmp_path / "a.warc"
        path.write_bytes(data)
        exchange = Read(tmp_path, path).exchanges[0]
        assert exchange.is_cut
        assert len(exchange.wire_body) == 1024 * 1024 + 1


def test_what_warcio_wrote_is_read(tmp_path: Path) -> None:
    for compressed in (True, False):
        path = tmp_path / "a.warc"
        by_warcio(path, [(f"http://a.test/{n}", b"page %d" % n) for n in range(9)], gzip=compressed)
        read = Read(tmp_path, path)
        assert read.damages == []
        assert [e.wire_body for e in read.exchanges] == [b"page %d" % n for n in range(9)]


@settings(max_examples=40)
@given(st.lists(st.binary(max_size=300), min_size=1, max_size=8), st.booleans())
def test_whatever_warcio_writes_is_read(
    tmp_path_factory: pytest.TempPathFactory, bodies: list[bytes], compressed: bool
) -> None:
    place = tmp_path_factory.mktemp("warcio")
    path = place / "a.warc"
    by_warcio(path, [("http://a.test/", body) for body in bodies], gzip=compressed)
    read = Read(place, path)
    assert [each.wire_body for each in read.exchanges] == bodies
    assert read.damages == read.lost == []


def test_archives_in_a_wacz_are_read_in_place(tmp_path: Path) -> None:
    by_warcio(tmp_path / "data.warc.gz", [("http://a.test/1", b"one"), ("http://a.test/2", b"two")])
    path = tmp_path / "a.wacz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("pages/pages.jsonl", "{}")
        archive.write(tmp_path / "data.warc.gz", "archive/data.warc.gz")
    read = Read(tmp_path, path)
    assert [each.wire_body for each in read.exchanges] == [b"one", b"two"]
    assert read.exchanges[0].file == f"{path}!archive/data.warc.gz"


def test_records_in_one_stream_are_read_in_any_order(tmp_path: Path) -> None:
    pages = [page(n, date=f"2026-03-01T12:00:{(7 * n) % 20:02}Z") for n in range(20)]
    path = tmp_path / "a.warc.gz"
    path.write_bytes(gzipped(b"".join(pages)))
    read = Read(tmp_path, path)
    assert sorted(read.urls) == sorted(f"http://a.test/{n}" for n in range(20))
    assert all(
        e.wire_body == f"<p>page {e.url.rpartition('/')[2]}".encode() for e in read.exchanges
    )


def test_a_file_that_changes_behind_the_index_is_told_of(tmp_path: Path) -> None:
    path = tmp_path / "a.warc"
    path.write_bytes(page(1) + page(2))
    with closing(ArchiveIndex(tmp_path / "index.db")) as order:
        order.build(inputs_of([path]))
        path.write_bytes(page(3) + page(2))
        reading = ExchangeReader(order)
        lost, kept = reading.exchanges()
        reading.close()
        assert "the file has changed" in str(lost)
        assert isinstance(kept, ArchivedExchange)


def test_an_index_is_resumed_and_follows_its_archives(tmp_path: Path) -> None:
    one = write(tmp_path / "1.warc.gz", page(1))
    two = write(tmp_path / "2.warc.gz", page(2))
    told: list[str] = []

    def build(*paths: Path) -> int:
        told.clear()
        with closing(ArchiveIndex(tmp_path / "index.db")) as order:
            order.build(inputs_of(paths), told.append)
            return order.exchanges

    assert (build(one), told) == (1, [str(one)])
    assert (build(one, two), told) == (2, [str(two)])
    assert (build(one, two), told) == (2, [])
    write(one, page(1), page(3))
    assert (build(one, two), told) == (3, [str(one)])
    assert (build(two), told) == (1, [])


def test_a_pass_that_was_killed_goes_on_with_its_file(tmp_path: Path) -> None:
    one = write(tmp_path / "1.warc.gz", page(1))
    two = write(tmp_path / "2.warc.gz", page(2))

    def die(name: str) -> None:
        if name == str(two):
            raise KeyboardInterrupt

    with closing(ArchiveIndex(tmp_path / "index.db")) as order, pytest.raises(KeyboardInterrupt):
        order.build(inputs_of([one, two]), die)
    told: list[str] = []
    with closing(ArchiveIndex(tmp_path / "index.db")) as order:
        order.build(inputs_of([one, two]), told.append)
        assert (order.exchanges, told) == (2, [str(two)])


def test_another_database_is_left_as_it_is(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "mine.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE mine (x)")
    database.close()
    before = path.read_bytes()
    with pytest.raises(CrawlError, match=r"mine\.db: not an index of archives"):
        ArchiveIndex(path)
    assert path.read_bytes() == before


def test_archives_without_an_exchange_say_why_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty.warc.gz").touch()
    info = write(tmp_path / "info.warc.gz", record("warcinfo", url=None))
    with pytest.raises(CrawlError, match=r"empty\.warc\.gz: at byte 0: the file is empty"):
        Read(tmp_path, tmp_path / "empty.warc.gz")
    with pytest.raises(CrawlError, match=r"info\.warc\.gz: no HTTP exchange in it \(1 warcinfo"):
        Read(tmp_path, info)
