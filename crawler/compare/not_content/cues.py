"""The words of block pages and soft 404s in twelve languages: sentences and cues in them.

The cues are in ``words.toml``, which documents their notation. A sentence is compared in
lower case, without accents and punctuation, as words between single blanks; Chinese and
Japanese, which are written without blanks, as a row of characters.
"""

import re
import sys
import tomllib
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import accumulate, groupby
from typing import Any, Final, NamedTuple
from unicodedata import combining, normalize

from freshet.crawler.reduce.tree import holds

#: The list of cues against a block page: the page is about something.
ABOUT: Final = "about"
#: That of phrases of all kinds of pages: apologies, help, links elsewhere.
ASIDE: Final = "aside"
_NO_KINDS: Final = frozenset({ABOUT, ASIDE})
#: They do not name a long page: a policy on cookies has the title of a wall that asks for them.
_NO_NAMES: Final = frozenset({ABOUT, "consent_wall"})
#: Cues marked so are searched in titles, headings and buttons of at most this number of words.
_LABEL_WORDS: Final = 5
_LABEL_CHARACTERS: Final = 20
#: They are at least one in this many words of it.
_LABEL_SHARE: Final = 3
_BEYOND_LATIN: Final = "\u2e80"
#: Words that are remembered with the cues that they may begin.
_MOST_KNOWN: Final = 16_384

_SENTENCE_END: Final = re.compile(r"[.!;:]\s+")
_QUESTION_END: Final = re.compile(r"\?\s+")
_WORDS_OF_ASCII: Final = str.maketrans({
    chr(code): " " for code in range(128) if not chr(code).isalnum() and chr(code) not in "?\n"
})  # fmt: skip
_UNSPACED_END: Final = re.compile(r"[\u3002\uff01\uff1f\uff1b]+")
_TITLE_PART: Final = re.compile(r"\s+[-–—|·•:»«/]+\s+|\s*[|\uff5c_]\s*|::|:\s")
_NOT: Final = re.compile(r"n't\b")
_NO_WORD: Final = re.compile(r"(?:[^\w?]|_)+")
_NO_WORD_IN_LINE: Final = re.compile(r"(?:[^\w?\n]|_)+")


def _plain(code: int) -> str | None:
    letters = normalize("NFD", chr(code))
    bare = "".join(letter for letter in letters if not combining(letter))
    return bare if bare != chr(code) else None


# Accents of Latin and Cyrillic; kana keep their marks, which make them other letters.
_ACCENTS: Final = {code: bare for code in range(0xC0, 0x530) if (bare := _plain(code))} | {
    **dict.fromkeys(range(0x300, 0x370)),
    ord("ł"): "l", ord("ø"): "o", ord("æ"): "ae", ord("đ"): "d",
}  # fmt: skip


_TYPOGRAPHY: Final = (
    ("’", "'"), ("‘", "'"), ("“", '"'), ("”", '"'), ("–", "-"), ("—", "-"), ("…", "..."),
    ("\u00a0", " "), ("•", "*"), ("©", "*"),
)  # fmt: skip


def folded(text: str) -> str:
    """Return the text in the form for comparison: words between single blanks, one at either end.

    >>> folded("We couldn't find l'Été!")
    ' we could not find l ete '
    """
    return _words(_even(text))


def _even(text: str) -> str:
    """Return a text in lower case, without accents and contractions."""
    if not text.isascii():
        # All that most texts have beyond ASCII.
        for typographic, plain in _TYPOGRAPHY:
            text = text.replace(typographic, plain)
    if text.isascii():
        text = text.lower()
    else:
        text = normalize("NFKC", text).casefold().translate(_ACCENTS)
    if "'" in text:
        text = _NOT.sub(" not", text.replace("can't", "can not"))
    return text.replace("cannot", "can not")


def _words(even: str) -> str:
    if even.isascii():
        return f" {' '.join(even.replace('?', ' ? ').translate(_WORDS_OF_ASCII).split())} "
    return f" {_NO_WORD.sub(' ', even.replace('?', ' ? ')).strip()} "


def sentences(texts: Iterable[str]) -> list[str]:
    """Return the sentences of the texts, folded."""
    text = "\n".join(texts)
    if not text.isascii():
        text = _UNSPACED_END.sub("\n", text)
    # All at once: a call for each sentence would cost more than what it finds.
    ended = _SENTENCE_END.sub("\n", _QUESTION_END.sub("?\n", _even(text))).replace("?", " ? ")
    return _lines(ended)


def _lines(even: str) -> list[str]:
    """Return the lines of an even text that have words, folded."""
    # A zero, which words do not contain, ends each of them; otherwise blanks are left.
    if even.isascii():
        words = even.translate(_WORDS_OF_ASCII).replace("\n", " \0 ").split()
    else:
        words = _NO_WORD_IN_LINE.sub(" ", even).replace("\n", " \0 ").split()
    return [line for line in f" {' '.join(words)} ".split("\0") if line[2:]]


def title_parts(title: str) -> list[str]:
    """Return the parts of a title, folded: the page's own, the section, the site's name."""
    lines = "\n".join(_TITLE_PART.split(title.replace("\n", " ")))
    return _lines(_even(lines).replace("?", " ? "))


def word_count(folded_text: str) -> int:
    """Count the words of a folded text; two characters of Chinese or Japanese are one."""
    words = len(folded_text.split())
    if folded_text.isascii():
        return words
    unspaced = sum(character >= _BEYOND_LATIN for character in folded_text)
    return words + unspaced // 2


@dataclass(frozen=True, slots=True)
class _Condition:
    """One of the ``beginnings`` occurs, or with ``absent`` none of them does."""

    beginnings: frozenset[str]
    absent: bool = False


@dataclass(frozen=True, slots=True)
class _Cue:
    """The kind that a sentence suggests if all conditions hold, and its weight (1 to 3).

    ``label`` cues are searched in sentences of a few words only.
    """

    language: str
    kind: str
    weight: int
    conditions: tuple[_Condition, ...]
    label: bool = False

    def may_hold(self, hits: set[str]) -> bool:
        """Return whether all conditions except absences hold with these beginnings."""
        return not any(hits.isdisjoint(c.beginnings) for c in self.conditions if not c.absent)

    def holds(self, hits: set[str]) -> bool:
        """Return whether all conditions hold."""
        return all(c.absent == hits.isdisjoint(c.beginnings) for c in self.conditions)


@cache
def cues(language: str) -> tuple[_Cue, ...]:
    """Return all cues of a language; ``any`` has the cues of every language."""
    lists = _table()[language]
    return tuple(
        _cue(language, kind, written, lists)
        for kind, all_written in lists.items()
        if isinstance(all_written, list)
        for written in all_written
    )


@cache
def languages() -> tuple[str, ...]:
    """Return the languages with known words."""
    return tuple(name for name in _table() if name != "any")


@cache
def _table() -> dict[str, dict[str, Any]]:
    return tomllib.loads((files(__package__) / "words.toml").read_text(encoding="utf-8"))


def _cue(language: str, kind: str, written: str, lists: dict[str, str]) -> _Cue:
    weight, _, conditions = written.partition(" ")
    read = tuple(_condition(each.strip(), lists) for each in conditions.split(" & "))
    return _Cue(language, kind, int(weight.lstrip("t")), read, weight.startswith("t"))


def _condition(written: str, lists: dict[str, str]) -> _Condition:
    absent, written = written.startswith("!"), written.removeprefix("!")
    named = (lists[each[1:]] if each.startswith("@") else each for each in written.split("|"))
    return _Condition(frozenset().union(*map(_beginnings, named)), absent)


@cache
def _beginnings(written: str) -> frozenset[str]:
    return frozenset(map(_beginning, written.split("|")))


def _beginning(written: str) -> str:
    if max(written) >= _BEYOND_LATIN:
        return folded(written).strip()
    return folded(written.rstrip("_")).rstrip() + (" " if written.endswith("_") else "")


def _rarest(beginning: str) -> str:
    """Return the word of a beginning that is likely the rarest; a blank before it: begun so."""
    *whole, last = beginning[1:].split(" ")
    return max((*whole, f" {last}" if last else ""), key=lambda word: len(word.strip()))


class _Book:
    """All cues, found by the words of a sentence: each word is looked up once, then remembered."""

    def __init__(self, every: Iterable[_Cue]) -> None:
        self._by_word: defaultdict[str, set[str]] = defaultdict(set)
        self._by_letter: defaultdict[str, set[str]] = defaultdict(set)
        self._by_beginning: defaultdict[str, list[_Cue]] = defaultdict(list)
        # Beginnings of several words, with the whole words among the others.
        self._others: dict[str, frozenset[str]] = {}
        self._known: dict[str, tuple[str, ...]] = {}
        self._silent: set[str] = set()
        beginnings = set[str]()
        for cue in every:
            needed = [each.beginnings for each in cue.conditions if not each.absent]
            for beginning in min(needed, key=len):
                self._by_beginning[beginning].append(cue)
            beginnings.update(*(each.beginnings for each in cue.conditions))
        for each in beginnings:
            self._enter(each)
        self._longest = max(map(len, self._by_word), default=0)
        # A blank and three letters at most, with which others than whole words begin.
        self._starts = {word[:4] for word in self._by_word if word[0] == " "}

    def _enter(self, beginning: str) -> None:
        if not beginning.startswith(" "):
            self._by_letter[beginning[0]].add(beginning)
            self._others[beginning] = frozenset()
            return
        self._by_word[_rarest(beginning)].add(beginning)
        if " " in beginning[1:-1]:
            self._others[beginning] = frozenset(beginning[1:].split(" ")[:-1])

    def hits(self, text: str) -> set[str]:
        """Return the beginnings that occur in folded sentences."""
        words = set(text.split())
        known, others = self._known, self._others
        heard = words - self._silent
        begun = {each for word in heard if word in known for each in known[word]}
        if new := heard.difference(known):
            begun.update(self._learn(new, is_ascii=text.isascii()))
        # To search a text takes longer than to ask for words.
        return {
            each
            for each in begun
            if (rest := others.get(each)) is None or (rest <= words and each in text)
        }

    def cues(self, hits: set[str], without: Container[str]) -> list[tuple[str, _Cue]]:
        """Return the cues that may occur in sentences with these hits, each with one of them.

        Kinds that the caller does ``without`` are left out.
        """
        return [
            (hit, cue)
            for hit in hits & self._by_beginning.keys()
            for cue in self._by_beginning[hit]
            if cue.kind not in without and cue.may_hold(hits)
        ]

    def _learn(self, new: set[str], *, is_ascii: bool) -> Iterator[str]:
        """Yield the beginnings that sentences with new words may have, and remember the words."""
        if len(self._known) + len(self._silent) >= _MOST_KNOWN:
            self._known.clear()
            self._silent.clear()
        telling, longest = self._telling(new, is_ascii=is_ascii), self._longest
        # A page may be one word, which is not remembered.
        self._silent.update([word for word in new - telling if not word[longest:]])
        for word in telling:
            found = self._begun_by(word)
            if not word[longest:] and found:
                self._known[word] = found
            elif not word[longest:]:
                self._silent.add(word)
            yield from found

    def _telling(self, new: set[str], *, is_ascii: bool) -> set[str]:
        """Return the words with which a beginning may start; most words start none."""
        whole, starts = self._by_word, self._starts
        # All at once: a call for each word would cost more than it gains.
        telling = {
            word
            for word in new
            if word in whole
            or f" {word[0]}" in starts
            or f" {word[:2]}" in starts
            or f" {word[:3]}" in starts
        }
        if not is_ascii:
            telling.update(word for word in new if not word.isascii())
        return telling

    def _begun_by(self, word: str) -> tuple[str, ...]:
        """Return the beginnings that a sentence with this word may have."""
        found = set(self._by_word.get(word, ()))
        for n in range(1, min(self._longest, len(word)) + 1):
            if (begun := f" {word[:n]}") in self._by_word:
                found |= self._by_word[begun]
        if not word.isascii():
            for letter in set(word) & self._by_letter.keys():
                found |= {e for e in self._by_letter[letter] if e.partition(" ")[0] in word}
        return tuple(found)


def _greatest(
    sentence: str, hits: Iterable[str], cues: Iterable[tuple[str, _Cue]]
) -> dict[str, int]:
    """Return the greatest weight of each kind among the cues in a folded sentence.

    ``hits`` are the text's hits; each of the cues has one of its beginnings here.
    """
    found: dict[str, int] = {}
    own, words = {hit for hit in hits if hit in sentence}, len(sentence.split())
    is_label = words <= _LABEL_WORDS and _is_label(sentence)
    for hit, cue in cues:
        worth = cue.weight > found.get(cue.kind, 0)
        if cue.label:
            worth &= is_label and _LABEL_SHARE * (hit.count(" ", 1) + 1) >= words
        if worth and cue.holds(own):
            found[cue.kind] = cue.weight
    return found


def _is_label(sentence: str) -> bool:
    beyond = 0 if sentence.isascii() else sum(each >= _BEYOND_LATIN for each in sentence)
    return beyond <= _LABEL_CHARACTERS


@cache
def _book() -> _Book:
    return _Book(cue for language in _table() for cue in cues(language))


def spoken(declared: str, text: str) -> tuple[str, ...]:
    """Return the languages of the cues to search for, by declaration and letters.

    English is always added: servers and frameworks use it in every country.
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
    """Return the language with the most of its commonest words in the text, two at least."""
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


class _Possible(NamedTuple):
    """The cues that may occur in sentences, each with one of its beginnings, and all beginnings."""

    hits: set[str]
    cues: Sequence[tuple[str, _Cue]]

    def may_add_up(self, least: int) -> bool:
        """Return whether :func:`_strongest` may reach it, by three cues or two weak ones."""
        greatest = max((cue.weight for _, cue in self.cues), default=0)
        return greatest * (3 if greatest > 1 else 2) >= least

    def weights(self, sentences: Sequence[str]) -> list[dict[str, int]]:
        """Return the greatest weight of each kind in each of the sentences."""
        # Few sentences have one, so the places of the cues are searched, not each sentence.
        text, starts = "".join(sentences), [*accumulate(map(len, sentences), initial=0)]
        there: defaultdict[int, list[tuple[str, _Cue]]] = defaultdict(list)
        for hit, cues in groupby(sorted(self.cues, key=_hit), key=_hit):
            of_hit = list(cues)
            for number in {bisect_right(starts, place) - 1 for place in _places(hit, text)}:
                there[number] += of_hit
        return [
            _greatest(sentence, self.hits, there[number]) if number in there else {}
            for number, sentence in enumerate(sentences)
        ]


def _hit(found: tuple[str, _Cue]) -> str:
    return found[0]


def _places(part: str, text: str) -> Iterator[int]:
    """Yield the places of a part in a text."""
    place = text.find(part)
    while place >= 0:
        yield place
        place = text.find(part, place + 1)


def _possible(
    sentences: Sequence[str], declared: str, without: Container[str] = frozenset(), least: int = 1
) -> _Possible:
    """Return the cues of at least that weight that may occur in folded sentences.

    ``declared`` is the language that the page declares; cues of languages that are not likely do
    not count. Kinds that the caller does ``without`` are not searched.
    """
    # Few pages have a cue: all sentences are searched at once, before anything else is asked.
    hits = _book().hits("".join(sentences))
    found = [each for each in _book().cues(hits, without) if each[1].weight >= least]
    if found:
        likely = spoken(declared, " ".join(sentences))
        found = [each for each in found if each[1].language in likely]
    return _Possible(hits, found)


def weights(sentences: Sequence[str], declared: str) -> list[dict[str, int]]:
    """Return the greatest weight of each kind among the cues in each of the folded sentences.

    ``declared`` is the language that the page declares.
    """
    return _possible(sentences, declared).weights(sentences)


# -- sieve -------------------------------------------------------------------
# Nearly every page must pass without costing time. A block page has few words, with a clear sign;
# or it resembles its host's page for a missing URL, or replaces content.

#: A page of more words is content, unless its title is a cue; after another text, a longer one may
#: still be an error's trace or the small print of a consent.
MOST_WORDS: Final = 250
MOST_WHERE_CONTENT_WAS: Final = 2_000
#: Letters of scripts that are written without blanks: two are about a word.
_UNSPACED: Final = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u9fff]")
#: All bytes but those with which such letters begin in UTF-8.
_SPACED: Final = bytes(
    byte for byte in range(256) if byte not in b"\xe0\xe1\xe3\xe4\xe5\xe6\xe7\xe8\xe9"
)
#: Bytes of a body that are searched.
MOST_BYTES: Final = 64 * 1024
#: Characters of a page that scripts may be about to build.
_LITTLE: Final = 120
_FEW_WORDS: Final = 60
#: The least sum of cues of a page that is worth a look, of few words and of more.
_LEAST_OF_FEW: Final = 2
_LEAST: Final = 3
#: The language that a page declares, in its first bytes.
_DECLARED: Final = re.compile(rb"<html\b[^>]{0,400}?\blang=[\"']?([a-zA-Z]{2})", re.I)
_HEAD: Final = 2_048
#: Words in the markup of forms and scripts that replace content.
_TELLING_MARKUP: Final = b"".join(
    each + b"\0"
    for each in (
        *(b'="password', b"='password", b"=password", b"captcha", b"challenge"),
        *(b'="refresh', b"='refresh", b"=refresh"),
    )
)


def length(texts: Sequence[str]) -> int:
    """Count the words of texts; two letters of a script without blanks are about one."""
    return words_up_to(texts, sys.maxsize)


#: Texts that are counted at once: for a long page the first suffice.
_AT_ONCE: Final = 32


def words_up_to(texts: Sequence[str], most: int) -> int:
    """Count the words of texts likewise, only until they are more than ``most``."""
    count = len(texts) - texts.count("")
    for start in range(0, len(texts), _AT_ONCE):
        if count > most:
            break
        some = texts[start : start + _AT_ONCE]
        text = "".join(some)
        count += text.count(" ")
        # Most texts beyond ASCII have quotation marks and accents only.
        if not text.isascii() and text.encode("utf-8", "replace").translate(None, _SPACED):
            count += sum(len(_UNSPACED.findall(each)) // 2 for each in some if not each.isascii())
    return count


def is_short(texts: Sequence[str]) -> bool:
    """Return whether a main text (its blocks) is short enough for a block page."""
    return words_up_to(texts, MOST_WORDS) <= MOST_WORDS


def is_little(texts: Sequence[str]) -> bool:
    """Return whether a main text is a few sentences, so that the markup may decide."""
    return words_up_to(texts, _FEW_WORDS) <= _FEW_WORDS


def most_judged(title: str | None) -> int:
    """Return the most words of a page that is judged: more if its title is a cue."""
    return MOST_WHERE_CONTENT_WAS if _is_named(title) else MOST_WORDS


def is_judged(title: str | None, count: int) -> bool:
    """Return whether a page of this many words is short, or has a cue in its title."""
    return count <= most_judged(title)


# The pages of a site may have one title, and a page has it at each visit.
@lru_cache(maxsize=1024)
def _is_named(title: str | None) -> bool:
    parts = title_parts(title or "")
    # Few titles have one: all parts are searched at once.
    if not _book().hits("".join(parts)):
        return False
    possible = [((part,), _possible((part,), "", _NO_NAMES, 3)) for part in parts]
    return any(found.weights(part)[0] for part, found in possible if found.cues)


def tells(title: str | None, texts: Sequence[str], body: bytes) -> bool:
    """Return whether anything on a short page could be the sign of a block page."""
    # An empty page may wait for a script, or lead to another page.
    if not any(texts):
        return True
    named, said = title_parts(title or ""), sentences(texts)
    declared = _DECLARED.search(body[:_HEAD])
    every = *named, *said
    possible = _possible(every, declared[1].decode() if declared else "", _NO_KINDS)
    are_few = is_little(texts)
    # A page of some words has more than one cue, and a purpose of its form.
    least = _LEAST_OF_FEW if are_few else _LEAST
    if possible.may_add_up(least):
        told = possible.weights(every)
        if _strongest(told[: len(named)], told[len(named) :]) >= least:
            return True
    if not are_few:
        return False
    return holds(body[:MOST_BYTES].lower(), _TELLING_MARKUP) > 0


def _strongest(named: Sequence[Mapping[str, int]], said: Sequence[Mapping[str, int]]) -> int:
    """Return the greatest sum of the cues of a kind: of the title, and of two sentences."""
    sums: Counter[str] = Counter()
    for kind in {kind for each in (*named, *said) for kind in each} - _NO_KINDS:
        name = max((each.get(kind, 0) for each in named), default=0)
        told = sorted((each.get(kind, 0) for each in said), reverse=True)[:2]
        sums[kind] = (name if name > 1 else 0) + sum(told)
    return max(sums.values(), default=0)


def may_wait(texts: Sequence[str], body: bytes) -> bool:
    """Return whether scripts may be about to build a short page."""
    said = " ".join(texts)
    is_bare = len(said) <= _LITTLE or "javascript" in said.lower()
    return is_bare and b"<script" in body[:MOST_BYTES].lower()
