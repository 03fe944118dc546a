"""Tags, texts, links and blocks of a document by loops in Python: slow, and without a doubt.

What a tag means is the product's to say; everything that the compiled core does is done here.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from html import escape
from itertools import accumulate, takewhile
from math import inf
from typing import NamedTuple
from unicodedata import normalize

from freshet.crawler.reduce.blocks import KINDS, ROOT, BlockKind, Blocks, compared, within
from freshet.crawler.reduce.markup import (
    _HIDDEN_ADDRESS,
    _MEANING,
    ANCHOR,
    BREAK,
    CLOSE,
    EDGE,
    HIDDEN,
    HOLDS_MAIN,
    IN_ARTICLE,
    IN_LINK,
    IN_LIST,
    IN_MAIN,
    IN_TABLE,
    LEADS,
    MOMENT,
    NAMED,
    OPEN,
    SELECTED,
    SKIP,
    TELLS,
    VOID_TAGS,
    _Tags,
    _with_address,
)
from freshet.crawler.reduce.markup import Tag as Remembered

UNMARKED = re.compile(
    "(<!--|<(?:s(?:cript|tyle)|xmp|iframe|no(?:embed|frames)|plaintext)(?=[ >]))|<[^>]*>?"
)
SCRIPT = re.compile(r"<(/?)script[\t\n\f\r />]", re.IGNORECASE)
TAG = re.compile("<([^>]*)>")


def plain(text: str) -> str:
    """Return a text without references: Lexbor writes four of them."""
    text = text.replace("&nbsp;", "\xa0").replace("&lt;", "<").replace("&gt;", ">")
    return text.replace("&amp;", "&")


class Tag(NamedTuple):
    """A tag with its meaning taken apart."""

    remembered: Remembered
    number: int
    flags: int
    place: int
    step: int
    spared: int
    kind: int
    zone: int

    @property
    def name(self) -> str:
        return self.remembered.name

    @property
    def ends(self) -> bool:
        return self.remembered.ends


@dataclass
class Markup:
    """Columns of equal length: ``texts[i]`` stands after ``tags[i]``, with references in it.

    ``sources`` are the texts of the tags between their brackets.
    """

    tags: list[Tag]
    texts: list[str]
    sources: list[str]

    def end(self, i: int) -> int:
        name, depth, last = self.tags[i].name, 1, len(self.tags) - 1
        if name in VOID_TAGS:
            return i
        if name == "body":
            return next(j for j in range(last, -1, -1) if j == 0 or self.tags[j].name == name)
        for j in range(i + 1, len(self.tags)):
            other = self.tags[j]
            if other.name == name:
                depth += -1 if other.ends else 1
                if depth == 0:
                    return j
        return last

    def text(self, i: int) -> str:
        return plain("".join(self.texts[i : self.end(i)]))

    def told(self) -> list[tuple[int, Remembered]]:
        """Return the tags that say something, and the first of those that only lead elsewhere."""
        told, seen = [], set[str]()
        for i, tag in enumerate(self.tags):
            if tag.flags & TELLS or (tag.flags & LEADS and self.sources[i] not in seen):
                told.append((i, tag.remembered))
            seen.add(self.sources[i])
        return told

    def anchor(self, i: int) -> str:
        """Return the link's text, else the alternative text of an image in it."""
        tag = self.tags[i].remembered
        if tag.name not in {"a", "area"}:
            return tag.attributes.get("title", "")
        text = collapsed(self.text(i))
        if not text:
            inside = (self.tags[i], *self.tags[i + 1 : self.end(i)])
            found = (t.remembered for t in inside if t.name in {"img", "area"})
            images = (t.attributes.get("alt") for t in found)
            text = collapsed(next((alt for alt in images if alt is not None), ""))
        return text


def collapsed(text: str) -> str:
    return " ".join(text[:2000].split())[:200].rstrip()


def read(html: str) -> Markup:
    pieces = TAG.split(unmarked(html))
    known = _Tags()
    tags = [Tag(known[text], *_MEANING.unpack(known[text].meaning)) for text in pieces[1::2]]
    markup = Markup(tags, pieces[2::2], pieces[1::2])
    left, resume = Markup([], [], []), 0
    for i, tag in enumerate(markup.tags):
        if i >= resume:
            if tag.name == "template" and not tag.ends:
                resume = markup.end(i)
            left.tags.append(tag)
            left.sources.append(markup.sources[i])
            left.texts.append("" if resume > i else markup.texts[i])
    return left


def unmarked(html: str) -> str:
    html = "".join(_without_raw_text(html))
    octets = html.encode("utf-8", "surrogatepass")
    return _HIDDEN_ADDRESS.sub(_with_address, octets).decode("utf-8", "surrogatepass")


def _without_raw_text(html: str) -> Iterator[str]:
    kept = at = 0
    while found := UNMARKED.search(html, at):
        at = found.end()
        if found[1]:
            start, at = _cut(html, found[0], found.start())
            yield html[kept:start]
            if found[0] in {"<xmp", "<plaintext"}:
                yield escape(html[start:at], quote=False)
            kept = at
    yield html[kept:]


def _cut(html: str, mark: str, at: int) -> tuple[int, int]:
    if mark == "<!--":
        end = html.find("-->", at)
        return at, end + 3 if end >= 0 else len(html)
    start = html.find(">", at) + 1 or len(html)
    find = html.rfind if mark == "<plaintext" else html.find
    end = find(f"</{mark[1:]}>", start)
    while mark == "<script" and end >= 0 and _is_inner_script(html[start:end]):
        end = html.find("</script>", end + 1)
    return start, end if end >= 0 else len(html)


def _is_inner_script(before: str) -> bool:
    opened = before.rfind("<!--")
    if opened < 0 or "-->" in before[opened + 2 :]:
        return False
    ends = [match[1] == "/" for match in SCRIPT.finditer(before, opened)]
    return bool(2 * sum(ends) < len(ends))


def with_moments(markup: Markup) -> Markup:
    """Return the markup with machine-readable times in place of their texts."""
    texts, end = list(markup.texts), 0
    for i, tag in enumerate(markup.tags):
        if i >= end and tag.flags & MOMENT:
            end = markup.end(i)
            texts[i] = tag.remembered.attributes["datetime"]
            texts[i + 1 : end] = [""] * len(texts[i + 1 : end])
    return replace(markup, texts=texts)


class Walk:
    """Walk over tags, as :meth:`freshet.crawler.reduce.markup.Markup.walk`."""

    def __init__(
        self, markup: Markup, *, spares: bool, bar: float = inf, shows_hidden: bool = False
    ) -> None:
        self.markup = markup = with_moments(markup)
        self.blocks: list[tuple[str, BlockKind, int, int, bool]] = []
        self.steps = [tag.spared if spares else tag.step for tag in markup.tags]
        self.holders = self._holders(bar)
        self.shows_hidden = shows_hidden
        self.left_out = Counter[int]()

    def body(self) -> Sequence[int]:
        return [i for i, tag in enumerate(self.markup.tags) if tag.name == "body"][:1]

    def selected(self) -> Iterator[int]:
        end = 0
        for i, tag in enumerate(self.markup.tags):
            if tag.flags & SELECTED and i >= end:
                end = self.markup.end(i)
                yield i

    def gathered(self, roots: Iterable[int]) -> tuple[Blocks, tuple[int, ...], tuple[bool, ...]]:
        """Return the blocks, their zones, and whether they are links."""
        for root in roots:
            self._gather(root)
        texts, kinds, places, zones, links = (
            zip(*self.blocks, strict=True) if self.blocks else ((),) * 5
        )
        return Blocks(texts, kinds, places), zones, links

    def _gather(self, root: int) -> None:
        tags, texts = self.markup.tags, self.markup.texts
        above: list[tuple[int, int, int]] = []
        kind, place, zone = tags[root].kind, ROOT, 0
        stop = self.markup.end(root)
        held, held_linked = "", 0
        before = resume = root
        for i in range(root + 1, stop + 1):
            step = self.steps[i]
            if i <= resume or (not step and i < stop):
                continue
            text = "".join(texts[before:i])
            linked = 0
            if zone & (IN_LIST | IN_TABLE) != IN_TABLE and (before + 1 < i or zone & IN_LINK):
                zone, linked = self._linked(before, i, zone)
            before = i
            if step >= SKIP:
                before = resume = self._passed(i, zone | tags[i].zone)
                if resume > i or not tags[i].place:
                    held, held_linked = held + text, held_linked + linked
                    continue
                step = OPEN
            self._add(held + text, kind, (place, zone), held_linked + linked)
            held, held_linked = "", 0
            if step == OPEN:
                above.append((kind, place, zone))
                kind, place = tags[i].kind, within(place, tags[i].place)
                zone |= tags[i].zone
            elif step == CLOSE and above:
                kind, place, zone = above.pop()

    def _add(self, text: str, kind: int, where: tuple[int, int], linked: int) -> None:
        if words := compared(plain(text)).split():
            text = " ".join(words)
            is_link = linked > 0.7 * len(text)
            self.blocks.append((normalize("NFC", text), KINDS[kind], *where, is_link))

    def _linked(self, start: int, stop: int, zone: int) -> tuple[int, int]:
        linked = 0
        for i in range(start, stop):
            tag = self.markup.tags[i]
            if i > start and tag.flags & ANCHOR:
                zone = zone & ~IN_LINK if tag.ends else zone | IN_LINK
            if zone & IN_LINK:
                linked += len(compared(plain(self.markup.texts[i])).strip())
        return zone, linked

    def _passed(self, i: int, zone: int) -> int:
        step = self.steps[i]
        if (
            (step == HIDDEN and self.shows_hidden)
            or (step == EDGE and zone & (IN_MAIN | IN_ARTICLE))
            or (step in {NAMED, EDGE} and i in self.holders)
        ):
            return i
        end = self.markup.end(i)
        self.left_out[step] += sum(len(compared(text).strip()) for text in self.markup.texts[i:end])
        return end

    def _holders(self, bar: float) -> Set[int]:
        tags, holders = self.markup.tags, set[int]()
        weights = list(accumulate(len(compared(text).strip()) for text in self.markup.texts))
        opened: list[int] = []
        for i, tag in enumerate(tags):
            if not self.steps[i]:
                continue
            if tag.ends:
                while opened and tags[start := opened.pop()].name != tag.name:
                    pass
                if opened and self.steps[start] == NAMED and weights[i] - weights[start] > bar:
                    holders.add(start)
            elif self.steps[i] != BREAK:
                opened.append(i)
                if tag.flags & HOLDS_MAIN:
                    holders.update(takewhile(lambda i: i not in holders, reversed(opened)))
        return holders
