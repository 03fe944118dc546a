"""Every policy that is installed obeys the laws of its kind; the optimal ones, those of optima."""

import pytest

from freshet.scheduler import policy
from freshet.scheduler.conformance import Objective, verify

OPTIMAL: dict[str, Objective] = {
    "binary_lambda_crawl": "binary",
    "lambda_crawl": "harmonic",
}
OURS = {
    "binary_lambda_crawl", "binary_lambda_crawl_floor", "change_rate", "greedy_index",
    "greedy_index_binary", "lambda_crawl", "lambda_crawl_approx", "noisy_signal_index",
    "nutch_adaptive", "optimal_intervals", "site_clock", "stormcrawler_adaptive", "uniform",
}  # fmt: skip


def test_all_of_ours_are_found_by_their_entry_points() -> None:
    assert set(policy.names()) >= OURS


@pytest.mark.parametrize("name", sorted(OURS))
def test_a_policy_obeys_the_laws_of_its_kind(name: str) -> None:
    verify(policy.load(name), optimal_for=OPTIMAL.get(name))
