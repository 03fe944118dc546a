"""PDF by digest, without what a program writes anew each time it makes the file.

A site that makes its PDFs on request stamps each with the time and an identifier (ISO 32000-1,
sections 14.3 and 14.4). Left out where they stand in the open, these are no change. What stands
in compressed streams is not looked into: there a new stamp is a change, which the detector
learns to expect if it comes at every visit.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Final

from freshet.crawler.parsing.blocks import ROOT, BlockKind, Blocks, below

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
    """Whether a lower-case media type is that of PDF (RFC 8118)."""
    return media_type in _TYPES


def pdf_text(body: bytes) -> Blocks:
    """One block that names the document by its size and its digest without stamps."""
    digest = blake2b(_STAMP.sub(b"", body), digest_size=8).hexdigest()
    text = f"PDF of {len(body):,} bytes, digest {digest}"
    return Blocks((text,), (BlockKind.TEXT,), (below(ROOT, "pdf"),))
