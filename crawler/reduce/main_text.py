"""The main text of a page, in blocks, with the frame set aside.

One walk over the tags gathers blocks of running text (headings, paragraphs, list items,
table cells, runs of text between block elements) outside the frame; a second pass over the
columns of blocks picks those of the main element, or else sets aside lists of links.

Blocks are compared version by version, so stability comes before taste: no rule weighs the
words of one block against the rest of the page except the thresholds named here.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from itertools import accumulate, compress, count, groupby, islice, takewhile
from math import inf
from operator import attrgetter
from typing import Final
from unicodedata import normalize

from freshet.crawler.reduce.boilerplate import begins_back_matter, is_control, is_stamp
from freshet.crawler.reduce.markup import (
    BREAK,
    CLOSE,
    EDGE,
    HIDDEN,
    IN_ARTICLE,
    IN_LINK,
    IN_LIST,
    IN_MAIN,
    IN_TABLE,
    IN_TITLE,
    INCLUDED,
    MARK,
    NAMED,
    OPEN,
    ROOT,
    SKIP,
    BlockKind,
    Blocks,
    Markup,
    alike,
    below,
    kind_of,
    plain,
    within,
)

#: The share of the page's text that the main element must hold to be taken for the whole of the
#: main text, and that of its text, or else the page's, that the articles must hold.
_MAIN_SHARE: Final = 0.25
_ARTICLE_SHARE: Final = 0.5
#: A page of prose has this share of its text in paragraphs of so many characters; what follows
#: the article begins after this share of the weight.
_PROSE_SHARE: Final = 0.5
_PARAGRAPH: Final = 80
_BODY_SHARE: Final = 0.9
#: Text before the title is frame if it is at most this share.
_LEAD_SHARE: Final = 0.2
#: A block is a link where more than this share of its characters stands in anchors, and this
#: number of links in a row is a list of links.
_LINK_SHARE: Final = 0.7
_LINK_LIST: Final = 3
#: Elements that are not shown, or whose name sounds like frame, hold the main text where they have
#: so many times the characters of all other text, and this number more.
_OUTWEIGHS: Final = 1.5
_LEAST_WEIGHT: Final = 250
_LIST_OR_TABLE: Final = IN_LIST | IN_TABLE

#: A table of more lines is compared by its paragraphs.
_MOST_LINES: Final = 20_000
_BLANK_LINE: Final = re.compile(r"(?>\r\n?|\n)[^\S\r\n]*(?>\r\n?|\n)")


@dataclass(slots=True)
class _Blocks:
    """Blocks in document order, as columns of equal length."""

    texts: list[str] = field(default_factory=list)
    kinds: list[BlockKind] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    zones: list[int] = field(default_factory=list)
    links: list[bool] = field(default_factory=list)

    def add(self, text: str, kind: BlockKind, place: int, zone: int, linked: int) -> None:
        """Add a text unless it is white space; ``linked`` of its characters stand in anchors."""
        words = plain(text).split() if "&" in text else text.split()
        if not words:
            return
        text = " ".join(words)
        self.texts.append(text if text.isascii() else normalize("NFC", text))
        self.kinds.append(kind)
        self.places.append(place)
        self.zones.append(zone)
        self.links.append(linked > _LINK_SHARE * len(text))

    def chosen(self, numbers: Iterable[int]) -> Blocks:
        """Return the chosen blocks that are not stamps."""
        kept = [i for i in numbers if not is_stamp(self.texts[i])]
        return Blocks(
            tuple([self.texts[i] for i in kept]),
            tuple([self.kinds[i] for i in kept]),
            tuple([self.places[i] for i in kept]),
        )


def main_text(markup: Markup, *, selected: bool = False) -> Blocks:
    """Return the blocks of main text in the body: NFC, white space collapsed, none empty.

    A page that is all frame (a menu, a list of links) is its own content: only stamps and
    hidden text are left out. ``selected``: elements marked as included
    (:mod:`freshet.crawler.reduce.markup`) are the main text, if there are any.
    """
    if selected and (roots := list(_included(markup))):
        blocks = _Walk(markup, "spared").gathered(roots)
        return blocks.chosen(range(len(blocks.texts)))
    body = list(islice((i for i, tag in enumerate(markup.tags) if tag.name == "body"), 1))
    blocks = _outside_frame(markup, body)
    if found := blocks.chosen(_principal(blocks)):
        return found
    blocks = _Walk(markup, "spared").gathered(body)
    return blocks.chosen(range(len(blocks.texts)))


def plain_text(text: str, *, by_line: bool = False) -> Blocks:
    """Return a text without markup as paragraphs, or as lines if there are few enough."""
    by_line = by_line and text.count("\n") <= _MOST_LINES
    parts = text.splitlines() if by_line else _BLANK_LINE.split(text)
    paragraphs = (" ".join(part.split()) for part in parts)
    texts = tuple(t for p in paragraphs if p and not is_stamp(t := normalize("NFC", p)))
    return alike(texts, "paragraph", below(ROOT, "p"))


def _included(markup: Markup) -> Iterator[int]:
    """Return the outermost elements that are marked as included."""
    end = 0
    for i, tag in enumerate(markup.tags):
        if tag.attributes.get(MARK) == INCLUDED and i >= end:
            end = markup.end(i)
            yield i


def _outside_frame(markup: Markup, roots: Sequence[int]) -> _Blocks:
    """Return the blocks outside the frame, in a second walk if the first left out too much.

    Scripts show what a page hides at first, and an article can stand in a "sidebar-content".
    """
    walk = _Walk(markup, "step")
    blocks = walk.gathered(roots)
    bar = _LEAST_WEIGHT + _OUTWEIGHS * sum(map(len, blocks.texts))
    shows_hidden = walk.left_out[HIDDEN] > bar
    if shows_hidden or walk.left_out[NAMED] > bar:
        fuller = _Walk(markup, "step", bar, shows_hidden=shows_hidden).gathered(roots)
        texts = zip(fuller.texts, fuller.links, strict=True)
        if sum(len(text) for text, is_link in texts if not is_link) > bar:
            return fuller
    return blocks


class _Walk:
    """Walk over tags; ``steps`` names the column of :class:`Tag` that it follows.

    An element whose name sounds like frame is none with more than ``bar`` characters. ``left_out``
    counts the characters that were left out, by the step of their element.
    """

    def __init__(
        self, markup: Markup, steps: str, bar: float = inf, *, shows_hidden: bool = False
    ) -> None:
        self._markup = markup
        self._blocks = _Blocks()
        self._steps: list[int] = list(map(attrgetter(steps), markup.tags))
        self._holders = _holders(markup, self._steps, bar)
        self._shows_hidden = shows_hidden
        self.left_out: Counter[int] = Counter()

    def gathered(self, roots: Iterable[int]) -> _Blocks:
        """Return the blocks in the elements that begin there."""
        for root in roots:
            self._gather(root)
        return self._blocks

    def _gather(self, root: int) -> None:
        """Add the blocks in the element. Iterative: the depth of the tree costs no stack."""
        columns, texts, steps = self._markup.tags, self._markup.texts, self._steps
        above: list[tuple[BlockKind, int, int]] = []
        kind, place, zone = kind_of(columns[root].name), ROOT, 0
        start, stop = root + 1, self._markup.end(root)
        # The text of the open block before an element that ends no block; its linked part.
        held, held_linked = "", 0
        before = resume = root
        for i in (*compress(range(start, stop), steps[start:stop]), stop):
            if i <= resume:
                continue
            step = steps[i]
            text = texts[before] if before + 1 == i else "".join(texts[before:i])
            linked = 0
            if zone & _LIST_OR_TABLE != IN_TABLE and (before + 1 < i or zone & IN_LINK):
                zone, linked = self._linked(before, i, zone)
            before = i
            if step >= SKIP:
                before = resume = self._passed(i, zone | columns[i].zone)
                # An inline element has no place and ends no block.
                if resume > i or not columns[i].place:
                    held, held_linked = held + text, held_linked + linked
                    continue
                step = OPEN
            if held:
                text, linked = held + text, held_linked + linked
                held, held_linked = "", 0
            if text and not text.isspace():
                self._blocks.add(text, kind, place, zone, linked)
            if step == OPEN:
                above.append((kind, place, zone))
                tag = columns[i]
                kind, place, zone = tag.kind, within(place, tag.place), zone | tag.zone
            elif step == CLOSE and above:
                kind, place, zone = above.pop()

    def _linked(self, start: int, stop: int, zone: int) -> tuple[int, int]:
        """Return the zone after the tags up to ``stop``, and the number of linked characters."""
        linked = 0
        for i in range(start, stop):
            if i > start and self._markup.tags[i].name == "a":
                zone = zone & ~IN_LINK if self._markup.tags[i].ends else zone | IN_LINK
            if zone & IN_LINK:
                linked += len(plain(self._markup.texts[i]).strip())
        return zone, linked

    def _passed(self, i: int, zone: int) -> int:
        """Return the end of an element if it is left out: a "menu-page" with the article is not."""
        step = self._steps[i]
        if (
            (step == HIDDEN and self._shows_hidden)
            or (step == EDGE and zone & (IN_MAIN | IN_ARTICLE))
            or (step in {NAMED, EDGE} and i in self._holders)
        ):
            return i
        end = self._markup.end(i)
        self.left_out[step] += sum(len(text.strip()) for text in self._markup.texts[i:end])
        return end


def _holders(markup: Markup, steps: Sequence[int], bar: float) -> Set[int]:
    """Return the elements that contain a main element or outweigh the bar, in one pass."""
    columns, holders = markup.tags, set[int]()
    weights = list(accumulate(len(t.strip()) for t in markup.texts)) if bar < inf else []
    if not weights and not any(map(attrgetter("holds_main"), columns)):
        return holders
    opened: list[int] = []
    for i in compress(count(), steps):
        tag = columns[i]
        if tag.ends:
            while opened and columns[start := opened.pop()].name != tag.name:
                pass
            if weights and opened and steps[start] == NAMED and weights[i] - weights[start] > bar:
                holders.add(start)
        elif steps[i] != BREAK:
            opened.append(i)
            if tag.holds_main:
                holders.update(takewhile(lambda i: i not in holders, reversed(opened)))
    return holders


def _principal(blocks: _Blocks) -> list[int]:
    """Return the blocks of the main element and its articles, or else all but lists of links.

    They begin with the title where little stands before it; buttons are not among them.
    """
    kinds, links, zones = blocks.kinds, blocks.links, blocks.zones
    chosen = numbers = list(range(len(zones)))
    sizes = list(map(len, blocks.texts))
    # Squares: paragraphs outweigh the many words of menus and teasers.
    weights = [0 if links[i] else size**2 for i, size in enumerate(sizes)]
    for zone, share in ((IN_MAIN, _MAIN_SHARE), (IN_ARTICLE, _ARTICLE_SHARE)):
        inside = [i for i in chosen if zones[i] & zone]
        pairs = [(sum(c[i] for i in inside), sum(c[i] for i in chosen)) for c in (sizes, weights)]
        if inside and all(part >= share * whole for part, whole in pairs):
            chosen = inside
    if chosen is numbers:
        chosen = _without_link_lists(blocks)
    lead = list(takewhile(lambda i: not zones[i] & IN_TITLE, chosen))
    size = sum(sizes[i] for i in chosen)
    if sum(sizes[i] for i in lead) <= _LEAD_SHARE * size:
        chosen = chosen[len(lead) :]
    if sum(sizes[i] for i in chosen if weights[i] >= _PARAGRAPH**2) >= _PROSE_SHARE * size:
        chosen = _article(blocks, chosen, [weights[i] for i in chosen])
    shown = (i for i in chosen if kinds[i] != "cell" and not zones[i] & IN_TITLE)
    controls = {i for i in shown if is_control(blocks.texts[i])}
    return [i for i in chosen if i not in controls]


def _article(blocks: _Blocks, chosen: list[int], weights: list[int]) -> list[int]:
    """Return the blocks of prose: without lone links and without what follows the article."""
    bar = _BODY_SHARE * sum(weights)
    rest = chosen[sum(weight < bar for weight in accumulate(weights, initial=0)) :]
    whole = (i for i in rest if blocks.kinds[i] not in {"item", "cell"} and not blocks.links[i])
    end = next((i for i in whole if begins_back_matter(blocks.texts[i])), inf)
    return [i for i in chosen if i < end and (not blocks.links[i] or blocks.zones[i] & IN_LIST)]


def _without_link_lists(blocks: _Blocks) -> list[int]:
    """Return all blocks but those of lists of links."""
    kept: list[int] = []
    for is_link, run in groupby(range(len(blocks.texts)), key=blocks.links.__getitem__):
        stretch = list(run)
        if not is_link or len(stretch) < _LINK_LIST:
            kept += stretch
    return kept if len(kept) * 2 >= len(blocks.texts) else list(range(len(blocks.texts)))
