"""Endless sets of pages: every one leads to another that nobody has seen. Pure."""

from __future__ import annotations

import re

from crawler.synthetic_web.chance import generator
from crawler.synthetic_web.content import Content, Link, Place
from crawler.synthetic_web.edits import compose
from crawler.synthetic_web.site import Site, Trap

#: Where each trap begins.
ENTRANCES = {
    Trap.CALENDAR: f"{Trap.CALENDAR}2026/01",
    Trap.SESSION: f"{Trap.SESSION}1?sid={'5f1e' * 8}",
}
_MONTH = re.compile(rf"{Trap.CALENDAR}(\d{{1,6}})/(\d\d)")
_ROOM = re.compile(rf"{Trap.SESSION}(\d)(?:\?.*)?")
_ROOMS = 4


def trap_content(site: Site, trap: Trap, target: str, session: str) -> Content | None:
    """The page at a target of an endless set, None where there is none.

    ``session`` is fresh in every answer.
    """
    if trap is Trap.CALENDAR:
        month = _MONTH.fullmatch(target)
        return _month(site, int(month[1]), int(month[2])) if month else None
    room = _ROOM.fullmatch(target)
    return _room(site, room[1], session) if room else None


def _month(site: Site, year: int, month: int) -> Content:
    """A month without events, with links to its neighbours: years go on for ever."""
    number = year * 12 + month - 1
    neighbours = (("Previous month", number - 1), ("Next month", number + 1))
    links = tuple(
        Link(text, Place(site.name, f"{Trap.CALENDAR}{n // 12}/{n % 12 + 1:02}"))
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
