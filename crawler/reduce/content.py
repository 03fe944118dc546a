"""The choice of the pieces of a page that are its main content."""

from collections.abc import Iterable, Iterator
from typing import Final

from freshet.crawler.reduce.boilerplate import (
    FRAME_TAGS,
    PAGE_EDGE_TAGS,
    is_frame_name,
    is_frame_role,
    is_hidden,
)
from freshet.crawler.reduce.markdown import Element, Piece

_EDGES: Final = FRAME_TAGS | PAGE_EDGE_TAGS


def chosen(pieces: Iterable[Piece]) -> list[Piece]:
    """Return the pieces of the main content."""
    found = list(pieces)
    kept = [piece for piece in found if not any(map(_is_frame, _above(piece.holder)))]
    return kept or found


def _above(node: Element | None) -> Iterator[Element]:
    while node is not None:
        yield node
        node = node.parent


def _is_frame(node: Element) -> bool:
    values = node.attributes
    if node.tag in _EDGES or is_frame_role(values) or is_hidden(values):
        return True
    return is_frame_name(values.get("id"), values.get("class"))
