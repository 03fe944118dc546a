"""Judging the whole daemon by a recorded history."""

from __future__ import annotations

import pytest

from scripts.benchmarks.daemon_recorded import Stretch, discovery, staleness, within
from scripts.benchmarks.daemon_sites import Page

DAYS = 40.0


def test_a_stretch_cuts_lives_and_counts_their_days_from_its_first() -> None:
    pages = {
        1: Page("a", 0.0, 100.0, (20.0, 60.0, 95.0)),
        2: Page("b", 0.0, 50.0, (20.0,)),
        3: Page("c", 70.0, 80.0, ()),
        4: Page("d", 90.0, 99.0, ()),
    }
    assert within(pages, Stretch(50.0, DAYS, 5.0)) == {
        1: Page("a", -50.0, 40.0, (10.0,)),
        3: Page("c", 20.0, 30.0, ()),
    }


def test_staleness_is_that_of_what_was_found_beside_uniform_looks() -> None:
    pages = {
        1: Page("http://a/1", -1.0, DAYS, (11.25, 31.25)),
        2: Page("http://a/2", -1.0, DAYS, ()),
        3: Page("http://a/3", -1.0, DAYS, (5.0,)),
    }
    # Stale for one day and for two, of 80. With 40 requests uniform visits see the page every
    # other day, for 0.75 days each; with 4 visits on day 20 only, for 8.75 each.
    found = staleness(pages, {1: [0.0, 12.25, 33.25], 2: [0.0]}, 40, DAYS)
    assert found["fresh"] == pytest.approx(1 - 3 / 80, abs=1e-4)
    assert found["fresh_if_uniform"] == pytest.approx(1 - 1.5 / 80, abs=1e-4)
    assert found["binary_of_uniform"] == found["harmonic_of_uniform"] == pytest.approx(3 / 1.5)
    assert found["looks_of_requests"] == 0.1
    assert found["binary_of_as_many_looks"] == pytest.approx(3 / 17.5, abs=1e-4)


def test_pages_are_found_of_those_alive_and_new_ones_after_days() -> None:
    pages = {
        1: Page("a", -1.0, DAYS, ()),
        2: Page("b", 3.0, DAYS, ()),
        3: Page("c", 5.0, 20.0, ()),
        4: Page("d", -1.0, DAYS, ()),
    }
    assert discovery(pages, {1: [0.0], 2: [4.0, 9.0], 3: [8.0]}, {1, 2}, DAYS) == {
        "alive_at_end": 3, "found_of_alive": 0.6667, "linked_at_end": 2, "found_of_linked": 1.0,
        "new_pages": 2, "new_found": 2, "delay_days": {"mean": 2.0, "median": 2.0},
    }  # fmt: skip
