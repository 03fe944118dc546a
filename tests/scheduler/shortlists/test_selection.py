import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.shortlists.ranks import outranks
from freshet.scheduler.shortlists.selection import select


@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.booleans())
def test_nobody_left_out_outranks_the_bar_of_its_kind(seed: int, size: int, limit: bool) -> None:
    rng = np.random.default_rng(seed)
    m = int(rng.integers(0, 200))
    worth = np.round(rng.exponential(1.0, m), int(rng.integers(0, 4)))
    host = rng.integers(0, 5, m)
    limited = rng.random(5) < 0.5 if limit else None
    selection = select(worth, host, limited, size)
    assert (np.diff(selection.chosen) > 0).all()
    left_out = np.setdiff1d(np.flatnonzero(worth > 0), selection.chosen)
    held = selection.held_back
    bars = {
        int(h): (float(w), int(r) if r >= 0 else m)
        for h, w, r in zip(held.host, held.worth, held.row, strict=True)
    }
    for position in left_out.tolist():
        rank = (float(worth[position]), position)
        bar = bars.get(int(host[position]), selection.bar)
        assert not outranks(rank, bar)


def test_at_least_as_many_are_chosen_as_were_asked_for() -> None:
    worth = np.arange(1.0, 1_001.0)
    selection = select(worth, np.zeros(1_000, np.intp), None, 50)
    assert 50 <= len(selection.chosen) <= 100
    assert selection.chosen[-1] == 999


def test_what_is_worth_nothing_is_not_chosen() -> None:
    assert not len(select(np.zeros(9), np.zeros(9, np.intp), None, 5).chosen)


def test_a_host_that_is_limited_leaves_room_for_the_others() -> None:
    worth = np.concatenate([np.full(500, 9.0), np.ones(20)])
    host = np.repeat([0, 1], [500, 20])
    selection = select(worth, host, np.array([True, False]), 10)
    assert (host[selection.chosen] == 1).sum() >= 10
    assert (host[selection.chosen] == 0).sum() == 10
