"""Captures are checked, put in order, and asked for by day."""

import numpy as np
import pytest

from freshet.scheduler.evaluate.captures import FAILED, GONE, Captures, Timeline, contents_of
from freshet.storage.entries import KINDS, Kind
from tests.scheduler.evaluate.archives import one_page


def test_an_ask_gets_the_latest_capture_at_or_before_its_day() -> None:
    captures = one_page({1.0: 0, 3.0: 1})
    asked = captures.latest(np.zeros(4, np.intp), np.array([0.5, 1.0, 2.9, 9.0]))
    assert asked.tolist() == [-1, 0, 0, 1]


def test_of_two_captures_in_one_moment_the_later_counts() -> None:
    captures = Captures.of([0, 0, 0], [2.0, 1.0, 1.0], [5, 3, 4], importance=[1.0])
    assert captures.at.tolist() == [1.0, 2.0]
    assert captures.content.tolist() == [4, 5]


@pytest.mark.parametrize(
    ("page", "content", "until", "found", "said"),
    [
        ([0, 1], [0, 0], [1.0, 1.0], None, "page: row 1 is 1"),
        ([0, 0], [0, -3], [1.0, 2.0], None, "content: row 1 is -3"),
        ([0, 0], [0, 0], [0.5, 2.0], None, "until: row 0 is 0.5"),
        ([0, 0], [0, 0], [2.5, 2.5], None, "until: row 0 is 2.5"),
        ([0, 0], [0, 0], [1.0, 2.0], [np.nan], "found: row 0 is nan"),
    ],
)
def test_what_cannot_be_is_refused(
    page: list[int], content: list[int], until: list[float], found: list[float] | None, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        Captures.of(page, [1.0, 2.0], content, until=until, found=found, importance=[1.0])


def test_pages_stand_in_the_order_in_which_they_were_found() -> None:
    with pytest.raises(ValueError, match=r"found: row 1 is 1\.0"):
        Captures.of([0, 1], [2.0, 1.0], [0, 0], importance=[1.0, 1.0])


def test_no_change_is_seen_where_a_visit_failed_and_none_counts_while_a_page_was_gone() -> None:
    captures = one_page({0.0: 7, 1.0: FAILED, 2.0: 7, 3.0: GONE, 4.0: 8, 5.0: 7})
    timeline = Timeline.of(captures)
    assert timeline.at.tolist() == [0.0, 2.0, 3.0, 4.0, 5.0]
    assert timeline.since.tolist() == [0.0, 0.0, 2.0, 3.0, 4.0]
    assert timeline.changed.tolist() == [False, False, False, True, True]
    assert timeline.gap_counts.tolist() == [False, True, False, False, True]
    assert timeline.first_content.tolist() == [0.0]


def contents(*visits: tuple[int, Kind, int]) -> list[int]:
    page, kinds, digests = zip(*visits, strict=True)
    kind = np.array([KINDS.index(each) for each in kinds], np.int8)
    found = contents_of(np.array(page), kind, np.array(digests, np.uint64))
    return [int(each) for each in found]


def test_unchanged_is_the_same_changed_another_and_changed_back_the_first() -> None:
    a, again, b, back = contents(
        (0, "new", 7), (0, "unchanged", 0), (0, "changed", 8), (0, "changed", 7)
    )
    assert a == again == back != b


def test_a_change_without_another_digest_is_a_change() -> None:
    found = contents((0, "new", 7), (0, "changed", 7), (0, "changed", 0), (1, "new", 7))
    assert len(set(found)) == 4


def test_what_was_gone_led_elsewhere_or_failed_is_no_content() -> None:
    kinds: tuple[Kind, ...] = ("gone", "redirected", "failed", "refused", "skipped")
    first, *rest, last = contents(
        (0, "new", 7), *((0, kind, 0) for kind in kinds), (0, "unchanged", 0)
    )
    assert rest == [GONE, GONE, FAILED, FAILED, FAILED]
    assert first == last
