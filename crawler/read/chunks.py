"""Chunks of a document: passages that an index searches, or a model embeds.

A document is cut between its blocks: first before headings, then within long sections, at places
that the text itself determines. *Invariant*: a cut depends on the blocks near it alone. So an edit
gives new ids to the chunks near it, and the others keep theirs.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import takewhile
from typing import Any, Final
from urllib.parse import quote
from zlib import crc32

from freshet.crawler.reduce.blocks import compared

#: Version of the chunks of given blocks. Raise it with every change that alters some chunk.
CHUNKS_VERSION: Final = "1"
#: The most characters of a chunk, unless another number is asked for, and the fewest of that.
CHUNK_CHARS: Final = 1_200
FEWEST_CHARS: Final = 200
#: The part of the most characters that a chunk has at least, if its section has that.
_FEWEST_OF: Final = 6
#: UUIDs have as many: some stores take no other ids.
_ID_BYTES: Final = 16
#: Words of a text fragment.
_FRAGMENT_WORDS: Final = 8

_APART: Final = "\n\n"
_FENCE: Final = re.compile(r"`{3,}|~{3,}")
_DELIMITERS: Final = re.compile(r"\|(?: ?:?-+:? ?\|)+")
_LINES: Final = re.compile(r"(?<=\n)")
_SENTENCES: Final = re.compile(r"(?<=[.!?…]\s)|(?<=[\u3002\uff01\uff1f])")
_WORDS: Final = re.compile(r"(?<=\s)(?=\S)")
_LINK: Final = re.compile(r"!?\[((?:[^\[\]\\]|\\.)*)\]\((?:[^()\s]|\([^()\s]*\))*\)")
_MARKUP: Final = re.compile(
    r"^[`~]{3,}.*$|\\([!-/:-@\[-`{-~])|[*`~]|^(?:[#>|]+|[-+] |\d+[.)] )", re.MULTILINE
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Chunk:
    """A passage of a page, in Markdown.

    ``id`` stays while the section and the text stay. ``url`` leads to the passage: to an element
    with an id, else by its first words. ``headings`` are the headings above it, from the first
    level down, or the title of a page without them. ``position`` counts the chunks of the
    page from 0; ``previous`` and ``next`` are the ids beside it.
    """

    id: str
    url: str
    title: str | None
    language: str | None
    headings: tuple[str, ...]
    position: int
    previous: str | None
    next: str | None
    markdown: str

    def __repr__(self) -> str:
        return f"<Chunk {self.id} of {self.url}: {len(self.markdown):,} characters>"

    @property
    def to_embed(self) -> str:
        """The text for a model: the headings in one line, and the passage."""
        return to_embed(self.headings, self.markdown)

    def as_json(self) -> dict[str, Any]:
        """Return all of its fields."""
        return {name: getattr(self, name) for name in _FIELDS}


_FIELDS: Final = tuple(Chunk.__slots__)


def to_embed(headings: Sequence[str], markdown: str) -> str:
    """Return the text of a passage for a model, see :attr:`Chunk.to_embed`."""
    return f"{' > '.join(headings)}\n\n{markdown}" if headings else markdown


def chunks_of(
    blocks: Sequence[str],
    headings: Iterable[tuple[int, str, str]],
    chars: int = CHUNK_CHARS,
    *,
    url: str,
    title: str | None = None,
    language: str | None = None,
) -> tuple[Chunk, ...]:
    """Cut the blocks of a page into chunks of at most ``chars`` characters.

    ``headings`` have a level, a text, and the id of an element there or "". A chunk is longer only
    where one row of a table or one line of code is. It has a sixth of ``chars`` at least, unless
    the page, or the text after its last heading, is shorter and fits no neighbour.

    Raises:
        ValueError: ``chars`` is less than 200.
    """
    if chars < FEWEST_CHARS:
        raise ValueError(f"chunks have at least {FEWEST_CHARS} characters, not {chars}")
    cut = _cut(_sections(blocks, headings), chars)
    texts = [_APART.join(unit.text for unit in units) for units in cut]
    paths = [_path_of(units) or ((title,) if title else ()) for units in cut]
    ids = [*_ids(url, paths, texts)]
    before, after = [None, *ids], [*ids[1:], None]
    return tuple(
        Chunk(
            id=ids[position],
            url=f"{url}#{_fragment(units)}",
            title=title,
            language=language,
            headings=paths[position],
            position=position,
            previous=before[position],
            next=after[position],
            markdown=texts[position],
        )
        for position, units in enumerate(cut)
    )


def _ids(url: str, paths: Iterable[tuple[str, ...]], texts: Iterable[str]) -> Iterator[str]:
    """Yield the id of each chunk: a digest of its page, its section and its text.

    Of those that are equal, the second and later ones are counted.
    """
    seen = dict[str, int]()
    for path, text in zip(paths, texts, strict=True):
        said = "\0".join((url, *path, "", compared(text)))
        seen[said] = number = seen.get(said, 0) + 1
        said += f"\0{number}" if number > 1 else ""
        yield blake2b(said.encode("utf-8", "replace"), digest_size=_ID_BYTES).hexdigest()


# -- sections ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Unit:
    """Some Markdown that is not cut any more, its section's path and the id of an element."""

    text: str
    path: tuple[str, ...]
    anchor: str


@dataclass(slots=True)
class _Section:
    """A heading and the blocks up to the next one; the first section may have no heading."""

    path: tuple[str, ...]
    anchor: str
    heading: str
    blocks: list[str] = field(default_factory=list)

    def units(self, chars: int) -> Iterator[_Unit]:
        """Yield its blocks, those cut that are too long; the heading is with the first."""
        first = f"{self.heading}{_APART}" if self.heading else ""
        for block in self.blocks:
            # A heading that leaves little room stays alone, as does a part without a heading.
            room = chars - len(first) if len(first) <= chars // 2 else chars
            for part in [block] if len(block) <= room else _parts(block, room):
                yield _Unit(first + part, self.path, self.anchor)
                first = ""
        if first:
            yield _Unit(self.heading, self.path, self.anchor)


def _sections(
    blocks: Iterable[str], headings: Iterable[tuple[int, str, str]]
) -> Iterator[_Section]:
    """Yield the sections of a page in document order."""
    above: list[tuple[int, str]] = []
    told = iter(headings)
    level, text, anchor = next(told, _NO_HEADING)
    section = _Section((), "", "")
    for block in blocks:
        if not level or not block.startswith("#" * level + " "):
            section.blocks.append(block)
            continue
        if section.heading or section.blocks:
            yield section
        above = [*_above(above, level), (level, " ".join(text.split()))]
        section = _Section(tuple(words for _, words in above if words), anchor, block)
        level, text, anchor = next(told, _NO_HEADING)
    if section.heading or section.blocks:
        yield section


_NO_HEADING: Final = (0, "", "")


def _above(headings: Iterable[tuple[int, str]], level: int) -> Iterator[tuple[int, str]]:
    return takewhile(lambda it: it[0] < level, headings)


def _path_of(units: Sequence[_Unit]) -> tuple[str, ...]:
    """Return the headings that all of these units have above them."""
    first, *others = {unit.path: None for unit in units}
    for path in others:
        both = zip(first, path, strict=False)
        first = tuple(one for one, _ in takewhile(lambda it: it[0] == it[1], both))
    return first


def _fragment(units: Sequence[_Unit]) -> str:
    """Return the fragment that leads to these units: an id, or their first words."""
    if anchor := units[0].anchor:
        return quote(anchor, safe="!$'()*,+/:;=?@")
    lines = _MARKUP.sub(r"\1", _LINK.sub(r"\1", units[0].text)).splitlines()
    words = next(filter(None, map(str.split, lines)), [])
    # A dash or a comma would be one of the directive.
    return ":~:text=" + quote(" ".join(words[:_FRAGMENT_WORDS]), safe="").replace("-", "%2D")


# -- packing -----------------------------------------------------------------


def _size(units: Sequence[_Unit]) -> int:
    return sum(len(unit.text) + len(_APART) for unit in units) - len(_APART)


def _cut(sections: Iterable[_Section], chars: int) -> list[list[_Unit]]:
    """Return the units of each chunk.

    A section that is too short is put to the next one below the same heading, or to that before.
    """
    found: list[list[_Unit]] = []
    run: list[_Unit] = []
    for section in sections:
        units = [*section.units(chars)]
        if run and (_size(run) >= chars // _FEWEST_OF or not _belong(run, units)):
            _close(found, run, chars)
            run = []
        run += units
    if run:
        _close(found, run, chars)
    return found


def _belong(run: Sequence[_Unit], units: Sequence[_Unit]) -> bool:
    """Return whether a section is below or beside the run."""
    return len(units[0].path) >= len(run[-1].path)


def _close(found: list[list[_Unit]], run: list[_Unit], chars: int) -> None:
    """Add the chunks of a run of units; one that is too short is put to the last one if it fits."""
    least = chars // _FEWEST_OF
    if found and _size(run) < least and _size(found[-1]) + len(_APART) + _size(run) <= chars:
        found[-1] += run
        return
    texts = [unit.text for unit in run]
    begin = 0
    for count in _packed(texts, len(_APART), chars):
        found.append(run[begin : begin + count])
        begin += count


def _packed(texts: Sequence[str], joint: int, chars: int) -> list[int]:
    """Return how many of these texts in a row are put together, each time up to ``chars``.

    In the half that fits last, the cut is where the text behind it has the lowest checksum: an
    edit before does not move it. A rest that is too short gets part of the text before it.
    """
    counts, begin, size = list[int](), 0, -joint
    for number, text in enumerate(texts):
        size += joint + len(text)
        while size > chars and number > begin:
            end = _cut_at(texts, begin, number, joint, chars)
            counts.append(end - begin)
            begin = end
            size = sum(map(len, texts[begin : number + 1])) + joint * (number - begin)
    if not texts:
        return counts
    counts.append(len(texts) - begin)
    if len(counts) > 1 and size < chars // _FEWEST_OF:
        _fill_last(counts, texts, joint, chars)
    return counts


def _cut_at(texts: Sequence[str], begin: int, number: int, joint: int, chars: int) -> int:
    """Return before which text, up to ``number``, to cut those from ``begin`` on."""
    size, best = -joint, (crc32(texts[number].encode("utf-8", "replace")), number)
    for end in range(begin + 1, number):
        size += joint + len(texts[end - 1])
        if size >= chars // 2:
            best = min(best, (crc32(texts[end].encode("utf-8", "replace")), end))
    return best[1]


def _fill_last(counts: list[int], texts: Sequence[str], joint: int, chars: int) -> None:
    """Move texts into the last group until it is long enough; the one before stays long enough."""
    least = chars // _FEWEST_OF
    begin = len(texts) - counts[-1]
    before = begin - counts[-2]
    size = sum(map(len, texts[begin:])) + joint * (counts[-1] - 1)
    left = sum(map(len, texts[before:begin])) + joint * (counts[-2] - 1)
    if left + joint + size <= chars:
        counts[-2:] = [counts[-2] + counts[-1]]
        return
    while size < least and counts[-2] > 1:
        moved = len(texts[begin - 1]) + joint
        if left - moved < least or size + moved > chars:
            return
        counts[-2], counts[-1], begin = counts[-2] - 1, counts[-1] + 1, begin - 1
        size, left = size + moved, left - moved


# -- long blocks -------------------------------------------------------------


def _parts(block: str, chars: int) -> list[str]:
    """Return a block that is too long in parts: by rows, lines or items, else by sentences."""
    lines = block.split("\n")
    if (fence := _FENCE.match(block)) and len(lines) > 2:
        head, foot = f"{lines[0]}\n", f"\n{fence[0]}"
        inner = _joined(lines[1:-1], "\n", chars - len(head) - len(foot))
        return [f"{head}{part}{foot}" for part in inner]
    if len(lines) > 2 and _DELIMITERS.fullmatch(lines[1]):
        head = "\n".join([*lines[:2], ""])
        # A head that leaves little room is repeated over the first rows only.
        repeated = head if len(head) <= chars // 2 else ""
        first, *others = _joined(lines[2:], "\n", chars - len(repeated))
        return [head + first, *(repeated + part for part in others)]
    items = _items(lines)
    pieces = [piece for item in items for piece in _shorter(item, chars)]
    return _joined(pieces, "\n", chars)


def _items(lines: Iterable[str]) -> list[str]:
    """Return lines, each with the indented ones behind it."""
    found: list[str] = []
    for line in lines:
        if found and (not line or line[0] == " "):
            found[-1] += f"\n{line}"
        else:
            found.append(line)
    return found


def _shorter(text: str, chars: int) -> list[str]:
    """Return an item in parts that are short enough: lines, sentences, words, characters."""
    if len(text) <= chars:
        return [text]
    for ends in (_LINES, _SENTENCES, _WORDS):
        # A text that ends with such an end has no second part.
        if len(parts := [part for part in ends.split(text) if part]) > 1:
            short = [piece for part in parts for piece in _shorter(part, chars)]
            return [part.rstrip() for part in _joined(short, "", chars)]
    return [text[begin : begin + chars] for begin in range(0, len(text), chars)]


def _joined(texts: Sequence[str], joint: str, chars: int) -> list[str]:
    """Join texts up to this many characters."""
    found, begin = list[str](), 0
    for count in _packed(texts, len(joint), chars):
        found.append(joint.join(texts[begin : begin + count]))
        begin += count
    return found
