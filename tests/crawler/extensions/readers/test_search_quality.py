"""Search quality and its changes against brute force over whole lists."""

from collections.abc import Sequence
from math import exp

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import integrate
from scipy.special import zeta

from freshet.crawler.extensions.readers.search_quality import (
    KAPPA,
    Marks,
    ScoreTable,
    Scoring,
    Workload,
    as_importance,
    made_queries,
    views,
)
from tests.crawler.extensions.readers.listed_quality import search_quality, usefulness

#: Few values, so that scores tie.
SCORES = st.integers(0, 6).map(lambda n: n / 4)
PAGES = 6
LISTS = st.lists(SCORES, min_size=PAGES, max_size=PAGES)
VISITS = st.lists(st.tuples(st.integers(0, PAGES - 1), SCORES, SCORES), max_size=25)


def paid(order: Sequence[int], scores: Sequence[float]) -> float:
    """Return Σ I(R) S of a list in this order."""
    return sum(float(views(np.array(r))) * scores[p] for r, p in enumerate(order, 1))


def listed(scores: Sequence[float]) -> list[int]:
    """Return the matching pages in the order of the list."""
    return sorted((p for p, s in enumerate(scores) if s > 0), key=lambda p: (-scores[p], p))


def test_a_query_has_one_view() -> None:
    assert views(np.array([1]))[0] == pytest.approx(1 / zeta(1.5), rel=1e-7)
    assert views(np.arange(1, 11)).sum() == pytest.approx(0.764, abs=5e-4)


@given(LISTS, LISTS)
def test_quality_is_a_share_and_1_where_nothing_is_stale(
    copies: list[float], live: list[float]
) -> None:
    held, true, f = np.array([copies]), np.array([live]), np.ones(1)
    found = usefulness(held, true, f)
    assert found == pytest.approx(paid(listed(copies), live))
    assert 0 <= search_quality(held, true, f) <= 1 + 1e-12
    assert search_quality(true, true, f) == 1
    assert search_quality(held, 0 * true, f) == 1
    stale = search_quality(np.array([[2.0, 1.0]]), np.array([[1.0, 2.0]]), f)
    assert stale == pytest.approx((1 + 2 / 8**0.5) / (2 + 1 / 8**0.5))


@given(LISTS, st.integers(0, PAGES - 1), SCORES)
def test_a_change_is_the_closed_form_of_a_shift(
    scores: list[float], page: int, new_score: float
) -> None:
    """Hold the four cases, with S(r) at the old ranks, against both lists paid by new scores."""
    assume(scores[page] or new_score)
    old, after = listed(scores), [*scores]
    table = ScoreTable(np.array([0.5]))
    table.refill(0, np.array(old, np.int64), np.array([scores[p] for p in old]))
    after[page] = new_score
    new = listed(after)
    change = paid(new, after) - paid(old, after)

    def shown(rank: int) -> float:
        return float(views(np.array(rank)))

    def score(rank: int) -> float:
        return scores[old[rank - 1]]

    r1 = old.index(page) + 1 if page in old else len(old) + 1
    r2 = new.index(page) + 1 if page in new else len(old)
    own = (shown(r2) - shown(r1) * (page in old)) * new_score
    if r1 <= r2:
        closed = own + sum((shown(r - 1) - shown(r)) * score(r) for r in range(r1 + 1, r2 + 1))
    else:
        closed = own + sum((shown(r + 1) - shown(r)) * score(r) for r in range(r2, r1))
    measured = table.change(page, np.array([scores[page]]), np.array([new_score]))
    assert closed == pytest.approx(change, abs=1e-12)
    assert measured == pytest.approx(0.5 * change, abs=1e-12)
    assert change >= -1e-12


@given(st.lists(LISTS, min_size=2, max_size=2), VISITS, st.integers(1, PAGES + 1), st.booleans())
def test_a_row_stays_the_beginning_of_its_list(
    start: list[list[float]], visits: list[tuple[int, float, float]], top: int, refills: bool
) -> None:
    table = ScoreTable(np.array([0.7, 0.3]), top=top)
    true = np.array(start)

    def refill(query: int) -> None:
        pages = np.flatnonzero(true[query])
        table.refill(query, pages, true[query, pages])

    for query in (0, 1):
        refill(query)
    for page, *scores in visits:
        gain = table.change(page, true[:, page].copy(), np.array(scores))
        assert gain >= 0
        true[:, page] = scores
        if refills:
            for query in np.flatnonzero(table.have_shrunk()).tolist():
                refill(query)
        for query in (0, 1):
            whole = listed(true[query].tolist())
            row = table.pages[query, : table.length[query]].tolist()
            assert row == whole[: len(row)]
            assert len(row) == min(len(whole), top) or table.cut[query]
            assert not refills or 4 * len(row) >= 3 * min(len(whole), top)
    if top > PAGES:
        ids, found = table.usefulness()
        assert found.sum() == pytest.approx(usefulness(true, true, np.array([0.7, 0.3])))
        assert set(ids.tolist()) == set(np.flatnonzero(true.any(axis=0)).tolist())


def test_a_table_fills_itself_as_pages_come() -> None:
    table = ScoreTable(np.ones(1), top=2)
    for page, score in enumerate((1.0, 3.0, 2.0)):
        table.change(page, np.zeros(1), np.array([score]))
    assert table.usefulness()[0].tolist() == [1, 2]
    assert table.change(9, np.ones(1), np.ones(1)) == 0
    table.change(1, np.array([3.0]), np.zeros(1))
    assert table.have_shrunk().tolist() == [True]


PLAIN = Workload.of([(["a"], 2), (["b", "a"], 1), (["c"], 1), (["a", "b"], 0.5), ([], 9)])


def test_a_workload_is_of_sets_of_terms_with_frequencies() -> None:
    assert PLAIN.queries == (("a",), ("a", "b"), ("c",))
    assert PLAIN.frequency.tolist() == pytest.approx([2 / 4.5, 1.5 / 4.5, 1 / 4.5])
    assert PLAIN.terms == {"a", "b", "c"}
    assert Workload.of([]).frequency.tolist() == []


@given(
    st.lists(st.lists(st.sampled_from(["a", "b", "c", "ab", "é", ""]), max_size=9), max_size=4),
    st.lists(st.floats(0.1, 3), min_size=2, max_size=2),
)
def test_scores_are_bm25_where_all_terms_occur(lines: list[list[str]], idfs: list[float]) -> None:
    """Also where a term is the beginning of another word, and where spaces repeat."""
    scoring, idf = Scoring(PLAIN, (3, 2, 1)), dict(zip("abc", [*idfs, 1.0], strict=True))
    text = "\n".join(" ".join(line) for line in lines)
    length = len(text.split())
    counts = {
        term: sum(w * line.count(term) for w, line in zip((3, 2, 1, 1), lines, strict=False))
        for term in "abc"
    }

    def weight(term: str) -> float:
        tf = counts[term]
        return idf[term] * tf * 2.2 / (tf + 1.2 * (1 - 0.75 + 0.75 * length / 100))

    held = [all(counts[term] for term in terms) for terms in PLAIN.queries]
    assert scoring.scores(text).tolist() == [-1.0 if has else 0.0 for has in held]
    for number, terms in enumerate(PLAIN.queries):
        scoring.freeze(number, [idf[term] for term in terms], 100)
    wanted = [sum(map(weight, q)) if has else 0 for q, has in zip(PLAIN.queries, held, strict=True)]
    assert scoring.scores(text).tolist() == pytest.approx(wanted)
    assert scoring.scores(None).tolist() == [0.0] * 3


def test_queries_are_made_of_strings_that_many_pages_carry() -> None:
    documents = [[f"unique{n} alone", "the menu", "the menu"] for n in range(25)]
    documents += [["green tea of china"] for _ in range(16)]

    def terms_of(text: str) -> list[str]:
        return [each for each in text.split() if each not in {"the", "of"}]

    made = made_queries(documents, terms_of, 40, np.random.default_rng(1), draws=30_000)
    again = made_queries(documents[::-1], terms_of, 40, np.random.default_rng(1), draws=30_000)
    assert made.queries == again.queries
    assert made.queries[0] == ("menu",)
    assert {("green", "tea"), ("china", "tea"), ("china", "green", "tea")} <= set(made.queries)
    assert ("china", "green") not in made.queries  # no run of terms
    assert made.frequency[[0, 3]] == pytest.approx(made.frequency[0] * np.array([1, 4**-0.85]))
    assert made.frequency.sum() == pytest.approx(1)
    assert made_queries([["the of"]], terms_of, 5, np.random.default_rng(1)).queries == ()


def test_marks_are_shrunk_towards_use_at_a_level_that_was_measured() -> None:
    marks = Marks()
    marks.add(2)
    marks.add(1)
    rows, hazard = np.array([0, 1, 0, 0]), np.array([0.5, 0.1, 2.0, 0.0])
    marks.learn(rows, hazard, np.array([3.0, 0, 1, 2]), np.array([True, False, True, True]))
    u, age, rate = np.array([4.0, 1.0, 1.0]), np.array([20.0, 10.0, 0.0]), np.array([0.1, 0.2, 9.0])
    seen = sum(
        integrate.quad(lambda s: (1 - exp(-s)) / s, 0, x)[0] / (1 - exp(-x)) for x in (0.5, 2.0)
    )
    base = np.sqrt((u + 0.2) * 2)
    level = (6 / 20) / float(base[:2] @ rate[:2])
    wanted = (KAPPA * level * base + [6, 0, 0]) / (KAPPA + np.array([seen + 1, 0, 0]))
    found = marks.values(usefulness=u, age=age, rate=rate)
    assert found == pytest.approx(wanted, rel=1e-6)
    assert as_importance(found).mean() == pytest.approx(1)


def test_marks_without_measurements_leave_all_pages_alike() -> None:
    marks = Marks()
    marks.add(2)
    for u in (np.zeros(2), np.array([1.0, 0.0])):
        values = marks.values(usefulness=u, age=np.zeros(2), rate=np.ones(2))
        assert as_importance(values).tolist() == [1.0, 1.0]
    assert as_importance(Marks().values(usefulness=u[:0], age=u[:0], rate=u[:0])).size == 0


@pytest.mark.parametrize("stale", [0, 1, 2, 5, 12])
@pytest.mark.parametrize("seed", range(4))
def test_the_quality_of_stale_copies_is_that_of_whole_lists_not_the_sum_of_single_losses(
    seed: int, stale: int
) -> None:
    rng = np.random.default_rng(seed)
    f, pages = rng.dirichlet(np.ones(3)), np.arange(12)
    live = np.where(rng.random((3, 12)) < 0.7, rng.random((3, 12)), 0.0)
    copies = live.copy()
    copies[:, rng.permutation(12)[:stale]] = rng.random((3, stale))
    table = ScoreTable(f)
    for query in range(3):
        held = live[query] > 0
        table.refill(query, pages[held], live[query][held])
    asked, page = np.nonzero(copies != live)
    found = table.quality(asked, page, copies[asked, page], live[asked, page])
    assert found == pytest.approx(search_quality(copies, live, f))
    assert 0 < found <= 1
    assert stale or found == 1.0


def test_without_a_match_the_quality_is_1() -> None:
    none = np.zeros(0)
    assert ScoreTable(np.ones(2)).quality(none.astype(int), none.astype(int), none, none) == 1.0
