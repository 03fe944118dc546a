"""Change rates are learnt from looks, one by one or many together."""

import numpy as np
import pytest

from freshet.scheduler.agenda.rankers import PageLearner
from freshet.scheduler.estimate.evidence import VisitResults


def looks(*, pages: int, days: int) -> VisitResults:
    """Each day a look at every page; the higher its row, the more often it has changed."""
    rng = np.random.default_rng(4)
    row = np.tile(np.arange(pages), days)
    at = np.repeat(np.arange(days), pages) + row / pages
    compared = at >= 1
    changed = compared & (rng.random(len(row)) < row / pages)
    none = np.zeros(len(row), np.bool_)
    return VisitResults(row, at, compared, changed, none, changed)


def learnt(learning: PageLearner, told: VisitResults, batch: int) -> PageLearner:
    learning.add(np.zeros(10, np.intp), np.ones(10), np.zeros(10))
    for first in range(0, len(told), batch):
        learning.learn(told.take(slice(first, first + batch)))
    return learning


def test_looks_tell_the_same_together_as_one_by_one() -> None:
    told = looks(pages=10, days=40)
    one_by_one = learnt(PageLearner(), told, 1).table()
    # A batch may have a page more than once.
    together = learnt(PageLearner(together=True), told, 100).table()
    assert together.last_crawl.tolist() == one_by_one.last_crawl.tolist()
    # Only the day on which the prior was fitted is another one.
    assert together.change_rate == pytest.approx(one_by_one.change_rate, rel=0.1)
    assert together.change_rate[5:].min() > together.change_rate[:4].max()


def test_an_order_of_looks_can_be_taken() -> None:
    told = looks(pages=10, days=2)
    assert told.take(np.array([3, 1])).row.tolist() == [3, 1]
