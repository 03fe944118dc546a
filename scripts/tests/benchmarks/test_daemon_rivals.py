"""What others would look at next."""

from __future__ import annotations

import numpy as np
import pytest

from freshet.scheduler.policies.adaptive_intervals import StormCrawlerAdaptive
from freshet.scheduler.queue.ranker import Ranker
from scripts.benchmarks.daemon_rivals import RIVALS, ByPace, Published
from scripts.benchmarks.daemon_sites import Page, kept, looks_a_day, uniform

ZEROS = np.zeros(2, np.intp)


def test_the_page_that_is_due_first_comes_first() -> None:
    by_pace = ByPace(StormCrawlerAdaptive(first_days=4.0, min_days=1.0))
    by_pace.add(ZEROS, ZEROS, np.ones(2), np.array([0.0, 1.0]))
    assert by_pace.values(4.5).tolist() == [0.5, -0.5]
    by_pace.visited(0, 4.5, changed=False)
    by_pace.visited(1, 5.5, changed=True)
    # 4 · 1.5 days after day 4.5, (4 + 1)/2 days after day 5.5
    assert by_pace.values(10.0).tolist() == [-0.5, 2.0]


def test_the_published_lambda_crawl_looks_at_the_times_of_a_poisson_process() -> None:
    published = Published(1, 0.5, seed=1)
    published.add(np.zeros(1, np.intp), np.zeros(1, np.intp), np.ones(1), np.zeros(1))
    spans, last = [], 0.0
    for tick in range(1, 12_000):
        now = tick / 8
        if published.values(now)[0] >= 0:
            published.visited(0, now, changed=False)
            spans.append(now - last)
            last = now
    # In ticks of an eighth of a day: the exponential law with mean 2, rounded up.
    assert np.mean(spans) == pytest.approx(2.0 + 1 / 16, rel=0.1)
    assert np.std(spans) == pytest.approx(2.0, rel=0.1)


def test_a_page_that_is_gone_is_in_no_plan_of_the_published_one() -> None:
    published = Published(2, 1.0, seed=1)
    published.add(ZEROS, ZEROS, np.ones(2), np.zeros(2))
    published.gone(0)
    late = published.values(1.0)
    assert late[0] < -1e9
    assert late[1] > -1e3


@pytest.mark.parametrize("name", RIVALS)
def test_every_rival_can_be_set_beside_uniform_looks(name: str) -> None:
    pages = [Page(f"http://a/{n}", 0.0, 90.0, tuple(range(3 + n, 90, 9))) for n in range(6)]
    pages += [Page(f"http://a/q{n}", 10.0 * n, 90.0, ()) for n in range(6)]
    rate = looks_a_day(pages, 4.0)
    rival: Ranker = RIVALS[name].make(len(pages), 1, rate)
    share = kept(pages, rate, 1, rival).harmonic / uniform(pages, rate, 1).harmonic
    assert 0.2 < share < 3.0
