"""Pages of a site that lead to unknown sites: H_t of appendix 9.1.

The new nodes are other sites, not pages; each is revealed by the old pages that link to it, and by
those that lead to it through new pages only. The covers are chosen as for pages.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from freshet.scheduler.arrays import Floats, Ints
from freshet.scheduler.discovery.reveals import Reveals, Sightings, from_rows, reveals_of


@dataclass(frozen=True, slots=True)
class SiteSightings:
    """The history of the links of a site to others; times as in ``pages``.

    Attributes:
        pages: the pages of the site that links, and the links between them.
        first_at: when each other site was first seen, by whatever page; of shape (sites,).
        source, target: the page and the other site that a link leads to; of shape (links,).
        seen_at: when it was first seen.
    """

    pages: Sightings
    first_at: Floats
    source: Ints
    target: Ints
    seen_at: Floats

    def between(self, start: float, end: float) -> Reveals:
        """Return H_t of the sites first seen after ``start``, up to ``end``."""
        sources, targets, old, both = self.pages.links_between(start, end)
        is_new = (start < self.first_at) & (self.first_at <= end)
        known = (self.source < both) & is_new[self.target]
        known[known] = self.pages.may_be_there(self.source[known], self.seen_at[known], end)
        number = np.cumsum(is_new) - 1
        new = int(is_new.sum())
        graph = reveals_of(
            old,
            both - old + new,
            np.concatenate((sources, self.source[known])),
            np.concatenate((targets, both + number[self.target[known]])),
        )
        return _without_pages(graph, both - old)


def _without_pages(graph: Reveals, pages: int) -> Reveals:
    """Return the graph without its first new nodes: the pages, which only lead there."""
    rows = ((int(page), graph.of(int(page))) for page in np.flatnonzero(graph.set_of >= 0))
    return from_rows(
        graph.old,
        graph.new - pages,
        ((page, found[found >= pages] - pages) for page, found in rows),
    )
