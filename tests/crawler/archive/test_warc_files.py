"""Every whole record is read, and every damage is told of."""

import gzip
import random
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.crawler.archive.records import Damage
from freshet.crawler.archive.scan import ScannedRecord, scan
from freshet.crawler.archive.text import FileSlice
from tests.crawler.archive.archives import OK, digest, gzipped, page, record, zstandardised

PAGES = [page(number) for number in range(6)]
CODINGS = {"plain": lambda *records: b"".join(records), "gzip": gzipped, "zstd": zstandardised}


def scanned(place: Path, data: bytes) -> tuple[list[ScannedRecord], list[Damage]]:
    path = place / "a.warc"
    path.write_bytes(data)
    with closing(FileSlice(path)) as source:
        found = list(scan(source, "a.warc"))
    records = [each for each in found if isinstance(each, ScannedRecord)]
    return records, [each for each in found if isinstance(each, Damage)]


def numbers(records: list[ScannedRecord]) -> list[int]:
    return [int(each.fields["warc-target-uri"].rpartition("/")[2]) for each in records]


@pytest.mark.parametrize("coding", CODINGS)
def test_records_and_their_places_are_those_of_the_file(tmp_path: Path, coding: str) -> None:
    stored = [CODINGS[coding](each) for each in PAGES]
    records, damages = scanned(tmp_path, b"".join(stored))
    assert damages == []
    starts = [sum(map(len, stored[:number])) for number in range(6)]
    assert [each.place for each in records] == [(start, 0) for start in starts]
    assert [each.start for each in records] == [OK + f"<p>page {n}".encode() for n in range(6)]


def test_records_in_one_compressed_stream_are_counted(tmp_path: Path) -> None:
    for data in (gzip.compress(b"".join(PAGES)), zstandardised(b"".join(PAGES))):
        records, damages = scanned(tmp_path, data * 2)
        assert damages == []
        assert numbers(records) == [0, 1, 2, 3, 4, 5] * 2
        starts = [0] * 6 + [len(data)] * 6
        assert [each.place for each in records] == list(zip(starts, [*range(6)] * 2, strict=True))


def test_members_that_turn_out_to_hold_several_records_are_counted_too(tmp_path: Path) -> None:
    data = gzipped(*PAGES[:2]) + gzip.compress(b"".join(PAGES[2:5])) + gzipped(PAGES[5])
    records, damages = scanned(tmp_path, data)
    assert damages == []
    assert numbers(records) == [0, 1, 2, 3, 4, 5]


def test_a_zstd_file_may_begin_with_a_dictionary(tmp_path: Path) -> None:
    made = zstandard.ZstdCompressionDict(b"".join(PAGES[:3]))
    compressor = zstandard.ZstdCompressor(dict_data=made)
    words = made.as_bytes()
    data = b"\x5d\x2a\x4d\x18" + len(words).to_bytes(4, "little") + words
    records, damages = scanned(tmp_path, data + b"".join(map(compressor.compress, PAGES)))
    assert damages == []
    assert numbers(records) == [0, 1, 2, 3, 4, 5]
    assert records[0].place.offset == len(data)


def _with(number: int, replacement: bytes) -> Callable[[str], bytes]:
    return lambda coding: CODINGS[coding](*PAGES[:number], replacement, *PAGES[number + 1 :])


DAMAGED = {
    "no length": (page(3, length=False), "no Content-Length"),
    "a negative length": (page(3, length=-5), "impossible Content-Length, '-5'"),
    "a length that is no number": (page(3, length="many"), "impossible Content-Length, 'many'"),
    "a length beyond the end": (page(3, length=10**15), "should have 1000000000000"),
    "an endless head": (
        b"WARC/1.1\r\nA: " + b"x" * 200_000 + b"\r\n\r\n",
        "head of the record does not end",
    ),
}


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("what", DAMAGED)
def test_the_reading_goes_on_behind_a_record_with_a_wrong_head(
    tmp_path: Path, coding: str, what: str
) -> None:
    replacement, reason = DAMAGED[what]
    records, damages = scanned(tmp_path, _with(3, replacement)(coding))
    (damage,) = damages
    assert numbers(records) == [0, 1, 2, 4, 5]
    assert damage.offset == len(CODINGS[coding](*PAGES[:3]))
    assert reason in str(damage)


@pytest.mark.parametrize("coding", CODINGS)
def test_a_length_that_is_too_short_gives_no_record_that_is_cut(
    tmp_path: Path, coding: str
) -> None:
    records, damages = scanned(tmp_path, _with(3, page(3, length=20))(coding))
    assert numbers(records) == [0, 1, 2, 4, 5]
    assert [each.offset for each in damages] == [len(CODINGS[coding](*PAGES[:3]))]


@pytest.mark.parametrize("coding", CODINGS)
def test_the_records_before_and_behind_garbage_are_given_out(tmp_path: Path, coding: str) -> None:
    encode = CODINGS[coding]
    garbage = b"garbage\r\n\x1f\x8b\x08\0 WARC/" * 9
    data = encode(*PAGES[:4]) + garbage + encode(*PAGES[4:])
    records, damages = scanned(tmp_path, data)
    assert numbers(records) == [0, 1, 2, 3, 4, 5]
    assert [each.offset for each in damages] == [len(encode(*PAGES[:4]))]


@pytest.mark.parametrize("coding", CODINGS)
def test_a_file_that_begins_with_no_record_is_not_read(tmp_path: Path, coding: str) -> None:
    records, damages = scanned(tmp_path, b"oops" + CODINGS[coding](*PAGES))
    assert records == []
    assert [(each.offset, each.flaw) for each in damages] == [(0, "unreadable")]


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("missing", [5, 60, 100])
def test_a_file_that_ends_early_gives_no_record_that_is_cut(
    tmp_path: Path, coding: str, missing: int
) -> None:
    data = CODINGS[coding](*PAGES)
    records, damages = scanned(tmp_path, data[:-missing])
    assert numbers(records) == [0, 1, 2, 3, 4]
    assert [each.offset for each in damages] == [len(CODINGS[coding](*PAGES[:5]))]


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_records_behind_a_long_one_are_found(tmp_path: Path, coding: str) -> None:
    pages = [page(0, body=random.Random(1).randbytes(200_000)), page(1)]
    records, damages = scanned(tmp_path, CODINGS[coding](*pages))
    assert damages == []
    assert records[1].place == (len(CODINGS[coding](pages[0])), 0)


def test_a_stream_that_is_cut_gives_its_records_but_the_last(tmp_path: Path) -> None:
    many = [page(number, body=bytes(range(number, number + 90)) * 3) for number in range(9)]
    whole = gzip.compress(b"".join(many))
    records, damages = scanned(tmp_path, whole + whole[:-20])
    assert numbers(records) == [*range(9), *range(len(records) - 9)]
    assert len(records) < 18
    assert len(damages) == 1


def test_an_empty_file_and_a_text_are_told_of(tmp_path: Path) -> None:
    assert [each.flaw for each in scanned(tmp_path, b"")[1]] == ["empty"]
    assert [each.flaw for each in scanned(tmp_path, b"Dear diary,\n")[1]] == ["unreadable"]


def test_digests_are_verified_whatever_their_spelling(tmp_path: Path) -> None:
    block = OK + b"hello"
    right = {
        "WARC-Block-Digest": digest(block),
        "WARC-Payload-Digest": "sha-256:"
        "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
    }
    wrong = right | {"WARC-Payload-Digest": "md5:" + "0" * 32}
    padded = {"WARC-Payload-Digest": "md5:LVAUAKV4JMVHNOLRTWIRAF6FSI======"}
    unknown = {"WARC-Block-Digest": "blake3:abc"}
    cases = (right, wrong, padded, unknown, {"WARC-Block-Digest": "sha1:too-short"})
    records, _ = scanned(tmp_path, b"".join(record("response", block, more=m) for m in cases))
    assert [each.wrong for each in records] == [
        None, "the md5 digest of its payload is wrong", None, None,
        "the sha1 digest of its block is wrong",
    ]  # fmt: skip


def test_the_payload_digest_may_be_that_of_the_content_without_chunks(tmp_path: Path) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    block = head + b"5;x=y\r\nhello\r\n0\r\n\r\n"
    cases = [{"WARC-Payload-Digest": digest(data)} for data in (b"hello", block[len(head) :], b"?")]
    records, _ = scanned(tmp_path, b"".join(record("response", block, more=m) for m in cases))
    assert [each.wrong is None for each in records] == [True, True, False]


@settings(max_examples=150)
@given(st.data(), st.sampled_from(sorted(CODINGS)))
def test_a_flipped_byte_spoils_no_record_before_it_and_gives_no_wrong_one(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, coding: str
) -> None:
    labelled = [
        record(
            "response",
            OK + b"page %d" % number,
            url=f"http://a.test/{number}",
            more={"WARC-Block-Digest": digest(OK + b"page %d" % number)},
        )
        for number in range(4)
    ]
    stored = [CODINGS[coding](each) for each in labelled]
    number = data.draw(st.integers(0, 3))
    flipped = bytearray(stored[number])
    flipped[data.draw(st.integers(0, len(flipped) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    stored[number] = bytes(flipped)
    records, damages = scanned(tmp_path_factory.mktemp("flip"), b"".join(stored))
    blocks = [each.start for each in records if each.wrong is None]
    expected = [OK + b"page %d" % each for each in range(4)]
    assert blocks[:number] == expected[:number]
    # A bit that says nothing (a name's case, a time of gzip's) may flip unseen.
    assert set(blocks) <= set(expected)
    assert blocks == expected or damages or any(each.wrong for each in records)


@settings(max_examples=150)
@given(
    st.lists(
        st.one_of(
            st.binary(max_size=40),
            st.sampled_from([b"WARC/1.1\r\n", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"\r\n\r\n"]),
            st.sampled_from([b"Content-Length: 7\r\n", b"WARC-Type: response\r\n", PAGES[1]]),
            st.sampled_from([gzipped(PAGES[1]), zstandardised(PAGES[2]), b"\x5d\x2a\x4d\x18"]),
        ),
        max_size=12,
    )
)
def test_hostile_bytes_are_damage_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes]
) -> None:
    data = b"".join(parts)
    records, damages = scanned(tmp_path_factory.mktemp("hostile"), data)
    assert records or damages
    assert all(0 <= each.offset <= len(data) for each in damages)
