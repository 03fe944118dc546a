"""A site whose robots.txt has rules of every kind."""

from __future__ import annotations

from freshet.crawler.synthetic_web.languages import JAPANESE
from freshet.crawler.synthetic_web.manifests import SITEMAPS
from freshet.crawler.synthetic_web.resources import Document, Resource
from freshet.crawler.synthetic_web.site import Site, Validation
from freshet.crawler.synthetic_web.sites.plot import Plot

_ROBOTS = """\
# Rules of the house
User-agent: OtherBot
Disallow: /

User-agent: *
Crawl-delay: 0.2
Disallow: /members/
Allow: /members/open/
Disallow: /*.draft$
Disallow: /*?print=
Disallow: /search
Allow: /searching-tips

Sitemap: {origin}/sitemap.xml
"""
_ALLOWED = ("/members/open/1", "/members/open/2", "/notes.draft.html", "/searching-tips", "/guide")
_FORBIDDEN = ("/members/1", "/members/", "/notes.draft", "/guide?print=1", "/search?q=river")
#: Linked from a forbidden page only.
_BEHIND = "/behind-the-wall"


def guarded(plot: Plot) -> Site:
    """CJK-like text; a directory with an exception, wildcards, a Crawl-delay of 0.2 s."""
    targets = [*_ALLOWED, *_FORBIDDEN]
    targets += [f"/hall/{n}" for n in range(1, plot.pages - len(_ALLOWED))]
    behind = plot.link("Secret", _BEHIND)
    resources: dict[str, Resource] = {**SITEMAPS, _BEHIND: _guarded_page(plot, _BEHIND)}
    for target in targets:
        story = plot.story(
            target,
            language=JAPANESE,
            edits=plot.edits(target, 0.1),
            links=(behind,) if target in _FORBIDDEN else (),
        )
        resources[target] = Document(history=story, born_at=plot.earlier(target))
    links = [plot.link(target, target) for target in targets]
    home = plot.story("home", language=JAPANESE, links=links)
    resources["/"] = Document(history=home, born_at=plot.earlier("home"))
    return Site(
        name=plot.name,
        title="門",
        resources=resources,
        language=JAPANESE,
        validation=Validation.DATE,
        frame=plot.frame(0.1, plot.link("Home", "/")),
        robots=_ROBOTS,
        forbidden=frozenset(_FORBIDDEN),
    )


def _guarded_page(plot: Plot, target: str) -> Document:
    """Not in the sitemap: who never goes behind the wall never hears of it."""
    story = plot.story(target, language=JAPANESE)
    return Document(history=story, born_at=plot.earlier(target), in_sitemap=False)
