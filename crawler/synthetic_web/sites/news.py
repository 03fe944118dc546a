"""A news site: articles appear all day, leave the front page, and stay in the archive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby

from freshet.crawler.synthetic_web.chance import DAY_S, poisson_times
from freshet.crawler.synthetic_web.histories import Entry, Listing
from freshet.crawler.synthetic_web.languages import ENGLISH
from freshet.crawler.synthetic_web.manifests import SITEMAPS
from freshet.crawler.synthetic_web.resources import Document, Manifest, Resource
from freshet.crawler.synthetic_web.site import Site, Validation
from freshet.crawler.synthetic_web.sites.plot import OPEN_ROBOTS, Plot

_PER_PAGE = 10
#: Pages of the list of newest articles; older ones are in the archive only.
_LIST_PAGES = 3
#: Articles are corrected in their first days.
_CORRECTED_FOR_S = 3 * DAY_S


@dataclass(frozen=True, slots=True)
class _Article:
    target: str
    page: Document
    entry: Entry

    @property
    def month(self) -> str:
        return _date(self.page.born_at).strftime("%Y-%m")


def news(plot: Plot) -> Site:
    """Listings shift with each article; strong ETags that match no second answer; Atom."""
    articles = sorted(_articles(plot), key=lambda article: article.page.born_at)
    resources: dict[str, Resource] = {article.target: article.page for article in articles}
    months = dict(_months(articles))
    resources |= months
    resources |= _lists(plot, articles)
    resources["/archive/"] = Document(
        history=Listing("Archive", (_entry(plot, t, page) for t, page in months.items())),
        born_at=min(page.born_at for page in months.values()),
        in_sitemap=False,
    )
    resources["/about"] = Document(
        history=plot.story("about", title="About us"), born_at=plot.start_at - DAY_S
    )
    return Site(
        name=plot.name,
        title="The Daily Freshet",
        resources={**resources, **SITEMAPS, "/feed.atom": Manifest.ATOM},
        validation=Validation.BYTES,
        frame=plot.frame(
            0.5,
            plot.link("Home", "/"),
            plot.link("Archive", "/archive/"),
            plot.link("About", "/about"),
        ),
        robots=OPEN_ROBOTS,
    )


def _articles(plot: Plot) -> Iterator[_Article]:
    at_start = max(3, plot.pages - _LIST_PAGES - 4)
    births = [plot.earlier("article", n) for n in range(at_start)]
    births += poisson_times(plot.rng("births"), at_start / 8, plot.start_at, plot.end_at)
    for n, born_at in enumerate(births):
        target = f"/{_date(born_at):%Y/%m/%d}/article-{n}"
        # One in twenty is withdrawn.
        died_at = plot.later("withdrawn", n) if n % 20 == 7 else None
        if died_at is not None and died_at <= born_at:
            died_at = None
        edits = plot.edits(target, 0.4, since=born_at, until=born_at + _CORRECTED_FOR_S)
        story = plot.story(target, edits=edits, links=(plot.link("All articles", "/archive/"),))
        page = Document(history=story, born_at=born_at, died_at=died_at)
        teaser = ENGLISH.sentence(plot.rng(target, "teaser"))
        link = plot.link(story.title, target, note=teaser)
        yield _Article(target, page, Entry(link, born_at, died_at))


def _months(articles: list[_Article]) -> Iterator[tuple[str, Document]]:
    for month, run in groupby(articles, key=lambda article: article.month):
        entries = [article.entry for article in run]
        listing = Listing(f"Archive of {month}", reversed(entries))
        page = Document(history=listing, born_at=entries[0].born_at, in_sitemap=False)
        yield f"/archive/{month}", page


def _lists(plot: Plot, articles: list[_Article]) -> Iterator[tuple[str, Document]]:
    """The front page and the pages after it, each from when there is something to list."""
    entries = [article.entry for article in reversed(articles)]
    after: list[Entry] = []
    for n in reversed(range(min(_LIST_PAGES, -(-len(entries) // _PER_PAGE)))):
        first = n * _PER_PAGE
        born_at = articles[first].page.born_at
        title = f"News, page {n + 1}" if n else "News"
        listing = Listing(title, entries, first=first, count=_PER_PAGE, tail=after)
        target = f"/?page={n + 1}" if n else "/"
        after = [Entry(plot.link("Older news", target), born_at)]
        yield target, Document(history=listing, born_at=born_at, in_sitemap=False)


def _entry(plot: Plot, target: str, page: Document) -> Entry:
    return Entry(plot.link(target.removeprefix("/archive/"), target), page.born_at)


def _date(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)
