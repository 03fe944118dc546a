import doctest
from dataclasses import replace

import numpy as np
import pytest

from freshet.scheduler.arrays import Floats
from freshet.scheduler.ephemeral.sources import EphemeralSources
from scripts.reproductions import whittle_lspe as lspe
from scripts.reproductions.whittle_lspe import Settings, learn
from tests.scheduler.ephemeral.tables import TABLE_1


def test_the_examples_in_the_documentation_are_right() -> None:
    assert doctest.testmod(lspe).failed == 0


def chances(q: Floats, x: Floats, table: EphemeralSources, scale: float, kappa: float) -> Floats:
    """f of section III, source by source, as it is printed."""
    found = []
    for i in range(len(x)):
        others = sum(x[k] for k in range(len(x)) if k != i)
        threshold = q[i][0] + q[i][1] * others + q[i][2] * others**2
        u, alpha = table.fresh[i] / scale, table.retention[i]
        threshold = min(max(threshold, u), u / (1 - alpha))
        power = np.exp(kappa * (x[i] - threshold - 0.5))
        found.append(power / (1 + power))
    return np.array(found)


def by_the_paper(
    table: EphemeralSources, settings: Settings, steps: int, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """q, r and rewards by section IV, with (8) as it is printed and the inverse written out."""
    n = len(table)
    u, alpha, c = table.fresh / settings.scale, table.retention, settings.step

    def phi(x: Floats) -> Floats:
        return np.array([*x, *(x[i] * x[j] for i in range(n) for j in range(i, n))])

    x, q, rewards = u.copy(), np.zeros((n, 3)), []
    size = len(phi(x))
    r, eta, small_b = np.zeros(size), 0.0, np.zeros(size)
    big_b, big_a = settings.start * np.eye(size), np.zeros((size, size))
    drawn = rng.random((steps, n))
    for step in range(1, steps + 1):
        a, b = c / np.ceil(step / 500), c / np.ceil(step / 1000) ** (2 / 3)
        f = chances(q, x, table, settings.scale, settings.kappa)
        crawled = drawn[step - 1] < f
        after = np.array([u[i] if crawled[i] else alpha[i] * x[i] + u[i] for i in range(n)])
        rewards.append(settings.scale * sum(x[i] for i in range(n) if crawled[i]))
        gradient = np.zeros((n, 3))
        for i in range(n):
            others = sum(x[k] for k in range(n) if k != i)
            p = f[i] if crawled[i] else 1 - f[i]
            # (8): I{passive}/p(passive) − I{active}/p(active), times ψ p (1 − p).
            sign = -1.0 if crawled[i] else 1.0
            gradient[i] = settings.kappa * sign / p * np.array([1, others, others**2]) * p * (1 - p)
        big_b += b * (np.outer(phi(x), phi(x)) - big_b)
        big_a += b * (np.outer(phi(x), phi(after) - phi(x)) - big_a)
        driving = rewards[-1] / settings.scale if settings.drive == "crawled" else x.sum()
        small_b += b * (phi(x) * (driving - eta) - small_b)
        inverse = np.linalg.inv(big_b.T @ big_b + settings.regularisation * np.eye(size)) @ big_b.T
        q, r = (
            q + a * gradient * (r @ phi(after)),
            r + settings.gamma * inverse @ (big_a @ r + small_b),
        )
        eta += b * (driving - eta)
        x = after
    return q, r, np.array(rewards)


@pytest.mark.parametrize("drive", lspe.DRIVES)
def test_the_iterates_are_those_of_the_paper_written_out(drive: lspe.Drive) -> None:
    settings = Settings(step=0.3, regularisation=0.5, scale=100.0, drive=drive)
    q, r, rewards = by_the_paper(TABLE_1, settings, 1100, np.random.default_rng(4))
    found = learn(TABLE_1, settings, 1100, np.random.default_rng(4))
    assert found.reward == pytest.approx(rewards)
    assert found.thresholds == pytest.approx(q, rel=1e-6)
    assert found.values == pytest.approx(r, rel=1e-6, abs=1e-9)
    assert found.diverged is None


def test_the_gradient_is_that_of_the_probability_of_what_happened() -> None:
    # The closed form κψ(f − ν) beside differences of log p, at thresholds that are not held.
    scale, kappa = 100.0, 2.0
    x = np.array([2.2, 2.4, 0.5, 0.4])
    q = np.tile([0.1, 0.2, 0.05], (4, 1)) * np.array([[1], [1], [0.2], [0.1]])
    crawled = np.array([True, False, True, False])

    def log_p(at: Floats) -> float:
        f = chances(at, x, TABLE_1, scale, kappa)
        return float(np.log(np.where(crawled, f, 1 - f)).sum())

    f = chances(q, x, TABLE_1, scale, kappa)
    psi = lspe.threshold_features(x)
    closed = kappa * (f - crawled)[:, None] * psi
    threshold = (q * psi).sum(axis=1)
    free = (TABLE_1.fresh / scale < threshold) & (threshold < TABLE_1.ceiling / scale)
    assert free.sum() >= 2
    for i in np.flatnonzero(free):
        for j in range(3):
            step = np.zeros((4, 3))
            step[i, j] = 1e-6
            slope = (log_p(q + step) - log_p(q - step)) / 2e-6
            assert slope == pytest.approx(closed[i, j], rel=1e-6)


def test_a_seed_gives_the_same_run_and_another_one_another() -> None:
    runs = [learn(TABLE_1, Settings(), 300, np.random.default_rng(seed)) for seed in (1, 1, 2)]
    assert (runs[0].reward == runs[1].reward).all()
    assert (runs[0].crawled != runs[2].crawled).any()
    assert (runs[0].crawled.sum(axis=1) > 1).any()


def test_no_reward_is_above_what_waits_and_states_stay_in_their_intervals() -> None:
    found = learn(TABLE_1, Settings(), 400, np.random.default_rng(1))
    assert (found.reward <= TABLE_1.ceiling.sum()).all()
    assert (found.reward[found.crawled.any(axis=1)] >= TABLE_1.fresh.min() * (1 - 1e-9)).all()


@pytest.mark.parametrize("gamma", [1e200, 1e300])
def test_iterates_that_are_not_finite_are_told_of_and_end_the_learning(gamma: float) -> None:
    found = learn(TABLE_1, Settings(gamma=gamma), 200, np.random.default_rng(1))
    assert found.diverged is not None
    assert np.isfinite(found.thresholds).all()
    assert np.isfinite(found.values).all()
    assert np.isfinite(found.reward).all()
    assert found.crawled[-50:].any()


def test_sources_that_hardly_fade_and_one_source_alone_are_borne() -> None:
    hardly = EphemeralSources.of(250, [1.0, 0.5], [1e-16, 0.5])
    for table in (hardly, EphemeralSources.of(3, 1, 0.4)):
        found = learn(table, Settings(), 60, np.random.default_rng(2))
        assert np.isfinite(found.reward).all()


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ((1, 1, [0.5, 0.0]), "decay: row 1 is 0"),
        (([0.0, 1.0], 1, 0.5), "arrival_rate: row 0 is 0"),
        ((1, [1.0, 0.0], 0.5), "mean_utility: row 1 is 0"),
    ],
)
def test_sources_without_thresholds_are_refused(
    columns: tuple[float | list[float], ...], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        learn(EphemeralSources.of(*columns), Settings(), 5, np.random.default_rng(1))


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="steps: are 0; accepted is at least 1"):
        learn(TABLE_1, Settings(), 0, np.random.default_rng(1))
    for name in ("kappa", "gamma", "step", "regularisation", "start", "scale"):
        for bad in (0.0, -1.0, np.nan, np.inf):
            with pytest.raises(ValueError, match=f"{name}: is "):
                replace(Settings(), **{name: bad})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="drive: is 'all'; accepted are waiting, crawled"):
        Settings(drive="all")  # type: ignore[arg-type]
