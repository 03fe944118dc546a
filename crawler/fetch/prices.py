"""Prices of pages, in responses with status 402; Freshet never pays.

It reads (as of 2026-12-01) the header ``crawler-price`` of Cloudflare's pay per crawl, and of x402
the JSON body of version 1 and the header ``PAYMENT-REQUIRED`` of version 2.
"""

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any, Final

#: Characters of a price that are shown, and prices per response.
_MOST_CHARACTERS: Final = 60
_MOST: Final = 3


def asked_for(header: Callable[[bytes], bytes | None], body: bytes) -> str | None:
    """Return the price that a response asks for, in words, or None.

    ``header`` returns the first value of a header; it takes the name in lower case.
    """
    if (price := header(b"crawler-price")) is not None and price.strip():
        return _shown(price.decode("latin-1"))
    encoded = header(b"payment-required")
    found = list(_x402(body if encoded is None else _decoded(encoded)))
    return " or ".join(found[:_MOST]) or None


def _decoded(value: bytes) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except ValueError:
        return b""


def _x402(text: bytes) -> Iterator[str]:
    """Yield the prices of payment requirements: an amount in the smallest unit of an asset."""
    try:
        accepted: Any = json.loads(text)["accepts"]
        for each in accepted:
            amount = each.get("amount", each.get("maxAmountRequired"))
            if isinstance(amount, str | int):
                unit = (each.get("extra") or {}).get("name") or each.get("asset") or "units"
                yield _shown(f"{amount} {unit} on {each.get('network', 'an unnamed network')}")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return


def _shown(text: str) -> str:
    return "".join(filter(str.isprintable, text)).strip()[:_MOST_CHARACTERS]
