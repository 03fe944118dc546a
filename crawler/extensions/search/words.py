"""Words as the search index has them, of pages and of queries alike.

A text becomes lower-case words without diacritics, divided by single spaces. Scripts that are
written without spaces (Chinese, Japanese, Thai, Lao, Burmese, Khmer) become a word for each
character, and a query in them becomes a phrase. So words of any length are found; trigrams would
not find most Chinese words, which have two characters.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

#: Characters of a word; longer ones (base64, minified code) are cut.
_LONGEST: Final = 64
#: Characters of a page's text that are indexed.
_INDEXED: Final = 400_000
#: Letters in lower case and digits; all other characters divide words.
_ASCII: Final = bytes(c if chr(c).isalnum() else ord(" ") for c in range(128)).lower().ljust(256)
_ASCII_DIVIDER: Final = re.compile(r"[\x00-\x2f:-@\[-`{-\x7f]")
_FOREIGN: Final = re.compile(r"[^\x00-\x7f]+")
#: Cached runs of foreign characters, and the longest one.
_REMEMBERED: Final = 1 << 16
_SHORT: Final = 24

_UNSEEN: Final = (
    "\u00ad\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
)
#: Signs above and below letters, of which writers of Latin, Greek, Cyrillic, Hebrew and Arabic
#: leave out some, and characters that are not seen (soft hyphens, joiners).
_IGNORED: Final = re.compile(
    f"[\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u064b-\u065f\u0670\u06d6-\u06ed{_UNSEEN}]+"
)
#: Marks that belong to the letter before them, such as vowels of Indic scripts.
_MARKS: Final = "".join(
    chr(code)
    for block in (range(0x300, 0x1E00), range(0x3099, 0x309B), range(0xA660, 0xAC00))
    for code in block
    if unicodedata.category(chr(code)).startswith("M")
)
_SPACELESS: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3040-\u3098\u309b-\u30fa\u30fc-\u30ff"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_ALONE: Final = re.compile(f"[{_SPACELESS}][{_MARKS}]*")
#: All but the vowels of Thai and Lao with a first half that belongs to the character before.
_TAKEN_APART: Final = re.compile("[^\u0e33\u0eb3]+")
_DIVIDER: Final = re.compile(rf"[^\w{_MARKS}]+")
_WORD: Final = re.compile(
    rf"{_ALONE.pattern}|(?:[^\W_{_SPACELESS}]|[{_MARKS}])(?:[^\W_{_SPACELESS}]|[{_MARKS}{_UNSEEN}])*"
)


def normalised(text: str) -> str:
    """Return the words of a text, divided by spaces.

    >>> normalised("Crème brûlée, run_in_executor(): 東京 2026")
    'creme brulee run in executor 東 京 2026'
    """
    if not text.isascii():
        text = _FOREIGN.sub(_folded, text)
    if text.isascii():
        words = text.encode("ascii").translate(_ASCII).decode("ascii").split()
    else:
        words = _ASCII_DIVIDER.sub(" ", text).lower().split()
    if words and max(map(len, words)) > _LONGEST:
        words = [word[:_LONGEST] for word in words]
    return " ".join(words)


def places(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the words of a text, each with the places in it where it begins and ends."""
    for piece in _WORD.finditer(text):
        for word in normalised(piece[0]).split():
            yield word, piece.start(), piece.end()


def _folded(run: re.Match[str]) -> str:
    return _remembered(run[0]) if len(run[0]) <= _SHORT else _fold(run[0])


def _fold(run: str) -> str:
    """Return the form of characters beyond ASCII in words, with spaces where they divide."""
    # Compatibility forms (ﬁ, ①, full width) become plain; Hangul is put together again.
    plain = _IGNORED.sub("", _TAKEN_APART.sub(_decomposed, run.casefold()))
    divided = _DIVIDER.sub(" ", unicodedata.normalize("NFC", plain))
    return _ALONE.sub(r" \g<0> ", divided)


def _decomposed(piece: re.Match[str]) -> str:
    return unicodedata.normalize("NFKD", piece[0])


_remembered = lru_cache(_REMEMBERED)(_fold)


def index_lines(title: str | None, texts: Sequence[str] = (), kinds: Sequence[str] = ()) -> str:
    """Return the indexed text of a page: title, headings and other blocks, a line each.

    ``texts`` and ``kinds`` are its blocks; two spaces divide headings. Of text of over 400,000
    characters the beginning counts.
    """
    blocks = list(zip(texts, kinds, strict=True))
    headings = "  ".join(filter(None, (normalised(t) for t, kind in blocks if kind == "heading")))
    others = " ".join(text for text, kind in blocks if kind != "heading")
    return f"{normalised(title or '')}\n{headings[:_INDEXED]}\n{normalised(others[:_INDEXED])}"
