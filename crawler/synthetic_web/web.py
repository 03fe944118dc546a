"""A web: its sites, its truth, and what a complete polite crawl of it finds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from freshet.crawler.synthetic_web.content import Place
from freshet.crawler.synthetic_web.reach import reachable
from freshet.crawler.synthetic_web.site import Site
from freshet.crawler.synthetic_web.truth import Truth


@dataclass(frozen=True, slots=True)
class SyntheticWeb:
    """Sites that change between two times (Unix seconds); afterwards they stand still."""

    seed: int
    sites: Mapping[str, Site]
    start_at: float
    end_at: float
    truth: Truth = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "truth", Truth(self.sites))

    @classmethod
    def of(cls, seed: int, sites: Iterable[Site], start_at: float, end_at: float) -> SyntheticWeb:
        """A web of these sites."""
        return cls(seed, {site.name: site for site in sites}, start_at, end_at)

    def crawlable(self, at: float, names: Iterable[str] | None = None) -> frozenset[Place]:
        """The pages (200, text) that a complete polite crawl from the roots finds.

        See :func:`~freshet.crawler.synthetic_web.reach.reachable`. ``names`` are the sites whose
        roots are the seeds, None for all; they are also the scope.
        """
        return reachable(self.sites, self.sites if names is None else names, at)

    def is_trap(self, place: Place) -> bool:
        """Whether a place belongs to an endless set of pages, which no truth lists."""
        site = self.sites.get(place.host)
        return site is not None and site.trap(place.target) is not None
