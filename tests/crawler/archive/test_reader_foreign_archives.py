"""Archives of other programs, in the ways in which these differ; warcio is the referee."""

import gzip
import io
import json
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import brotli
import pytest
import zstandard
from warcio.archiveiterator import ArchiveIterator
from warcio.exceptions import ArchiveLoadFailed

from freshet.crawler.archive.reader import fetch_result
from freshet.crawler.archive.records import target_url
from freshet.storage.records import FetchResult
from tests.crawler.archive.archives import (
    DATE,
    OK,
    Read,
    digest,
    gzipped,
    page,
    record,
    zstandardised,
)

ODD, BODY = "http://a.test/odd", b"<!doctype html><p>A page of <b>text</b>, in short."
PACKED = gzip.compress(BODY, mtime=0)
CHUNKED = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
PDF = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n" + bytes(range(256))
_TYPE = b"Content-Type: text/html\r\n"


def http(*lines: bytes, body: bytes = BODY, status: bytes = b"HTTP/1.1 200 OK") -> bytes:
    """A response: its head, with a media type, and its body."""
    head = b"".join(line + b"\r\n" for line in (status, *lines))
    return head + _TYPE + b"\r\n" + body


def odd(block: bytes = OK + BODY, **more: str) -> bytes:
    fields = {name.replace("_", "-"): value for name, value in more.items()}
    return record("response", block, url=ODD, more=fields)


def head(*lines: bytes, block: bytes = OK + BODY, version: bytes = b"WARC/1.0") -> bytes:
    """A record whose head is written by hand."""
    said = (b"Content-Length: %d" % len(block), *lines)
    return b"".join(line + b"\r\n" for line in (version, *said, b"")) + block + b"\r\n\r\n"


LINES = (
    b"WARC-Type: response",
    b"WARC-Date: " + DATE.encode(),
    b"WARC-Target-URI: " + ODD.encode(),
)
PLAIN_HEAD = head(*LINES)


def in_lf(data: bytes) -> bytes:
    """A record whose head, and the head of whose response, end their lines with LF."""
    start, blank, block = data.partition(b"\r\n\r\n")
    length = len(block) - 4
    message, empty, body = block[:length].partition(b"\r\n\r\n")
    message = (message + empty).replace(b"\r\n", b"\n") + body
    start = start.replace(b"Content-Length: %d" % length, b"Content-Length: %d" % len(message))
    return (start + blank).replace(b"\r\n", b"\n") + message + b"\n\n"


INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"
HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nServer: x\r\n\r\n"
TUNNEL = b"HTTP/1.0 200 Connection established\r\nProxy-agent: x\r\n\r\n"
GZIP, CHUNKS = b"Content-Encoding: gzip", b"Transfer-Encoding: chunked"

#: The response for ODD, which holds BODY, in a record.
READABLE: dict[str, bytes] = {
    # Codings that are undone already, or named nowhere.
    "gzip undone": odd(http(GZIP)),
    "gzip undone, a length as it came": odd(http(GZIP, b"Content-Length: 9999")),
    "gzip undone, a shorter length": odd(http(GZIP, b"Content-Length: 20")),
    "br undone": odd(http(b"Content-Encoding: br", b"Content-Length: 9999")),
    "deflate undone": odd(http(b"Content-Encoding: deflate")),
    "zstd undone": odd(http(b"Content-Encoding: zstd")),
    "one coding of two undone": odd(http(b"Content-Encoding: gzip, br", body=PACKED)),
    "chunks undone": odd(http(CHUNKS)),
    "chunks and gzip undone": odd(http(CHUNKS, GZIP)),
    "chunks undone, gzip left": odd(http(CHUNKS, GZIP, body=PACKED)),
    "gzip undone, chunks left": odd(http(CHUNKS, GZIP, body=CHUNKED)),
    "chunks and a length": odd(http(CHUNKS, b"Content-Length: 5", body=CHUNKED)),
    "the last chunk missing": odd(http(CHUNKS, body=CHUNKED[:-5])),
    "gzip with the length of the text": odd(http(GZIP, b"Content-Length: 9999", body=PACKED)),
    "codings in the head renamed": odd(http(b"X-Archive-Orig-Content-Encoding: gzip")),
    "br": odd(http(b"Content-Encoding: br", body=brotli.compress(BODY))),
    "zstd": odd(http(b"Content-Encoding: zstd", body=zstandard.compress(BODY))),
    "deflate": odd(http(b"Content-Encoding: deflate", body=zlib.compress(BODY))),
    # Heads before the response.
    "100 before": odd(INTERIM + OK + BODY),
    "103 before": odd(HINTS + OK + BODY),
    "100 and 103 before": odd(INTERIM + HINTS + OK + BODY),
    "two of 100 before": odd(INTERIM * 2 + OK + BODY),
    "100 with bare LF": odd(INTERIM.replace(b"\r", b"") + OK + BODY),
    "102 without a reason": odd(b"HTTP/1.1 102\r\n\r\n" + OK + BODY),
    "a tunnel before": odd(TUNNEL + OK + BODY),
    "the head twice": odd(OK * 2 + BODY),
    # Status lines and headers of responses.
    "HTTP/2 without a reason": odd(http(status=b"HTTP/2 200")),
    "HTTP/2.0": odd(http(status=b"HTTP/2.0 200 ")),
    "HTTP/3": odd(http(status=b"HTTP/3 200")),
    "HTTP/1.1 without a reason": odd(http(status=b"HTTP/1.1 200")),
    "HTTP/1.0": odd(http(status=b"HTTP/1.0 200 OK")),
    "http/1.1": odd(http(status=b"http/1.1 200 ok")),
    "two blanks in the status line": odd(http(status=b"HTTP/1.1  200  OK")),
    "an empty line before the status": odd(b"\r\n" + OK + BODY),
    "bare LF in the head": odd(OK.replace(b"\r", b"") + BODY),
    "some bare LF in the head": odd(OK.replace(b"\r", b"", 1).replace(b"\r\n\r", b"\n\r") + BODY),
    "no blank after the colon": odd(b"HTTP/1.1 200 OK\r\nContent-Type:text/html\r\n\r\n" + BODY),
    "a blank before the colon": odd(b"HTTP/1.1 200 OK\r\nContent-Type : text/html\r\n\r\n" + BODY),
    "a folded header": odd(http(b"X-Long: one\r\n two\r\n\tthree")),
    "Latin-1 in the head": odd(http(b"X-Name: caf\xe9", b"Set-Cookie: a=\xfc")),
    "a NUL in the head": odd(http(b"X-Name: a\0b")),
    "a line that is no header": odd(http(b"oops", b"<html>")),
    "a line without a name": odd(http(b": x")),
    "lower-case headers": odd(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n" + BODY),
    "a shorter Content-Length": odd(http(b"Content-Length: 3, 3")),
    "many headers": odd(http(*(b"X-%d: 1" % n for n in range(900)))),
    # Heads of records.
    "WARC/0.17": head(*LINES, version=b"WARC/0.17"),
    "WARC/0.18": head(*LINES, version=b"WARC/0.18"),
    "WARC/1.1": head(*LINES, version=b"WARC/1.1"),
    "WARC/1.0 and a blank": head(*LINES, version=b"WARC/1.0 "),
    "no blank after a colon in WARC": PLAIN_HEAD.replace(b": ", b":", 4),
    "tabs after colons in WARC": PLAIN_HEAD.replace(b": ", b":\t", 4),
    "lower-case names in WARC": head(*(line.replace(b"WARC-T", b"warc-t") for line in LINES)),
    "upper-case names in WARC": head(*(line.replace(b"WARC-T", b"WARC-T") for line in LINES)),
    "Response as type": PLAIN_HEAD.replace(b"response", b"Response"),
    "bare LF in WARC": PLAIN_HEAD.replace(b"\r\n", b"\n", 5),
    "bare LF everywhere": in_lf(PLAIN_HEAD),
    "some bare LF in WARC": PLAIN_HEAD.replace(b"\r\n", b"\n", 2),
    "an upper-case scheme": head(*LINES[:2], b"WARC-Target-URI: HTTP://a.test/odd"),
    "a mixed-case scheme": head(*LINES[:2], b"WARC-Target-URI: Http://a.test/odd"),
    "angle brackets": head(*LINES[:2], b"WARC-Target-URI: <http://a.test/odd>"),
    "angle brackets and upper case": head(*LINES[:2], b"WARC-Target-URI:<HTTP://a.test/odd>"),
    "blanks around the URI": head(*LINES[:2], b"WARC-Target-URI:   http://a.test/odd  "),
    "a folded header of WARC": head(*LINES, b"WARC-Filename: a\r\n b"),
    "Latin-1 in WARC": head(*LINES, b"WARC-Filename: caf\xe9.warc"),
    "a line without a colon in WARC": head(*LINES, b"oops"),
    "a header of WARC twice": head(*LINES, LINES[0], LINES[2]),
    "a date with an offset": odd(WARC_Date="2026-03-01T13:00:00+01:00"),
    "a date of 14 digits": odd(WARC_Date="20260301120000"),
    "nanoseconds": odd(WARC_Date="2026-03-01T12:00:00.123456789Z"),
    "no record id": odd(),
    "msgtype in upper case": odd(Content_Type="Application/HTTP; msgtype=response"),
    "no type of the block": odd(WARC_IP_Address="192.0.2.1"),
    # Between records.
    "no empty line behind": odd()[:-4],
    "one line end behind": odd()[:-2],
    "three empty lines behind": odd() + b"\r\n\r\n",
    "LF behind": odd()[:-4] + b"\n\n",
    "one LF behind": odd()[:-4] + b"\n",
    "an empty line before": b"\r\n" + odd(),
    "a byte order mark before": b"\xef\xbb\xbf" + odd(),
    "a wrong payload digest": odd(WARC_Payload_Digest=digest(b"another")),
    "a resource": record("resource", BODY, url=ODD, more={"Content-Type": "text/html"}),
}  # fmt: skip
#: A record that is lost, with words of the line about it.
DAMAGED: dict[str, tuple[bytes, str]] = {
    "no length": (record("response", OK + BODY, url=ODD, length=False), "no Content-Length"),
    "no length at all": (odd().replace(b"Content-Length: ", b"Content-Length: x"), "impossible"),
    "a negative length": (record("response", OK, url=ODD, length=-1), "impossible"),
    "a length too short": (record("response", OK + BODY, url=ODD, length=60), "more than the 60"),
    "a length too long": (record("response", OK + BODY, url=ODD, length=180), ""),
    "a length far too long": (record("response", OK + BODY, url=ODD, length=10**9), "should have"),
    "a length of 18 digits": (record("response", OK, url=ODD, length=10**17), "should have"),
    "a head that does not end": (b"WARC/1.0\r\nA: " + b"x" * 70_000 + b"\r\n\r\n", "does not end"),
    "garbage": (b"garbage \0\1\2\r\n\r\n" * 9, "no WARC record begins here"),
    "HTML": (b"<html>\n" * 40, "no WARC record begins here"),
    "a wrong version": (odd().replace(b"WARC/1.1", b"WRAC/1.1"), "no WARC record begins here"),
    "no date": (odd().replace(b"WARC-Date: ", b"WARC-Tade: "), "no usable WARC-Date"),
    "an odd date": (odd().replace(DATE.encode(), b"yesterday of may ye"), "no usable WARC-Date"),
}


def whole(*records: bytes) -> bytes:
    return gzip.compress(b"".join(records), mtime=0)


CODINGS: dict[str, Callable[..., bytes]] = {
    "plain": lambda *records: b"".join(records),
    "gzip": gzipped,
    "one member": whole,
    "zstd": zstandardised,
}


class Archive:
    """An archive, indexed, read back, and judged as a replay judges it."""

    def __init__(self, place: Path, data: bytes) -> None:
        path = place / "a.warc"
        path.write_bytes(data)
        read = Read(place, path)
        results = [fetch_result(each, 1024 * 1024) for each in read.exchanges]
        self.results: dict[str, FetchResult] = {each.url: each for each in results}
        self.lines = [str(each) for each in (*read.damages, *read.lost)]
        self.count = len(results)

    @property
    def bodies(self) -> dict[str, bytes]:
        return {url: each.body for url, each in self.results.items()}


BEFORE, AFTER = page(1), page(3)
AROUND = {"http://a.test/1": b"<p>page 1", "http://a.test/3": b"<p>page 3"}


@pytest.mark.parametrize("coding", ["plain", "gzip"])
@pytest.mark.parametrize("what", READABLE)
def test_what_other_programs_write_is_read(tmp_path: Path, what: str, coding: str) -> None:
    found = Archive(tmp_path, CODINGS[coding](BEFORE, READABLE[what], AFTER))
    assert found.bodies == {**AROUND, ODD: BODY}
    assert found.results[ODD].outcome == "fetched"
    assert found.count == 3
    assert len(found.lines) == (what == "a wrong payload digest")


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("what", DAMAGED)
def test_a_damaged_record_costs_that_record_and_one_line(
    tmp_path: Path, what: str, coding: str
) -> None:
    record, reason = DAMAGED[what]
    found = Archive(tmp_path, CODINGS[coding](BEFORE, record, AFTER))
    assert found.bodies == AROUND
    assert found.count == 2
    (line,) = found.lines
    assert reason in line
    at = 0 if coding == "one member" else len(CODINGS[coding](BEFORE))
    assert f"at byte {at}: " in line


def cut(data: bytes, *, missing: int) -> bytes:
    return data[:-missing]


DICTIONARY = zstandard.ZstdCompressionDict(BEFORE + odd() + AFTER)
_WORDS = DICTIONARY.as_bytes()
WITH_DICTIONARY = (
    b"\x5d\x2a\x4d\x18" + len(_WORDS).to_bytes(4, "little") + _WORDS
    + b"".join(map(zstandard.ZstdCompressor(dict_data=DICTIONARY).compress, (BEFORE, odd(), AFTER)))
)  # fmt: skip
INFO = record("warcinfo", b"software: x\r\nformat: WARC File Format 1.0\r\n", url=None)
JOINED = gzip.compress(BEFORE + odd()[:90]) + gzip.compress(odd()[90:] + AFTER)
FLIPPED = bytearray(gzipped(odd()))
FLIPPED[len(FLIPPED) // 2] ^= 0x10
ALL, LAST_LOST = {**AROUND, ODD: BODY}, {"http://a.test/1": b"<p>page 1", ODD: BODY}

#: Whole files, with what is read of them, and the number of lines about damages.
FILES: dict[str, tuple[bytes, dict[str, bytes], int]] = {
    "a byte order mark": (b"\xef\xbb\xbf" + BEFORE + odd() + AFTER, ALL, 0),
    "empty lines first": (b"\r\n\r\n" + BEFORE + odd() + AFTER, ALL, 0),
    "a dictionary": (WITH_DICTIONARY, ALL, 0),
    "a skippable frame": (
        zstandardised(BEFORE) + b"\x50\x2a\x4d\x18\3\0\0\0abc" + zstandardised(odd(), AFTER), ALL, 0
    ),
    "records over two members": (JOINED, ALL, 0),
    "an empty member": (gzipped(BEFORE, b"", odd(), AFTER), ALL, 0),
    "the last record is cut": (BEFORE + odd() + cut(AFTER, missing=9), LAST_LOST, 1),
    "the last member is cut": (gzipped(BEFORE, odd()) + gzipped(AFTER)[:-20], LAST_LOST, 1),
    "the head of the last is cut": (BEFORE + odd() + AFTER[:50], LAST_LOST, 1),
    "the last frame is cut": (zstandardised(BEFORE, odd(), AFTER)[:-20], LAST_LOST, 1),
    "no line end at the end": (BEFORE + odd() + cut(AFTER, missing=4), ALL, 0),
    "garbage at the end": (BEFORE + odd() + AFTER + b"\1garbage" * 9, ALL, 1),
    "garbage behind gzip": (gzipped(BEFORE, odd(), AFTER) + b"\1garbage" * 9, ALL, 1),
    "zeros behind gzip": (gzipped(BEFORE, odd(), AFTER) + bytes(10_000), ALL, 0),
    "garbage between members": (
        gzipped(BEFORE) + b"\1garbage" * 9 + gzipped(odd(), AFTER), ALL, 1
    ),
    "a damaged member": (gzipped(BEFORE) + bytes(FLIPPED) + gzipped(AFTER), AROUND, 1),
    "a member that is cut": (gzipped(BEFORE) + gzipped(odd())[:-30] + gzipped(AFTER), AROUND, 1),
    "a file that was joined": (gzipped(INFO, BEFORE) + gzipped(INFO, odd(), AFTER), ALL, 0),
    "metadata of Heritrix": (
        gzipped(
            INFO, BEFORE, odd(WARC_Record_ID="<urn:uuid:1>"),
            record(
                "metadata", b"via: x\r\nhopsFromSeed: L\r\nfetchTimeMs: 90\r\n", url=ODD,
                more={"WARC-Concurrent-To": "<urn:uuid:1>"},
            ),
            record("response", b"\0\1dns", url="dns:a.test"), AFTER,
        ), ALL, 0,
    ),
}  # fmt: skip


#: What is expected above of a readable record is at least what warcio reads.
REFEREED = {
    **{f"record: {what}": BEFORE + each + AFTER for what, (each, _) in DAMAGED.items()},
    **{f"member: {what}": gzipped(BEFORE, each, AFTER) for what, (each, _) in DAMAGED.items()},
    **{f"file: {what}": data for what, (data, *_) in FILES.items()},
}


@pytest.mark.parametrize("what", REFEREED)
def test_what_warcio_reads_is_read(tmp_path: Path, what: str) -> None:
    ours = Archive(tmp_path, REFEREED[what]).bodies
    missed = {url for url, body in by_warcio(REFEREED[what]) if ours.get(url) != body}
    # What has no date has no place in the order of time.
    assert missed == ({ODD} if "date" in what else set())


def by_warcio(data: bytes) -> list[tuple[str, bytes]]:
    """The pages that warcio reads as they were, up to where it gives up, in one way or another."""
    found = []
    with suppress(ArchiveLoadFailed, AttributeError):
        for each in ArchiveIterator(io.BytesIO(data)):
            if each.rec_type in ("response", "resource"):
                url = each.rec_headers.get_header("WARC-Target-URI")
                found.append((target_url(url), each.content_stream().read()))
    return [(url, body) for url, body in found if ALL.get(url) == body]


@pytest.mark.parametrize("what", FILES)
def test_files_are_read_as_far_as_they_are_whole(tmp_path: Path, what: str) -> None:
    data, bodies, damages = FILES[what]
    found = Archive(tmp_path, data)
    assert found.bodies == bodies
    assert found.count == len(bodies)
    assert len(found.lines) == damages


@pytest.mark.parametrize(
    "body",
    [
        PDF,
        BODY.decode().encode("utf-16"),
        b"\xef\xbb\xbf" + BODY,
        "Un café crème, s'il vous plaît".encode("latin-1"),
        "Страница текста".encode("cp1251"),
        "<p>日本語".encode("shift-jis"),
    ],
    ids=["PDF", "UTF-16", "byte order mark", "Latin-1", "Cyrillic", "Japanese"],
)
def test_a_body_of_any_format_may_be_unpacked_already(tmp_path: Path, body: bytes) -> None:
    found = Archive(tmp_path, odd(http(GZIP, b"Content-Length: 9999", body=body)))
    assert found.bodies == {ODD: body}


@pytest.mark.parametrize("bracketed", [True, False])
def test_records_name_one_another_with_and_without_brackets(
    tmp_path: Path, bracketed: bool
) -> None:
    said = "<urn:uuid:1>" if bracketed else "urn:uuid:1"
    other = "urn:uuid:1" if bracketed else "<urn:uuid:1>"
    profile = "http://netpreserve.org/warc/1.0/revisit/identical-payload-digest"
    again = "http://a.test/again"
    revisit = record("revisit", url=again, more={"WARC-Profile": profile, "WARC-Refers-To": other})
    found = Archive(tmp_path, odd(WARC_Record_ID=said) + revisit)
    assert found.bodies == {ODD: BODY, again: BODY}


def test_an_index_of_captures_finds_records_behind_a_damage(tmp_path: Path) -> None:
    stored = [gzipped(BEFORE), bytes(FLIPPED), gzipped(odd()), gzipped(AFTER)]
    (tmp_path / "a.warc.gz").write_bytes(b"".join(stored))
    path = tmp_path / "a.cdxj"
    starts = [sum(map(len, stored[:number])) for number in range(4)]
    path.write_text("".join(
        f"test,a)/ 20260301120000 {json.dumps({'filename': 'a.warc.gz', 'offset': str(at)})}\n"
        for at in starts
    ))  # fmt: skip
    read = Read(tmp_path, path)
    assert sorted(read.urls) == sorted(ALL)
    assert [each.offset for each in read.damages] == [starts[1]]


def test_a_file_of_nothing_but_damages_is_not_read_for_ever(tmp_path: Path) -> None:
    broken = record("response", OK, url=ODD, length=10**9)
    found = Archive(tmp_path, BEFORE + broken * 500)
    assert found.bodies == {"http://a.test/1": b"<p>page 1"}
    assert len(found.lines) == 101
    assert "the reading ends here, after 100 damages" in found.lines[-1]


def test_octets_of_a_url_are_kept(tmp_path: Path) -> None:
    said = {"caf\xe9".encode("latin-1"): "caf%E9", "caf\xe9".encode(): "caf\xe9"}
    for octets, path in said.items():
        found = Archive(tmp_path, PLAIN_HEAD.replace(b"/odd", b"/" + octets))
        assert found.bodies == {f"http://a.test/{path}": BODY}


@pytest.mark.parametrize("mark", [b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd"])
def test_what_only_looks_like_members_is_not_tried_for_ever(tmp_path: Path, mark: bytes) -> None:
    encode = gzipped if mark[:1] == b"\x1f" else zstandardised
    for many, bodies in ((900, AROUND), (1100, {"http://a.test/1": b"<p>page 1"})):
        found = Archive(tmp_path, encode(BEFORE) + mark * many + encode(AFTER))
        assert found.bodies == bodies
        assert len(found.lines) == 1
