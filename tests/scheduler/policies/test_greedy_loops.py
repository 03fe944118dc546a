import numpy as np
import pytest

from freshet.scheduler.policies.greedy_index import (
    GreedyIndex,
    GreedyIndexBinary,
    binary_loop,
    harmonic_loop,
    valuation,
)
from freshet.scheduler.policies.noisy_signal_index import NoisySignalIndex
from freshet.scheduler.policy import IndexPolicy
from freshet.scheduler.sources import SourceTable

MANY = 30_000


def mixed(n: int) -> SourceTable:
    """All magnitudes, some zeros, some pending signals."""
    rng = np.random.default_rng(1)
    return SourceTable.of(
        *(10 ** rng.uniform(-9, 9, (2, n)) * (rng.random((2, n)) > 0.02)),
        complete_observations=rng.random(n) < 0.2,
        pending_signals=rng.integers(0, 4, n),
        last_crawl=-(10 ** rng.uniform(-6, 3, n)),
    )


@pytest.mark.parametrize("policy", [GreedyIndex(), GreedyIndexBinary()])
def test_the_compiled_index_is_the_index(policy: IndexPolicy) -> None:
    table = mixed(MANY)
    np.testing.assert_allclose(valuation(policy, MANY)(table, 1.0), policy.index(table, 1.0), 1e-12)


@pytest.mark.parametrize(
    ("loop", "policy"), [(harmonic_loop, GreedyIndex()), (binary_loop, GreedyIndexBinary())]
)
def test_the_loop_itself_is_the_index(loop: object, policy: IndexPolicy) -> None:
    table, worth = mixed(300), np.empty(300)
    assert callable(loop)
    loop(
        table.importance, table.change_rate, table.complete_observations, table.last_crawl,
        table.pending_signals, 1.0, worth,
    )  # fmt: skip
    np.testing.assert_allclose(worth, policy.index(table, 1.0), rtol=1e-12)


def test_few_sources_and_other_policies_are_not_compiled() -> None:
    policy = GreedyIndex()
    assert valuation(policy, 10) == policy.index
    assert valuation(policy, MANY) != policy.index
    noisy = NoisySignalIndex()
    assert valuation(noisy, MANY) == noisy.index
