"""Hints by CSS selector: what a user knows of a site's main text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from freshet.crawler.urls import origin

#: The attribute by which what was selected is known in the tree, and its values.
MARK: Final = "data-freshet"
INCLUDED: Final = "included"
IGNORED: Final = "ignored"


@dataclass(frozen=True, slots=True)
class SelectorHints:
    """CSS selectors for the pages of one site.

    ``include``: on a page that has such elements, they are the whole main text. ``ignore``:
    such elements, with all below them, are never part of it.

    Raises:
        ValueError: a selector is not valid; it is named.
    """

    include: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for selector in (*self.include, *self.ignore):
            _check(selector)

    def mark(self, tree: LexborHTMLParser) -> None:
        """Write into each element that a selector names what it is, as an attribute."""
        for verdict, selectors in ((INCLUDED, self.include), (IGNORED, self.ignore)):
            for node in tree.css(", ".join(selectors)) if selectors else ():
                node.attrs[MARK] = verdict


NO_HINTS: Final = SelectorHints()


class SiteHints:
    """The hints of every site, by host name; a name stands for the hosts below it, too.

    Args:
        include, ignore: lists of selectors by host name, as the user wrote them.

    Raises:
        ValueError: a selector is not valid; it is named with its site.
    """

    def __init__(
        self, include: Mapping[str, tuple[str, ...]], ignore: Mapping[str, tuple[str, ...]]
    ) -> None:
        wanted = {name.lower(): selectors for name, selectors in include.items()}
        unwanted = {name.lower(): selectors for name, selectors in ignore.items()}
        self._by_name = {
            name: _hints(name, wanted.get(name, ()), unwanted.get(name, ()))
            for name in wanted | unwanted
        }

    def of(self, url: str) -> SelectorHints:
        """The hints for a page: those of its host, or of the nearest name above it."""
        if not self._by_name:
            return NO_HINTS
        name = origin(url).host
        while name:
            if name in self._by_name:
                return self._by_name[name]
            name = name.partition(".")[2]
        return NO_HINTS


def _hints(name: str, include: tuple[str, ...], ignore: tuple[str, ...]) -> SelectorHints:
    try:
        return SelectorHints(include, ignore)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


NO_SITE_HINTS: Final = SiteHints({}, {})


def _check(selector: str) -> None:
    try:
        LexborHTMLParser("<p>").css(selector)
    except SelectolaxError as error:
        raise ValueError(f"{selector!r} is not a CSS selector that is understood") from error
