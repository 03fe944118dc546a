"""A wiki: pages edited at very different rates, some several times a day, some never."""

from __future__ import annotations

from freshet.crawler.synthetic_web.content import Link
from freshet.crawler.synthetic_web.manifests import SITEMAPS
from freshet.crawler.synthetic_web.resources import Document, Manifest, Resource
from freshet.crawler.synthetic_web.site import Site, Validation
from freshet.crawler.synthetic_web.sites.plot import OPEN_ROBOTS, Plot

#: Edits per day, in turn: a third of the pages makes nearly all of the edits.
RATES_PER_DAY = (6.0, 0.0, 0.5, 0.02, 0.1, 0.0, 1.5, 0.05, 0.0)
_CHILDREN = 5


def wiki(plot: Plot) -> Site:
    """Every page is linked from its parent in a tree, and from others; RSS; Last-Modified.

    Some pages are renamed: the links to the old name stay, and are redirected.
    """
    targets = ["/"] + [f"/wiki/Topic_{n}" for n in range(1, max(2, plot.pages))]
    resources: dict[str, Resource] = {**SITEMAPS, "/recent.rss": Manifest.RSS}
    for n, target in enumerate(targets):
        links = _links(plot, n, targets)
        edits = plot.edits(target, RATES_PER_DAY[n % len(RATES_PER_DAY)])
        story = plot.story(target, title=None if n else "Main page", edits=edits, links=links)
        born_at = plot.earlier(target)
        resources[target] = Document(history=story, born_at=born_at)
        if n % 15 == 12:
            moved_at, name = plot.later(target), f"{target}_renamed"
            resources[target] = Document(
                history=story, born_at=born_at, died_at=moved_at, moved_to=name
            )
            resources[name] = Document(history=story, born_at=moved_at)
    return Site(
        name=plot.name,
        title="Freshet Wiki",
        resources=resources,
        validation=Validation.DATE,
        frame=plot.frame(0.2, plot.link("Main page", "/")),
        robots=OPEN_ROBOTS,
    )


def _links(plot: Plot, n: int, targets: list[str]) -> tuple[Link, ...]:
    """To the children of the n-th page, then to three of all pages."""
    children = targets[n * _CHILDREN + 1 : (n + 1) * _CHILDREN + 1]
    others = plot.rng("links", n).sample(targets, min(3, len(targets)))
    names = dict.fromkeys((*children, *others))
    return tuple(plot.link(target.rpartition("/")[2] or "Main page", target) for target in names)
