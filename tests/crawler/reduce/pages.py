"""Pages as their views show them."""

from collections.abc import Sequence

from freshet.crawler.reduce.blocks import Blocks
from freshet.crawler.reduce.content import pieces_shown
from freshet.crawler.reduce.page import markup_of, parse, tree_shown
from freshet.crawler.reduce.pieces import Piece
from freshet.crawler.reduce.tree import NO_HINTS, SelectorHints, Tree

URL = "https://h.example/a/b/"
HTML = "text/html; charset=utf-8"


def blocks_of(html: str, hints: SelectorHints = NO_HINTS) -> Blocks:
    """Return the compared text of a page."""
    return parse(html.encode("utf-8", "replace"), URL, HTML, hints=hints).blocks


def pieces_in(body: bytes, content_type: str = HTML) -> tuple[Tree, Sequence[Piece]]:
    """Return the tree of a page, and all pieces of its body."""
    tree, pieces, _ = pieces_shown(*tree_shown(markup_of(body, content_type)), NO_HINTS)
    return tree, pieces
