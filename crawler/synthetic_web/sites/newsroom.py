"""A busy news host: items come by day more than by night, and soon leave all lists."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import cos, pi
from typing import Final

from freshet.crawler.synthetic_web.chance import DAY_S, poisson_times
from freshet.crawler.synthetic_web.histories import Entry, Listing
from freshet.crawler.synthetic_web.languages import ENGLISH
from freshet.crawler.synthetic_web.resources import Document, Manifest, Resource
from freshet.crawler.synthetic_web.site import Site, Validation
from freshet.crawler.synthetic_web.sites.plot import Plot

#: The sections, and the share of the items that each gets.
_SECTIONS: Final = {"world": 8, "sport": 4, "culture": 2, "science": 1}
#: Of the items, which stand on the front page as well as in their section.
_LEADING = 0.6
_ON_FRONT, _IN_SECTION = 15, 12
#: The rate at midnight is this much below the mean, and at noon as much above, UTC.
_SWING = 0.8
#: The lists are as full at the start as if the host had been there for so long.
_BEFORE_DAYS = 4.0
#: Items are corrected in their first day.
_NEWSROOM_CORRECTED_FOR_S = DAY_S


@dataclass(frozen=True, slots=True)
class _Item:
    target: str
    section: str
    leads: bool
    page: Document
    entry: Entry


def newsroom(plot: Plot, per_day: float) -> Site:
    """A front page, sections and a feed list the newest items; no list and no sitemap the others.

    An item stands in its section, and it may on the front page. It answers for ever, but from
    when others have pushed it from the lists no link leads there. ``plot.pages`` does not count:
    the pages are as many as the items of ``per_day`` and the days make them.
    """
    items = sorted(_items(plot, per_day), key=lambda item: item.page.born_at, reverse=True)
    sections = [plot.link(name.title(), f"/{name}/") for name in _SECTIONS]
    front = _list(plot, "Front page", [item for item in items if item.leads], _ON_FRONT)
    resources: dict[str, Resource] = {"/": front}
    for name in _SECTIONS:
        of_section = [item for item in items if item.section == name]
        resources[f"/{name}/"] = _list(plot, name.title(), of_section, _IN_SECTION)
    resources |= {item.target: item.page for item in items}
    return Site(
        name=plot.name,
        title="The Freshet Courier",
        resources={**resources, "/feed.atom": Manifest.ATOM},
        validation=Validation.BYTES,
        frame=plot.frame(0.5, plot.link("Home", "/"), *sections),
        robots="User-agent: *\nDisallow:\n",
    )


def _items(plot: Plot, per_day: float) -> Iterator[_Item]:
    names, shares = list(_SECTIONS), list(_SECTIONS.values())
    for n, born_at in enumerate(_births(plot, per_day)):
        rng = plot.rng("item", n)
        (section,) = rng.choices(names, shares)
        target = f"/{section}/item-{n}"
        edits = plot.edits(target, 0.4, since=born_at, until=born_at + _NEWSROOM_CORRECTED_FOR_S)
        story = plot.story(target, edits=edits)
        link = plot.link(story.title, target, note=ENGLISH.sentence(rng))
        page = Document(history=story, born_at=born_at)
        yield _Item(target, section, rng.random() < _LEADING, page, Entry(link, born_at))


def _births(plot: Plot, per_day: float) -> list[float]:
    """Poisson times whose rate swings with the hour; candidates at the highest rate are thinned."""
    rng = plot.rng("births")
    since = plot.start_at - _BEFORE_DAYS * DAY_S
    candidates = poisson_times(rng, per_day * (1 + _SWING), since, plot.end_at)
    return [at for at in candidates if rng.random() * (1 + _SWING) < 1 + _SWING * _by_day(at)]


def _by_day(at: float) -> float:
    """−1 at midnight, 1 at noon, UTC."""
    return -cos(2 * pi * at / DAY_S)


def _list(plot: Plot, title: str, items: list[_Item], count: int) -> Document:
    history = Listing(title, [item.entry for item in items], count=count)
    return Document(history=history, born_at=plot.start_at - _BEFORE_DAYS * DAY_S, in_sitemap=False)
