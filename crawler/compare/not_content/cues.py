"""The words of block pages and soft 404s in twelve languages: sentences and cues in them.

The cues stand in ``words.toml``, which documents their notation. A sentence is compared in
lower case, without accents and punctuation, as words between single blanks; Chinese and
Japanese, which are written without blanks, as a row of characters.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final
from unicodedata import combining, normalize

#: The list of cues against a block page: the page is about something.
ABOUT: Final = "about"
#: That of phrases of all kinds of pages: apologies, help, links elsewhere.
ASIDE: Final = "aside"
#: Cues marked so are searched in titles, headings and buttons of at most this number of words.
_LABEL_WORDS: Final = 5
_LABEL_CHARACTERS: Final = 12
_BEYOND_LATIN: Final = "\u2e80"
#: Letters of a word by which a cue is looked up.
_KEY_LETTERS: Final = 5

_SENTENCE_END: Final = re.compile(r"(?<=[.!?;:])\s+|[\u3002\uff01\uff1f\uff1b\n]+")
_TITLE_PART: Final = re.compile(r"\s+[-–—|·•:»«/]+\s+|\s*[|\uff5c_]\s*|::|:\s")
_NOT: Final = re.compile(r"n['’]t\b")
_NO_WORD: Final = re.compile(r"[^\w?]+|_+")


def _plain(code: int) -> str | None:
    letters = normalize("NFD", chr(code))
    bare = "".join(letter for letter in letters if not combining(letter))
    return bare if bare != chr(code) else None


# Accents of Latin and Cyrillic; kana keep their marks, which make other letters of them.
_ACCENTS: Final = {code: bare for code in range(0xC0, 0x530) if (bare := _plain(code))} | {
    ord("ł"): "l", ord("ø"): "o", ord("æ"): "ae", ord("đ"): "d",
}  # fmt: skip


def folded(text: str) -> str:
    """Return the text as it is compared: words between single blanks, one at either end.

    >>> folded("We couldn't find l'Été!")
    ' we could not find l ete '
    """
    text = (
        normalize("NFKC", text).casefold().replace("can't", "can not").replace("can’t", "can not")
    )
    text = _NOT.sub(" not", text).replace("cannot", "can not").translate(_ACCENTS)
    return f" {_NO_WORD.sub(' ', text).replace('?', ' ? ').strip()} ".replace("  ", " ")


def sentences(texts: Iterable[str]) -> list[str]:
    """Return the sentences of the texts, folded."""
    parts = (part for text in texts for part in _SENTENCE_END.split(text))
    return [sentence for part in parts if (sentence := folded(part)) != "  "]


def title_parts(title: str) -> list[str]:
    """Return the parts of a title, folded: the page's own, the section, the site's name."""
    return [part for piece in _TITLE_PART.split(title) if (part := folded(piece)).strip()]


def word_count(folded_text: str) -> int:
    """Count the words of a folded text; two characters of Chinese or Japanese are one."""
    words = len(folded_text.split())
    if folded_text.isascii():
        return words
    unspaced = sum(character >= _BEYOND_LATIN for character in folded_text)
    return words + unspaced // 2


@dataclass(frozen=True, slots=True)
class _Condition:
    """One of the beginnings (``keys`` index them) is there, or with ``absent`` none of them."""

    beginnings: tuple[str, ...]
    keys: tuple[str, ...]
    absent: bool = False

    def holds(self, sentence: str) -> bool:
        for each in self.beginnings:
            if each in sentence:
                return not self.absent
        return self.absent

    def may_hold(self, text: str, keys: Set[str]) -> bool:
        """Return whether it may hold somewhere in a folded text that has these keys."""
        if self.absent:
            return True
        # A generator would cost more than what it yields.
        for key, each in zip(self.keys, self.beginnings, strict=True):
            if key in keys and each in text:
                return True
        return False


@dataclass(frozen=True, slots=True)
class _Cue:
    """The kind that a sentence suggests if all conditions hold, and its weight (1 to 3)."""

    kind: str
    weight: int
    conditions: tuple[_Condition, ...]
    label: bool = False


@cache
def cues(language: str) -> tuple[_Cue, ...]:
    """Return all cues of a language; those of every language have the name ``any``."""
    lists = _table()[language]
    return tuple(
        _cue(kind, written, lists)
        for kind, all_written in lists.items()
        if isinstance(all_written, list)
        for written in all_written
    )


@cache
def languages() -> tuple[str, ...]:
    """Return the languages whose words are known."""
    return tuple(name for name in _table() if name != "any")


@cache
def _table() -> dict[str, dict[str, Any]]:
    return tomllib.loads((files(__package__) / "words.toml").read_text(encoding="utf-8"))


def _cue(kind: str, written: str, lists: dict[str, str]) -> _Cue:
    weight, _, conditions = written.partition(" ")
    read = tuple(_condition(each.strip(), lists) for each in conditions.split(" & "))
    return _Cue(kind, int(weight.lstrip("t")), read, weight.startswith("t"))


def _condition(written: str, lists: dict[str, str]) -> _Condition:
    absent, written = written.startswith("!"), written.removeprefix("!")
    named = (lists[each[1:]] if each.startswith("@") else each for each in written.split("|"))
    beginnings = tuple(_beginning(each) for name in named for each in name.split("|"))
    return _Condition(beginnings, tuple(map(_key, beginnings)), absent)


def _beginning(written: str) -> str:
    if written >= _BEYOND_LATIN or any(c >= _BEYOND_LATIN for c in written):
        return folded(written).strip()
    return folded(written.rstrip("_")).rstrip() + (" " if written.endswith("_") else "")


@cache
def _index(language: str, *, telling: bool) -> dict[str, list[int]]:
    """Index the numbers of cues by the keys of their shortest required list."""
    index: dict[str, list[int]] = {}
    for number, cue in enumerate(cues(language)):
        if telling and (cue.weight < 2 or cue.kind in {ABOUT, ASIDE}):
            continue
        needed = [each.keys for each in cue.conditions if not each.absent]
        fewest: tuple[str, ...] = min(needed, key=len)
        for key in set(fewest):
            index.setdefault(key, []).append(number)
    return index


def _key(beginning: str) -> str:
    """Return the key of a beginning: letters of a word, or one of Chinese and Japanese."""
    return (
        beginning.split(maxsplit=1)[0][:_KEY_LETTERS] if beginning.startswith(" ") else beginning[0]
    )


def possible_cues(declared: str, text: str, *, telling: bool = False) -> Iterator[_Cue]:
    """Yield the cues that a sentence of a folded text may hold, in its likely languages.

    ``telling``: only those that are the sign of a block page by themselves.
    """
    whole = f" {text} "
    words = set(whole.split())
    keys = {word[:n] for word in words for n in range(1, _KEY_LETTERS + 1)} | set(whole)
    for language in spoken(declared, whole):
        index, every = _index(language, telling=telling), cues(language)
        numbers = {number for key in keys & index.keys() for number in index[key]}
        for cue in (every[number] for number in sorted(numbers)):
            if all(condition.may_hold(whole, keys) for condition in cue.conditions):
                yield cue


def spoken(declared: str, text: str) -> tuple[str, ...]:
    """Return the languages whose cues are worth a search, by declaration and letters.

    English goes with all of them: servers and frameworks speak it in every country.
    """
    tag = declared[:2].lower()
    likely = _script(text) or (tag if tag in languages() else _by_common_words(text))
    return tuple(dict.fromkeys(("any", "en", *([likely] if likely else languages()))))


@cache
def _common() -> dict[str, frozenset[str]]:
    table = _table()
    return {
        name: frozenset(lists["common"].split())
        for name, lists in table.items()
        if "common" in lists
    }


def _by_common_words(text: str) -> str | None:
    """Return the language most of whose commonest words are there, if at least two are."""
    words = set(text.split())
    found = {name: len(words & common) for name, common in _common().items()}
    likely = max(found, key=found.__getitem__)
    return likely if found[likely] >= 2 else None


def _script(text: str) -> str | None:
    if text.isascii():
        return None
    if any("\u3040" <= letter <= "\u30ff" for letter in text):
        return "ja"
    if any("\u4e00" <= letter <= "\u9fff" for letter in text):
        return "zh"
    cyrillic = sum("\u0400" <= letter <= "\u04ff" for letter in text)
    return "ru" if cyrillic * 4 > len(text) else None


def weights(possible: Iterable[_Cue], sentence: str) -> dict[str, int]:
    """Return the greatest weight of each kind among these cues in a folded sentence."""
    short = len(sentence.split()) <= _LABEL_WORDS and (
        sentence.isascii() or sum(c >= _BEYOND_LATIN for c in sentence) <= _LABEL_CHARACTERS
    )
    found: dict[str, int] = {}
    for cue in possible:
        worth = (short or not cue.label) and cue.weight > found.get(cue.kind, 0)
        if worth and all(condition.holds(sentence) for condition in cue.conditions):
            found[cue.kind] = cue.weight
    return found


# -- sieve -------------------------------------------------------------------
# Nearly every page must pass without costing time. A block page says little, with a telling sign;
# or it resembles its host's page for a missing URL, or replaces content.

#: A page of more words is content, unless its title says otherwise; where another text stood
#: before, a longer one may still be an error's trace or the small print of a consent.
MOST_WORDS: Final = 250
MOST_WHERE_CONTENT_WAS: Final = 2_000
#: Letters of scripts that are written without blanks: two are about a word.
_UNSPACED: Final = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff]")
#: Bytes of a body that are searched.
MOST_BYTES: Final = 64 * 1024
#: Characters of a page that scripts may be about to build.
_LITTLE: Final = 120
_FEW_WORDS: Final = 60
#: Words in the markup of forms and scripts that stand in the place of content.
_TELLING_MARKUP: Final = (b"password", b"captcha", b"challenge", b"consent", b"refresh")


def length(text: str) -> int:
    """Count the words of a text; two letters of a script without blanks are about one."""
    if not text or text.isascii():
        return text.count(" ") + 1 if text else 0
    return text.count(" ") + 1 + len(_UNSPACED.findall(text)) // 2


def is_short(texts: Sequence[str], *, had_content: bool | None = None) -> bool:
    """Return whether a main text (its blocks) is short enough for a block page."""
    left = MOST_WHERE_CONTENT_WAS if had_content else MOST_WORDS
    for text in texts:
        left -= length(text)
        if left < 0:
            return False
    return True


def is_judged(title: str | None, texts: Sequence[str]) -> bool:
    """Return whether a page is short, or its title says that it is no content."""
    return is_short(texts) or (is_short(texts, had_content=True) and _is_named(title))


def _is_named(title: str | None) -> bool:
    return any(
        weight > 2
        for part in title_parts(title or "")
        for weight in weights(possible_cues("", part, telling=True), part).values()
    )


def tells(title: str | None, texts: Sequence[str], body: bytes) -> bool:
    """Return whether anything on a short page could be the sign of a block page."""
    # An empty page may wait for a script, or lead to another page.
    if not any(texts):
        return True
    if any(possible_cues("", folded(" . ".join((title or "", *texts))), telling=True)):
        return True
    # A page of some words says what its form is for.
    if sum(map(length, texts)) > _FEW_WORDS:
        return False
    start = body[:MOST_BYTES].lower()
    return any(word in start for word in _TELLING_MARKUP)


def may_wait(texts: Sequence[str], body: bytes) -> bool:
    """Return whether scripts may be about to build a short page."""
    said = " ".join(texts)
    is_little = len(said) <= _LITTLE or "javascript" in said.lower()
    return is_little and b"<script" in body[:MOST_BYTES].lower()
