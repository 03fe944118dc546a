"""Any exchange as WARC records, read back by fastwarc and warcio."""

import gzip
import io
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, get_args

import pytest
from fastwarc.warc import ArchiveIterator
from hypothesis import given
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator as WarcioIterator

from freshet.crawler.archive.reader import fetch_result
from freshet.crawler.archive.warc import OriginalRecord, WireExchange, records, warc_date
from freshet.crawler.fetch.client import Request
from freshet.crawler.fetch.heads import read_head
from freshet.storage.entries import Outcome
from freshet.storage.records import FetchResult, Validators
from tests.crawler.archive.archives import Read
from tests.crawler.archive.exchanges import START_AT, URL, fetched, not_modified, read

TOKEN = st.text("abcXYZ0189!#$%&'*+-.^_`|~", min_size=1, max_size=12).map(str.encode)
VALUE = st.binary(max_size=40).map(lambda b: b.translate(None, b"\r\n\0").strip())
HEADERS = st.lists(st.tuples(TOKEN, VALUE), max_size=8).map(tuple)
RESULTS = st.builds(
    FetchResult,
    url=st.sampled_from([URL, "https://xn--mnchen-3ya.de:8443/", "http://h.localhost?q=%00"]),
    outcome=st.sampled_from([o for o in get_args(Outcome) if o != "not_modified"]),
    started_at=st.floats(0, 4e9), duration_s=st.floats(0, 1e4), status=st.integers(200, 599),
    reason=st.none() | st.text(max_size=10), detail=st.none() | st.text(max_size=30),
    request_headers=st.just((("Host", "h"), ("User-Agent", "Freshet/1"))), headers=HEADERS,
    wire_body=st.binary(max_size=200), peer=st.sampled_from([None, "127.0.0.1", "::1"]),
    retry_after_s=st.none() | st.floats(0, 1e6), truncated=st.sampled_from([None, "length"]),
)  # fmt: skip


def written(exchange: WireExchange, original: OriginalRecord | None = None) -> list[bytes]:
    numbers = count(1)
    return records(exchange, original, lambda: f"<urn:uuid:{next(numbers)}>")[0]


@given(RESULTS)
def test_any_exchange_is_read_back_as_it_was(result: FetchResult) -> None:
    request, response, metadata = written(WireExchange(Request(result.url), result))
    (found,) = ArchiveIterator(io.BytesIO(response), parse_http=True, verify_digests=True)
    expected = tuple(
        (b"X-Archive-Orig-" + name if name.lower() == b"transfer-encoding" else name, value)
        for name, value in result.headers
    )
    assert found.http_headers.items_bytes() == expected
    assert found.http_headers.status_code == result.status
    assert found.reader.read() == result.wire_body
    assert found.headers["WARC-Target-URI"] == result.url
    assert found.headers["WARC-Date"] == warc_date(result.started_at)
    assert found.headers.get("WARC-IP-Address") == result.peer
    assert found.headers.get("WARC-Truncated") == result.truncated
    moment = found.record_date.timestamp()
    assert moment == pytest.approx(result.started_at, abs=1e-6)
    (asked,) = ArchiveIterator(io.BytesIO(request), parse_http=True, verify_digests=True)
    assert asked.http_headers.items() == result.request_headers
    (said,) = ArchiveIterator(io.BytesIO(metadata), verify_digests=True)
    lines = said.reader.read().decode().split("\r\n")
    fields = dict(line.split(": ", 1) for line in lines if line)
    assert float(fields["fetchTimeMs"]) == pytest.approx(result.duration_s * 1e3, abs=1e-3)
    assert fields["outcome"] == result.outcome
    assert fields.keys() >= {
        name for name in ("reason", "detail", "truncated") if getattr(result, name) is not None
    }
    if result.retry_after_s is not None:
        assert float(fields["retryAfter"]) == result.retry_after_s


@given(RESULTS)
def test_warcio_finds_nothing_wrong_with_any_exchange(result: FetchResult) -> None:
    stream = io.BytesIO(b"".join(written(WireExchange(Request(result.url), result))))
    verdicts = []
    for record in WarcioIterator(stream, check_digests=True):
        record.content_stream().read()
        verdicts.append(record.digest_checker.passed)
    assert verdicts == [True, True, True]


def parsed(record: bytes) -> Any:
    (found,) = ArchiveIterator(io.BytesIO(record), parse_http=True, verify_digests=True)
    return found


def test_the_same_payload_refers_to_the_record_that_has_it() -> None:
    first = records(fetched(), None, lambda: "<urn:uuid:1>")[1]
    assert first is not None
    again = fetched(at=START_AT + 60, headers=((b"ETag", b'"2"'),))
    _request, revisit, _metadata = written(again, first)
    found = parsed(revisit)
    assert found.headers["WARC-Type"] == "revisit"
    assert found.headers["WARC-Profile"].endswith("/revisit/identical-payload-digest")
    assert found.headers["WARC-Refers-To"] == "<urn:uuid:1>"
    assert found.headers["WARC-Refers-To-Target-URI"] == URL
    assert found.headers["WARC-Refers-To-Date"] == warc_date(START_AT)
    assert found.headers["WARC-Payload-Digest"] == first.payload_digest
    assert found.http_headers.items() == (("ETag", '"2"'),)
    assert found.reader.read() == b""
    now = records(again, first, lambda: "<urn:uuid:9>")[1]
    assert now == replace(first, validators=Validators('"2"'))


@pytest.mark.parametrize(
    ("validators", "kind"), [(Validators('"1"'), "revisit"), (Validators('"0"'), "response")]
)
def test_a_304_refers_to_that_version_only_which_its_request_named(
    validators: Validators, kind: str
) -> None:
    original = records(fetched(), None, lambda: "<urn:uuid:1>")[1]
    found = parsed(written(not_modified(validators=validators), original)[1])
    assert found.headers["WARC-Type"] == kind
    assert found.http_headers.status_code == 304
    refers = found.headers.get("WARC-Refers-To")
    assert refers == ("<urn:uuid:1>" if kind == "revisit" else None)


@pytest.mark.parametrize("changes", [{"outcome": "gone", "status": 404}, {"truncated": "length"}])
def test_what_is_no_whole_answer_is_no_original(changes: dict[str, Any]) -> None:
    exchange = fetched()
    _, original = records(
        replace(exchange, result=replace(exchange.result, **changes)), None, lambda: "<urn:uuid:1>"
    )
    assert original is None


def test_an_empty_page_is_archived_in_full_each_time_and_confirmed_by_a_304() -> None:
    first = records(fetched(b""), None, lambda: "<urn:uuid:1>")[1]
    assert parsed(written(fetched(b""), first)[1]).headers["WARC-Type"] == "response"
    assert parsed(written(not_modified(), first)[1]).headers["WARC-Type"] == "revisit"


def test_what_is_posted_refers_to_nothing_and_is_archived_with_its_form() -> None:
    original = records(fetched(), None, lambda: "<urn:uuid:1>")[1]
    posted = replace(fetched(), request=Request(URL, "answer", form="hub.mode=subscribe"))
    request, response, _ = written(posted, original)
    assert b"\r\n\r\nPOST /a?b=1 HTTP/1.1\r\n" in request
    assert parsed(request).reader.read() == b"hub.mode=subscribe"
    assert parsed(response).headers["WARC-Type"] == "response"


def test_what_was_not_sent_has_no_request_and_what_was_not_answered_no_response() -> None:
    lost = FetchResult(URL, "failed", START_AT, 1.5, None, "no_such_host", "a\r\nb")
    (metadata,) = written(WireExchange(Request(URL), lost))
    said = "fetchTimeMs: 1500.000\r\noutcome: failed\r\nreason: no_such_host\r\ndetail: a b\r\n"
    assert (said + "accept: page\r\n").encode() in metadata
    sent = replace(lost, request_headers=(("Host", "h"),), reason="timeout_headers")
    request, metadata = written(WireExchange(Request(URL), sent))
    assert parsed(request).headers["WARC-Concurrent-To"] == parsed(metadata).record_id
    assert parsed(metadata).headers["WARC-Concurrent-To"] == parsed(request).record_id


def test_a_refused_url_is_a_metadata_record() -> None:
    result = FetchResult(URL, "refused", START_AT, 0.0, None, "robots", "Disallow: /a")
    (record,) = written(WireExchange(Request(URL), result, is_asked=False))
    assert b"outcome: refused\r\nreason: robots\r\ndetail: Disallow: /a\r\n" in record
    assert b"fetches: 0" in record
    assert parsed(record).headers["WARC-Target-URI"] == URL


def test_the_records_of_an_exchange_name_one_another() -> None:
    found = [parsed(record) for record in written(fetched())]
    ids = [record.record_id for record in found]
    assert [r.headers["WARC-Concurrent-To"] for r in found] == [ids[1], ids[0], ids[0]]


def test_a_file_of_records_is_read_in_its_order(tmp_path: Path) -> None:
    path = tmp_path / "a.warc"
    path.write_bytes(b"".join(written(fetched())))
    assert [record.kind for record in read(path)] == ["request", "response", "metadata"]


#: Heads that the exchange mends, with the body on the wire.
MENDED: dict[str, tuple[bytes, bytes]] = {
    "bare LF": (b"HTTP/1.1 200 OK\nContent-Type: text/html\nContent-Length: 8\n\n", b"<p>Hello"),
    "lines that are no headers": (
        b"HTTP/1.1 200 OK\r\noops\r\n going on\r\nContent-Type: text/html\r\n\r\n", b"<p>Hello"
    ),
    "blanks before colons": (
        b"HTTP/1.1 200 OK\r\nContent-Type : text/html\r\nContent-Encoding : gzip\r\n\r\n",
        gzip.compress(b"<p>Hello"),
    ),
    "a length and chunks": (
        b"HTTP/1.1 200\r\nTransfer-Encoding : chunked\r\nContent-Length: 9999\r\n\r\n", b"<p>Hello"
    ),
    "chunked twice": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n", b"<p>Hello"
    ),
    "two lengths": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\nContent-Length: 8\r\n\r\n", b"<p>Hello"
    ),
    "words that name no coding": (
        b"HTTP/1.1 200 OK\r\nContent-Encoding: utf-8\r\n\r\n", b"<p>Hello"
    ),
    "gzip undone": (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", b"<p>Hello"),
    "folded": (
        b"HTTP/1.1 200 OK\r\nX: a\r\n transfer-encoding: chunked\r\nA:1\r\n\r\n", b"<p>Hello"
    ),
    "gzip within the transfer": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", gzip.compress(b"<p>Hello")
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", MENDED)
def test_a_mended_response_is_read_back_as_the_crawl_read_it(tmp_path: Path, what: str) -> None:
    head, body = MENDED[what]
    exchange = fetched(body, headers=read_head(head).headers)
    mended = replace(exchange.result, head=head, status_line=head.partition(b"\n")[0].strip())
    path = tmp_path / "a.warc"
    path.write_bytes(b"".join(written(replace(exchange, result=mended))))
    (kept,) = Read(tmp_path, path).exchanges
    again = fetch_result(kept, 1024 * 1024)
    assert (again.outcome, again.body, again.wire_body) == ("fetched", b"<p>Hello", body)
    assert again.headers == mended.headers
