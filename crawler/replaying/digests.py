"""The digests that WARC records are labelled with, computed as the bytes go by.

A label is ``algorithm:digest``. The standard's example is SHA-1 in base 32; tools also write
SHA-256 and MD5, in hexadecimal or base 64.
"""

from __future__ import annotations

import base64
import hashlib
import re
from typing import NamedTuple

#: What hashlib calls the algorithms, and the size in bytes, by the letters and digits of their
#: names.
_ALGORITHMS = {
    "sha1": ("sha1", 20),
    "sha256": ("sha256", 32),
    "sha512": ("sha512", 64),
    "md5": ("md5", 16),
}
_BASE32 = re.compile("[A-Za-z2-7]+")
#: The digits of base 32 as Python's integers have them.
_DIGITS = str.maketrans(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz234567",
    "0123456789abcdefghijklmnop0123456789abcdefghijklmnopqrstuv",
)
_URL_SAFE = str.maketrans("-_", "+/")


class Label(NamedTuple):
    """A digest as labelled; ``digest`` is None where the text cannot be one."""

    algorithm: str
    digest: bytes | None

    def __str__(self) -> str:
        return written(self.algorithm, self.digest or b"")

    def new(self) -> hashlib._Hash:
        """A computation of that kind."""
        return hashlib.new(self.algorithm, usedforsecurity=False)


def read_label(text: str | None) -> Label | None:
    """The label, or None if there is none or its algorithm is not one that is verified."""
    if text is None:
        return None
    name, colon, value = text.strip().partition(":")
    known = _ALGORITHMS.get(name.strip().lower().replace("-", ""))
    if not colon or known is None:
        return None
    algorithm, size = known
    return Label(algorithm, _decoded(value.strip(), size))


def written(algorithm: str, digest: bytes) -> str:
    """A digest in one spelling, so that texts can be compared."""
    return f"{algorithm}:{digest.hex()}"


def _decoded(value: str, size: int) -> bytes | None:
    bare = value.rstrip("=")
    try:
        if len(value) == 2 * size:
            return bytes.fromhex(value)
        if len(bare) == -(-size * 8 // 5):
            return _from_base32(bare, size)
        digest = base64.b64decode(bare.translate(_URL_SAFE) + "=" * (-len(bare) % 4), validate=True)
    except (ValueError, OverflowError):
        return None
    return digest if len(digest) == size else None


def _from_base32(text: str, size: int) -> bytes:
    """RFC 4648, section 6, by way of an integer: Python's own takes as long as the digest."""
    if not _BASE32.fullmatch(text):
        raise ValueError("not base 32")
    spare_bits = len(text) * 5 - size * 8
    return (int(text.translate(_DIGITS), 32) >> spare_bits).to_bytes(size, "big")
