"""When two pages are the same but for what is printed on them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.compare.not_content.host import PageFingerprint, print_of, set_resemblance
from tests.crawler.compare.not_content.facts import facts_of

SORRY = "<h1>Nothing at {path}</h1><p>Nobody put a thing here on 2026-11-{n}, ticket {n}f7a9b.</p>"


def at(path: str, n: int) -> PageFingerprint:
    return print_of(facts_of(SORRY.format(path=path, n=n), path=path, title=f"Nothing at {path}"))


def test_urls_numbers_and_ids_make_no_difference() -> None:
    assert set_resemblance(at("/chairs/blue", 17), at("/tables/round", 23)) == 1.0
    assert at("/chairs/blue", 17).title == at("/tables/round", 23).title


def test_other_words_do() -> None:
    other = print_of(facts_of("<h1>Blue chair</h1><p>Made of oak, with a seat of wool.</p>"))
    assert set_resemblance(at("/chairs/blue", 17), other) < 0.2


def test_chinese_and_japanese_are_compared_by_characters() -> None:
    first = print_of(facts_of("<p>访问过于频繁请稍后再试</p>", lang="zh"))
    second = print_of(facts_of("<p>访问过于频繁请明天再试</p>", lang="zh"))
    assert 0.5 < set_resemblance(first, second) < 1.0


def test_pages_without_words_are_alike_only_by_their_titles() -> None:
    first, second = print_of(facts_of("", title="Shop")), print_of(facts_of("", title="Shop"))
    assert set_resemblance(first, second) == 1.0
    assert set_resemblance(first, print_of(facts_of("", title="Bank"))) == 0.0


PRINTS = st.builds(
    PageFingerprint,
    st.lists(st.integers(0, 2**32 - 1), max_size=48, unique=True).map(lambda h: tuple(sorted(h))),
    st.integers(0, 0xFFFF),
    st.integers(0, 2**32 - 1),
)


@given(PRINTS, PRINTS)
def test_likeness_is_symmetric_and_a_share(first: PageFingerprint, second: PageFingerprint) -> None:
    assert set_resemblance(first, second) == pytest.approx(set_resemblance(second, first))
    assert 0.0 <= set_resemblance(first, second) <= 1.0
