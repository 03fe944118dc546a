"""A notice board: prices, dates and prose, with frame and noise amid the content."""

from __future__ import annotations

from collections.abc import Collection

from freshet.crawler.synthetic_web.content import Form
from freshet.crawler.synthetic_web.manifests import SITEMAPS
from freshet.crawler.synthetic_web.resources import Document, Resource
from freshet.crawler.synthetic_web.site import Clutter, Site, Skin, Validation
from freshet.crawler.synthetic_web.sites.plot import OPEN_ROBOTS, Plot

#: Edits per day, in turn.
_RATES_PER_DAY = (0.3, 0.05, 0.0, 0.15, 0.02)
_FRAME_FORMS = (Form.FOOTER, Form.ADVERT, Form.BANNER, Form.REBUILD)


def board(plot: Plot, clutter: Collection[Clutter]) -> Site:
    """A third of the pages states a price, a third a date; nothing names the frame."""
    targets = [f"/notice/{n}" for n in range(1, plot.pages)]
    resources: dict[str, Resource] = dict(SITEMAPS)
    for n, target in enumerate(targets):
        figure, dated = n % 3 == 0, n % 3 == 1
        rate = _RATES_PER_DAY[n % len(_RATES_PER_DAY)]
        edits = plot.edits(target, rate, figure=figure, dated=dated)
        story = plot.story(target, figure=figure, dated=dated, edits=edits)
        resources[target] = Document(history=story, born_at=plot.earlier(target))
    links = [plot.link(target.strip("/"), target) for target in targets]
    home = plot.story("home", title="Notices", links=links)
    resources["/"] = Document(history=home, born_at=plot.earlier("home"))
    return Site(
        name=plot.name,
        title=f"Board of {plot.name}",
        resources=resources,
        skin=Skin.CLUTTERED,
        clutter=frozenset(clutter),
        validation=Validation.NONE,
        frame=plot.frame(0.15, forms=_FRAME_FORMS),
        robots=OPEN_ROBOTS,
    )
