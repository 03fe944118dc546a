"""Selectors of a site for the content of its pages, marked in the tree of selectolax."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from selectolax.lexbor import LexborHTMLParser, SelectolaxError

#: The attribute that marks selected elements in the tree, and its values.
MARK: Final = "data-freshet"
INCLUDED: Final = "included"
IGNORED: Final = "ignored"


@dataclass(frozen=True, slots=True)
class SelectorHints:
    """CSS selectors for the pages of one site; ValueError names one that is not valid.

    ``include``: on a page that has such elements, they are the whole main text. ``ignore``:
    such elements and their descendants are never part of it. ``strict``: a page without elements
    to include has no text.
    """

    include: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    strict: bool = False

    def __post_init__(self) -> None:
        for selector in (*self.include, *self.ignore):
            try:
                LexborHTMLParser("<p>").css(selector)
            except SelectolaxError as error:
                raise ValueError(
                    f"{selector!r} is not a CSS selector, such as .price or #main"
                ) from error

    def mark(self, tree: LexborHTMLParser) -> bool:
        """Mark each element that a selector matches; return whether one stays included."""
        included, ignored = (
            tree.css(", ".join(selectors)) if selectors else []
            for selectors in (self.include, self.ignore)
        )
        for nodes, verdict in ((included, INCLUDED), (ignored, IGNORED)):
            for node in nodes:
                node.attrs[MARK] = verdict
        return any(node.attrs[MARK] == INCLUDED for node in included)


NO_HINTS: Final = SelectorHints()
