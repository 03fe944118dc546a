"""One host's block pages: the answers to its probes, and its families of similar pages.

Invariant: the state is bounded (prints of three probes and fourteen families of pages), and
a URL counts once in a family. Consequence: a host takes up to 4 kB, and judging a page again
has no effect.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from itertools import chain, pairwise
from math import exp
from typing import Final, TypeAlias
from urllib.parse import unquote, urlsplit, urlunsplit
from zlib import crc32

from pydantic import TypeAdapter, ValidationError

from freshet.crawler.compare.not_content.cues import folded, title_parts, words_up_to
from freshet.crawler.compare.not_content.evidence import (
    TICKET,
    UNNAMED_STAGE,
    BlockPageEvidence,
    unbuilt,
    weigh,
)
from freshet.crawler.compare.not_content.page import NotContent, NotContentKind, PageFacts, Proof
from freshet.crawler.fetch.bounds import LruCache

#: From this probability on a page is doubtful. One in fifty real pages that were not used in the
#: fit reaches it.
DOUBTFUL_FROM: Final = 0.25


@cache
def _weights() -> dict[str, float]:
    text = (files(__package__) / "weights.json").read_text("utf-8")
    return {name: float(weight) for name, weight in json.loads(text).items()}


def probability(features: Mapping[str, float]) -> float:
    """Return the probability that a page with these features is not content."""
    weights = _weights()
    odds = weights["intercept"]
    odds += sum(weights.get(name, 0.0) * value for name, value in features.items())
    return 1.0 / (1.0 + exp(-max(-30.0, min(30.0, odds))))


# -- resemblance of short pages ------------------------------------------------
# Resemblance of short pages, ignoring the URL, numbers, ids and times printed on them. A print is a
# bottom-k sketch (E. Cohen, 1997) of a page's set of words and pairs of words: the least 48 of
# their hashes, which is all of them for a text of up to some 25 words. Names of the URL are masked,
# and words with a digit.

#: The hashes that are kept of a page, of 4 bytes each.
KEPT: Final = 48
#: Prints of fewer words resemble too many others.
FEW_WORDS: Final = 6

_PART: Final = re.compile(r"[\W_]+")
_UNSPACED: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_MASK: Final = "#"
_DIGIT: Final = re.compile(r"\d")
_LONGEST_WORD: Final = 24
_TIME_OF_DAY: Final = re.compile(r"\b\d{1,2}:\d{2}\b")
#: A longer word with a digit is the number of a request.
_LONG_NUMBER: Final = 10


@dataclass(frozen=True, slots=True)
class PageFingerprint:
    """``hashes`` ascend, ``words`` is the number of words, ``title`` a hash of the title.

    ``own`` is a hash of the parts that differ within a template: title, headings and numbers.
    """

    hashes: tuple[int, ...] = ()
    words: int = 0
    title: int = 0
    own: int = 0


def print_of(facts: PageFacts) -> PageFingerprint:
    """Return the print of a page's main text."""
    said = facts.blocks.texts
    # A page may repeat the words of its URL.
    masked = frozenset(word for word in _PART.split(folded(facts.url)) if len(word) > 2)
    words = _masked_words(said, masked)
    # Without the URL's names: the titles of two empty categories differ by just that.
    parts = title_parts(_unplaced(facts.title or "", facts.url))
    title = b" ".join(_masked_words(parts, ()))
    pairs = map(b" ".join, pairwise(words))
    kept = sorted(set(map(crc32, chain(words, pairs))))[:KEPT]
    headings = [
        text for text, kind in zip(said, facts.blocks.kinds, strict=True) if kind == "heading"
    ]
    own = _hash(" ".join((*parts, *_own_words(headings, said, masked))))
    return PageFingerprint(tuple(kept), min(len(words), 0xFFFF), crc32(title), own)


def _own_words(headings: Iterable[str], said: Iterable[str], masked: frozenset[str]) -> list[str]:
    """Return the words of the headings, and the numbers in all texts.

    A visitor's address, the number of a request and a text with a time of day are left out: block
    pages print them.
    """
    numbered = (text for text in said if _DIGIT.search(text) and not _TIME_OF_DAY.search(text))
    numbers = (
        word
        for word in _unticketed(numbered)
        if len(word) <= _LONG_NUMBER and any(map(str.isdigit, word))
    )
    return [word for word in (*_unticketed(headings), *numbers) if word not in masked]


def _unticketed(texts: Iterable[str]) -> list[str]:
    # All at once: a call for each text would cost more than it gains.
    return folded(TICKET.sub(" ", "\n".join(texts))).split()


def set_resemblance(first: PageFingerprint, second: PageFingerprint) -> float:
    """Return the resemblance of the sets, 0 to 1: exact if both are whole, else estimated."""
    if not first.hashes or not second.hashes:
        return float(first == second)
    mine, others = set(first.hashes), set(second.hashes)
    union = sorted(mine | others)
    if max(len(mine), len(others)) >= KEPT:
        union = union[:KEPT]
    return sum(each in mine and each in others for each in union) / len(union)


def _unplaced(title: str, url: str) -> str:
    """Return a title without the URL or path that some servers print there."""
    parts = urlsplit(url)
    title = title.replace(url, "").replace(parts.netloc, "") if parts.netloc else title
    return title.replace(unquote(parts.path), "") if len(parts.path) > 1 else title


def _hash(text: str) -> int:
    return crc32(text.encode("utf-8", "replace"))


def _masked_words(texts: Iterable[str], masked: Container[str]) -> list[bytes]:
    """Return the words of the texts; the characters of scripts without blanks."""
    text = folded("\n".join(texts))
    if not text.isascii():
        text = _UNSPACED.sub(r" \g<0> ", text)
    return [
        # Words of letters alone are most, and known to have no digit.
        (word if word not in masked and (word.isalpha() or not _DIGIT.search(word)) else _MASK)[
            :_LONGEST_WORD
        ].encode("utf-8", "replace")
        for word in text.split()
        if word != "?"
    ]


# -- probing -----------------------------------------------------------------
# Requests for a page that cannot exist. A probe is beside a known page, in the same directory
# and with the same ending, for hosts that answer by directory or by ending; its name holds a random
# token, so that no host can know it.

_LONGEST_ENDING: Final = 5


def probe_url(url: str, token: str) -> str:
    """Return a URL beside a page that cannot exist.

    >>> probe_url("https://h.example/shop/chair.html?id=3", "k3v9x")
    'https://h.example/shop/k3v9x.html'
    >>> probe_url("https://h.example/shop/", "k3v9x")
    'https://h.example/shop/k3v9x/'
    """
    parts = urlsplit(url)
    directory, _, name = parts.path.rpartition("/")
    if not name and directory:
        directory, _, _ = (
            directory.rpartition("/") if directory.count("/") > 1 else (directory, "", "")
        )
        return urlunsplit((parts.scheme, parts.netloc, f"{directory}/{token}/", "", ""))
    _, dot, ending = name.rpartition(".")
    plain = dot and 0 < len(ending) <= _LONGEST_ENDING and ending.isalnum()
    return urlunsplit(
        (parts.scheme, parts.netloc, f"{directory}/{token}{dot + ending if plain else ''}", "", "")
    )


#: The version of the rules: a page that was rejected by others is judged again, so it is requested
#: without validators.
RULES: Final = b"\x02"
#: The version of the format and of all hashes in it.
VERSION: Final = 4
#: Probes of a host within the lifetime of their answers.
MOST_PROBES: Final = 3
PROBE_LASTS_S: Final = 7 * 86_400.0
#: So long an honest answer is enough where no page is doubtful, and pages are compared with one
#: that was shown: a small budget has better uses.
ANSWER_LASTS_S: Final = 180 * 86_400.0
_MOST_FAMILIES: Final = 14
_MOST_URLS: Final = 4
#: Short texts of a host that are remembered for a run.
_MOST_TEXTS: Final = 256
#: Doubtful pages of a run that are kept, in case a probe proves them to be block pages.
MOST_PENDING: Final = 64
#: Resemblance from which two pages are nearly the same; lower for one page and its probe,
#: because the probe names nothing of the page.
_SAME: Final = 0.8
_LIKE_PROBE: Final = 0.7
#: Least different contents that one page has replaced.
_MANY: Final = 2
#: The least sum of cues of a page that is worth a probe.
_WORTH_A_PROBE: Final = 2

#: A probe's answer: Unix seconds, and the page; None for an honest answer.
Probe: TypeAlias = tuple[float, PageFingerprint | None]


@dataclass(frozen=True, slots=True)
class SimilarPages:
    """Pages that are nearly the same, last seen at ``at`` (Unix seconds).

    ``urls`` has hashes of the first URLs' names, at most four; ``replaced`` has hashes of the
    contents that they replaced. ``is_content``: one of them was content when first seen.
    """

    page: PageFingerprint
    at: float
    urls: tuple[int, ...] = ()
    replaced: tuple[int, ...] = ()
    is_content: bool = False

    @property
    def has_returned(self) -> bool:
        """Return whether it has replaced several contents, and was not content itself."""
        return not self.is_content and len(self.replaced) >= _MANY


_STORED: Final = TypeAdapter(tuple[tuple[Probe, ...], tuple[SimilarPages, ...]])

#: A doubtful page of this run, and its verdict.
_Doubtful: TypeAlias = tuple[PageFingerprint, NotContent]


@dataclass(slots=True)
class HostJudge:
    """Judge of the pages of one host, which learns from them."""

    probes: tuple[Probe, ...] = ()
    families: tuple[SimilarPages, ...] = ()
    #: Whether the last page has a cue, and whether it is doubtful.
    _has_cue: bool = False
    _is_doubtful: bool = False
    _doubtful: LruCache[str, _Doubtful] = field(
        default_factory=lambda: LruCache(MOST_PENDING), compare=False
    )

    def judge(self, facts: PageFacts, at: float) -> NotContent | None:
        """Judge a page seen at ``at`` (Unix seconds), and learn its print."""
        page = print_of(facts)
        family = self._family(page)
        like, back = self._by_probe(facts, page, at), _by_return(family, page, facts)
        found, cues = None, 0
        if like or back or facts.tells:
            best = weigh(facts)
            host = {"probe": like is not None, "return": back is not None}
            found = _judgement(replace(best, features={**best.features, **host}), facts, like, back)
            cues = best.cues
        self._remember(
            family, _joined(family or SimilarPages(page, at), facts, at, is_content=not found)
        )
        self._doubtful.pop(facts.url, None)
        if found is not None and not found.is_refused:
            self._doubtful[facts.url] = page, found
        # One that a probe has shown, or other URLs show, is not worth another.
        is_open = found is None or (not found.is_refused and found.proofs.isdisjoint(_OF_URLS))
        self._is_doubtful = found is not None and is_open
        self._has_cue = is_open and cues >= _WORTH_A_PROBE
        return found

    # -- probes ----------------------------------------------------------------------

    def wants_probe(self, at: float, *, several: bool = True) -> bool:
        """Return whether a probe at ``at`` would decide anything.

        It would where no probe is known and the host has shown ``several`` pages or one with a cue,
        and where a page is doubtful of a host that was asked beside others.
        """
        fresh = self._since(at - PROBE_LASTS_S)
        if not fresh:
            honest = any(page is None and at - then < ANSWER_LASTS_S for then, page in self.probes)
            return self._has_cue or (several and not honest)
        doubts = self._is_doubtful or (self.shows_pages(at) and self._has_cue)
        return doubts and len(fresh) < MOST_PROBES

    def shows_pages(self, at: float) -> bool:
        """Return whether the host answers with a page for missing URLs."""
        return any(self._shown(at))

    def may_know(self, url: str, at: float) -> bool:
        """Return whether the host may identify the page at a URL, without a sign of the page.

        The host shows a page for missing URLs; or a page replaced content at this URL, and then at
        others as well.
        """
        number = _number(url)
        returned = (number in each.urls and each.has_returned for each in self.families)
        return self.shows_pages(at) or any(returned)

    def learn_probe(self, answer: PageFacts | None, at: float) -> dict[str, NotContent]:
        """Learn the answer to a probe at ``at`` (Unix seconds): a page, or None if it is honest.

        An honest answer is a status, or a redirect elsewhere. Return the doubtful pages of this
        run, by URL, that the answer proves to be block pages.
        """
        page = None if answer is None else print_of(answer)
        self.probes = (*self._since(at - ANSWER_LASTS_S), (at, page))[-MOST_PROBES:]
        self._has_cue = self._is_doubtful = False
        proven = {
            url: replace(doubt, why=f"{doubt.why}, and {_LIKE_PROBE_WORDS}",
                         proofs=doubt.proofs | {Proof.PROBE})
            for url, (shown, doubt) in self._doubtful.items()
            if doubt.proofs.isdisjoint(_OF_URLS) and page is not None
            and not _is_root(url) and _with_title(shown, page) >= _LIKE_PROBE
        }  # fmt: skip
        for url in proven:
            del self._doubtful[url]
        return proven

    def _by_probe(self, facts: PageFacts, page: PageFingerprint, at: float) -> str | None:
        """Compare a page with the probes' pages; one of few words needs a cue as well."""
        # Any URL may show the root.
        shown = () if _is_root(facts.url) else self._shown(at)
        like = max((_with_title(page, each) for each in shown), default=0.0)
        if like < _LIKE_PROBE:
            return None
        if page.words < FEW_WORDS and weigh(facts).cues < _WORTH_A_PROBE:
            return None
        return _LIKE_PROBE_WORDS

    def _since(self, at: float) -> tuple[Probe, ...]:
        return tuple(probe for probe in self.probes if probe[0] > at)

    def _shown(self, at: float) -> Iterator[PageFingerprint]:
        return (page for _, page in self._since(at - ANSWER_LASTS_S) if page is not None)

    # -- families --------------------------------------------------------------------

    def _family(self, page: PageFingerprint) -> SimilarPages | None:
        alike = [(set_resemblance(page, family.page), family) for family in self.families]
        resemblance, likest = max(alike, key=lambda each: each[0], default=(0.0, None))
        if likest is None or resemblance < _SAME:
            return None
        return likest if _is_telling(page, likest.page) else None

    def _remember(self, before: SimilarPages | None, now: SimilarPages) -> None:
        """Keep a family: the largest are kept, of equals those seen last."""
        others = [each for each in self.families if each is not before]
        others.sort(key=lambda each: (len(each.urls), each.at))
        self.families = (*others[-(_MOST_FAMILIES - 1) :], now)

    # -- bytes -----------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Serialise version (one byte), probes and families (JSON); some 10 kB at most."""
        return bytes([VERSION]) + _STORED.dump_json((self.probes, self.families))

    @classmethod
    def from_bytes(cls, data: bytes | None) -> HostJudge:
        """Read the bytes that :meth:`to_bytes` wrote, None without any.

        Raises:
            ValueError: for an unknown version, or damaged bytes.
        """
        if data is None:
            return cls()
        if data[:1] != bytes([VERSION]):
            raise ValueError(f"block pages of version {data[:1]!r}; this program reads {VERSION}")
        try:
            return cls(*_STORED.validate_json(data[1:]))
        except ValidationError as error:
            raise ValueError(f"block pages of {len(data)} bytes are damaged") from error


def _joined(family: SimilarPages, facts: PageFacts, at: float, *, is_content: bool) -> SimilarPages:
    """Return the family with this page in it; a URL counts once."""
    url, family = _number(facts.url), replace(family, at=max(at, family.at))
    if url in family.urls or len(family.urls) >= _MOST_URLS:
        return family
    return replace(
        family,
        urls=(*family.urls, url),
        replaced=_replaced(family, facts),
        is_content=family.is_content or (is_content and facts.before is None),
    )


def _replaced(family: SimilarPages | None, facts: PageFacts) -> tuple[int, ...]:
    """Return the contents that this page and its family have replaced, as hashes."""
    known = () if family is None else family.replaced
    return known if facts.before is None else tuple({*known, crc32(facts.before)})


def _is_telling(page: PageFingerprint, other: PageFingerprint) -> bool:
    """Return whether two similar pages are one: lists of links, for instance, differ by title."""
    return page.words >= FEW_WORDS or page.title == other.title


def _is_root(url: str) -> bool:
    return urlsplit(url).path in {"", "/"}


class ShownTexts:
    """The short texts of a host, with the names of the URLs that show them."""

    def __init__(self) -> None:
        self._names: LruCache[bytes, set[int]] = LruCache(_MOST_TEXTS)

    def is_elsewhere(self, facts: PageFacts) -> bool:
        """Remember a page; return whether URLs of three other names at least show its text.

        A query may choose the view of a page, or name a visitor: such a URL is not another name.
        """
        if words_up_to(facts.blocks.texts, FEW_WORDS) < FEW_WORDS:
            return False
        names = self._names.use(facts.sketch.text_digest)
        if names is None:
            names = self._names[facts.sketch.text_digest] = set()
        own = _number(facts.url)
        if len(names) < _MOST_URLS and not urlsplit(facts.url).query:
            names.add(own)
        return len(names | {own}) >= _MOST_URLS


def _number(url: str) -> int:
    """Hash a URL's last name: a page in several directories is one page."""
    parts = urlsplit(url)
    names = [name for name in parts.path.split("/") if name and not name.startswith("index.")]
    return crc32(f"{names[-1] if names else ''}?{parts.query}".encode("utf-8", "replace"))


def _by_return(family: SimilarPages | None, page: PageFingerprint, facts: PageFacts) -> str | None:
    """Say in place of how many contents the very page is shown now, None if of too few."""
    if family is None or family.is_content or family.page.own != page.own:
        return None
    # A URL counts once, even if it alternates between its content and error pages.
    is_member = _number(facts.url) in family.urls
    if facts.before is None and not is_member:
        return None
    count = len(family.replaced if is_member else _replaced(family, facts))
    return f"{count} {_RETURNED}" if count >= _MANY else None


def tells_of_change(why: str) -> bool:
    """Return whether a reason of a doubt is the former text, which later visits do not see."""
    return _RETURNED in why or tells_of_few_words(why)


def tells_of_few_words(why: str) -> bool:
    """Return whether a reason of a doubt is that few words replaced a long text."""
    return _PLACED[Proof.REPLACED] in why


def _judgement(
    best: BlockPageEvidence, facts: PageFacts, like: str | None, back: str | None
) -> NotContent | None:
    """Return the verdict of the proofs together; a status or markup needs another proof."""
    if best.kind is NotContentKind.NEEDS_JAVASCRIPT and best.cues:
        return needs_javascript(facts)
    chance, said = probability(best.features), {**best.features, **_BY_HOST}
    proofs = {Proof.PROBE: like, Proof.RETURN: back}
    if probability(said) >= DOUBTFUL_FROM:
        proofs[Proof.WORDS] = f"{best.why or 'its form'} say {_SAID[best.kind]}"
    held = {proof: why for proof, why in proofs.items() if why is not None}
    if not held:
        return _by_place(best, facts, chance)
    without = probability({**said, "status": 0.0})
    if best.features["status"] and best.says_so and without >= DOUBTFUL_FROM:
        held[Proof.STATUS] = "it states the status of an error"
    if Proof.WORDS in held and best.machine:
        held[Proof.MARKUP] = best.machine
    kind = best.kind if best.cues else _unnamed(facts, held)
    return NotContent(kind, ", and ".join(held.values()), chance, frozenset(held))


def _by_place(best: BlockPageEvidence, facts: PageFacts, chance: float) -> NotContent | None:
    """Judge a page without a proof; the place of its words makes it doubtful."""
    if chance < DOUBTFUL_FROM:
        return None
    kind = best.kind if best.cues else _unnamed(facts, ())
    held = {Proof.ELSEWHERE: facts.elsewhere, Proof.REPLACED: facts.replaced}
    proofs = frozenset(proof for proof, is_so in held.items() if is_so)
    why = ", and ".join(_PLACED[proof] for proof in held if proof in proofs)
    return NotContent(kind, why, chance, proofs)


def needs_javascript(facts: PageFacts) -> NotContent | None:
    """Judge only whether scripts would build the page; the host does not learn from it."""
    kind = NotContentKind.NEEDS_JAVASCRIPT
    for weight, why in unbuilt(facts):
        proofs = {Proof.MARKUP} if weight <= UNNAMED_STAGE else {Proof.WORDS, Proof.MARKUP}
        return NotContent(kind, f"{why} say {_SAID[kind]}", 0.98, frozenset(proofs))
    return None


def _unnamed(facts: PageFacts, proofs: Container[Proof]) -> NotContentKind:
    """Return the kind of a block page without a cue: an answerable one asks for a choice."""
    if Proof.PROBE in proofs:
        return NotContentKind.SOFT_404
    return NotContentKind.CONSENT_WALL if facts.signs.controls else NotContentKind.ERROR_PAGE


#: Proofs that make a probe superfluous.
_OF_URLS: Final = frozenset({Proof.PROBE, Proof.ELSEWHERE})
#: Features that a page has by its host.
_BY_HOST: Final = {"probe": 0.0, "return": 0.0, "elsewhere": 0.0, "replaced": 0.0}
_RETURNED: Final = "URLs with different content before show it now"
_PLACED: Final = {
    Proof.ELSEWHERE: "URLs of four names show the same few words",
    Proof.REPLACED: "a few words stand in place of all that it said",
}
_LIKE_PROBE_WORDS: Final = "the host shows it for a URL that cannot exist"
_SAID: Final = {
    NotContentKind.SOFT_404: "that there is nothing here",
    NotContentKind.ERROR_PAGE: "that an error kept the page away",
    NotContentKind.LOGIN_WALL: "that a reader must log in or subscribe",
    NotContentKind.CONSENT_WALL: "that a reader must choose or consent first",
    NotContentKind.CAPTCHA: "that a visitor must prove to be human",
    NotContentKind.RATE_LIMITED_PAGE: "that the visitor is turned away for now",
    NotContentKind.PARKED: "that the host has no site, or is for sale",
    NotContentKind.NEEDS_JAVASCRIPT: "that only a browser shows it",
}


def _with_title(page: PageFingerprint, probe: PageFingerprint) -> float:
    """Return the resemblance to a probe's page; pages of few words must also share its title."""
    if min(page.words, probe.words) < FEW_WORDS and page.title != probe.title:
        return 0.0
    return set_resemblance(page, probe) if probe.words else 0.0
