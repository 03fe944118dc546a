"""Signatures of webhooks by the Standard Webhooks specification.

What is signed is ``id.timestamp.body`` with HMAC-SHA256 (its scheme ``v1``).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Final

_PREFIX: Final = "whsec_"
#: Of the specification: 192 to 512 bits.
_LEAST, _MOST = 24, 64


def key_of(secret: str) -> bytes:
    """The key that a secret stands for: ``whsec_`` and base64, or 24 to 64 bytes of text.

    Raises:
        ValueError: it is no such secret; the message does not quote it.
    """
    key = secret.encode()
    if secret.startswith(_PREFIX):
        try:
            key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
        except binascii.Error as error:
            raise ValueError(f"what follows {_PREFIX} is not base64") from error
    if not _LEAST <= len(key) <= _MOST:
        raise ValueError(f"it has {len(key)} bytes, and should have {_LEAST} to {_MOST}")
    return key


def signature(key: bytes, message_id: str, timestamp: int, body: bytes) -> str:
    """The value of the header ``webhook-signature``; ``timestamp`` is in Unix seconds."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    digest = hmac.digest(key, signed, hashlib.sha256)
    return f"v1,{base64.b64encode(digest).decode('ascii')}"
