"""A documentation site: a stable tree, rarely edited, often rebuilt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from freshet.crawler.synthetic_web.content import Link
from freshet.crawler.synthetic_web.manifests import SITEMAPS
from freshet.crawler.synthetic_web.resources import Document, Resource
from freshet.crawler.synthetic_web.site import Site, Validation
from freshet.crawler.synthetic_web.sites.plot import OPEN_ROBOTS, Plot

_CHAPTERS = ("guide", "reference", "howto")
#: A page that no link leads to: only the sitemap knows it.
ORPHAN = "/reference/orphan.html"


def documentation(plot: Plot) -> Site:
    """Rebuilds touch every frame at once; weak ETag and Last-Modified; one page moves."""
    chapters = dict(_chapters(plot, max(1, (plot.pages - len(_CHAPTERS) - 2) // len(_CHAPTERS))))
    links = [plot.link(c.title(), f"/{c}/") for c in _CHAPTERS]
    home = plot.story("home", title="Documentation", links=links)
    moved, new = "/guide/page-1.html", "/guide/getting-started.html"
    old = chapters[moved]
    moved_at = plot.later("move")
    resources: dict[str, Resource] = {
        "/": Document(history=home, born_at=plot.earlier("home")),
        **chapters,
        moved: Document(history=old.history, born_at=old.born_at, died_at=moved_at, moved_to=new),
        new: Document(history=old.history, born_at=moved_at),
        ORPHAN: _page(plot, ORPHAN, ()),
        **SITEMAPS,
    }
    return Site(
        name=plot.name,
        title="Freshet Handbook",
        resources=resources,
        validation=Validation.CONTENT,
        frame=plot.frame(0.7, plot.link("Home", "/"), *links),
        robots=OPEN_ROBOTS,
    )


def _chapters(plot: Plot, pages: int) -> Iterator[tuple[str, Document]]:
    """Chapters whose index lists all pages, and whose pages lead to the next."""
    for chapter in _CHAPTERS:
        targets = [f"/{chapter}/page-{n}.html" for n in range(1, pages + 1)]
        index = [plot.link(f"Page {n}", target) for n, target in enumerate(targets, start=1)]
        title = chapter.title()
        story = plot.story(chapter, title=title, paragraphs=3, links=index)
        yield f"/{chapter}/", Document(history=story, born_at=plot.earlier(chapter))
        for n, target in enumerate(targets):
            yield target, _page(plot, target, index[n + 1 : n + 2])


def _page(plot: Plot, target: str, links: Sequence[Link]) -> Document:
    story = plot.story(target, edits=plot.edits(target, 0.02), links=links)
    return Document(history=story, born_at=plot.earlier(target))
