"""The choice of content, as the compiled core makes it (``freshet/compiled/choice.c``)."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Sequence, Set
from functools import cache
from itertools import accumulate, islice, pairwise, starmap
from typing import Final

import numpy as np

from freshet.crawler.reduce.boilerplate import is_control, is_frame_name, is_hidden
from freshet.crawler.reduce.content import judged, model, text_of
from freshet.crawler.reduce.pieces import HEADINGS, Piece, Pieces
from freshet.crawler.reduce.tree import CONTROL, PLACES, TRAITS, UNSEEN, Tree

_CAPTION: Final = PLACES["figcaption"]
_STATED: Final = TRAITS["stated"]
#: Precision counts a little more than recall, as the trees know manuals and shops, too.
_BETA: Final = 0.75
#: Pieces in a row that are kept because those around them are.
_GAP: Final = 3
#: Words of a long text, of whose later pieces the trees know little, its least share of the prose
#: around it, and elements that make a pattern.
_LONG_WORDS: Final = 2000
_LEAST_SHARE: Final = 0.2
_ALIKE: Final = 3
#: A piece that is less probable is no part of a long text.
_UNLIKELY: Final = 0.05
#: The share of a page's words above which more of the kinds of pieces that are kept are content,
#: how many of a kind are kept then, and the share of them; a piece that is less probable is none.
_MOST_OF_PAGE: Final = 0.6
_KEPT_ALIKE: Final = 2
_SHARE_ALIKE: Final = 3
_UNLIKELY_ALIKE: Final = 0.1
#: Above it a text outside of the frame is content whatever it says.
_SURE: Final = 0.8
#: The share of the words of a page above which no label is looked for, how many it has, words of
#: the longest label, one of how many need not be known, and above which log odds it is none.
_NEARLY_ALL: Final = 0.9
_PAGE_WITH_LABELS: Final = 200
_LABEL_WORDS: Final = 12
_KNOWN_OF: Final = 2
_LABEL_ODDS: Final = -0.5
_LABEL_WORD: Final = re.compile(r"[A-Za-z0-9_\x80-\U0010ffff]+")
#: On a page of no more words all prose is content that is no frame by its place or name.
_FEW_WORDS: Final = 100
_FRAME: Final = PLACES["nav"] | PLACES["frame"]
_ASIDE: Final = PLACES["aside"]
_NO_PROSE: Final = _FRAME | _ASIDE | PLACES["link"] | PLACES["noscript"]
_EDGES: Final = PLACES["header"] | PLACES["footer"]
_ARTICLES: Final = PLACES["main"] | PLACES["article"]
#: Edges of the page, not of an article.
_EDGE_ONLY: Final = {PLACES["header"], PLACES["footer"], _EDGES}
#: Controls in a row that are content, and times that a page has the same control where it is none.
_MOST_CONTROLS: Final = 5
_REPEATED: Final = 3


def chosen(tree: Tree, pieces: Sequence[Piece], title: str) -> list[Piece]:
    """Return the pieces of the main content; ``title`` is that of the page.

    The model judges by words. Controls are not shown to it, but on a page that has nothing else,
    and images have none: what stands beside them decides.
    """
    pieces = Pieces.of(tree, list(pieces))
    controls = pieces.controls
    if all(controls):
        found, has_labels = _judged(pieces, title)
        kept = set(found)
    else:
        numbers = [i for i, acts in enumerate(controls) if not acts]
        found, has_labels = _judged(pieces.without_controls(), title)
        kept = {numbers[i] for i in found}
    kept.update(list(_kept_beside(pieces, kept, has_labels=has_labels)))
    # No tree knows of what the page states for machines only.
    kept.update(i for i, piece in enumerate(pieces) if tree.trait[piece.holder] & _STATED)
    return [pieces[i] for i in sorted(kept)]


def _judged(pieces: Pieces, title: str) -> tuple[list[int], bool]:
    """Return the numbers of the pieces that are probably content; none of them is a control.

    The other value is whether labels are looked for on the page.
    """
    if not pieces:
        return [], False
    texts, kinds, place = pieces.texts, pieces.kinds, pieces.tree.place
    holders = [piece.holder for piece in pieces]
    odds = judged(pieces, title, *model())
    sizes = np.array([len(text.split()) for text in texts])
    probability = 1 / (1 + np.exp(-odds))
    order = np.argsort(-probability, kind="stable")
    found = np.cumsum((probability * sizes)[order])
    expected = found / (np.cumsum(sizes[order]) + _BETA**2 * found[-1] + 1e-9)
    kept = set(order[: int(expected.argmax()) + 1].tolist())
    # References leave it out, readers want it: the page's own headline.
    heads = [i for i, kind in enumerate(kinds) if kind == "h1" and texts[i]]
    own = [i for i in heads if len(heads) == 1 or texts[i].casefold() in title.casefold()]
    kept.update(own[:1])
    frame = _Frame(pieces, kept)
    kept.update(i for i in _beside(pieces, kept, frame) if probability[i] > _UNLIKELY_ALIKE)
    if sizes[list(kept)].sum() >= _LONG_WORDS:
        likely = (probability > _UNLIKELY).tolist()
        kept.update(list(_continued(pieces, kept, sizes.tolist(), likely, frame)))
    if sizes[list(kept)].sum() >= _MOST_OF_PAGE * sizes.sum():
        likely = (probability > _UNLIKELY_ALIKE).tolist()
        kept.update([i for i in _alike(pieces, kept) if likely[i] and frame.lacks(i)])
    is_short = sizes.sum() <= _FEW_WORDS
    if is_short:
        # The trees know little of such pages, most of whose tables lead to other pages.
        kept.update(i for i, kind in enumerate(kinds) if kind != "table" and frame.lacks(i))
    # A long menu outweighs a few words, and so may an advert on a page of few.
    edges = _FRAME | _ASIDE if is_short else _FRAME
    kept = {i for i in kept if not place[holders[i]] & edges} or kept
    is_mixed = bool(sizes[list(kept)].sum() < _NEARLY_ALL * sizes.sum())
    has_labels = bool(sizes.sum() >= _PAGE_WITH_LABELS) and is_mixed
    # Clauses of a law may be short.
    is_long = sizes[list(kept)].sum() >= _LONG_WORDS
    if has_labels:
        no_labels = {
            i
            for i in kept
            if kinds[i] in {"h1", "table", "pre"}
            or (is_long and texts[i].endswith((".", ":", ";")))
            or not _is_label(texts[i], odds[i])
        }
        kept = no_labels or kept
    # Links such as "Read more" are no content either, nor are such texts of which the trees are not
    # sure. A cell of a table may say it of something, and so may a sentence.
    spared = {"h1", "table"}
    said = [
        i
        for i in sorted(kept)
        if kinds[i] in spared
        or not is_control(texts[i])
        or ((probability[i] >= _SURE or texts[i].endswith(".")) and frame.lacks(i))
    ]
    return said or sorted(kept), has_labels


def _is_label(text: str, odds: float) -> bool:
    """Return whether a short text, of which the trees say that much, is the label of a frame.

    Its words say so, most of which are known. Words of other languages than English are not, and a
    text with a digit or an address, such as a price, and a question are no labels.
    """
    words = _LABEL_WORD.findall(text)
    known, of = len(text.split()) <= _LABEL_WORDS, model()[0].label_odds
    said = [of[word.lower()] for word in words if word.lower() in of]
    return (
        known
        and len(words) <= _LABEL_WORDS
        and not text.endswith("?")
        and not any("0" <= letter <= "9" or letter == "@" for letter in text)
        and _KNOWN_OF * (len(words) - len(said)) <= len(words)
        and sum(said) < _LABEL_ODDS
        and sum(said) + odds < 0
    )


class _Frame:
    """The frame of a page, by places and names of elements, with what is hidden.

    What holds a piece that was ``kept`` is none, whatever its name.
    """

    def __init__(self, pieces: Pieces, kept: Set[int]) -> None:
        self._pieces = pieces
        self._known = {0: False, pieces.tree.body: False}
        parent = pieces.tree.parent
        for holder in (pieces[number].holder for number in kept):
            node = parent[holder]
            while node not in self._known:
                self._known[node] = False
                node = parent[node]

    def lacks(self, number: int) -> bool:
        """Return whether a piece is prose, not most of it links, and stands outside."""
        pieces = self._pieces
        linked, place, holder = pieces.tree.linked, pieces.tree.place, pieces[number].holder
        return (
            pieces[number].link is None
            and not place[holder] & _NO_PROSE
            and 2 * sum(linked[it] for it in pieces[number].nodes) < len(pieces.texts[number])
            and not self._holds(holder)
        )

    def _holds(self, node: int) -> bool:
        tree = self._pieces.tree
        if node not in self._known:
            said = tree.attributes(node)
            self._known[node] = (
                is_frame_name(said.get("id"), said.get("class"))
                or is_hidden(said)
                or tree.place[node] & (_EDGES | _ARTICLES) in _EDGE_ONLY
                or self._holds(tree.parent[node])
            )
        return self._known[node]


def _beside(pieces: Pieces, kept: Set[int], frame: _Frame) -> Iterator[int]:
    """Yield the prose beside a kept piece that stands in its block, a few pieces at most.

    It may be a price, or a sentence about a picture: the trees trust few words little.
    """
    parent, holders, count = pieces.tree.parent, [piece.holder for piece in pieces], len(pieces)
    for before, behind in pairwise((-1, *sorted(kept), count)):
        gap = range(before + 1, behind)
        if 0 < len(gap) <= _GAP:
            around = {parent[holders[i]] for i in (before, behind) if 0 <= i < count}
            yield from (i for i in gap if parent[holders[i]] in around and frame.lacks(i))


def _continued(
    pieces: Pieces, kept: Set[int], words: Sequence[int], likely: Sequence[bool], frame: _Frame
) -> Iterator[int]:
    """Yield the prose that goes on with a long text, such as the later sections of a law.

    The trees were fitted on articles, below which comments and adverts stand: the further down, the
    less they trust a piece. One goes on with the text if its element, or one around it, has
    siblings of the same tag and classes that hold kept pieces.
    """
    tree, body = pieces.tree, pieces.tree.body
    rest = [i for i in range(len(pieces)) if likely[i] and i not in kept and frame.lacks(i)]
    if not rest:
        return
    told, untold = _Words(pieces, kept, words), _Words(pieces, rest, words)

    @cache
    def patterns(block: int) -> Counter[tuple[str, str]]:
        found = (node for node in _children(tree, block) if told.stand_in(node))
        return Counter(_pattern(tree, node) for node in found)

    @cache
    def goes_on(node: int, block: int) -> bool:
        count = told.of(block)
        least = max(_LONG_WORDS, _LEAST_SHARE * (count + untold.of(block)))
        return count >= least and patterns(block)[_pattern(tree, node)] >= _ALIKE

    for i in rest:
        if any(starmap(goes_on, pairwise(_up(tree, body, pieces[i].holder)))):
            yield i


def _alike(pieces: Pieces, kept: Set[int]) -> Iterator[int]:
    """Yield the pieces of the kinds that are kept elsewhere, on a page most of which is kept.

    The trees trust a heading of one word little, nor a table of names, nor "Since: 1.8". A kind is
    that of the piece, with the tags and classes of the element in which it stands and of the one
    around that.
    """
    tree, alike = pieces.tree, dict[object, list[int]]()
    for i, piece in enumerate(pieces):
        above = [*islice(_up(tree, tree.body, piece.holder), 2)]
        alike.setdefault((piece.kind, *(_pattern(tree, it) for it in above)), []).append(i)
    for numbers in alike.values():
        if (count := len(kept & {*numbers})) >= _KEPT_ALIKE:
            yield from numbers if count * _SHARE_ALIKE >= len(numbers) else ()


class _Words:
    """The words of these pieces in an element, by the numbers of their holders."""

    def __init__(self, pieces: Pieces, numbers: Collection[int], words: Sequence[int]) -> None:
        self._tree = pieces.tree
        found = sorted((pieces[i].holder, words[i]) for i in numbers)
        self._holders = [holder for holder, _ in found]
        self._before = [0, *accumulate(count for _, count in found)]

    def of(self, node: int) -> int:
        """Return their number."""
        begin, end = self._range(node)
        return self._before[end] - self._before[begin]

    def stand_in(self, node: int) -> bool:
        """Return whether one of the pieces stands there."""
        begin, end = self._range(node)
        return begin < end

    def _range(self, node: int) -> tuple[int, int]:
        ends = node, self._tree.end[node]
        begin, end = (bisect_left(self._holders, it) for it in ends)
        return begin, end


def _up(tree: Tree, body: int, node: int) -> Iterator[int]:
    """Yield an element and those around it, up to the body."""
    while node not in (0, body):
        yield node
        node = tree.parent[node]
    yield body


def _children(tree: Tree, node: int) -> Iterator[int]:
    """Yield the nodes directly in an element, seen or not."""
    child = node + 1
    while child < tree.end[node]:
        yield child
        child = tree.end[child]


def _pattern(tree: Tree, node: int) -> tuple[str, str]:
    """Return the tag and the classes of an element."""
    classes = tree.attribute_of(node, "class") or ""
    return tree.tag(node), " ".join(sorted(classes.split()))


def _has_words(tree: Tree, piece: Piece) -> bool:
    return any(tree.chars[node] and not tree.place[node] & CONTROL for node in piece.nodes)


def _kept_beside(pieces: Pieces, kept: Set[int], *, has_labels: bool) -> Iterator[int]:
    """Yield the controls, and the images with their captions, that stand inside of content.

    Both neighbours are kept, or one in the block around them. A call for an action is no content,
    nor is what stands at each entry of a list, nor one of many controls in a row.
    """
    tree, controls = pieces.tree, pieces.controls
    wordless = [it.kind not in HEADINGS and not _has_words(tree, it) for it in pieces]
    in_caption = [tree.place[it.holder] & _CAPTION > 0 for it in pieces]
    depends = np.array([wordless, in_caption, controls]).any(axis=0)
    if not depends.any():
        return
    texts = {i: text_of(tree, pieces[i], UNSEEN) for i, acts in enumerate(controls) if acts}
    times = Counter(texts.values())
    edges = np.flatnonzero(np.diff(depends, prepend=False, append=False)).tolist()
    for begin, end in zip(edges[::2], edges[1::2], strict=True):
        near = [pieces[i].nodes[0] for i in (begin - 1, end) if i in kept]
        are_many = sum(controls[begin:end]) > _MOST_CONTROLS
        for i in range(begin, end) if near else ():
            block = _block_of(tree, pieces[i].holder)
            is_inside = len(near) == 2 or any(block <= node < tree.end[block] for node in near)
            is_content = not controls[i] or not (
                are_many
                or not texts[i]
                or times[texts[i]] >= _REPEATED
                or is_control(texts[i])
                or (has_labels and _is_label(texts[i], 0))
            )
            if is_inside and is_content:
                yield i


def _block_of(tree: Tree, node: int) -> int:
    """Return the next element around a control or an image that has words of its own."""
    while node and (tree.place[node] & CONTROL or not tree.chars[node]):
        node = tree.parent[node]
    return node
