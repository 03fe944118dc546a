"""A shop: prices change, products come to an end; parameters make the pages."""

from __future__ import annotations

from collections.abc import Iterator

from freshet.crawler.synthetic_web.content import Link
from freshet.crawler.synthetic_web.histories import Entry, Listing
from freshet.crawler.synthetic_web.languages import GERMAN
from freshet.crawler.synthetic_web.manifests import SITEMAPS
from freshet.crawler.synthetic_web.resources import Document, Resource
from freshet.crawler.synthetic_web.site import Site, Skin, Validation
from freshet.crawler.synthetic_web.sites.plot import OPEN_ROBOTS, Plot

_PER_CATEGORY = 8
#: Every sixth product is sold out one day.
_SOLD_OUT = 6


def shop(plot: Plot) -> Site:
    """German ``div`` soup without validators; links carry ``utm_`` parameters."""
    # A category has its products in two orders: two pages more.
    products = max(2, (plot.pages - 1) * _PER_CATEGORY // (_PER_CATEGORY + 2))
    resources: dict[str, Resource] = dict(SITEMAPS)
    categories = []
    for category, first in enumerate(range(0, products, _PER_CATEGORY), start=1):
        shelf = dict(_shelf(plot, range(first, min(products, first + _PER_CATEGORY))))
        resources |= shelf
        resources |= _category(plot, category, shelf)
        categories.append(plot.link(f"Kategorie {category}", f"/list?category={category}"))
    home = plot.story("home", language=GERMAN, title="Willkommen", links=categories)
    resources["/"] = Document(history=home, born_at=plot.earlier("home"))
    return Site(
        name=plot.name,
        title="Kaufhaus am Bach",
        resources=resources,
        language=GERMAN,
        skin=Skin.SOUP,
        validation=Validation.NONE,
        frame=plot.frame(0.3, plot.link("Start", "/"), *categories),
        robots=OPEN_ROBOTS,
    )


def _shelf(plot: Plot, numbers: range) -> Iterator[tuple[str, Document]]:
    for n in numbers:
        target = f"/product?id={n}"
        # From a new price every other day to one in three weeks.
        per_day = 0.5 / (1 + n % 10)
        edits = plot.edits(target, per_day, figure=True)
        story = plot.story(target, language=GERMAN, figure=True, edits=edits)
        died_at = plot.later(target) if n % _SOLD_OUT == 1 else None
        yield target, Document(history=story, born_at=plot.earlier(target), died_at=died_at)


def _category(
    plot: Plot, category: int, shelf: dict[str, Document]
) -> Iterator[tuple[str, Document]]:
    entries = [
        Entry(_advertised(plot, target, page), page.born_at, page.died_at)
        for target, page in shelf.items()
    ]
    by_name = sorted(entries, key=lambda entry: entry.link.text)
    plain, by = f"/list?category={category}", f"/list?category={category}&sort=name"
    title = f"Kategorie {category}"
    for target, other, shown in ((plain, by, entries), (by, plain, by_name)):
        switch = Entry(plot.link("Andere Reihenfolge", other), 0.0)
        listing = Listing(title, shown, tail=(switch,))
        yield target, Document(history=listing, born_at=plot.earlier(plain), in_sitemap=False)


def _advertised(plot: Plot, target: str, page: Document) -> Link:
    text = page.history.content(0).title
    return Link(text, plot.place(target), href=f"{target}&utm_source=list&utm_medium=web")
