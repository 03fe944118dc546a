"""A notebook whose pages speak to crawlers: robots directives, canonical, base."""

from __future__ import annotations

from freshet.crawler.synthetic_web.content import Link
from freshet.crawler.synthetic_web.resources import Document, Head, Resource
from freshet.crawler.synthetic_web.site import Site, Validation
from freshet.crawler.synthetic_web.sites.plot import Plot

#: Pages that only nofollow links lead to.
_HIDDEN = ("/hidden-by-link", "/hidden-by-meta", "/hidden-by-header")
#: Pages that only the page with a base element leads to.
_BELOW = ("/deep/below/relative", "/deep/sideways")
_HEADS = {
    "/noindex": Head(robots="noindex"),
    "/noarchive": Head(robots="noarchive"),
    "/noindex-by-header": Head(robots_header="noindex, noarchive"),
    "/nofollow": Head(robots="noindex, nofollow"),
    "/nofollow-by-header": Head(robots_header="nofollow"),
    "/duplicate": Head(canonical="/original"),
    "/duplicate?view=wide": Head(canonical="/original"),
    "/original": Head(canonical="/original"),
    "/based": Head(base="/deep/below/"),
    **{target: Head() for target in (*_BELOW, *_HIDDEN)},
}


def notes(plot: Plot) -> Site:
    """robots.txt is a 404; noindex, nofollow and noarchive in meta elements and headers."""
    extra = [f"/note-{n}" for n in range(1, plot.pages - len(_HEADS))]
    heads = {**_HEADS, **{target: Head() for target in extra}}
    links = [plot.link(t, t) for t in heads if t not in {*_HIDDEN, *_BELOW}]
    links.append(plot.link("Not for crawlers", "/hidden-by-link", rel="nofollow ugc"))
    home = plot.story("home", title="Notes", links=links)
    resources: dict[str, Resource] = {
        "/": Document(history=home, born_at=plot.earlier("home")),
        **{target: _note_page(plot, target, head) for target, head in heads.items()},
    }
    return Site(
        name=plot.name,
        title="Notebook",
        resources=resources,
        validation=Validation.NONE,
        frame=plot.frame(0.1),
    )


def _note_page(plot: Plot, target: str, head: Head) -> Document:
    # Duplicates show what the original shows.
    key = head.canonical or target
    story = plot.story(key, edits=plot.edits(key, 0.1), links=_outgoing(plot, target))
    return Document(history=story, born_at=plot.earlier(target), head=head)


def _outgoing(plot: Plot, target: str) -> tuple[Link, ...]:
    match target:
        case "/nofollow":
            return (plot.link("Hidden", "/hidden-by-meta"),)
        case "/nofollow-by-header":
            return (plot.link("Hidden", "/hidden-by-header"),)
        case "/based":
            hrefs = ("relative", "../sideways")
            places = map(plot.place, _BELOW)
            return tuple(Link(h, p, href=h) for h, p in zip(hrefs, places, strict=True))
    return ()
