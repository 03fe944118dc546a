"""Sites that mean harm, each by one answer at ``/``; their robots.txt is missing."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import brotli
import zstandard

from scripts.benchmarks.site_contents import Answer, head, simple

_MIB = 1 << 20
_ZEROS = bytes(_MIB)
_HTML = "Content-Type: text/html"
_PIECE_BYTES = 65_536
#: The endless body ends after so much, lest a crawler without limits fills the machine.
_ENDLESS_MIB = 4_096
_DEPTH = 100_000
_HEADERS = 200_000


@dataclass(frozen=True, slots=True)
class Hostile:
    """``attack`` makes the bytes of the answer anew for each request."""

    attack: Callable[[], Iterator[bytes]]
    latency_s: float = 0.0

    def answer(self, path: str, headers: Mapping[str, str]) -> Answer:
        """The attack at ``/``."""
        if path != "/":
            return simple(404, b"", _HTML)
        return Answer(200, self.attack())


def attacks(bomb_mib: int) -> dict[str, Callable[[], Iterator[bytes]]]:
    """The attacks by name; a bomb decodes to ``bomb_mib``. The bombs are built here."""
    return {
        "gzip_bomb": partial(_encoded, "gzip", gzip_bomb(bomb_mib)),
        "brotli_bomb": partial(_encoded, "br", brotli_bomb(bomb_mib)),
        "zstd_bomb": partial(_encoded, "zstd", zstd_bomb(bomb_mib)),
        "endless_body": _endless,
        "nested_tags": _nested,
        "many_headers": _many_headers,
    }


def gzip_bomb(mib: int) -> bytes:
    """Zeros as one gzip member: after a full flush the same compressed piece fits again."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    piece = deflate.compress(_ZEROS) + deflate.flush(zlib.Z_FULL_FLUSH)
    checksum = 0
    for _ in range(mib):
        checksum = zlib.crc32(_ZEROS, checksum)
    trailer = checksum.to_bytes(4, "little") + (mib * _MIB % 2**32).to_bytes(4, "little")
    start = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"
    return start + piece * mib + deflate.flush(zlib.Z_FINISH) + trailer


def brotli_bomb(mib: int) -> bytes:
    """Zeros as one brotli stream: some 800 bytes a GiB."""
    compressor = brotli.Compressor(quality=5)
    pieces = [compressor.process(_ZEROS) for _ in range(mib)]
    return b"".join([*pieces, compressor.finish()])


def zstd_bomb(mib: int) -> bytes:
    """Zeros as one zstd frame."""
    compressor = zstandard.ZstdCompressor().compressobj()
    return b"".join(compressor.compress(_ZEROS) for _ in range(mib)) + compressor.flush()


def _encoded(coding: str, bomb: bytes) -> Iterator[bytes]:
    yield head(200, _HTML, f"Content-Encoding: {coding}", f"Content-Length: {len(bomb)}")
    yield from (bomb[at : at + _PIECE_BYTES] for at in range(0, len(bomb), _PIECE_BYTES))


def _endless() -> Iterator[bytes]:
    yield head(200, _HTML, "Connection: close")
    line = b"<p>and so on and so on and so on\n"
    piece = line * (_PIECE_BYTES // len(line))
    for _ in range(_ENDLESS_MIB * _MIB // len(piece)):
        yield piece


def _nested() -> Iterator[bytes]:
    body = b"<!doctype html><title>Deep</title>" + b"<div>" * _DEPTH
    yield head(200, _HTML, f"Content-Length: {len(body)}") + body


def _many_headers() -> Iterator[bytes]:
    yield b"HTTP/1.1 200 X\r\n"
    for first in range(0, _HEADERS, 1_000):
        yield b"".join(b"X-%d: padding\r\n" % n for n in range(first, first + 1_000))
    yield b"Content-Length: 0\r\n\r\n"
