"""JSON and PDF as text.

JSON: each value is a block, its place the path of keys that leads to it. Consequence: neither
white space nor the order of an object's keys is a change (RFC 8259, section 4, gives it no
meaning), and a key with a new value at every visit is learnt as volatile like any other block.

PDF: one digest without the time and the identifier that many programs stamp on each copy (ISO
32000-1, sections 14.3 and 14.4). Compressed streams are not read: a new stamp in there is a change,
which the detector learns to expect if it comes at every visit.
"""

import json
import re
from dataclasses import replace
from hashlib import blake2b
from typing import Final

from freshet.crawler.reduce.markup import ROOT, Blocks, alike, below

#: Documents with more values are compared by their lines.
_MOST_VALUES = 20_000


def media_type(content_type: str | None) -> str:
    """Return the lower-case media type of a Content-Type header; default HTML."""
    return (content_type or "text/html").partition(";")[0].strip().lower()


def is_json(content_type: str | None) -> bool:
    """Return whether a Content-Type is that of a JSON document (RFC 6839, section 3.1)."""
    subtype = media_type(content_type).partition("/")[2]
    return subtype == "json" or subtype.endswith("+json")


def json_text(text: str) -> Blocks | None:
    """Return the values of a document as blocks ``key: value``, or None if it is unreadable."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    found: list[tuple[str, int]] = []
    pending: list[tuple[str, int, object]] = [("", ROOT, document)]
    while pending and len(found) <= _MOST_VALUES:
        key, place, value = pending.pop()
        if isinstance(value, dict):
            members = sorted(value.items(), reverse=True)
            pending += [(k, below(place, k), v) for k, v in members]
        elif isinstance(value, list):
            pending += [(key, below(place, "[]"), v) for v in reversed(value)]
        else:
            shown = value if isinstance(value, str) else json.dumps(value)
            found.append((" ".join(f"{key}: {shown}".split()), place))
    if pending or not found:
        return None
    texts, places = zip(*found, strict=True)
    return replace(alike(texts, "text", ROOT), places=places)


# -- pdf ---------------------------------------------------------------------

_TYPES: Final = frozenset({"application/pdf", "application/x-pdf"})
_STRING: Final = rb"(?:\((?:[^()\\]|\\.)*+\)|<[0-9A-Fa-f\s]*+>)"
_STAMP: Final = re.compile(
    rb"""
      /(?:CreationDate|ModDate)\s*+%(string)s
    | /ID\s*+\[(?:\s*+%(string)s)++\s*+\]
    | <(xmp:(?:Create|Modify|Metadata)Date|xmpMM:(?:Document|Instance)ID)>[^<]*+</\1>
    | \b(?:xmp:(?:Create|Modify|Metadata)Date|xmpMM:(?:Document|Instance)ID)="[^"]*+"
    """
    % {b"string": _STRING},
    re.VERBOSE | re.DOTALL,
)


def is_pdf(media_type: str) -> bool:
    """Return whether a lower-case media type is that of PDF (RFC 8118)."""
    return media_type in _TYPES


def pdf_text(body: bytes) -> Blocks:
    """Return one block that names the document by its size and its digest without stamps."""
    digest = blake2b(_STAMP.sub(b"", body), digest_size=8).hexdigest()
    text = f"PDF of {len(body):,} bytes, digest {digest}"
    return alike((text,), "text", below(ROOT, "pdf"))
