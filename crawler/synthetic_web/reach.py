"""What a complete polite crawl finds: a walk over the truth, not over rendered pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from freshet.crawler.synthetic_web.content import Place
from freshet.crawler.synthetic_web.manifests import listed
from freshet.crawler.synthetic_web.resources import Document, Fault, File, Manifest, Redirect
from freshet.crawler.synthetic_web.site import Site

#: Redirects in a row that are followed.
MAX_REDIRECTS = 10


def reachable(sites: Mapping[str, Site], seeds: Iterable[str], at: float) -> frozenset[Place]:
    """The pages that a complete polite crawl from the roots of some sites finds at a time.

    It follows links and sitemaps within the sites that are seeds (and where their roots
    redirect to), redirects and immediate refreshes up to :data:`MAX_REDIRECTS` in a row;
    neither what robots.txt forbids nor nofollow links; it asks again after a fault. Pages
    are what answers 200 with text or PDF and does not refresh to another place. The pages of
    endless sets are left out, whatever leads there.
    """
    walk = _Walk(sites, at)
    for name in seeds:
        walk.start(name)
    return walk.finish()


class _Walk:
    """Places to look at with the number of redirects that led there; the fewest count."""

    def __init__(self, sites: Mapping[str, Site], at: float) -> None:
        self._sites = sites
        self._at = at
        self._scope: set[str] = set()
        self._open: list[tuple[Place, int]] = []
        self._hops: dict[Place, int] = {}
        self._pages: set[Place] = set()

    def start(self, name: str) -> None:
        moved = self._sites[name].moved_to
        self._scope.add(name)
        self._open.append((Place(name, "/"), 0))
        if moved is not None and moved not in self._scope:
            self.start(moved)
        if any(r is Manifest.SITEMAP_INDEX for r in self._sites[name].resources.values()):
            targets = (target for target, _ in listed(self._sites[name], self._at))
            self._open += ((Place(name, target), 0) for target in targets)

    def finish(self) -> frozenset[Place]:
        while self._open:
            place, hops = self._open.pop()
            if self._is_worth_asking(place, hops):
                self._hops[place] = hops
                self._visit(place, hops)
        return frozenset(self._pages)

    def _is_worth_asking(self, place: Place, hops: int) -> bool:
        if place.host not in self._scope or hops > MAX_REDIRECTS:
            return False
        site = self._sites[place.host]
        if place.target in site.forbidden or site.trap(place.target) is not None:
            return False
        return hops < self._hops.get(place, MAX_REDIRECTS + 1)

    def _visit(self, place: Place, hops: int) -> None:
        site = self._sites[place.host]
        if site.moved_to is not None:
            self._follow(Place(site.moved_to, place.target), hops)
            return
        match site.find(place.target):
            case Redirect(to=to):
                self._follow(to, hops)
            case File() as file if file.is_page:
                self._pages.add(place)
            case Document() as page:
                self._read(site, place, page, hops)
            case Fault(then=Document() as page):
                self._read(site, place, page, hops)

    def _read(self, site: Site, place: Place, page: Document, hops: int) -> None:
        if not page.is_alive(self._at):
            if page.moved_to is not None and self._at >= page.born_at:
                self._follow(Place(site.name, page.moved_to), hops)
        elif page.head.refresh is not None:
            self._follow(Place(site.name, page.head.refresh), hops)
        else:
            self._pages.add(place)
            links = () if page.head.nofollow else page.content_at(self._at).links + site.frame.links
            self._open += (
                (link.leads_to, 0)
                for link in links
                if link.leads_to is not None and "nofollow" not in link.rel
            )

    def _follow(self, place: Place | None, hops: int) -> None:
        if place is not None:
            self._open.append((place, hops + 1))
