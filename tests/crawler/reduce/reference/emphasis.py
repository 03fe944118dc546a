"""Signs of emphasis in Markdown, and tags where CommonMark would take no signs.

The writer puts marks around what is emphasised, as what stands beside them is not known yet.
:func:`emphasised` puts signs in their places.
"""

import re
from typing import Final
from unicodedata import category

#: Marks of the beginning and the end of each element of HTML.
MARKS: Final = {"strong": "\x01\x02", "em": "\x03\x04", "del": "\x05\x06"}
#: All of them: no text of a page may have one.
ALL_MARKS: Final = "".join(MARKS.values())
_RUNS: Final = re.compile(f"([{ALL_MARKS}]+)")
_SIGNS: Final = {"strong": "**", "em": "*", "del": "~~"}
_TAG_OF: Final = {mark: tag for tag, marks in MARKS.items() for mark in marks}
_BEGINNINGS: Final = frozenset(marks[0] for marks in MARKS.values())


def emphasised(text: str) -> str:
    """Return a text with its marks as CommonMark, or as HTML where that would take no signs.

    A sign that begins or ends emphasis may stand between a letter and a punctuation mark on one
    side only (CommonMark 0.31, section 6.2): 「強調」**です** is none.
    """
    if not ("\x02" in text or "\x04" in text or "\x06" in text):
        return text
    parts = _RUNS.split(text)
    open_marks: list[tuple[str, int, int]] = []
    written = {i: list(parts[i]) for i in range(1, len(parts), 2)}
    # Where a sign was written as a tag or another sign, which are punctuation to those around it.
    punctuated = {
        i
        for i in (written if "\x06" in text else ())
        if len({_TAG_OF[mark] == "del" for mark in parts[i]}) > 1
    }
    for i, marks in written.items():
        for j, mark in enumerate(parts[i]):
            tag = _TAG_OF[mark]
            if mark in _BEGINNINGS:
                open_marks.append((tag, i, j))
                continue
            _, begin, k = open_marks.pop()
            if open_marks and any(tag == other for other, *_ in open_marks):
                written[begin][k] = marks[j] = ""
                continue
            inner = (
                "." if begin in punctuated else parts[begin + 1][0],
                "." if i in punctuated else parts[i - 1][-1],
            )
            follows_end = any(it not in _BEGINNINGS for it in parts[begin][:k])
            if (
                not follows_end
                and _flanks(parts[begin - 1][-1:], inner[0])
                and _flanks(parts[i + 1][:1], inner[1])
            ):
                written[begin][k] = marks[j] = _SIGNS[tag]
            else:
                written[begin][k], marks[j] = f"<{tag}>", f"</{tag}>"
                punctuated |= {begin, i}
    parts[1::2] = map("".join, written.values())
    return "".join(parts)


def _flanks(outer: str, inner: str) -> bool:
    """Return whether a sign between two characters begins or ends emphasis of the inner one."""
    return not _is_punctuation(inner) or not outer or outer.isspace() or _is_punctuation(outer)


def _is_punctuation(character: str) -> bool:
    return category(character)[0] in "PS"
