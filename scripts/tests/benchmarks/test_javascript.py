"""Pages that need JavaScript, as frameworks' own tools built them."""

from scripts.benchmarks.javascript import figures, pages


def test_nearly_all_pages_that_need_javascript_are_recognised_and_nearly_no_others() -> None:
    found = figures("held_out")
    assert found["pages"] >= 100
    assert found["precision"] >= 0.95
    assert found["recall"] >= 0.9


def test_no_page_is_in_both_sets() -> None:
    tuned, held_out = pages("tuned"), pages("held_out")
    assert not {page.html for page in tuned} & {page.html for page in held_out}
    assert not {(p.tool, p.version) for p in tuned} & {(p.tool, p.version) for p in held_out}
