"""Lists of a shop's wares by filters, in the query and in the path, which never end.

Every list shows wares that others show, too; each filter can be added to every list, and to what
a query filters there is always a next page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final
from urllib.parse import parse_qsl, urlencode

from freshet.crawler.synthetic_web.chance import generator
from freshet.crawler.synthetic_web.content import Content, Link, Place
from freshet.crawler.synthetic_web.resources import Document
from freshet.crawler.synthetic_web.site import Site, Trap

#: Where wares stand that are pages of their own.
WARE: Final = "/ware/"
_FILTERS: Final[Mapping[str, Sequence[str]]] = {
    "colour": ("red", "green", "blue", "white", "black"),
    "size": ("small", "medium", "large", "huge"),
    "fabric": ("cotton", "linen", "wool", "silk"),
    "sort": ("name", "price", "newest"),
}
#: Filters in a path; an order is none.
_SHELVES: Final = tuple(chain.from_iterable(v for k, v in _FILTERS.items() if k != "sort"))
_PER_PAGE: Final = 8
#: So many in a hundred wares have each property.
_SHARE: Final = 60


def filtered(site: Site, target: str, at: float) -> Content | None:
    """The list at a target such as ``/wares?colour=red&page=2``, None where no filter is known."""
    chosen = dict(parse_qsl(target.partition("?")[2]))
    page = chosen.pop("page", "1")
    if not page.isdecimal() or any(v not in _FILTERS.get(k, ()) for k, v in chosen.items()):
        return None
    wares = _wares(site, [v for k, v in chosen.items() if k != "sort"], at)
    if chosen.get("sort") == "price":
        wares.reverse()
    # After the last page comes the first one again.
    first = (int(page) - 1) * _PER_PAGE % max(len(wares), 1)
    links = wares[first : first + _PER_PAGE]
    links += [
        Link(value.title(), _query(site, {**chosen, name: value}))
        for name, values in _FILTERS.items()
        for value in values
        if chosen.get(name) != value
    ]
    links.append(Link("Next page", _query(site, {**chosen, "page": str(int(page) + 1)})))
    return Content(_title(list(chosen.values())), (), tuple(links))


def shelved(site: Site, target: str, at: float) -> Content | None:
    """The list at a target such as ``/shelves/red/large``, None where no filter is known."""
    chosen = [each for each in target.removeprefix(Trap.FACETS).split("/") if each]
    if not set(chosen) <= set(_SHELVES):
        return None
    path = target.removesuffix("/")
    links = _wares(site, chosen, at)[:_PER_PAGE]
    links += [
        Link(value.title(), Place(site.name, f"{path}/{value}"))
        for value in _SHELVES
        if value not in chosen
    ]
    return Content(_title(chosen), (), tuple(links))


def _title(chosen: Sequence[str]) -> str:
    return " ".join(("Wares", *chosen))


def _query(site: Site, chosen: Mapping[str, str]) -> Place:
    return Place(site.name, f"{Trap.FILTERS}{urlencode(sorted(chosen.items()))}")


def _wares(site: Site, wanted: Sequence[str], at: float) -> list[Link]:
    """The wares that are there and have all wanted properties, the same ones on every list."""
    return [
        Link(ware.history.content(0).title, Place(site.name, target), note="in stock, sent at once")
        for target, ware in site.resources.items()
        if target.startswith(WARE) and isinstance(ware, Document) and ware.is_alive(at)
        if all(generator(site.name, target, v).randrange(100) < _SHARE for v in wanted)
    ]
