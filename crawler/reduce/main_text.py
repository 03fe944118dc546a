"""The main text of a page, in blocks, with the frame set aside.

One walk over the tags gathers blocks of running text (headings, paragraphs, list items,
table cells, runs of text between block elements) outside the frame; a second pass over the
columns of blocks picks those of the main element, or else sets aside lists of links.

Blocks are compared version by version, so stability comes before taste: no rule weighs the
words of one block against the rest of the page except the thresholds named here.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import accumulate, groupby, takewhile
from math import inf
from typing import Final
from unicodedata import normalize

from freshet.crawler.reduce.blocks import ROOT, Blocks, alike, below, compared
from freshet.crawler.reduce.boilerplate import begins_back_matter, is_control, is_stamp
from freshet.crawler.reduce.markup import (
    CONTROL,
    HIDDEN,
    IN_ARTICLE,
    IN_LIST,
    IN_MAIN,
    IN_TITLE,
    NAMED,
    STAMP,
    Markup,
    Walk,
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
#: This number of links in a row is a list of links.
_LINK_LIST: Final = 3
#: Elements that are not shown, or whose name sounds like frame, hold the main text where they have
#: so many times the characters of all other text, and this number more.
_OUTWEIGHS: Final = 1.5
_LEAST_WEIGHT: Final = 250

#: A table of more lines is compared by its paragraphs.
_MOST_LINES: Final = 20_000
_BLANK_LINE: Final = re.compile(r"(?>\r\n?|\n)[^\S\r\n]*(?>\r\n?|\n)")


def main_text(markup: Markup, *, selected: bool = False) -> Blocks:
    """Return the blocks of main text in the body: NFC, white space collapsed, none empty.

    A page that is all frame (a menu, a list of links) is its own content: only stamps and
    hidden text are left out. ``selected``: elements marked as included
    (:mod:`freshet.crawler.reduce.markup`) are the main text, if there are any.
    """
    if selected:
        walk = markup.walk(selected=True, spares=True)
        if walk[3][0]:
            return _chosen(walk)
    walk = _outside_frame(markup)
    return _chosen(walk, _principal(walk)) or _chosen(markup.walk(spares=True))


def _chosen(walk: Walk, numbers: Iterable[int] | None = None) -> Blocks:
    """Return the chosen blocks, or all, that are not stamps."""
    blocks, _, _, _, phrases = walk
    chosen = range(len(blocks)) if numbers is None else numbers
    kept = [i for i in chosen if not (phrases[i] & STAMP and is_stamp(blocks.texts[i]))]
    if len(kept) == len(blocks):
        return blocks
    return Blocks(
        tuple([blocks.texts[i] for i in kept]),
        tuple([blocks.kinds[i] for i in kept]),
        tuple([blocks.places[i] for i in kept]),
    )


def plain_text(text: str, *, by_line: bool = False) -> Blocks:
    """Return a text without markup as paragraphs, or as lines if there are few enough."""
    text = compared(text)
    by_line = by_line and text.count("\n") <= _MOST_LINES
    parts = text.splitlines() if by_line else _BLANK_LINE.split(text)
    paragraphs = (" ".join(part.split()) for part in parts)
    texts = tuple(t for p in paragraphs if p and not is_stamp(t := normalize("NFC", p)))
    return alike(texts, "paragraph", below(ROOT, "p"))


def _outside_frame(markup: Markup) -> Walk:
    """Return the blocks outside the frame, in a second walk if the first left out too much.

    Scripts show what a page hides at first, and an article can stand in a "sidebar-content".
    """
    walk = blocks, _, _, left_out, _ = markup.walk()
    bar = _LEAST_WEIGHT + _OUTWEIGHS * sum(map(len, blocks.texts))
    shows_hidden = left_out[HIDDEN] > bar
    if shows_hidden or left_out[NAMED] > bar:
        fuller = blocks, _, links, _, _ = markup.walk(bar=bar, shows_hidden=shows_hidden)
        texts = zip(blocks.texts, links, strict=True)
        if sum(len(text) for text, is_link in texts if not is_link) > bar:
            return fuller
    return walk


def _principal(walk: Walk) -> list[int]:
    """Return the blocks of the main element and its articles, or else all but lists of links.

    They begin with the title where little stands before it; buttons are not among them.
    """
    blocks, zones, links, _, phrases = walk
    chosen = numbers = list(range(len(zones)))
    sizes = list(map(len, blocks.texts))
    # Squares: paragraphs outweigh the many words of menus and teasers.
    weights = [0 if links[i] else size**2 for i, size in enumerate(sizes)]
    for zone, share in ((IN_MAIN, _MAIN_SHARE), (IN_ARTICLE, _ARTICLE_SHARE)):
        inside = [i for i in chosen if zones[i] & zone]
        columns = (sizes, weights) if inside else ()
        pairs = [(sum(c[i] for i in inside), sum(c[i] for i in chosen)) for c in columns]
        if inside and all(part >= share * whole for part, whole in pairs):
            chosen = inside
    if chosen is numbers:
        chosen = _without_link_lists(links)
    lead = list(takewhile(lambda i: not zones[i] & IN_TITLE, chosen))
    size = sum(sizes[i] for i in chosen)
    if sum(sizes[i] for i in lead) <= _LEAD_SHARE * size:
        chosen = chosen[len(lead) :]
    if sum(sizes[i] for i in chosen if weights[i] >= _PARAGRAPH**2) >= _PROSE_SHARE * size:
        chosen = _article(walk, chosen, [weights[i] for i in chosen])
    return [
        i
        for i in chosen
        if not (phrases[i] & CONTROL and is_control(blocks.texts[i]))
        or blocks.kinds[i] == "cell"
        or zones[i] & IN_TITLE
    ]


def _article(walk: Walk, chosen: list[int], weights: list[int]) -> list[int]:
    """Return the blocks of prose: without lone links and without what follows the article."""
    blocks, zones, links, _, _ = walk
    bar = _BODY_SHARE * sum(weights)
    rest = chosen[sum(weight < bar for weight in accumulate(weights, initial=0)) :]
    whole = (i for i in rest if blocks.kinds[i] not in {"item", "cell"} and not links[i])
    end = next((i for i in whole if begins_back_matter(blocks.texts[i])), inf)
    return [i for i in chosen if i < end and (not links[i] or zones[i] & IN_LIST)]


def _without_link_lists(links: Sequence[int]) -> list[int]:
    """Return all blocks but those of lists of links."""
    kept: list[int] = []
    for is_link, run in groupby(range(len(links)), key=links.__getitem__):
        stretch = list(run)
        if not is_link or len(stretch) < _LINK_LIST:
            kept += stretch
    return kept if len(kept) * 2 >= len(links) else list(range(len(links)))
