"""Change detection: a ladder that stops at the first rung that decides.

    304         the server says so: :data:`NOT_MODIFIED`
    body        equal digests of the bytes: :func:`judge_body`, before the page is parsed
    text        equal digests of the main text: :func:`judge_text`, before the last sketch is read
    volatile    only blocks differ that do so at every visit, or
    frame       that belong to the site's template, or
    flip        that alternate between earlier versions
    blocks      what else differs, block by block, and how much

The last four are :func:`freshet.crawler.detection.judging.judge_blocks`.

Whether a page changed is decided exactly, by digests; MinHash only says how much. Error
pages never come here: a failed fetch is no version of a page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from freshet.storage.records import Digests
from freshet.storage.words import Kind, Rung


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the comparison of a page with its last version found.

    ``resemblance`` (0 to 1) and its standard error are estimates; the numbers of blocks
    added and removed are exact.
    """

    kind: Kind
    rung: Rung | None = None
    resemblance: float | None = None
    resemblance_se: float | None = None
    blocks_added: int | None = None
    blocks_removed: int | None = None


#: The verdict on a 304 answer (RFC 9110, section 15.4.5).
NOT_MODIFIED: Final = Verdict(Kind.UNCHANGED, Rung.NOT_MODIFIED)


def judge_body(known: Digests | None, body: bytes) -> Verdict | None:
    """The verdict that the digest of the bytes allows; None where the text must decide.

    ``known`` is what the last good capture was reduced to; without one the page is new.
    """
    if known is None:
        return Verdict(Kind.NEW)
    return Verdict(Kind.UNCHANGED, Rung.BODY) if known.body == body else None


def judge_text(known: Digests, text: bytes | None) -> Verdict | None:
    """The verdict that the digests of the main text allow; None where blocks must be compared.

    Without a text (a feed, a body that cannot be parsed) the bytes, which differ, are all
    there is to judge by; so they are where only one of the versions has a text.
    """
    if known.text is None or text is None:
        return Verdict(Kind.CHANGED, Rung.BODY)
    return Verdict(Kind.UNCHANGED, Rung.TEXT) if known.text == text else None
