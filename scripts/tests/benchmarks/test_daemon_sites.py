"""The accounting of recorded sites."""

from __future__ import annotations

import pytest

from freshet.scheduler.queue.rankers import ranker_of
from scripts.benchmarks.daemon_sites import Costs, Page, kept, looks_a_day, uniform


def test_missed_changes_cost_by_harmonic_numbers_and_the_first_one_alone() -> None:
    page, costs = Page("http://a/", 0.0, 50.0, (1.0, 3.0, 7.0, 20.0)), Costs()
    assert costs.add(page, 0.0, 10.0)
    assert costs.harmonic == pytest.approx(9 + 7 / 2 + 3 / 3)
    assert costs.binary == pytest.approx(9)
    assert not costs.add(page, 10.0, 20.0 - 1e-9)
    assert costs.binary == pytest.approx(9)


def test_what_changes_is_kept_fresher_than_by_looking_at_all_in_turn() -> None:
    quiet = [Page(f"http://a/{n}", 0.0, 300.0, ()) for n in range(18)]
    days = tuple(float(day) for day in range(2, 300, 6))
    pages = [*quiet, *(Page(f"http://a/b{n}", 0.0, 300.0, days) for n in range(2))]
    rate = looks_a_day(pages, 10.0)
    assert rate == pytest.approx(2.0)
    even, ours = (uniform(pages, rate, 1), kept(pages, rate, 1, ranker_of("site_clock", rate)))
    assert ours.harmonic < 0.5 * even.harmonic
    assert ours.binary < 0.7 * even.binary
