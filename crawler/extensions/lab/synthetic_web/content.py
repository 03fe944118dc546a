"""Main content and its history; times are Unix seconds (UTC).

Edits change a page's main content; each has a form. Edits of the frame around the content belong
to the site.
"""

import tomllib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import accumulate
from random import Random
from typing import Literal, NamedTuple, TypeAlias


class SyntheticUrl(NamedTuple):
    """A site's name, and a path with its query in the spelling of the WHATWG URL standard."""

    host: str
    target: str


@dataclass(frozen=True, slots=True)
class Link:
    """An anchor. ``leads_to`` is its true target, None if no crawler should follow it.

    ``href`` is the spelling on the page, None for the plain one; ``{authority}`` in it stands for
    the site's own host and port, ``{AUTHORITY}`` for the same in capitals. ``note`` is text beside
    the anchor. Lists of links show it from ``born_at`` until ``died_at``.
    """

    text: str
    leads_to: SyntheticUrl | None
    href: str | None = None
    rel: str = ""
    note: str = ""
    born_at: float = 0.0
    died_at: float | None = None

    def is_shown(self, at: float) -> bool:
        """Return whether lists show it."""
        return self.born_at <= at and (self.died_at is None or at < self.died_at)


#: The kind of a block; a figure states a number, a date the time of an event.
ContentKind: TypeAlias = Literal["paragraph", "figure", "date"]


@dataclass(frozen=True, slots=True)
class Block:
    """One block of main content."""

    kind: ContentKind
    sentences: tuple[str, ...]

    @property
    def text(self) -> str:
        """The sentences in a row."""
        return " ".join(self.sentences)


@dataclass(frozen=True, slots=True)
class Content:
    """The main content of one version of a page."""

    title: str
    blocks: tuple[Block, ...] = ()
    links: tuple[Link, ...] = ()

    @property
    def text(self) -> str:
        """The visible text: two versions are the same if and only if this is."""
        entries = (f"{link.text} {link.note}" for link in self.links)
        return "\n".join((self.title, *(block.text for block in self.blocks), *entries))


#: The effect of an edit; the last five touch the frame around the main content.
Form: TypeAlias = Literal[
    "word", "number", "date", "sentence_added", "paragraph_added", "paragraph_removed", "rewrite",
    "listing", "footer", "navigation", "advert", "banner", "rebuild",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Revision:
    """A change at a time (in whole seconds)."""

    at: float
    form: Form


@dataclass(frozen=True, slots=True)
class ContentHistory:
    """The main content of a document over time.

    ``revisions`` are all changes, in order of time, no two in one second. ``content`` returns that
    of a version: 0 is the first; version n follows the n-th revision.
    """

    revisions: Sequence[Revision]
    content: Callable[[int], Content]


def version_at(revisions: Sequence[Revision], at: float) -> int:
    """Count the revisions up to and at a time."""
    return bisect_right(revisions, at, key=lambda revision: revision.at)


# -- chance ------------------------------------------------------------------
# Every part of the web has a random generator of its own, named by the seed and the part: a
# page does not depend on other pages or on requests.
DAY_S = 86_400.0


def generator(*key: object) -> Random:
    """Return the generator of that name; a key gives the same numbers on every machine."""
    return Random("/".join(map(str, key)))


def poisson_times(
    rng: Random, rate_per_day: float, start_at: float, end_at: float
) -> tuple[float, ...]:
    """Draw a Poisson process in (start_at, end_at), rising, in whole Unix seconds.

    Last-Modified has whole seconds: two arrivals in one second are merged, so that a date tells the
    versions of a page apart.
    """
    rate = rate_per_day / DAY_S
    if rate <= 0:
        return ()
    times: dict[float, None] = {}
    at = start_at + rng.expovariate(rate)
    while at < end_at:
        if at // 1 > start_at:
            times[at // 1] = None
        at += rng.expovariate(rate)
    return tuple(times)


# -- languages ---------------------------------------------------------------
# The r-th word of a list is drawn with probability proportional to 1/(r + 2.7), the law of Zipf
# as corrected by Mandelbrot (1953) for the most frequent words.
@dataclass(frozen=True, slots=True)
class Language:
    """A word list, most frequent first, and its way to make sentences.

    ``width`` is the length of every word if words are not spaced, else 0; ``figure`` is a sentence
    with a place for a number.
    """

    code: str
    words: tuple[str, ...]
    stop: str
    figure: str
    width: int = 0
    _weights: tuple[float, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        weights = tuple(accumulate(1 / (rank + 2.7) for rank in range(1, len(self.words) + 1)))
        object.__setattr__(self, "_weights", weights)

    def sentence(self, rng: Random) -> str:
        """Draw six to sixteen words."""
        return self.join(rng.choices(self.words, cum_weights=self._weights, k=rng.randint(6, 16)))

    def paragraph(self, rng: Random) -> tuple[str, ...]:
        """Draw two to five sentences."""
        return tuple(self.sentence(rng) for _ in range(rng.randint(2, 5)))

    def title(self, rng: Random) -> str:
        """Draw four different words of the rarer half, without a full stop."""
        return self.join(rng.sample(self.words[len(self.words) // 2 :], 4)).removesuffix(self.stop)

    def word(self, rng: Random, unlike: str = "") -> str:
        """Draw a word other than ``unlike``."""
        while True:
            word = rng.choices(self.words, cum_weights=self._weights)[0]
            if word.casefold() != unlike.casefold():
                return word

    def split(self, sentence: str) -> list[str]:
        """Return the words of a sentence, the first perhaps with a capital."""
        bare = sentence.removesuffix(self.stop)
        if not self.width:
            return bare.split(" ")
        return [bare[i : i + self.width] for i in range(0, len(bare), self.width)]

    def join(self, words: list[str]) -> str:
        """Make a sentence of these words."""
        text = ("" if self.width else " ").join(words)
        return text[:1].upper() + text[1:] + self.stop


_LANGUAGES = tomllib.loads((files(__package__) / "languages.toml").read_text(encoding="utf-8"))
ENGLISH, GERMAN, JAPANESE, RUSSIAN = (
    Language(code, **{**table, "words": tuple(table["words"].split())})
    for code, table in _LANGUAGES.items()
)

# -- edits -------------------------------------------------------------------
# Every edit changes the visible text; a test holds this for all forms.
#: Text pages: how often each form occurs among the edits of main content.
PROSE_MIX: Mapping[Form, float] = {
    "word": 0.35,
    "sentence_added": 0.25,
    "paragraph_added": 0.16,
    "paragraph_removed": 0.16,
    "rewrite": 0.08,
}
#: Pages that state a number: mostly that changes.
FIGURE_MIX: Mapping[Form, float] = {"number": 0.8, **{f: w / 5 for f, w in PROSE_MIX.items()}}

#: Pages that say when something is: mostly that changes.
DATE_MIX: Mapping[Form, float] = {"date": 0.8, **{f: w / 5 for f, w in PROSE_MIX.items()}}

#: Below this a paragraph is added instead of removed, above the next removed instead.
_FEWEST, _MOST = 3, 12
#: Paragraphs after a rewrite.
_REWRITTEN = 5

_MONTHS = ("January", "March", "April", "June", "August", "September", "November")

Blocks = tuple[Block, ...]


def plan(
    rng: Random, times: Iterable[float], mix: Mapping[Form, float], paragraphs: int
) -> tuple[Revision, ...]:
    """Choose a form for each time, for a page that starts with that many paragraphs."""
    forms, weights = list(mix), list(mix.values())
    revisions = []
    for at in times:
        form = rng.choices(forms, weights)[0]
        if form in {"paragraph_added", "paragraph_removed"}:
            form = _within_bounds(form, paragraphs)
        paragraphs += (form == "paragraph_added") - (form == "paragraph_removed")
        paragraphs = _REWRITTEN if form == "rewrite" else paragraphs
        revisions.append(Revision(at, form))
    return tuple(revisions)


def _within_bounds(form: Form, paragraphs: int) -> Form:
    if paragraphs <= _FEWEST:
        return "paragraph_added"
    return "paragraph_removed" if paragraphs >= _MOST else form


def compose(
    rng: Random, language: Language, paragraphs: int, *, figure: bool, dated: bool = False
) -> Blocks:
    """Return the blocks of a new page."""
    blocks = [Block("paragraph", language.paragraph(rng)) for _ in range(paragraphs)]
    if figure:
        blocks.insert(1, Block("figure", (_number(rng, language),)))
    if dated:
        blocks.insert(1, Block("date", (_date(rng),)))
    return tuple(blocks)


def revise(blocks: Blocks, form: Form, rng: Random, language: Language) -> Blocks:
    """Return the blocks after an edit of that form.

    Raises:
        ValueError: the form does not touch blocks.
        IndexError: the page has no block that it could touch.
    """
    match form:
        case "number":
            return _replace(blocks, "figure", lambda: _number(rng, language))
        case "date":
            return _replace(blocks, "date", lambda: _date(rng))
        case "paragraph_added":
            at = rng.randint(0, len(blocks))
            new = Block("paragraph", language.paragraph(rng))
            return (*blocks[:at], new, *blocks[at:])
        case "rewrite":
            kinds = {block.kind for block in blocks}
            figure, dated = "figure" in kinds, "date" in kinds
            return compose(rng, language, _REWRITTEN, figure=figure, dated=dated)
    return _revise_paragraph(blocks, form, rng, language)


def _revise_paragraph(blocks: Blocks, form: Form, rng: Random, language: Language) -> Blocks:
    """Return the blocks after an edit of one paragraph; raises as :func:`revise`."""
    i = rng.choice([i for i, block in enumerate(blocks) if block.kind == "paragraph"])
    sentences = list(blocks[i].sentences)
    match form:
        case "word":
            j = rng.randrange(len(sentences))
            words = language.split(sentences[j])
            k = rng.randrange(len(words))
            words[k] = language.word(rng, unlike=words[k])
            sentences[j] = language.join(words)
        case "sentence_added":
            sentences.insert(rng.randint(0, len(sentences)), language.sentence(rng))
        case "paragraph_removed":
            return blocks[:i] + blocks[i + 1 :]
        case _:
            raise ValueError(f"an edit of the form {form} touches the frame, not the blocks")
    return _with(blocks, i, sentences)


def _replace(blocks: Blocks, kind: ContentKind, draw: Callable[[], str]) -> Blocks:
    """Replace the sentence in the first block of that kind."""
    i = next(i for i, block in enumerate(blocks) if block.kind == kind)
    before = after = blocks[i].sentences[0]
    while after == before:
        after = draw()
    return _with(blocks, i, [after])


def _with(blocks: Blocks, i: int, sentences: Iterable[str]) -> Blocks:
    return (*blocks[:i], Block(blocks[i].kind, tuple(sentences)), *blocks[i + 1 :])


def _number(rng: Random, language: Language) -> str:
    return language.figure.format(f"{rng.randint(100, 99_999) / 100:.2f}")


def _date(rng: Random) -> str:
    month = rng.choice(_MONTHS)
    return f"Doors open on {rng.randint(1, 28)} {month} 2027 at {rng.randint(10, 21)}:30."
