"""What the core tells of pieces is what the reference in Python tells."""

import os
import resource
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple
from random import Random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from freshet.compiled.numeric import leaf_sums
from freshet.crawler.errors import TreeLimit
from freshet.crawler.reduce import content
from freshet.crawler.reduce.content import COLUMNS, described, judged
from freshet.crawler.reduce.cutting import in_control, pieces_of
from freshet.crawler.reduce.pieces import CHARACTERS, Piece, Pieces
from freshet.crawler.reduce.tree import Tree
from freshet.crawler.reduce.tree_parser import tree_of
from tests.crawler.reduce.reference import content as choice
from tests.crawler.reduce.reference import features as reference
from tests.crawler.reduce.test_blocks_text_version import ARTICLE, SHOP
from tests.crawler.reduce.test_tree import PIECES

VOCABULARY, TREES = content.model()


def agree(html: str, title: str = "") -> Pieces:
    """Return the pieces that the core cuts, of which it tells what the references tell."""
    tree = tree_of(html)
    pieces, cut = pieces_of(tree, tree.body), Pieces(tree)
    assert [astuple(piece) for piece in cut] == [astuple(piece) for piece in pieces]
    assert cut.kinds == [piece.kind for piece in pieces]
    assert cut.controls == [in_control(tree, piece) for piece in pieces]
    assert cut.texts == [content.text_of(tree, piece) for piece in pieces]
    if not pieces:
        return cut
    rows = [*reference.described(tree, pieces, cut.texts, title, VOCABULARY.odds)]
    cells = described(cut, title, VOCABULARY)
    differ = [
        (number, COLUMNS[column], rows[number][column], cells[number, column])
        for number, column in np.argwhere(np.array(rows) != cells)
    ]
    assert not differ
    odds = judged(cut, title, VOCABULARY, TREES)
    assert odds.tolist() == leaf_sums(TREES, cells).tolist()
    found = [astuple(piece) for piece in content.chosen(tree, cut, title)]
    assert found == [astuple(piece) for piece in choice.chosen(tree, cut, title)]
    given = Pieces.of(tree, pieces)
    assert (described(given, title, VOCABULARY) == cells).all()
    plain = [piece for piece in cut if not in_control(tree, piece)]
    some, taken = cut.without_controls(), Pieces.of(tree, plain)
    assert [astuple(piece) for piece in some] == [astuple(piece) for piece in plain]
    assert (some.texts, some.kinds) == (taken.texts, taken.kinds)
    if plain:
        rows = described(some, title, VOCABULARY).tolist()
        assert rows == described(taken, title, VOCABULARY).tolist()
    return cut


ELEMENTS = [
    *"div p ul ol li dl dt dd table tr td h1 h2 h6 pre blockquote article main nav a b".split(),
    *"button label output textarea select input sup xmp".split(),
]
#: Values of attributes, of which some only Python reads.
NAMES = [
    *"content entry-content navLink site-footer siteFOOTER has-sidebar footnote comments".split(),
    *"bio my-bio HTMLParser x1y post-12 größe ÜberNAV naïve-sidebar Replies".split(),
    "nav bar related", "\x85nav\u2003menu", "", " ", "a" * 305 + "-nav", "nav" + "-nav" * 90,
    "share-price", "faq-panel", "thread-header-title", "recommended",
]  # fmt: skip
SAID = [
    *["", " hidden", " aria-hidden=true", " aria-hidden=false", " title=x", " role=presentation"],
    *[" href=/x", " href=''", " href=é", " role=Banner"],
    *[" style='Display: NONE'", " style='display:no ne;'", " style='dis play:nonE'", " style=é"],
    *[f' {which}="{name}"' for name in NAMES for which in ("id", "class", "role", "data-testid")],
]
TEXTS = [
    "A few words, one, two. Three", "É Über ß ÀB", "12 ٣٤ ５６ ½", "，、。", "It ends…", "“So”",
    '"', "word " * 90, "word " * 250, "W" * 401 + "9", "Ünd " * 70, "a,b " * 30, "x",
    "\x01\x1fy\xa0\u2003z\u200b",
    "🌍", "<img src=x>", "<br>", "<br><br>", "<a href=/>link</a>", "<a href=''>l</a>", "A. B. C.",
    "<tr><td>x<td>y</tr>" * 2, "<p>x" * 7, "<br> <br>", "<script>x</script>", "<!-- c -->", " ",
    "<pre>1\n2\n3</pre>", "<pre>01 2</pre>", "<pre>7</pre>", "<pre>9 10\xa011</pre>",
    "<pre>1 a</pre>", "<input value=x>", "<input type=button value=b>", "<textarea>a\nb</textarea>",
    "<input type=radio>", "<button>b</button>", "<button>b<img></button>",
    "<select><option>1<option selected>2</select>", "<meter value=1></meter>", "<label>l</label>",
]  # fmt: skip
TITLES = ["", "A FEW WORDS, one, two. three", "x", "a few words"]

BLOCKS = st.recursive(
    st.sampled_from(TEXTS),
    lambda inner: st.builds(
        "<{0}{1}>{2}</{0}>".format,
        st.sampled_from(ELEMENTS),
        st.sampled_from(SAID),
        st.lists(inner, max_size=5).map("".join),
    ),
    max_leaves=25,
)


@given(st.lists(BLOCKS, max_size=6).map("".join), st.sampled_from(TITLES))
@example(f"<body{SAID[1]}><p>a", "")
def test_of_any_elements_both_tell_the_same(html: str, title: str) -> None:
    agree(html, title)


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_of_broken_markup_both_tell_the_same(html: str) -> None:
    agree(html)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("said", ["id", "class", "role", "itemprop", "data-testid"])
def test_of_any_name_both_tell_the_same(said: str, name: str) -> None:
    agree(f'<div {said}="{name}"><p hidden>one</p><p>two</p></div><p {said}="{name}">three')


@pytest.mark.parametrize("text", TEXTS)
def test_of_any_text_both_tell_the_same(text: str) -> None:
    agree(f"<title>t</title><h2>{text}</h2><p>{text}<p>{text} {text}<p>{text}", text)


@pytest.mark.parametrize("page", [ARTICLE, SHOP], ids=["article", "shop"])
def test_of_pages_both_tell_the_same(page: str) -> None:
    assert len(agree(page, "A title")) > 5


@pytest.mark.parametrize(
    "page",
    ["<div>" * 3_000 + "x", "<p>x" * 2_000, "<i class=nav>" * 90 + "<p>x" * 50,
     f"<p class='{'nav-x ' * 20_000}'>x", f"<p style='{'d ' * 50_000}'>x",
     "<p>" + "<a href=x>y</a> " * 5_000, "<ul>" + "<li>x" * 3_000, "<p>,</p>" * 3_000,
     f"<h1>{'é' * 20_000}</h1>", "".join(f"<p id={chr(9_000 + i)}>{chr(0x3000 + 9 * i)}"
                                         for i in range(400))],
    ids=lambda page: page[:14],
)  # fmt: skip
def test_of_hostile_pages_both_tell_the_same(page: str) -> None:
    assert len(agree(page, "x"))


def test_a_page_whose_pieces_take_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = Pieces(tree_of("<p>x" * 2_000))
    monkeypatch.setattr(content, "SECONDS", -1.0)
    with pytest.raises(TreeLimit, match="2,000 pieces took more than"):
        judged(pieces, "", VOCABULARY, TREES)


def test_what_is_not_in_the_tree_is_refused() -> None:
    tree = tree_of("<p>x")
    (piece,) = Pieces(tree)
    for wrong in (Piece("p", [len(tree)], piece.holder), Piece("p", [1], len(tree))):
        with pytest.raises(ValueError, match="not in the tree"):
            Pieces.of(tree, [wrong])
    with pytest.raises(ValueError, match="not in the tree"):
        described(Pieces.of(tree, []), "", VOCABULARY)


def test_threads_judge_pages_at_once() -> None:
    rng = Random(57)
    trees = [tree_of("".join(f"<p class={rng.choice(NAMES)!r}>{chr(rng.randrange(0x250, 0xD000))}"
                             for _ in range(60))) for _ in range(40)]  # fmt: skip

    def odds(tree: Tree) -> list[float]:
        return list(judged(Pieces(tree), "", VOCABULARY, TREES))

    expected = list(map(odds, trees))
    CHARACTERS[256:] = 0
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(odds, trees)) == expected


@pytest.mark.parametrize(
    "html",
    ["<button><div>a <b>b</b> <i>c</i></div></button>", "<label> <b>a</b> <i>b</i> </label>",
     "<button>a</button> <label>b</label> <input value=c> <span><button>d</button></span> ",
     "<button></button> <label>b</label>", "<p><button></button> </p>", "<label>a<p> b </label>",
     "<select><option>a</select><textarea>b</textarea><button><p>c</p></button>"],
)  # fmt: skip
def test_controls_are_cut_alike(html: str) -> None:
    agree(f"<main><p>Some words.</p>{html}</main>")


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss has other units elsewhere")
@pytest.mark.skipif("ASAN_OPTIONS" in os.environ, reason="the checker keeps what was given back")
def test_many_pages_leave_nothing_in_memory() -> None:
    tree = tree_of("".join(f"<p class=größe{i} hidden>{'word ' * 50}</p>" for i in range(200)))
    wrong, peak = Piece("p", [len(tree)], 0), 0
    for number in range(150):
        judged(Pieces(tree), "", VOCABULARY, TREES)
        with pytest.raises(ValueError, match="not in the tree"):
            Pieces.of(tree, [wrong])
        if number == 30:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # The texts of each are some 50 KiB.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 4_000
