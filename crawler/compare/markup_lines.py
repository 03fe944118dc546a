"""The lines of a page's markup, without a choice of its main text.

To parse a page takes some 20 ms, and this a quarter of that. It is enough where the text that is
sought is known by its digest, or may stand anywhere.
"""

import re
from collections.abc import Mapping
from html import unescape
from typing import Final

from freshet.crawler.compare.minor import Difference
from freshet.crawler.reduce.blocks import Blocks
from freshet.crawler.reduce.sketch import block_digest

_UNSEEN: Final = re.compile(
    r"<(script|style|template)\b.*?(?:</\1\s*>|$)|<!--.*?(?:-->|$)", re.IGNORECASE | re.DOTALL
)
#: Elements inside of a line: their tags may stand in the middle of a word.
_INLINE: Final = re.compile(
    r"</?(?:a|abbr|b|bdi|bdo|big|cite|code|dfn|em|font|i|kbd|mark|q|s|samp|small|span|strong|sub"
    r"|sup|tt|u|var|wbr)\b[^<>]*>",
    re.IGNORECASE,
)
_TAG: Final = re.compile(r"<[^<>]*>")


def lines(html: str) -> list[str]:
    """Return the texts between the tags of blocks, with single spaces; some are empty."""
    texts = _TAG.split(_INLINE.sub("", _UNSEEN.sub(" ", html)))
    return [" ".join(unescape(text).split()) for text in texts]


def last_text(html: str, new: Blocks, difference: Difference) -> Blocks | None:
    """Return the text before a difference, as far as that needs it; None if it is not found.

    ``html`` is the page before. What stayed is known from the ``new`` text; of blocks that are
    neither there nor differ the text is empty.
    """
    wanted = {item.digest for item in difference.removed}
    texts: Mapping[int, str] = {block_digest(line): line for line in lines(html) if line}
    if len(difference.after) != len(new) or not wanted.issubset(texts):
        return None
    stayed = dict(zip(difference.after.digests, range(len(new)), strict=True))
    found = []
    for digest, place in zip(difference.before.digests, difference.before.places, strict=True):
        number = stayed.get(digest)
        if number is None or digest in wanted:
            found.append((texts.get(digest, ""), "text", place))
        else:
            found.append((new.texts[number], new.kinds[number], place))
    return Blocks(*zip(*found, strict=True)) if found else Blocks()
