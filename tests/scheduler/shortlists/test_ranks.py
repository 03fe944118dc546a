import numpy as np

from freshet.scheduler.shortlists.ranks import NOBODY, HeldBack, just_below, outranks


def test_worth_decides_then_the_lower_row() -> None:
    assert outranks((2.0, 9), (1.0, 0))
    assert outranks((1.0, 3), (1.0, 4))
    assert not outranks((1.0, 4), (1.0, 4))


def test_every_worth_outranks_nobody_and_reaches_the_bar_just_below_itself() -> None:
    assert outranks((1e-300, 10**9), NOBODY)
    assert outranks((1.0, 10**9), just_below(1.0))
    assert not outranks((0.5, 0), just_below(1.0))


def test_only_ready_hosts_with_a_higher_bar_are_above() -> None:
    held = HeldBack(np.array([0, 2, 3]), np.array([5.0, 5.0, 1.0]), np.array([10, 10, 10]))
    assert held.above((5.0, 20), None).tolist() == [0, 2]
    assert held.above((5.0, 20), np.array([False, True, True, True])).tolist() == [2]
    assert not len(held.above((5.0, 10), None))
    held.lower(2, (0.5, 3))
    assert held.above((1.0, 20), None).tolist() == [0, 3]


def test_without_hosts_nothing_is_held_back() -> None:
    assert not len(HeldBack())
    assert not len(HeldBack().above(NOBODY, None))
