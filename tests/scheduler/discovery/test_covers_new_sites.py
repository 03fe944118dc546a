"""Which pages lead to new sites, against the definition by paths."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.discovery.covers import SiteSightings
from freshet.scheduler.discovery.reveal_graph import Sightings

#: Pages and sites of a drawn history; all pages are visited at times 0, 1 and 2.
PAGES, SITES = 5, 4


def story(
    found_at: list[float], links: list[tuple[int, int, float]], out: list[tuple[int, int, float]]
) -> SiteSightings:
    visits = [(page, at) for at in (0.0, 1.0, 2.0) for page, found in enumerate(found_at)
             if found <= at]  # fmt: skip
    pages = Sightings(
        np.array(found_at, float), np.array([each[0] for each in links], np.int64),
        np.array([each[1] for each in links], np.int64),
        np.array([each[2] for each in links], float),
        np.array([page for page, _ in visits], np.int64), np.array([at for _, at in visits], float),
    )  # fmt: skip
    first = [min((at for _, site, at in out if site == n), default=9.0) for n in range(SITES)]
    return SiteSightings(
        pages, np.array(first, float), np.array([each[0] for each in out], np.int64),
        np.array([each[1] for each in out], np.int64), np.array([each[2] for each in out], float),
    )  # fmt: skip


def test_a_page_leads_to_new_sites_itself_and_through_new_pages() -> None:
    """Page 0 links to site 0; page 1 to page 2, which is new and links to sites 1 and 2."""
    site = story(
        [0, 0, 1], [(1, 2, 1.0)], [(0, 0, 1.0), (2, 1, 1.0), (2, 2, 1.0), (0, 3, 0.0), (1, 3, 1.0)]
    )
    found = site.between(0, 1)
    assert (found.old, found.new, found.orphans) == (2, 3, 0)
    assert [found.of(page).tolist() for page in (0, 1)] == [[0], [1, 2]]
    assert site.between(1, 2).new == 0


def test_a_site_behind_a_page_to_which_nothing_leads_is_an_orphan() -> None:
    found = story([0, 1], [], [(1, 0, 1.0)]).between(0, 1)
    assert (found.new, found.orphans) == (1, 1)


@st.composite
def histories(draw: st.DrawFn) -> SiteSightings:
    found = sorted(float(at) for at in draw(st.lists(st.integers(0, 2), min_size=1, max_size=5)))
    page, site = st.integers(0, len(found) - 1), st.integers(0, SITES - 1)
    links = draw(st.lists(st.tuples(page, page, st.integers(0, 2)), max_size=10))
    out = draw(st.lists(st.tuples(page, site, st.integers(0, 2)), max_size=10))
    seen = {(a, b): max(float(at), found[a], found[b]) for a, b, at in links}
    left = {(a, b): max(float(at), found[a]) for a, b, at in out}
    return story(
        found, [(a, b, at) for (a, b), at in seen.items()],
        [(a, b, at) for (a, b), at in left.items()],
    )  # fmt: skip


@given(histories())
def test_a_site_is_revealed_by_whatever_a_path_of_new_pages_comes_from(
    drawn: SiteSightings,
) -> None:
    pages = drawn.pages
    found = drawn.between(0, 1)
    new = [n for n in range(SITES) if drawn.first_at[n] == 1]
    at = pages.found_at.tolist()
    links = list(zip(pages.source.tolist(), pages.target.tolist(), pages.seen_at.tolist(),
                     strict=True))  # fmt: skip
    out = list(zip(drawn.source.tolist(), drawn.target.tolist(), drawn.seen_at.tolist(),
                   strict=True))  # fmt: skip
    assert (found.old, found.new) == (sum(each == 0 for each in at), len(new))
    for page in range(found.old):
        reached, waiting = {page}, [page]
        while waiting:
            source = waiting.pop()
            for a, b, seen in links:
                if a == source and b not in reached and at[b] == 1 and seen <= 1:
                    reached.add(b)
                    waiting.append(b)
        wanted = {new.index(b) for a, b, seen in out if a in reached and b in new and seen <= 1}
        assert set(found.of(page).tolist()) == wanted
