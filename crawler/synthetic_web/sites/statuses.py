"""A site with every status that a crawler meets: redirects, refreshes, errors."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from freshet.crawler.synthetic_web.resources import Document, Fault, Head, Redirect, Resource
from freshet.crawler.synthetic_web.site import Site
from freshet.crawler.synthetic_web.sites.plot import Plot

#: Hops from the head of each chain to its end.
CHAINS = {"short": 3, "longest": 10, "endless-looking": 12}


def statuses(plot: Plot) -> Site:
    """No robots.txt. 302, 303, 307 and 308, a loop, chains, faults that pass or stay."""
    resources = {
        **dict(_redirects(plot)),
        **dict(_faults(plot)),
        "/refresh": _status_page(plot, "/refresh", refresh="/refreshed"),
        "/refreshed": _status_page(plot, "/refreshed"),
        "/gone": Document(history=plot.story("/gone"), born_at=0.0, died_at=1.0),
    }
    for name, hops in CHAINS.items():
        resources |= _chain(plot, name, hops)
    linked = [*resources, "/missing"]
    links = [plot.link(t, t) for t in linked if t not in _ENDS and "/hop-" not in t]
    home = plot.story("home", title="Every status", paragraphs=3, links=links)
    resources["/"] = Document(history=home, born_at=plot.earlier("home"))
    return Site(
        name=plot.name,
        title="Status board",
        resources=resources,
        frame=plot.frame(0.1, plot.link("Home", "/")),
    )


#: What is reached by a redirect only.
_ENDS = frozenset({"/found", "/refreshed", *(f"/{name}/end" for name in CHAINS)})


def _redirects(plot: Plot) -> Iterator[tuple[str, Resource]]:
    found = plot.place("/found")
    yield "/found", _status_page(plot, "/found")
    for status in (301, 302, 303, 307, 308):
        yield f"/moved-{status}", Redirect(status, found, relative=status % 2 == 0)
    yield "/loop-a", Redirect(302, plot.place("/loop-b"))
    yield "/loop-b", Redirect(302, plot.place("/loop-a"))
    yield "/self", Redirect(301, plot.place("/self"))
    yield "/nowhere", Redirect(302, None)


def _chain(plot: Plot, name: str, hops: int) -> dict[str, Resource]:
    stations = [f"/{name}", *(f"/{name}/hop-{n}" for n in range(1, hops)), f"/{name}/end"]
    chain: dict[str, Resource] = {
        here: Redirect((301, 302, 307, 308)[n % 4], plot.place(there), relative=n % 2 == 0)
        for n, (here, there) in enumerate(pairwise(stations))
    }
    return {**chain, stations[-1]: _status_page(plot, stations[-1])}


def _faults(plot: Plot) -> Iterator[tuple[str, Resource]]:
    yield "/broken", Fault(500)
    yield "/forbidden", Fault(403)
    yield "/now-and-then", Fault(500, _status_page(plot, "/now-and-then"), period=4)
    yield "/busy", Fault(503, _status_page(plot, "/busy"), retry_after_s=1)
    yield "/too-many", Fault(429, _status_page(plot, "/too-many"), retry_after_s=1, as_date=True)


def _status_page(plot: Plot, target: str, refresh: str | None = None) -> Document:
    return Document(
        history=plot.story(target),
        born_at=plot.earlier(target),
        head=Head(refresh=refresh),
        in_sitemap=refresh is None,
    )
