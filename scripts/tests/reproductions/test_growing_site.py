"""Sites that grow: what holds of every one, and what each share does."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.discovery.covers import greedy
from scripts.reproductions.growing_site import Growth, growing_site, growing_sites
from scripts.reproductions.link_history import LinkHistory

SMALL = Growth(pages=40, steps=8, entries=6.0, sections=4, listed=3, parts=0.3, part_pages=5.0)
SHARES = st.floats(0.0, 0.5)


def site(growth: Growth, seed: int = 1) -> LinkHistory:
    return growing_site("site", growth, np.random.default_rng(seed))


@st.composite
def growths(draw: st.DrawFn) -> Growth:
    return Growth(
        pages=draw(st.integers(12, 40)), steps=draw(st.integers(1, 9)),
        entries=draw(st.floats(0, 8)), sections=draw(st.integers(1, 4)),
        listed=draw(st.integers(1, 4)), mirrored=draw(SHARES), with_side_bar=draw(SHARES),
        restless=draw(SHARES), scattered=draw(SHARES), orphaned=draw(SHARES),
        behind=draw(st.floats(0, 3)), parts=draw(st.floats(0, 1)),
        part_pages=draw(st.floats(1, 6)),
    )  # fmt: skip


@given(growths(), st.integers(0, 5))
def test_pages_and_links_come_in_order_and_none_before_its_ends(growth: Growth, seed: int) -> None:
    history = site(growth, seed)
    pages = history.born.size
    assert (history.born == 0).sum() == growth.pages
    assert (np.diff(history.born) >= 0).all()
    assert history.born.max() < growth.steps
    for ends in (history.source, history.target):
        assert ((ends >= 0) & (ends < pages)).all()
        assert (history.begin >= history.born[ends]).all()
    assert (history.end >= history.begin).all()
    assert (history.source != history.target).all()


@given(growths(), st.integers(0, 5))
def test_every_page_is_new_once(growth: Growth, seed: int) -> None:
    history = site(growth, seed)
    recrawls = history.recrawls()
    assert len(recrawls) == growth.steps - 1
    assert growth.pages + sum(each.new for each in recrawls) == history.born.size
    assert 0 <= history.linked_directly() <= sum(each.new - each.orphans for each in recrawls)


@given(growths())
def test_the_same_seed_gives_the_same_site(growth: Growth) -> None:
    one, other = site(growth, 3), site(growth, 3)
    assert (one.born == other.born).all()
    assert (one.begin == other.begin).all()
    assert (one.source == other.source).all()


@given(st.integers(0, 20))
def test_without_orphans_every_new_page_is_revealed(seed: int) -> None:
    for week in site(replace(SMALL, orphaned=0.0), seed).recrawls():
        assert week.orphans == 0


def test_orphans_have_no_link_that_an_old_page_leads_to() -> None:
    history = site(replace(SMALL, scattered=0.0, orphaned=1.0, parts=0.0, restless=0.0))
    revealed = [week.new - week.orphans for week in history.recrawls()]
    # In the fourth week every section begins a new page of its archive.
    assert revealed == [0, 0, 0, SMALL.sections, 0, 0, 0]
    assert sum(week.orphans for week in history.recrawls()) > 20


def test_mirrors_reveal_the_same() -> None:
    growth = replace(SMALL, mirrored=1.0, with_side_bar=0.0, scattered=0.0, parts=0.0, orphaned=0.0)
    history = site(growth)
    for week in history.recrawls():
        for first in range(0, 3 * growth.sections, 3):
            assert week.set_of[first] == week.set_of[first + 1]
        assert greedy(week).size <= 2 * growth.sections


def test_a_side_bar_lets_all_pages_of_a_section_reveal() -> None:
    without, with_bars = (
        site(replace(SMALL, with_side_bar=share, sections=1, scattered=0.0, orphaned=0.0))
        for share in (0.0, 1.0)
    )
    assert max((week.degrees > 0).sum() for week in without.recrawls()) < 10
    assert max((week.degrees > 0).sum() for week in with_bars.recrawls()) > 30


def test_sites_of_a_set_differ_and_grow_in_proportion() -> None:
    sites = growing_sites(3, 500, 5_000, 12, seed=1)
    assert [int((each.born == 0).sum()) for each in sites] == [500, 1_581, 5_000]
    for each in sites:
        first = int((each.born == 0).sum())
        a_step = (each.born.size - first) / 11 / first
        assert 0.008 < a_step < 0.032


@pytest.mark.parametrize(
    ("wrong", "words"),
    [({"pages": 11}, "11 pages are too few for 4 sections"), ({"sections": 0}, "too few"),
     ({"steps": 0}, "at least 1"), ({"mirrored": 1.5}, "from 0 to 1"),
     ({"scattered": 0.6, "orphaned": 0.6}, "together"), ({"parts": -1.0}, "at least 0")],
)  # fmt: skip
def test_what_makes_no_site_is_refused(wrong: dict[str, float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        replace(SMALL, **wrong)  # type: ignore[arg-type]
