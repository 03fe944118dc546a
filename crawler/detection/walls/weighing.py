"""What a page's own words and markup say: how much speaks for each kind of wall.

Title, headings, sentences, buttons and markup are heard one by one. What says nothing of a
wall is the page's own text, and speaks against: an article about 404s has much of it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from freshet.crawler.detection.walls.look import PageLook, WallKind
from freshet.crawler.detection.walls.structure import Support, structure
from freshet.crawler.detection.walls.words import (
    ABOUT,
    ASIDE,
    Listener,
    folded,
    sentences,
    title_parts,
    word_count,
)

#: What is quoted is spoken of.
_QUOTED: Final = re.compile(
    r"«[^»]{2,200}»|„[^“”\"]{2,200}[“”\"]|“[^”]{2,200}”|「[^」]{2,100}」|\"[^\"]{2,200}\""
)
#: A part of a title with more words than this is a headline.
_HEADLINE_WORDS: Final = 9
#: Of links, which may be a menu or what a shop recommends instead, so many words are one.
_LINK_SHARE: Final = 4
#: What is no sentence, such as a label or a number, is no text of the page's own.
_SHORT_LABEL_WORDS: Final = 3
#: So many headings that say nothing of a wall go with one; more divide an article.
_MOST_HEADINGS: Final = 2
#: A wall has a few of these; a table or an index has many.
_MOST_LABELS: Final = 8
#: A longer sentence says more than what it says by the way.
_ASIDE_WORDS: Final = 20
#: The share that counts of what is said by the way, and where title or heading say it all.
_BY_THE_WAY: Final = 0.7
_BY_THE_WAY_TITLED: Final = 0.35


@dataclass(frozen=True, slots=True)
class Weighed:
    """What speaks for one kind.

    ``score`` adds up the cues, ``own_words`` are those of the main part that are none,
    ``about`` what says that the page is about such things, ``why`` the strongest cues.
    """

    kind: WallKind
    score: int
    own_words: int
    about: int
    why: str
    titled: bool


@dataclass(frozen=True, slots=True)
class _Heard:
    """What was heard where: the greatest weights by kind, one mapping a sentence."""

    title: dict[str, int]
    heading: dict[str, int]
    texts: tuple[tuple[str, dict[str, int]], ...]
    headings: tuple[tuple[str, dict[str, int]], ...]
    controls: dict[str, int]
    linked: dict[str, int]
    quoted: int


def weigh(look: PageLook) -> list[Weighed]:
    """All kinds, the weightiest first; of equals, the one that the enumeration names first."""
    heard = _hear(look)
    support = structure(look)
    every = [_weighed(kind, heard, support[kind], look) for kind in WallKind]
    return sorted(every, key=lambda weighed: -weighed.score)


def _hear(look: PageLook) -> _Heard:
    signs = look.signs
    said = [_QUOTED.sub(" ", text) for text in signs.texts]
    titles = title_parts(_QUOTED.sub(" ", look.title or ""))
    headings = sentences(_QUOTED.sub(" ", text) for text in signs.headings)
    texts = sentences([*said, signs.noscript])
    controls, linked = sentences(signs.controls), sentences(signs.linked)
    quotes = sentences(q[0] for t in (*signs.texts, look.title or "") for q in _QUOTED.finditer(t))
    quotes = [quote for quote in quotes if quote not in controls]  # a text that tells what to press
    every = [*titles, *headings, *texts, *controls, *linked, *quotes]
    listener = Listener(signs.language, " ".join(every))
    return _Heard(
        _greatest(_toned(part, listener.heard(part, label=True)) for part in titles),
        _greatest(_toned(part, listener.heard(part, label=True)) for part in headings[:6]),
        tuple((text, listener.heard(text, label=True)) for text in texts),
        tuple((text, listener.heard(text, label=True)) for text in headings),
        _greatest(listener.heard(each, label=True) for each in controls),
        _greatest(listener.heard(each, label=True) for each in linked),
        sum(max(listener.heard(quote, label=True).values(), default=0) > 1 for quote in quotes),
    )


def _toned(part: str, heard: dict[str, int]) -> dict[str, int]:
    """A headline that names a thing among many words says less of itself."""
    if word_count(part) <= _HEADLINE_WORDS:
        return heard
    return {kind: weight - (kind != ABOUT) for kind, weight in heard.items()}


def _greatest(many: Iterable[dict[str, int]]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for heard in many:
        found |= Counter(heard)
    return dict(found)


def _weighed(kind: WallKind, heard: _Heard, support: Support, look: PageLook) -> Weighed:
    title, heading = (
        # A weak cue is no name for a page.
        weight if (weight := where.get(kind, 0)) > 1 else 0
        for where in (heard.title, heard.heading)
    )
    body = sorted((said.get(kind, 0) for _, said in heard.texts), reverse=True)
    spoken = sum(body[:2])
    controls = min(2, heard.controls.get(kind, 0))
    # A link says where else to go: it only goes with what the page says.
    if title or heading or spoken or controls or support.weight:
        controls += min(1, heard.linked.get(kind, 0))
    about = 2 * heard.title.get(ABOUT, 0) + heard.heading.get(ABOUT, 0) + sum(
        said.get(ABOUT, 0) for _, said in heard.texts
    ) + 2 * heard.quoted  # fmt: skip
    divided = sum(not said.get(kind, 0) and len(text) > 4 for text, said in heard.headings)
    signs = look.signs
    traced = kind is WallKind.ERROR_PAGE and support.weight >= 3
    about += (
        max(0, divided - _MOST_HEADINGS) + bool(signs.dates) + (bool(signs.codes) and not traced)
    )
    own = _own_words(
        kind,
        (*heard.texts, *heard.headings),
        look.signs.linked,
        _BY_THE_WAY_TITLED if max(title, heading) >= 3 and not about else _BY_THE_WAY,
    )
    reasons = _reasons(title, heading, spoken, controls, support, look)
    return Weighed(
        kind,
        title + heading + spoken + controls + support.weight,
        own,
        about,
        reasons,
        titled=title >= 3,
    )


def _own_words(
    kind: WallKind,
    heard: Sequence[tuple[str, dict[str, int]]],
    linked: Sequence[str],
    said_by_the_way: float,
) -> int:
    """The words of sentences without a cue; of labels, only those beyond what a wall has.

    Of a sentence with a weak cue, or one that all pages say by the way, a share counts.
    """
    own, labels = 0.0, []
    for text, said in heard:
        words = word_count(text)
        if said.get(kind, 0) >= 2:
            continue
        if words <= _SHORT_LABEL_WORDS:
            labels.append(words)
        else:
            weak = said.get(kind, 0) or (said.get(ASIDE, 0) and words <= _ASIDE_WORDS)
            own += words * said_by_the_way if weak else words
    links = sum(len(folded(text).split()) for text in linked) // _LINK_SHARE
    return int(own) + sum(sorted(labels)[_MOST_LABELS:]) + links


def _reasons(
    title: int, heading: int, spoken: int, controls: int, support: Support, look: PageLook
) -> str:
    found = [
        (title, f"its title “{(look.title or '')[:60]}”"),
        (heading, "its heading"),
        (spoken, "its text"),
        (controls, "its buttons"),
        (support.weight, support.why),
    ]
    said = [why for weight, why in sorted(found, key=lambda each: -each[0]) if weight]
    return ", ".join(said[:3])
