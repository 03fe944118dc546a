"""The pages of a list: an entry on top of the first one moves an entry of each of the others.

That is one change, and the first page has it. On a later page entries appear at one end and
disappear at the other, in their order; any other difference there is a change.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from freshet.crawler.compare.history import Layout, PlacedBlock
from freshet.crawler.compare.minor import Difference

MOVED: Final = "entries of a list moved between its pages"
_NUMBER: Final = re.compile(
    r"(?:[?&;](?:page|paged|pg|page_?(?:no|num|number|id)|seite|pagina|offset|start|skip)="
    r"|/(?:page|seite|pagina)[/-])(\d{1,9})(?![^/?&#])",
    re.IGNORECASE,
)


def is_later_page(url: str, rels: Iterable[str]) -> bool:
    """Return whether a URL belongs to a page of a list after the first one.

    Some sites count from 0: number 1 is a later page if a link of it leads to the previous one.
    """
    found = _NUMBER.search(url)
    number = int(found[1]) if found else 0
    return number > 1 or (number == 1 and any("prev" in each.split() for each in rels))


def has_moved(found: Difference) -> bool:
    """Return whether entries appeared at one end of a list and disappeared at the other."""
    gone, come = _by_place(found.removed), _by_place(found.added)
    places = gone.keys() | come.keys()
    down = bool(come) and all(
        _first(found.after, come.get(place, ())) and _last(found.before, gone.get(place, ()))
        for place in places
    )
    return down or (
        bool(come)
        and bool(gone)
        and all(
            _first(found.before, gone.get(place, ())) and _last(found.after, come.get(place, ()))
            for place in places
        )
    )


def _by_place(items: Sequence[PlacedBlock]) -> dict[int, list[PlacedBlock]]:
    found: dict[int, list[PlacedBlock]] = {}
    for item in items:
        found.setdefault(item.place, []).append(item)
    return found


def _first(layout: Layout, items: Sequence[PlacedBlock]) -> bool:
    """Return whether these are the first blocks of their place, but not all of them."""
    return {each.front for each in items} == set(range(len(items))) and not _are_all(layout, items)


def _last(layout: Layout, items: Sequence[PlacedBlock]) -> bool:
    backs = {-1 - each.back for each in items}
    return backs == set(range(len(items))) and not _are_all(layout, items)


def _are_all(layout: Layout, items: Sequence[PlacedBlock]) -> bool:
    return bool(items) and len(items) >= len(layout.numbers(items[0].place))
