"""Endless sets of pages: every page leads to another that nobody has seen."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final
from urllib.parse import parse_qsl, urlencode

from freshet.crawler.synthetic_web.content import Content, Link, Place, compose, generator
from freshet.crawler.synthetic_web.site import Document, SyntheticSite, Trap

# -- wares -------------------------------------------------------------------
# Every list shows wares that others show, too; each filter can be added to every list, and a
# filter in the query always has a next page.
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


def filtered(site: SyntheticSite, target: str, at: float) -> Content | None:
    """Return the list at a target such as ``/wares?colour=red&page=2``, None without a filter."""
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


def shelved(site: SyntheticSite, target: str, at: float) -> Content | None:
    """Return the list at a target such as ``/shelves/red/large``, None without a filter."""
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


def _query(site: SyntheticSite, chosen: Mapping[str, str]) -> Place:
    return Place(site.name, f"{Trap.FILTERS}{urlencode(sorted(chosen.items()))}")


def _wares(site: SyntheticSite, wanted: Sequence[str], at: float) -> list[Link]:
    """Return the wares with all wanted properties, in the same order on every list."""
    return [
        Link(ware.history.content(0).title, Place(site.name, target), note="in stock, sent at once")
        for target, ware in site.resources.items()
        if target.startswith(WARE) and isinstance(ware, Document) and ware.is_alive(at)
        if all(generator(site.name, target, v).randrange(100) < _SHARE for v in wanted)
    ]


#: Where each trap begins.
ENTRANCES = {
    Trap.CALENDAR: f"{Trap.CALENDAR}2026/01",
    Trap.SESSION: f"{Trap.SESSION}1?sid={'5f1e' * 8}",
    Trap.DATES: f"{Trap.DATES}month=2026-01",
    Trap.FILTERS: f"{Trap.FILTERS}sort=name",
    Trap.FACETS: f"{Trap.FACETS}",
    Trap.DEEPER: f"{Trap.DEEPER}",
}
_MONTH = re.compile(rf"{Trap.CALENDAR}(\d{{1,6}})/(\d\d)")
_DATE = re.compile(rf"{re.escape(Trap.DATES)}month=(\d{{1,6}})-(\d\d)")
_ROOM = re.compile(rf"{Trap.SESSION}(\d)(?:\?.*)?")
_ROOMS = 4
#: Relative links of every page under :attr:`Trap.DEEPER`.
_DEEPER: Final = ("further", "onward", "beyond", "below", "within", "yonder")


def trap_content(
    site: SyntheticSite, trap: Trap, target: str, session: str, at: float
) -> Content | None:
    """Return the page at a target of an endless set, None if it belongs to none.

    ``session`` is fresh in every answer.
    """
    if trap is Trap.SESSION:
        room = _ROOM.fullmatch(target)
        return _room(site, room[1], session) if room else None
    return _LASTING[trap](site, target, at)


def _calendar(site: SyntheticSite, target: str, _at: float) -> Content | None:
    month = _MONTH.fullmatch(target)
    return _month(site, int(month[1]), int(month[2]), _path_month) if month else None


def _dates(site: SyntheticSite, target: str, _at: float) -> Content | None:
    month = _DATE.fullmatch(target)
    return _month(site, int(month[1]), int(month[2]), _query_month) if month else None


def _path_month(year: int, month: int) -> str:
    return f"{Trap.CALENDAR}{year}/{month:02}"


def _query_month(year: int, month: int) -> str:
    return f"{Trap.DATES}month={year}-{month:02}"


def _month(
    site: SyntheticSite, year: int, month: int, target_of: Callable[[int, int], str]
) -> Content:
    """Make a month without events, with links to its neighbours: years go on for ever."""
    number = year * 12 + month - 1
    neighbours = (("Previous month", number - 1), ("Next month", number + 1))
    links = tuple(
        Link(text, Place(site.name, target_of(n // 12, n % 12 + 1)))
        for text, n in neighbours
        if n >= 0
    )
    return Content(f"Calendar of {year}-{month:02}", (), links)


def _room(site: SyntheticSite, room: str, session: str) -> Content:
    """Make one of a few pages; each link to one carries a new session."""
    blocks = compose(generator(site.name, "room", room), site.language, 3, figure=False)
    links = tuple(
        Link(f"Room {n}", Place(site.name, f"{Trap.SESSION}{n}?sid={session}{n}"))
        for n in range(1, _ROOMS + 1)
    )
    return Content(f"Room {room}", blocks, links)


def _deeper(site: SyntheticSite, target: str, _at: float) -> Content | None:
    """Make the page of every directory, with relative links to directories in it."""
    if not target.endswith("/") or set(target.split("/")[2:-1]) - set(_DEEPER):
        return None
    blocks = compose(generator(site.name, "deeper"), site.language, 3, figure=False)
    return Content("Deeper", blocks, tuple(_relative(site, target)))


def _relative(site: SyntheticSite, target: str) -> Iterator[Link]:
    for word in _DEEPER:
        yield Link(word.title(), Place(site.name, f"{target}{word}/"), href=f"{word}/")


_LASTING: Final[dict[Trap, Callable[[SyntheticSite, str, float], Content | None]]] = {
    Trap.CALENDAR: _calendar,
    Trap.DATES: _dates,
    Trap.FILTERS: filtered,
    Trap.FACETS: shelved,
    Trap.DEEPER: _deeper,
}
