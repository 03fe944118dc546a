"""A tiny well-behaved site without a frame, for load and for politeness."""

from __future__ import annotations

from freshet.crawler.synthetic_web.resources import Document, Resource
from freshet.crawler.synthetic_web.site import Site, Skin
from freshet.crawler.synthetic_web.sites.plot import Plot

_PLAIN_CHILDREN = 10


def plain(plot: Plot) -> Site:
    """A tree of pages that never change; no noise, so its ETags are strong."""
    targets = ["/", *(f"/page-{n}" for n in range(1, plot.pages))]
    resources: dict[str, Resource] = {}
    for n, target in enumerate(targets):
        children = targets[n * _PLAIN_CHILDREN + 1 : (n + 1) * _PLAIN_CHILDREN + 1]
        links = [plot.link(child[1:], child) for child in children]
        story = plot.story(target, paragraphs=2, links=links)
        resources[target] = Document(history=story, born_at=plot.earlier(target))
    return Site(
        name=plot.name,
        title=plot.name,
        resources=resources,
        skin=Skin.BARE,
        robots="User-agent: *\nDisallow:\n",
    )
