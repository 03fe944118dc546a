"""Verdicts on texts that differ, given what is known of the page and of its host."""

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.compare.detection import Verdict, judge_blocks
from freshet.crawler.compare.history import PageRecord
from freshet.crawler.compare.templates import HostRun, SlotKind, Template
from freshet.crawler.reduce.sketch import sketch
from freshet.storage.entries import RETURN, Kind
from tests.crawler.compare.pages_over_time import PROSE, Block, Page, sketch_of

CHANGED: Kind = "changed"
UNCHANGED: Kind = "unchanged"
TEXTS = st.lists(st.sampled_from(["a b c d e", "f g h", "i", "price 12.50"]), max_size=6)


def visited(*names: object) -> Page:
    """A page whose last block had these texts, one at each visit."""
    first, *later = [[*PROSE, f"visit {name}"] for name in names]
    page = Page(first)
    for text in later:
        page.see(text)
    return page


def compare(old: list[str], new: list[str], **options: float) -> Verdict:
    past = PageRecord(sketch(old))
    return judge_blocks(past, sketch(new), HostRun(), 0.0, **options)


# -- without a history ---------------------------------------------------------------


def test_a_one_word_edit_is_a_change_with_its_amount() -> None:
    prose = [f"paragraph {i} of a longer text that stays as it is" for i in range(50)]
    verdict = compare([*prose, "costs 12 EUR"], [*prose, "costs 13 EUR"])
    assert (verdict.kind, verdict.rung) == (CHANGED, "blocks")
    assert (verdict.blocks_added, verdict.blocks_removed) == (1, 1)
    assert verdict.resemblance is not None
    assert 0.9 < verdict.resemblance <= 1
    assert verdict.resemblance_se is not None


def test_added_and_removed_blocks_are_counted_and_another_order_of_them_is_a_change() -> None:
    verdict = compare(["a", "b", "b"], ["a", "b", "c", "c"])
    assert (verdict.blocks_added, verdict.blocks_removed) == (2, 1)
    verdict = compare(["first", "second"], ["second", "first"])
    assert verdict.kind == CHANGED
    assert (verdict.blocks_added, verdict.blocks_removed) == (0, 0)


def test_under_a_threshold_only_changes_that_resemble_less_are_significant() -> None:
    words = [f"w{i}" for i in range(1_000)]
    old, slightly = [" ".join(words)], [" ".join([*words[:-1], "edited"])]
    assert compare(old, slightly).kind == CHANGED
    verdict = compare(old, slightly, significant_below=0.9)
    assert (verdict.kind, verdict.rung) == (UNCHANGED, "blocks")
    assert verdict.resemblance is not None
    assert compare(old, ["nothing is left"], significant_below=0.9).kind == CHANGED


@given(TEXTS, TEXTS)
def test_without_a_history_every_difference_of_blocks_is_a_change(
    old: list[str], new: list[str]
) -> None:
    assert (compare(old, new).kind == CHANGED) == (old != new)


# -- volatile blocks -----------------------------------------------------------------


def test_a_block_that_differs_at_every_visit_is_volatile_from_the_third_on() -> None:
    page = visited(0)
    verdicts = [page.see([*PROSE, f"visit {n}"]) for n in range(1, 8)]
    assert [v.kind for v in verdicts] == [CHANGED] * 2 + [UNCHANGED] * 5
    assert {v.rung for v in verdicts[2:]} == {"volatile"}


def test_what_a_volatile_block_raised_before_it_was_known_is_amended() -> None:
    page = visited(*range(5))
    assert page.amended_kinds() == [UNCHANGED] * 4
    assert {a.rung for a in page.amendments} == {"volatile"}


def test_an_edit_beside_a_volatile_block_is_a_change_and_stays_one() -> None:
    page = visited(*range(5))
    verdict = page.see(["One word was edited.", *PROSE[1:], "visit 5"])
    assert (verdict.kind, verdict.blocks_added, verdict.blocks_removed) == (CHANGED, 1, 1)
    assert page.see(["One word was edited.", *PROSE[1:], "visit 6"]).kind == UNCHANGED
    assert page.amended_kinds()[4] == CHANGED


@pytest.mark.parametrize("where", ["first", "last"])
def test_a_volatile_block_is_known_though_paragraphs_come_before_or_after_it(where: str) -> None:
    def text(n: int, prose: list[str]) -> list[str]:
        return [f"visit {n}", *prose] if where == "first" else [*prose, f"visit {n}"]

    page = Page(text(0, PROSE))
    for n in range(1, 5):
        page.see(text(n, PROSE))
    longer = [*PROSE[:4], "A paragraph that was added.", *PROSE[4:]]
    assert page.see(text(5, longer)).kind == CHANGED
    assert page.see(text(6, longer)).kind == UNCHANGED


def test_a_price_that_changes_now_and_then_is_always_a_change() -> None:
    prices = [12, 13, 13, 14, 15, 15, 16, 17, 17, 18, 18, 18, 19]
    expected = [CHANGED if a != b else UNCHANGED for a, b in itertools.pairwise(prices)]
    assert visited(*prices).amended_kinds() == expected


def test_a_block_that_stood_still_for_two_visits_is_content_again() -> None:
    assert visited(0, 1, 2, 3, 4, 4, 4, 5).kinds[-1] == CHANGED


def test_a_quiet_history_asks_for_more_before_a_block_is_volatile() -> None:
    prices = (12,) * 6 + (13, 14, 15, 16)
    assert visited(*prices).kinds == [UNCHANGED] * 5 + [CHANGED] * 4


def test_a_text_that_is_new_as_a_whole_at_every_visit_is_its_own_content() -> None:
    page = Page(["News", "story 0"])
    for n in range(1, 8):
        page.see(["News", *(f"story {n} {i}" for i in range(5))])
    assert page.amended_kinds() == [CHANGED] * 7
    # As where a site's table includes nothing but the price.
    page = Page(["1 EUR"])
    for n in range(1, 8):
        page.see([f"{7 * n} EUR"])
    assert page.amended_kinds() == [CHANGED] * 7


def test_a_list_that_grows_at_the_top_has_no_volatile_row() -> None:
    page = Page([*PROSE, (2, "story 0"), (2, "story -1")])
    for n in range(1, 8):
        page.see([*PROSE, (2, f"story {n}"), (2, f"story {n - 1}")])
    assert page.kinds == [CHANGED] * 7


def test_blocks_shuffled_at_every_visit_are_volatile_in_their_order() -> None:
    page = Page([*PROSE, "a", "b", "c"])
    orders = itertools.islice(itertools.cycle(itertools.permutations("abc")), 1, 6)
    kinds = [page.see([*PROSE, *order]).kind for order in orders]
    assert kinds == [CHANGED] * 2 + [UNCHANGED] * 3


def test_no_sketch_is_kept_of_a_text_in_which_only_volatile_blocks_differ() -> None:
    assert visited(*range(12)).sketches_kept == 2


# -- frame ---------------------------------------------------------------------------


def host_of(*texts: list[str], pages: int = 6) -> HostRun:
    """A host whose stored pages have their own prose and these blocks at place 9."""
    records = [
        PageRecord(sketch_of([*(f"page {n} {p}" for p in PROSE), *((9, t) for t in text)]))
        for n, text in itertools.product(range(pages), texts)
    ]
    return HostRun(Template.learnt(records))


def test_a_rebuild_of_the_frame_is_none_of_the_pages_changes_from_its_first_page_on() -> None:
    host = host_of(["Old banner"])
    verdicts = [
        Page([f"page {n}", *PROSE, (9, "Old banner")], host).see(
            [f"page {n}", *PROSE, (9, "New banner")]
        )
        for n in range(5)
    ]
    assert verdicts == [Verdict(UNCHANGED, "frame")] * 5


def test_an_edit_in_a_page_whose_frame_is_rebuilt_is_a_change_of_that_one_block() -> None:
    page = Page([*PROSE, (9, "Old banner")], host_of(["Old banner"]))
    verdict = page.see([*PROSE[:-1], "Another last paragraph.", (9, "New banner")])
    assert (verdict.kind, verdict.blocks_added, verdict.blocks_removed) == (CHANGED, 1, 1)


def test_what_comes_to_a_third_page_of_the_host_in_a_run_is_frame() -> None:
    host = host_of([])
    kinds = [
        Page([f"page {n}", *PROSE], host).see([(9, "New banner"), f"page {n}", *PROSE]).kind
        for n in range(5)
    ]
    assert kinds == [CHANGED] * 2 + [UNCHANGED] * 3


def test_what_comes_to_few_of_many_pages_is_no_frame() -> None:
    host = host_of([])
    host.pages = 40
    pages = [Page([f"page {n}", *PROSE], host) for n in range(5)]
    kinds = [page.see([f"page {n}", *PROSE, (9, "New")]).kind for n, page in enumerate(pages)]
    assert kinds == [CHANGED] * 5


def test_a_label_that_has_two_values_on_the_host_is_content() -> None:
    host = host_of(["in stock"], ["sold out"])
    assert Page([*PROSE, (9, "in stock")], host).see([*PROSE, (9, "sold out")]).kind == CHANGED


def test_frame_that_moves_in_the_page_is_no_change() -> None:
    host = host_of(["Banner"])
    page = Page([(9, "Banner"), "page 1", *PROSE], host)
    assert page.see(["page 1", *PROSE, (9, "Banner")]) == Verdict(UNCHANGED, "frame")


def test_where_the_site_holds_content_the_page_alone_needs_longer_to_convince() -> None:
    host = HostRun(
        Template(kinds={(9, 0): SlotKind(is_content=True), (9, -1): SlotKind(is_content=True)})
    )
    page = Page([*PROSE, (9, "1.00 EUR")], host)
    for price in range(2, 12):
        page.see([*PROSE, (9, f"{price}.00 EUR")])
    assert page.kinds == [CHANGED] * 7 + [UNCHANGED] * 3


def test_where_the_site_is_volatile_a_page_need_not_learn_it_again() -> None:
    host = HostRun(Template(kinds={(9, 0): SlotKind(is_volatile=True)}))
    page = Page([*PROSE, (9, "noise 1")], host)
    assert page.see([*PROSE, (9, "noise 2")]) == Verdict(UNCHANGED, "volatile")


# -- flips ---------------------------------------------------------------------------

A, B = [*PROSE, "variant A"], [*PROSE, "variant B"]


def test_a_page_that_alternates_between_two_versions_stops_raising_changes() -> None:
    page = Page(A)
    verdicts = [page.see(text) for text in (B, A, B, A, B)]
    assert [v.kind for v in verdicts[:2]] == [CHANGED, CHANGED]
    assert {v.kind for v in verdicts[2:]} == {UNCHANGED}
    assert page.amended_kinds() == [UNCHANGED] * 5


def test_a_revert_is_a_change() -> None:
    page = Page(A)
    assert [page.see(text).kind for text in (B, A, A, A, A, A)] == [CHANGED] * 2 + [UNCHANGED] * 4
    assert page.amended_kinds()[:2] == [CHANGED] * 2


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (A, PROSE), (PROSE, A), ([*PROSE, "one", "two"], PROSE), (PROSE, [*PROSE, "one", "two"]),
        (A, ["In front.", *A]), (["In front.", *A], A), (A, [*A[:3], *A[4:]]), (A, A[4:]),
        (A, [*A[:4], "In between.", *A[4:]]), ([*A, (7, "A price")], A), (A, [*A, (7, "A price")]),
    ],
)  # fmt: skip
def test_the_first_return_is_a_change_also_where_it_deletes_or_restores(
    first: Sequence[Block], then: Sequence[Block]
) -> None:
    page = Page(first)
    assert page.see(then).kind == CHANGED
    back = page.see(first)
    assert (back.kind, back.reason) == (CHANGED, RETURN)
    assert page.see(then) == Verdict(UNCHANGED, "flip")
    assert page.see(first) == Verdict(UNCHANGED, "flip")


def test_another_text_is_no_return() -> None:
    page = Page(A)
    assert [page.see(text).reason for text in (B, [*B, "more"], [*A, "more"], A)] == [
        None, None, None, RETURN,
    ]  # fmt: skip


def test_variants_are_known_though_the_page_is_fetched_unchanged_in_between() -> None:
    page = Page(A)
    verdicts = [page.see(text) for text in (A, B, B, A, B)]
    assert verdicts[-1] == Verdict(UNCHANGED, "flip")


def test_coming_back_slowly_stays_a_change() -> None:
    page = Page(A)
    weeks = [B] * 7 + [A] * 7 + [B] * 7 + [A] * 7
    kinds = [page.see(text).kind for text in weeks]
    assert [n for n, kind in enumerate(kinds) if kind == CHANGED] == [0, 7, 14, 21]
    assert page.amendments == []


def test_an_edit_of_a_page_with_variants_is_a_change() -> None:
    page = Page(A)
    for text in (B, A, B, A):
        page.see(text)
    assert page.see([*PROSE[1:], "A new paragraph.", "variant B"]).kind == CHANGED


@given(st.lists(st.integers(0, 3), min_size=1, max_size=25))
def test_any_history_can_be_remembered(history: list[int]) -> None:
    page = Page([*PROSE, "0"])
    for n in history:
        page.see([*PROSE[n:], str(n)])
    assert len(page.kinds) == len(history)
