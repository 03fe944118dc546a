"""Observations become contents, as their significance was judged."""

import numpy as np

from freshet.scheduler.evaluate.captures import FAILED, GONE, contents_of
from freshet.storage.entries import KINDS, Kind


def contents(*visits: tuple[int, Kind, int]) -> list[int]:
    page, kinds, digests = zip(*visits, strict=True)
    kind = np.array([KINDS.index(each) for each in kinds], np.int8)
    found = contents_of(np.array(page), kind, np.array(digests, np.uint64))
    return [int(each) for each in found]


def test_unchanged_is_the_same_changed_another_and_changed_back_the_first() -> None:
    a, again, b, back = contents(
        (0, Kind.NEW, 7), (0, Kind.UNCHANGED, 0), (0, Kind.CHANGED, 8), (0, Kind.CHANGED, 7)
    )
    assert a == again == back != b


def test_a_change_without_another_digest_is_a_change() -> None:
    found = contents((0, Kind.NEW, 7), (0, Kind.CHANGED, 7), (0, Kind.CHANGED, 0), (1, Kind.NEW, 7))
    assert len(set(found)) == 4


def test_what_was_gone_led_elsewhere_or_failed_is_no_content() -> None:
    kinds = (Kind.GONE, Kind.REDIRECTED, Kind.FAILED, Kind.REFUSED, Kind.SKIPPED)
    first, *rest, last = contents(
        (0, Kind.NEW, 7), *((0, kind, 0) for kind in kinds), (0, Kind.UNCHANGED, 0)
    )
    assert rest == [GONE, GONE, FAILED, FAILED, FAILED]
    assert first == last
