"""The choice between two orders of visits by what they would have lost."""

import numpy as np
import pytest

from freshet.crawler.extensions.readers.search_orders import PairedLoss, paired_loss
from freshet.scheduler.arrays import Floats
from freshet.scheduler.evaluate.captures import Captures

PAGES, DAYS = 24, 240


def past(rng: np.random.Generator) -> Captures:
    """Pages that change every five days, visited every second day."""
    page = np.repeat(np.arange(PAGES), DAYS // 2)
    at = np.tile(np.arange(0.0, DAYS, 2.0), PAGES) + page / PAGES
    changed = rng.random(len(page)) < 1 - np.exp(-2 / 5)
    content = np.cumsum(changed)
    return Captures.of(page, at, content, importance=np.ones(PAGES))


def judged(change_of: Floats, seed: int = 1) -> PairedLoss | None:
    captures = past(np.random.default_rng(seed))
    change = change_of[captures.page]
    return paired_loss(captures, change, np.ones(PAGES))


def test_marks_gain_where_few_pages_bear_the_loss() -> None:
    """Half of the visits would do, and these pages get them."""
    found = judged(np.where(np.arange(PAGES) < 4, 1.0, 1e-6))
    assert found is not None
    assert found.marked < 0.8 * found.plain
    assert found.is_gain


def test_marks_gain_nothing_in_the_mean_where_all_pages_are_alike() -> None:
    # In one past the luck of either order is a tenth of the loss.
    found = [it for seed in range(1, 9) if (it := judged(np.ones(PAGES), seed)) is not None]
    plain, marked = sum(it.plain for it in found), sum(it.marked for it in found)
    assert marked == pytest.approx(plain, rel=0.1)
    assert sum(it.is_gain for it in found) <= 3
    assert min(it.changes for it in found) > 400


def test_nothing_is_judged_of_too_little() -> None:
    assert judged(np.zeros(PAGES)) is None
    assert paired_loss(Captures.of([], [], [], importance=[]), np.zeros(0), np.zeros(0)) is None
