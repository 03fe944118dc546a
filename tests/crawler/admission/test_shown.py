"""Which blocks of a page no other page of its host has shown."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.admission import copies as shown_module
from freshet.crawler.admission.copies import Shown
from freshet.crawler.reduce.sketch import sketch


def test_what_another_page_showed_is_not_new_and_the_page_that_showed_most_is_named() -> None:
    shown = Shown()
    assert shown.take(1, 10, sketch(["a", "b", "c"])) == (3, None)
    assert shown.take(1, 11, sketch(["d", "a"])) == (1, 10)
    assert shown.take(1, 12, sketch(["d", "b", "c", "e"])) == (1, 10)
    assert shown.take(1, 13, sketch(["d", "c"])) == (0, 10)


def test_a_page_does_not_make_its_own_blocks_old() -> None:
    shown = Shown()
    shown.take(1, 10, sketch(["a", "b"]))
    shown.take(1, 11, sketch(["a", "b"]))
    assert shown.take(1, 10, sketch(["a", "b", "c"])) == (3, None)
    assert shown.take(1, 11, sketch(["a", "b"])) == (0, 10)


def test_a_block_counts_once_and_hosts_are_apart() -> None:
    shown = Shown()
    assert shown.take(1, 10, sketch(["a", "a", "a"])) == (1, None)
    assert shown.take(2, 11, sketch(["a"])) == (1, None)
    assert shown.take(2, 12, sketch([])) == (0, None)


def test_what_is_forgotten_looks_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown_module, "_PLACES", 4)
    monkeypatch.setattr(shown_module, "_SHIFT", np.uint64(62))
    shown = Shown()
    blocks = [f"block {n}" for n in range(64)]
    shown.take(1, 10, sketch(blocks))
    new, _ = shown.take(1, 11, sketch(blocks))
    assert new >= 60


_PAGES = st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=6), max_size=12)


@given(_PAGES)
def test_new_is_what_no_earlier_page_had(pages: list[list[str]]) -> None:
    shown, before = Shown(), set[str]()
    for number, blocks in enumerate(pages):
        new, source = shown.take(1, number, sketch(blocks))
        assert new == len(set(blocks) - before)
        assert (source is not None) is bool(set(blocks) & before)
        before |= set(blocks)
