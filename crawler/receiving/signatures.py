"""Signatures of WebSub notifications (W3C WebSub, section 7.1)."""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass
from typing import Final

_METHODS: Final = frozenset({"sha1", "sha256", "sha384", "sha512"})
_FORM: Final = re.compile(r"\s*([A-Za-z0-9]{1,16})=([0-9A-Fa-f]{1,128})\s*")


@dataclass(frozen=True, slots=True)
class Signature:
    """What the header says: the name of a hash and the digest of the body under it."""

    method: str
    digest: bytes


def parse_signature(header: str | None) -> Signature | None:
    """The signature of an ``X-Hub-Signature`` header, None where it is none that is known."""
    match = _FORM.fullmatch(header or "")
    if match is None or match[1].lower() not in _METHODS or len(match[2]) % 2:
        return None
    signature = Signature(match[1].lower(), bytes.fromhex(match[2]))
    if len(signature.digest) != hashlib.new(signature.method).digest_size:
        return None
    return signature


def is_authentic(secret: str, body: bytes, signature: Signature) -> bool:
    """Whether who signed this body knows the secret; the time taken does not tell how nearly."""
    expected = hmac.digest(secret.encode(), body, signature.method)
    return hmac.compare_digest(expected, signature.digest)
