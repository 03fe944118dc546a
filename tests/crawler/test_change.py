"""The ladder of change detection."""

from hypothesis import given
from hypothesis import strategies as st

from crawler.change import NOT_MODIFIED, Verdict, compare, judge_body, judge_text
from crawler.sketch import sketch
from storage.records import Digests, Kind, Rung

KNOWN = Digests(b"body", b"text")
BLOCKS = st.lists(st.sampled_from(["a b c d e", "f g h", "i", "price 12.50", ""]), max_size=6)


def test_a_304_is_unchanged() -> None:
    assert Verdict(Kind.UNCHANGED, Rung.NOT_MODIFIED) == NOT_MODIFIED


def test_the_first_capture_is_new() -> None:
    assert judge_body(None, b"body") == Verdict(Kind.NEW)


def test_an_equal_body_decides_before_anything_is_parsed() -> None:
    assert judge_body(KNOWN, b"body") == Verdict(Kind.UNCHANGED, Rung.BODY)
    assert judge_body(KNOWN, b"other") is None


def test_an_equal_text_decides_before_the_last_sketch_is_read() -> None:
    assert judge_text(KNOWN, b"text") == Verdict(Kind.UNCHANGED, Rung.TEXT)
    assert judge_text(KNOWN, b"other") is None


def test_without_a_text_the_bytes_decide() -> None:
    assert judge_text(KNOWN, None) == Verdict(Kind.CHANGED, Rung.BODY)
    assert judge_text(Digests(b"body", None), b"text") == Verdict(Kind.CHANGED, Rung.BODY)


def test_a_one_word_edit_is_a_change_with_its_amount() -> None:
    prose = [f"paragraph {i} of a longer text that stays as it is" for i in range(50)]
    old, new = sketch([*prose, "costs 12 EUR"]), sketch([*prose, "costs 13 EUR"])
    verdict = compare(old, new)
    assert (verdict.kind, verdict.rung) == (Kind.CHANGED, Rung.BLOCKS)
    assert (verdict.blocks_added, verdict.blocks_removed) == (1, 1)
    assert verdict.resemblance is not None
    assert 0.9 < verdict.resemblance <= 1
    assert verdict.resemblance_se is not None


def test_added_and_removed_blocks_are_counted_with_their_number() -> None:
    verdict = compare(sketch(["a", "b", "b"]), sketch(["a", "b", "c", "c"]))
    assert (verdict.blocks_added, verdict.blocks_removed) == (2, 1)


def test_another_order_of_the_same_blocks_is_a_change() -> None:
    verdict = compare(sketch(["first", "second"]), sketch(["second", "first"]))
    assert verdict.kind is Kind.CHANGED
    assert (verdict.blocks_added, verdict.blocks_removed) == (0, 0)


def test_blocks_that_end_elsewhere_are_no_change() -> None:
    assert compare(sketch(["length )"]), sketch(["length", ")"])) == Verdict(
        Kind.UNCHANGED, Rung.TEXT
    )


def test_under_a_threshold_only_changes_that_resemble_less_are_significant() -> None:
    words = [f"w{i}" for i in range(1_000)]
    old = sketch([" ".join(words)])
    slightly = sketch([" ".join([*words[:-1], "edited"])])
    wholly = sketch(["nothing of that is left here"])
    assert compare(old, slightly).kind is Kind.CHANGED
    verdict = compare(old, slightly, significant_below=0.9)
    assert (verdict.kind, verdict.rung) == (Kind.UNCHANGED, Rung.BLOCKS)
    assert verdict.resemblance is not None
    assert compare(old, wholly, significant_below=0.9).kind is Kind.CHANGED


@given(BLOCKS, BLOCKS)
def test_a_page_changed_exactly_if_its_text_did(old: list[str], new: list[str]) -> None:
    changed = compare(sketch(old), sketch(new)).kind is Kind.CHANGED
    assert changed == (" ".join(old) != " ".join(new))
