import numpy as np
import pytest

from freshet.compiled.numeric import record
from freshet.scheduler.estimate.site_model import GENERAL_PRIOR, Pages, SiteLearner
from tests.scheduler.estimate.slow_site import SlowSite


class Fast:
    """The same site as a :class:`SlowSite`, learnt by the learner."""

    def __init__(self, area: np.ndarray, above: np.ndarray) -> None:
        self.pages = Pages(np.zeros(len(area), record("page")))
        self.pages.page["area"], self.pages.page["above"] = area, above
        self.belief = np.tile(GENERAL_PRIOR, (len(area), 1)).astype(np.float32)
        self.learner = SiteLearner()
        for row in range(len(area)):
            self.visit(row, 0.0, changed=None)

    def visit(self, row: int, at: float, *, changed: bool | None) -> None:
        visit = np.zeros(1, record("visit"))
        visit["row"], visit["at"], visit["compared"] = row, at, changed is not None
        visit["changed"] = bool(changed)
        self.learner.learn(self.pages, visit, self.belief)

    def days(self, now: float) -> np.ndarray:
        since = np.zeros(len(self.belief))
        self.learner.write_days(self.pages, self.belief, now, since)
        return since


@pytest.mark.parametrize("seed", range(8))
def test_the_learner_does_what_the_equations_say(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 40))
    area, above = rng.integers(0, 3, n), rng.integers(-4, 5, n) * (seed % 2)
    slow, fast = SlowSite(area, above), Fast(area, above)
    now = 0.0
    for _ in range(20):
        now += float(rng.gamma(1.0, 8.0)) + 1.1
        changing = set(np.flatnonzero(rng.random(n) < rng.choice([0.0, 0.1, 0.9])).tolist())
        for row in rng.permutation(n)[: int(2 * np.sqrt(n))].tolist():
            slow.visit(row, now, changed=row in changing)
            fast.visit(row, now, changed=row in changing)
    assert fast.learner.site.facts[0]["sessions"] == len(slow.began)
    mine = fast.days(now)
    belief, passed, clocked = slow.fit()
    assert fast.learner.proven == clocked
    np.testing.assert_allclose(fast.belief, belief, atol=2e-3)
    np.testing.assert_allclose(fast.learner.fit.passed, passed, rtol=2e-2, atol=1e-2)
    if clocked:
        np.testing.assert_allclose(mine, slow.days(now), rtol=2e-2, atol=1e-2)
