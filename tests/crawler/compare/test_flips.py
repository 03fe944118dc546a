"""When something alternates."""

import pytest

from freshet.crawler.compare.history import FLIP_WINDOW, Presence


def alternates(visits: str) -> bool:
    """Whether what was there at the visits marked ``x`` alternates after the last."""
    presence = Presence(0)
    for mark in visits:
        presence = presence.after(present=mark == "x")
    return presence.alternates


@pytest.mark.parametrize(
    ("visits", "expected"),
    [("x", False), ("x.", False), ("x.x", True), (".x.", False), ("x.x.", True), (".x.x", True),
     ("x......x", True), ("x.......x", False), ("xxxx....", False), ("x.x........", False)],
)  # fmt: skip
def test_what_came_twice_within_the_window_alternates(visits: str, expected: bool) -> None:
    assert alternates(visits) is expected


def test_what_was_always_or_never_there_is_forgotten() -> None:
    assert Presence.of_come().after(present=True, visits=FLIP_WINDOW).forgotten
    assert Presence.of_gone().after(present=False, visits=FLIP_WINDOW).forgotten
    assert not Presence.of_come().forgotten
    assert not Presence.of_gone().now


def test_many_equal_visits_count_one_by_one() -> None:
    one = Presence.of_come()
    for _ in range(3):
        one = one.after(present=True)
    assert Presence.of_come().after(present=True, visits=3) == one
