import gzip
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.errors import BrokenFile
from freshet.crawler.reduce.sitemaps import SLICE_BYTES, TooLong, gunzipped

TEXT = b"".join(b"line %d of the text\n" % n for n in range(10_000))


def pieces_of(body: bytes, size: int) -> list[bytes]:
    return [body[start : start + size] for start in range(0, len(body), size)]


def collect(slices: Iterator[bytes], taken: bytearray) -> None:
    for piece in slices:
        taken += piece


@given(st.binary(max_size=200), st.integers(1, 20))
def test_plain_bytes_come_out_as_they_went_in(body: bytes, size: int) -> None:
    plain = b"-" + body
    assert b"".join(gunzipped(pieces_of(plain, size), 1_000)) == plain


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=4), st.integers(1, 20))
def test_gzip_of_any_number_of_members_in_pieces_of_any_size_is_decoded(
    parts: list[bytes], size: int
) -> None:
    body = b"".join(map(gzip.compress, parts))
    assert b"".join(gunzipped(pieces_of(body, size), 1_000)) == b"".join(parts)


@pytest.mark.parametrize("body", [TEXT, gzip.compress(TEXT, mtime=0)])
def test_slices_are_bounded_and_end_after_what_was_wanted(body: bytes) -> None:
    slices = list(gunzipped(body, len(TEXT)))
    assert b"".join(slices) == TEXT
    assert max(map(len, slices)) <= SLICE_BYTES
    taken = bytearray()
    with pytest.raises(TooLong):
        collect(gunzipped(body, 70_000), taken)
    assert taken == TEXT[:70_000]


def test_of_an_endless_bomb_only_the_wanted_part_is_inflated() -> None:
    def bomb() -> Iterator[bytes]:
        while True:
            yield gzip.compress(bytes(10_000_000))

    taken = bytearray()
    with pytest.raises(TooLong):
        collect(gunzipped(bomb(), 1_000_000), taken)
    assert taken == bytes(1_000_000)


@pytest.mark.parametrize(
    ("end", "complaint"), [(b"", "ends early"), (bytes(8), "[Ii]ncorrect checksum")]
)
def test_a_broken_stream_is_said_to_be_broken_after_its_good_part(
    end: bytes, complaint: str
) -> None:
    taken = bytearray()
    with pytest.raises(BrokenFile, match=complaint):
        collect(gunzipped(gzip.compress(TEXT)[:-8] + end, 10**9), taken)
    assert TEXT.startswith(taken)
    assert len(taken) > len(TEXT) - SLICE_BYTES


def test_padding_after_the_last_member_is_left_out() -> None:
    assert b"".join(gunzipped(gzip.compress(b"text") + bytes(512), 100)) == b"text"
