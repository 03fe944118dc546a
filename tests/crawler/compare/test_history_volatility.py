"""When a slot is volatile, when content again, and when something alternates."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.compare.history import (
    ALWAYS,
    COME,
    FLIP_WINDOW,
    GONE,
    STREAK,
    STREAK_AGAINST_THE_SITE,
    WINDOW,
    SlotHistory,
    alternates,
    later,
)


def volatile_after(history: str, *, streak: int = STREAK) -> bool:
    """Whether a slot is volatile after comparisons: ``x`` replaced, ``.`` stood still."""
    slot = SlotHistory(0)
    for n, mark in enumerate(history):
        slot = slot.after(n, replaced=mark == "x", streak=streak)
    return slot.volatile


@pytest.mark.parametrize(
    ("history", "volatile"),
    [("", False), ("xx", False), ("xxx", True), ("xxx.", True), ("xxx..", False),
     ("xxx.x.x", True), ("xxx..x", False), (".xxx", False), (".xxxx", True), ("x.x.x.x.", False),
     (".....xxxxxxx", False), (".....xxxxxxxx", True), ("..........xxxxxxxx", True)],
)  # fmt: skip
def test_a_slot_is_volatile_after_an_unbroken_run_of_replacements(
    history: str, volatile: bool
) -> None:
    assert volatile_after(history) is volatile
    # Against the site a longer run is wanted.
    assert not volatile_after("x" * 7, streak=STREAK_AGAINST_THE_SITE)
    assert volatile_after("x" * 8, streak=STREAK_AGAINST_THE_SITE)


def test_visits_without_a_difference_count_as_standing_still() -> None:
    slot = SlotHistory(5).after(6, replaced=True)
    still = slot.after_stillness(2)
    assert still == slot.after(6, replaced=False).after(6, replaced=False)
    assert still.share == (1, 3)


@given(st.text("x.", max_size=40))
def test_a_history_is_bounded_and_tells_its_last_comparisons(history: str) -> None:
    slot = SlotHistory(0)
    for mark in history:
        slot = slot.after(1, replaced=mark == "x")
    assert slot.share == (history[-WINDOW:].count("x"), min(len(history), WINDOW))


@pytest.mark.parametrize(
    ("visits", "expected"),
    [("x", False), ("x.", False), ("x.x", True), (".x.", False), ("x.x.", True), (".x.x", True),
     (".x.....x", True), (".x......x", False), ("xxxx....", False), ("x.x........", False)],
)  # fmt: skip
def test_what_came_or_went_three_times_within_the_window_alternates(
    visits: str, expected: bool
) -> None:
    presence = 0
    for mark in visits:
        presence = later(presence, present=mark == "x")
    assert alternates(presence) is expected


def test_many_equal_visits_count_one_by_one() -> None:
    assert later(COME, present=True, visits=2) == later(later(COME, present=True), present=True)
    assert later(COME, present=True, visits=FLIP_WINDOW) == ALWAYS
    assert later(GONE, present=False, visits=FLIP_WINDOW) == 0
