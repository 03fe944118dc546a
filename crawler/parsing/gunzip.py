"""Bytes in slices, gunzipped if they are gzip, and never more of them than wanted.

A kilobyte of gzip may hold a megabyte, and a megabyte a gigabyte: so what comes out is
bounded, not what goes in, and one slice at a time is all that memory holds.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from itertools import chain

SLICE_BYTES = 64 * 1024

_MAGIC = b"\x1f\x8b"


class TooLong(Exception):
    """The bytes wanted have been given, and there are more."""


class BrokenGzip(Exception):
    """The stream is damaged or ends early; what came before has been given."""


def gunzipped(chunks: Iterable[bytes] | bytes, max_bytes: int) -> Iterator[bytes]:
    """The bytes in slices of at most 64 KiB, decoded if they begin like gzip (RFC 1952).

    Raises:
        TooLong: after the first ``max_bytes``, if more follow.
        BrokenGzip: where decoding fails, after what could be decoded.
    """
    left = max_bytes
    for piece in _decoded(_slices(chunks)):
        yield piece[:left]
        left -= len(piece)
        if left < 0:
            raise TooLong


def _slices(chunks: Iterable[bytes] | bytes) -> Iterator[bytes]:
    for chunk in (chunks,) if isinstance(chunks, bytes) else chunks:
        for start in range(0, len(chunk), SLICE_BYTES):
            yield chunk[start : start + SLICE_BYTES]


def _decoded(pieces: Iterator[bytes]) -> Iterator[bytes]:
    head = b""
    while len(head) < len(_MAGIC) and (piece := next(pieces, b"")):
        head += piece
    whole = chain((head,), pieces)
    return _inflated(whole) if head.startswith(_MAGIC) else whole


def _inflated(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Inflate member by member; what follows them and is none is padding."""
    inflater = zlib.decompressobj(wbits=31)
    for piece in pieces:
        rest = piece
        while rest:
            if inflater.eof:
                if not rest.startswith(_MAGIC[:1]):
                    return
                inflater = zlib.decompressobj(wbits=31)
            yield _inflate(inflater, rest)
            rest = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
    if not inflater.eof:
        raise BrokenGzip("gzip: the stream ends early")


def _inflate(inflater: zlib._Decompress, data: bytes) -> bytes:
    try:
        return inflater.decompress(data, SLICE_BYTES)
    except zlib.error as error:
        raise BrokenGzip(f"gzip: {error}") from error
