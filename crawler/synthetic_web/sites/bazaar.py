"""A shop with wares that come, listed in ways that never end, beside calendars and sessions."""

from __future__ import annotations

from freshet.crawler.synthetic_web.chance import DAY_S, poisson_times
from freshet.crawler.synthetic_web.histories import Entry, Listing
from freshet.crawler.synthetic_web.resources import Document, Resource
from freshet.crawler.synthetic_web.site import Site, Trap, Validation
from freshet.crawler.synthetic_web.sites.plot import Plot
from freshet.crawler.synthetic_web.traps import ENTRANCES
from freshet.crawler.synthetic_web.wares import WARE

_PER_PAGE = 20
#: In so many days as many wares come as there were at the start.
_RENEWED_DAYS = 60.0


def bazaar(plot: Plot, *, traps: tuple[Trap, ...] = tuple(Trap)) -> Site:
    """The start page shows the newest wares and leads into the traps; older pages follow."""
    births = sorted(plot.earlier("ware", n) for n in range(max(1, plot.pages - 3)))
    rate = len(births) / _RENEWED_DAYS
    births += poisson_times(plot.rng("births"), rate, plot.start_at, plot.end_at)
    entries = []
    resources: dict[str, Resource] = {}
    for n, born_at in enumerate(births):
        target = f"{WARE}{n}"
        story = plot.story(target, edits=plot.edits(target, 0.05, since=born_at))
        resources[target] = Document(history=story, born_at=born_at)
        entries.append(
            Entry(plot.link(story.title, target, note="in stock, sent at once"), born_at)
        )
    resources |= _lists(plot, entries[::-1], traps)
    return Site(
        name=plot.name,
        title="Bazaar",
        resources=resources,
        validation=Validation.CONTENT,
        frame=plot.frame(0.1, plot.link("Home", "/")),
        robots="User-agent: *\nDisallow:\n",
        traps=traps,
    )


def _lists(plot: Plot, entries: list[Entry], traps: tuple[Trap, ...]) -> dict[str, Resource]:
    """The start page, and the pages behind it to which older wares are pushed."""
    tail = [Entry(plot.link(trap.name.title(), ENTRANCES[trap]), 0.0) for trap in traps]
    lists: dict[str, Resource] = {}
    born_at = plot.start_at - 61 * DAY_S
    for n, first in enumerate(range(0, len(entries), _PER_PAGE)):
        target, links = f"/all/{n + 1}" if n else "/", [] if n else tail
        following = first + _PER_PAGE
        behind_at = entries[-following - 1].born_at if following < len(entries) else None
        if behind_at is not None:
            links = [Entry(plot.link("Older wares", f"/all/{n + 2}"), behind_at), *links]
        listing = Listing(f"Wares, page {n + 1}", entries, first=first, count=_PER_PAGE, tail=links)
        lists[target] = Document(history=listing, born_at=born_at)
        born_at = behind_at or born_at
    return lists
