"""The blocks that the core cuts are those of the reference in Python."""

from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.reduce.blocks import Blocks
from freshet.crawler.reduce.boilerplate import RELATIVE_TIMES, is_stamp
from freshet.crawler.reduce.main_text import main_text
from freshet.crawler.reduce.pieces import Piece, Pieces
from freshet.crawler.reduce.tree_parser import tree_of
from tests.crawler.reduce.reference import main_text as reference
from tests.crawler.reduce.test_blocks_text_version import ARTICLE, SHOP
from tests.crawler.reduce.test_pieces_features import NAMES
from tests.crawler.reduce.test_tree import PIECES


def agree(html: str) -> Blocks:
    """Return the blocks of all pieces of a page, which are those of the reference."""
    tree = tree_of(html)
    pieces = Pieces(tree)
    found = main_text(tree, pieces)
    assert found == reference.main_text(tree, pieces)
    # As a site's selectors give them.
    whole = [Piece("p", [tree.body], tree.body)] * 2
    assert main_text(tree, whole) == reference.main_text(tree, whole)
    return found


ELEMENTS = [
    *"div p ul li dd table tr td h1 pre code kbd samp textarea blockquote b a em span".split(),
    *"sup sub rt ruby time button label math annotation br section x-note".split(),
]
SAID = [
    *["", " hidden", " class=lineno", " class='x LineNumber'", " class=linenos2", " id=part"],
    *[" class='B b B active Odd x'", " class='é b'", " id='é 1'", " id='a  b'", " id='é'"],
    *[" class='note b a'", " class='a b note'", " id=p12", " class=x1", " encoding=TeX"],
    *[' datetime=2026-01-02T03:04Z', " datetime='3 hours'", " datetime=''", " datetime=soon"],
]  # fmt: skip
TEXTS = [
    "Some words here.", " ", "\n", "\xa0", "x", "12", "12345678", "٣٤", "10", "so\xadft", "\u200b",
    " \u200b ", "cafe\u0301", "\u0301", "\u1100\u1161", "中文", "\u2126", "é ß “So” …", "🌍",
    "Last updated on 3 May 2026", "© 2026", "3 hours ago", "Copyright 2026", "word " * 90, "İt is",
    "vor 3 Tagen", "12 visitors", "5 queries in 0.2 seconds", "Page rendered at 10:22:01", "",
    "{\\displaystyle x^2}", " {\\textstyle  } ", "{\\displaystyle}", "{\\displaystyle a} b",
    "<input value=x>", "<img src=x alt=y>", "<br>", "\x01\x1f\x85\u2003", "&#0;&amp;", "_^",
]  # fmt: skip
TREES = st.recursive(
    st.sampled_from(TEXTS),
    lambda inner: st.builds(
        "<{0}{1}>{2}</{0}>".format,
        st.sampled_from(ELEMENTS),
        st.sampled_from(SAID),
        st.lists(inner, max_size=5).map("".join),
    ),
    max_leaves=25,
)


@given(st.lists(TREES, max_size=6).map("".join))
def test_of_any_elements_both_cut_the_same(html: str) -> None:
    agree(html)


@given(st.lists(st.sampled_from([*PIECES, *TEXTS]), max_size=40).map("".join))
def test_of_broken_markup_both_cut_the_same(html: str) -> None:
    agree(html)


@given(st.text(max_size=80))
def test_of_any_text_both_cut_the_same(text: str) -> None:
    agree(f"<p>{text}</p><pre>{text}<b class=lineno>{text}</b></pre>")


@pytest.mark.parametrize("page", [ARTICLE, SHOP], ids=["article", "shop"])
def test_of_pages_both_cut_the_same(page: str) -> None:
    assert agree(page)


@pytest.mark.parametrize("name", NAMES)
def test_places_are_the_same_under_any_name(name: str) -> None:
    assert agree(f"<div id='{name}'><p>one</p><div class='{name}'><p id='{name}'>two<p>three")


@pytest.mark.parametrize(
    "time", ["2026", "2026-03-04", "04:05", "P3D", "2h 5m", "+01:00", "5", "é"]
)
def test_only_a_valid_moment_stands_in_place_of_its_text(time: str) -> None:
    shown = agree(f"<p>It was <time datetime='{time}'>three <b>hours</b></time>, I think").texts
    assert shown == (f"It was {'three hours' if time in {'5', 'é'} else time}, I think",)


def test_numbers_of_lines_and_controls_are_left_out_of_code_alone() -> None:
    number = "<b class=lineno> 12 </b><button>Copy</button>"
    assert agree(f"<pre>{number}a = b</pre><p>{number}a").texts[0] == "a = b"


def test_code_with_many_wide_characters_is_one_block() -> None:
    assert agree("<pre>" + "<b class=x>é</b>" * 2_000).texts == ("é" * 2_000,)


def test_a_piece_of_what_is_not_in_the_tree_is_refused() -> None:
    tree = tree_of("<p>one")
    for piece in (Piece("p", [len(tree)], 0), Piece("p", [1], len(tree))):
        with pytest.raises(ValueError, match="not in the tree"):
            main_text(tree, [piece])


@pytest.mark.parametrize("number", ["3", "12", "٣"])
def test_no_relative_time_is_overlooked(number: str) -> None:
    lines = (files("freshet.crawler.reduce") / RELATIVE_TIMES).read_text("utf-8").splitlines()
    tree = tree_of("".join(f"<p>{line.replace('0', number)}</p>" for line in lines))
    assert not [text for text in main_text(tree, Pieces(tree)).texts if is_stamp(text)]


STAMPS = [
    *["Updated 3 hours ago", "Activity: 2 days ago", "Update an hour ago", "Log in yesterday"],
    *["This page was last updated in 2024", "(c) 2024 Us", "Served by node", "Views: 12"],
    *["Posted just now", "THE SITE was generated 2024-01-02", "Commit abc1234", "It is 12:30"],
    *["Now 12:30"],
]  # fmt: skip


@pytest.mark.parametrize("stamp", STAMPS)
def test_the_core_leaves_no_stamp_that_python_would_know(stamp: str) -> None:
    assert is_stamp(stamp)
    assert not agree(f"<p>{stamp}</p>").texts
