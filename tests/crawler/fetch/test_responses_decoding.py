import gzip
import os
import tracemalloc
import zlib
from collections.abc import Callable, Iterable
from itertools import pairwise

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.errors import Unfetched
from freshet.crawler.fetch.responses import BoundedDecoder

MIB = 1024 * 1024
LARGEST_STEP = 4 * MIB + 1024


def raw_deflate(data: bytes) -> bytes:
    stream = zlib.compressobj(9, zlib.DEFLATED, -15)
    return stream.compress(data) + stream.flush()


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=19).compress(data)


def brotli_compress(data: bytes) -> bytes:
    return bytes(brotli.compress(data, quality=5))


ENCODERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress), "x-gzip": ("X-GZip", gzip.compress),
    "zlib": ("deflate", zlib.compress), "raw deflate": ("deflate", raw_deflate),
    "brotli": ("br", brotli_compress), "zstd": ("zstd", zstd), "identity": ("identity", bytes),
    "none": ("", bytes),
    "gzip in brotli": ("gzip, br", lambda data: brotli_compress(gzip.compress(data))),
    "zstd in gzip": ("zstd,gzip", lambda data: gzip.compress(zstd(data))),
}  # fmt: skip
every_coding = pytest.mark.parametrize("coding", ENCODERS)
every_compression = pytest.mark.parametrize("coding", [c for c in ENCODERS if c[:1] not in "in"])
bodies = st.binary(max_size=300) | st.builds(
    lambda unit, count: unit * count, st.binary(min_size=1, max_size=40), st.integers(0, 5000)
)


def chunked(data: bytes, cuts: Iterable[int]) -> list[bytes]:
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[a:b] for a, b in pairwise(places)]


def decode(decoder: BoundedDecoder, chunks: Iterable[bytes]) -> bytes:
    return b"".join(piece for chunk in chunks for piece in decoder.decode(chunk))


@every_coding
@given(body=bodies, cuts=st.lists(st.integers(0, 10**6), max_size=8))
def test_decoding_undoes_encoding_however_the_bytes_arrive(
    coding: str, body: bytes, cuts: list[int]
) -> None:
    name, encode = ENCODERS[coding]
    decoder = BoundedDecoder(name, MIB)
    assert decode(decoder, chunked(encode(body), cuts)) == body
    assert decoder.is_complete
    assert not decoder.is_overdrawn


@every_coding
def test_a_large_incompressible_body_passes_whole(coding: str) -> None:
    name, encode = ENCODERS[coding]
    body = os.urandom(MIB + 17)
    decoder = BoundedDecoder(name, 2 * MIB)
    assert decode(decoder, [encode(body)]) == body


@every_compression
def test_a_bomb_ends_at_the_limit_with_bounded_memory(coding: str) -> None:
    name, encode = ENCODERS[coding]
    bomb = encode(bytes(64 * MIB))
    decoder = BoundedDecoder(name, MIB)
    tracemalloc.start()
    sizes = [len(piece) for piece in decoder.decode(bomb)]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(sizes) == MIB
    assert decoder.is_overdrawn
    assert max(sizes) < LARGEST_STEP
    assert peak < 16 * MIB


def test_a_bomb_between_two_layers_ends_at_the_limit_too() -> None:
    nothing_at_all = gzip.compress(b"") * 200_000
    decoder = BoundedDecoder("gzip, br", MIB)
    with pytest.raises(Unfetched, match="more than 10,000 members"):
        decode(decoder, [brotli_compress(nothing_at_all)])


def test_a_layer_that_makes_nothing_of_much_gives_other_tasks_their_turn() -> None:
    head = zlib.compressobj(9, zlib.DEFLATED, -15).flush(zlib.Z_FULL_FLUSH)
    decoder = BoundedDecoder("deflate, gzip", 8 * MIB)
    pieces = list(decoder.decode(gzip.compress(head + b"\0\0\0\xff\xff" * MIB)))
    assert len(pieces) >= 5 * MIB // 65_536
    assert not any(pieces)


@every_coding
def test_a_body_of_exactly_the_limit_is_not_too_long(coding: str) -> None:
    name, encode = ENCODERS[coding]
    body = b"x" * 70_000
    decoder = BoundedDecoder(name, 70_000)
    assert decode(decoder, [encode(body)]) == body
    assert not decoder.is_overdrawn


@every_compression
def test_one_byte_over_the_limit_is_noticed(coding: str) -> None:
    name, encode = ENCODERS[coding]
    decoder = BoundedDecoder(name, 70_000)
    assert len(decode(decoder, [encode(b"x" * 70_001)])) == 70_000
    assert decoder.is_overdrawn


@every_compression
def test_a_stream_without_its_end_is_incomplete(coding: str) -> None:
    name, encode = ENCODERS[coding]
    decoder = BoundedDecoder(name, MIB)
    decode(decoder, [encode(os.urandom(5000))[:-9]])
    assert not decoder.is_complete


@every_compression
def test_an_empty_body_is_complete_whatever_its_coding_says(coding: str) -> None:
    assert BoundedDecoder(ENCODERS[coding][0], MIB).is_complete


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "br, gzip"])
def test_a_body_that_is_not_in_its_coding_is_corrupt(coding: str) -> None:
    decoder = BoundedDecoder(coding, MIB)
    with pytest.raises(Unfetched, match="encoding"):
        decode(decoder, [b"<!doctype html><title>Not compressed at all</title>"])


def test_a_wrong_checksum_is_corrupt() -> None:
    encoded = bytearray(gzip.compress(b"text" * 100))
    encoded[-8] ^= 1
    with pytest.raises(Unfetched, match="check"):
        decode(BoundedDecoder("gzip", MIB), [bytes(encoded)])


@given(cuts=st.lists(st.integers(0, 10**6), max_size=6))
def test_gzip_members_are_joined(cuts: list[int]) -> None:
    encoded = gzip.compress(b"one ") + gzip.compress(b"") + gzip.compress(b"two")
    decoder = BoundedDecoder("gzip", MIB)
    assert decode(decoder, chunked(encoded, cuts)) == b"one two"
    assert decoder.is_complete


@given(
    garbage=st.binary(min_size=1, max_size=20).filter(lambda g: not b"\x1f\x8b".startswith(g[:2])),
    cuts=st.lists(st.integers(0, 10**6), max_size=6),
)
def test_garbage_behind_a_gzip_member_is_ignored(garbage: bytes, cuts: list[int]) -> None:
    decoder = BoundedDecoder("gzip", MIB)
    assert decode(decoder, chunked(gzip.compress(b"text") + garbage, cuts)) == b"text"
    assert decoder.is_complete


def test_garbage_behind_a_deflate_stream_is_ignored() -> None:
    decoder = BoundedDecoder("deflate", MIB)
    assert decode(decoder, [zlib.compress(b"text"), b"garbage"]) == b"text"


@given(cuts=st.lists(st.integers(0, 10**6), max_size=6))
def test_zstd_frames_are_joined_and_skippable_ones_skipped(cuts: list[int]) -> None:
    skippable = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"
    decoder = BoundedDecoder("zstd", MIB)
    encoded = zstd(b"one ") + skippable + zstd(b"two")
    assert decode(decoder, chunked(encoded, cuts)) == b"one two"
    assert decoder.is_complete


def test_a_zstd_window_over_eight_mebibytes_is_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=25, write_content_size=False)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    encoded = compressor.compress(b"x" * 100) + compressor.flush()
    with pytest.raises(Unfetched, match="memory"):
        decode(BoundedDecoder("zstd", MIB), [encoded])


@pytest.mark.parametrize("coding", ["compress", "x-compress", "dcb", "gzip, aes128gcm"])
def test_a_registered_coding_that_is_not_read_is_refused(coding: str) -> None:
    with pytest.raises(Unfetched, match="not supported"):
        BoundedDecoder(coding, MIB)


@pytest.mark.parametrize("word", ["utf-8", "none", "text/html", "8bit", "\xff", "gzip-ish"])
def test_a_word_that_names_no_coding_is_none(word: str) -> None:
    assert BoundedDecoder(word, MIB).is_identity
    assert not BoundedDecoder(f"{word}, gzip", MIB).is_identity


def test_more_than_two_layers_are_refused() -> None:
    with pytest.raises(Unfetched, match="on top of each other"):
        BoundedDecoder("gzip, gzip, identity, gzip", MIB)
