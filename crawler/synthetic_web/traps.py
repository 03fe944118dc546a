"""Endless sets of pages: every one leads to another that nobody has seen."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from freshet.crawler.synthetic_web.chance import generator
from freshet.crawler.synthetic_web.content import Content, Link, Place
from freshet.crawler.synthetic_web.edits import compose
from freshet.crawler.synthetic_web.site import Site, Trap
from freshet.crawler.synthetic_web.wares import filtered, shelved

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


def trap_content(site: Site, trap: Trap, target: str, session: str, at: float) -> Content | None:
    """The page at a target of an endless set, None where there is none.

    ``session`` is fresh in every answer.
    """
    if trap is Trap.SESSION:
        room = _ROOM.fullmatch(target)
        return _room(site, room[1], session) if room else None
    return _LASTING[trap](site, target, at)


def _calendar(site: Site, target: str, _at: float) -> Content | None:
    month = _MONTH.fullmatch(target)
    return _month(site, int(month[1]), int(month[2]), _path_month) if month else None


def _dates(site: Site, target: str, _at: float) -> Content | None:
    month = _DATE.fullmatch(target)
    return _month(site, int(month[1]), int(month[2]), _query_month) if month else None


def _path_month(year: int, month: int) -> str:
    return f"{Trap.CALENDAR}{year}/{month:02}"


def _query_month(year: int, month: int) -> str:
    return f"{Trap.DATES}month={year}-{month:02}"


def _month(site: Site, year: int, month: int, target_of: Callable[[int, int], str]) -> Content:
    """A month without events, with links to its neighbours: years go on for ever."""
    number = year * 12 + month - 1
    neighbours = (("Previous month", number - 1), ("Next month", number + 1))
    links = tuple(
        Link(text, Place(site.name, target_of(n // 12, n % 12 + 1)))
        for text, n in neighbours
        if n >= 0
    )
    return Content(f"Calendar of {year}-{month:02}", (), links)


def _room(site: Site, room: str, session: str) -> Content:
    """One of a few pages; each link to one carries a session that no link had before."""
    blocks = compose(generator(site.name, "room", room), site.language, 3, figure=False)
    links = tuple(
        Link(f"Room {n}", Place(site.name, f"{Trap.SESSION}{n}?sid={session}{n}"))
        for n in range(1, _ROOMS + 1)
    )
    return Content(f"Room {room}", blocks, links)


def _deeper(site: Site, target: str, _at: float) -> Content | None:
    """The same page in every directory, with relative links to directories in it."""
    if not target.endswith("/") or set(target.split("/")[2:-1]) - set(_DEEPER):
        return None
    blocks = compose(generator(site.name, "deeper"), site.language, 3, figure=False)
    return Content("Deeper", blocks, tuple(_relative(site, target)))


def _relative(site: Site, target: str) -> Iterator[Link]:
    for word in _DEEPER:
        yield Link(word.title(), Place(site.name, f"{target}{word}/"), href=f"{word}/")


_LASTING: Final[dict[Trap, Callable[[Site, str, float], Content | None]]] = {
    Trap.CALENDAR: _calendar,
    Trap.DATES: _dates,
    Trap.FILTERS: filtered,
    Trap.FACETS: shelved,
    Trap.DEEPER: _deeper,
}
