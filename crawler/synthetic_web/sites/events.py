"""A site with endless calendars and sessions beside a few honest pages."""

from __future__ import annotations

from typing import Final

from freshet.crawler.synthetic_web.resources import Document, Resource
from freshet.crawler.synthetic_web.site import Site, Trap, Validation
from freshet.crawler.synthetic_web.sites.plot import Plot
from freshet.crawler.synthetic_web.traps import ENTRANCES

#: The traps of such a site.
EVENT_TRAPS: Final = (Trap.CALENDAR, Trap.SESSION)


def events(plot: Plot, *, traps: tuple[Trap, ...] = EVENT_TRAPS) -> Site:
    """The start page leads into both traps; event pages are honest."""
    targets = [f"/event/{n}" for n in range(1, plot.pages)]
    resources: dict[str, Resource] = {}
    for target in targets:
        story = plot.story(target, edits=plot.edits(target, 0.2))
        resources[target] = Document(history=story, born_at=plot.earlier(target))
    links = [plot.link(target, target) for target in targets]
    links += [plot.link(trap.name.title(), ENTRANCES[trap]) for trap in traps]
    home = plot.story("home", title="Events", links=links)
    resources["/"] = Document(history=home, born_at=plot.earlier("home"))
    return Site(
        name=plot.name,
        title="What is on",
        resources=resources,
        validation=Validation.CONTENT,
        frame=plot.frame(0.3, plot.link("Home", "/")),
        robots="User-agent: *\nDisallow:\n",
        traps=traps,
    )
