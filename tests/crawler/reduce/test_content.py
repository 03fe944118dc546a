"""The model that chooses the main content, and the rows it judges."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from freshet.compiled.numeric import leaf_sums
from freshet.crawler.reduce import content
from freshet.crawler.reduce.content import (
    COLUMNS,
    LEAVES,
    Vocabulary,
    chosen,
    described,
    text_of,
    trees_of,
)
from freshet.crawler.reduce.cutting import in_control
from freshet.crawler.reduce.pieces import Piece, Pieces
from freshet.crawler.reduce.tree import UNSEEN, Tree
from freshet.crawler.reduce.tree_parser import tree_of
from tests.crawler.reduce.reference import content as reference


def taken(html: str) -> tuple[Tree, list[Piece]]:
    tree = tree_of(html)
    return tree, list(Pieces(tree))


def row(html: str, number: int, words: dict[str, float], title: str = "") -> dict[str, float]:
    """Return the row of one piece by the names of its columns."""
    rows = described(Pieces(tree_of(html)), title, Vocabulary(words))
    return dict(zip(COLUMNS, rows[number].tolist(), strict=True))


def test_a_row_tells_of_the_text_and_of_the_elements_above() -> None:
    html = (
        "<main><h1>A title</h1><div class='entry-content'><p>One, two. Three</p></div></main>"
        "<aside class='related box' hidden><a href=/>All of it is a link</a></aside>"
    )
    words = {"entry": 1.5, "content": 0.5, "related": -2.0}
    said = row(html, 1, words)
    assert (said["in_main"], said["in_aside"], said["hidden"]) == (1, 0, 0)
    assert (said["names_max"], said["names_sum"], said["names_bad"]) == (1.5, 2.0, 0)
    assert (said["from_title"], said["linked_share"], said["capitals"]) == (1, 0.0, 2 / 3)
    said = row(html, 2, words)
    assert (said["in_main"], said["in_aside"], said["hidden"]) == (0, 1, 1)
    assert (said["names_min"], said["names_bad"], said["linked_share"]) == (-2.0, 1, 1.0)
    assert said["after"] == 0.0


def test_the_title_of_the_page_names_its_heading() -> None:
    html = "<h1>The Paper</h1><h2>A long question</h2><p>x"
    assert [row(html, i, {})["from_title"] for i in range(3)] == [0, 1, 2]
    title = "A long question – The Paper of the day"
    assert [row(html, i, {}, title)["from_title"] for i in range(3)] == [0, 1, 2]
    titles = [row(html.replace("The Paper", "Us"), i, {}, title)["from_title"] for i in range(3)]
    assert titles == [-1, 0, 1]


def test_trees_send_a_row_to_a_leaf_and_add_up() -> None:
    columns: dict[str, list[float]] = {
        "column": [1, 0, 0, 0, 0],
        "limit": [2.5, 0.0, 0.0, 0.0, 0.0],
        "yes": [1, 1, 2, 3, 4],
        "no": [2, 1, 2, 3, 4],
        "value": [0.0, -1.0, 3.0, 0.25, 9.9],
        "roots": [0, 3],
    }
    found = leaf_sums(trees_of(columns, 2), np.array([[9.0, 2.5], [0.0, 2.6]]))
    assert found.tolist() == [-0.75, 3.25]


def test_the_fitted_model_fits_the_columns() -> None:
    path = Path(content.__file__).with_name("content_model.json")
    said = json.loads(path.read_text("utf-8"))
    trees = {name: np.array(values) for name, values in said["trees"].items()}
    assert 0 <= trees["column"].min() <= trees["column"].max() < len(COLUMNS)
    nodes = trees["roots"]
    # No row goes past a node twice, nor to another tree.
    is_leaf = trees["yes"] == np.arange(len(trees["yes"]))
    for name in ("yes", "no"):
        assert (trees[name][~is_leaf] > np.flatnonzero(~is_leaf)).all()
        assert (trees[name][is_leaf] == np.flatnonzero(is_leaf)).all()
        at = np.searchsorted(nodes, np.arange(len(is_leaf)), "right")
        assert (np.searchsorted(nodes, trees[name], "right") == at).all()


class Branch(NamedTuple):
    """A node that sends a row to one of two trees."""

    column: int
    limit: float
    yes: Branch | float
    no: Branch | float


LIMITS = st.sampled_from([-1.5, -0.0, 0.0, 1e-35, 0.5, 2.0, 3.25, 1e300])
SOME_TREES = st.lists(
    st.recursive(
        st.floats(-9, 9),
        lambda each: st.builds(Branch, st.integers(0, 3), LIMITS, each, each),
        max_leaves=LEAVES,
    ),
    min_size=1,
    max_size=5,
)
CELLS = st.lists(st.one_of(LIMITS, st.floats()), min_size=4, max_size=4)


def columns_of(trees: Sequence[Branch | float]) -> dict[str, list[float]]:
    """Return trees as they are written after they were fitted."""
    columns: dict[str, list[float]] = {
        name: [] for name in ("column", "limit", "yes", "no", "value", "roots")
    }

    def add(node: Branch | float) -> int:
        number = len(columns["value"])
        column, limit, value = 0, 0.0, 0.0
        if isinstance(node, Branch):
            column, limit = node.column, node.limit
        else:
            value = node
        for name, told in zip(columns, (column, limit, number, number, value), strict=False):
            columns[name].append(told)
        if isinstance(node, Branch):
            columns["yes"][number], columns["no"][number] = add(node.yes), add(node.no)
        return number

    columns["roots"] = [add(tree) for tree in trees]
    return columns


def leaf_of(node: Branch | float, row: Sequence[float]) -> float:
    while isinstance(node, Branch):
        node = node.yes if row[node.column] <= node.limit else node.no
    return node


@given(SOME_TREES, st.lists(CELLS, min_size=1, max_size=70))
@example([Branch(0, 0.0, 1.0, Branch(0, 2.0, 2.0, 3.0))], [[math.nan] * 4, [-0.0] * 4, [0.5] * 4])
def test_trees_send_each_row_where_going_down_ends(
    trees: list[Branch | float], rows: list[list[float]]
) -> None:
    found = leaf_sums(trees_of(columns_of(trees), 4), np.array(rows))
    # One after another: ``sum`` may round otherwise.
    sums = [[*accumulate((leaf_of(tree, row) for tree in trees), initial=0.0)][-1] for row in rows]
    assert found.tolist() == sums


def test_trees_that_the_core_cannot_judge_are_refused() -> None:
    tree: Branch | float = 0.0
    for i in range(LEAVES):
        tree = Branch(0, float(i), tree, 1.0)
    with pytest.raises(ValueError, match="more than 16 leaves"):
        trees_of(columns_of([tree]), 1)
    with pytest.raises(ValueError, match="the core refused"):
        trees_of(columns_of([1.0]), 81)
    with pytest.raises(IndexError):
        leaf_sums(trees_of(columns_of([1.0]), 3), np.zeros((2, 4)))


def test_of_no_pieces_none_is_chosen() -> None:
    assert not chosen(tree_of(""), [], "T")


# -- controls and images ---------------------------------------------------------------

PROSE = f"<p>{'The committee met on Tuesday, heard both sides, and put the question off. ' * 3}</p>"
FRAME = "<footer><ul><li><a href=/a>Imprint</a><li><a href=/b>Help</a></ul>{}</footer>"


@pytest.mark.parametrize(
    ("html", "kept"),
    [("<button>Sold out</button>", ["Sold out"]), ("<button>Subscribe</button>", []),
     ("<div><p><button>Red</button><button>Blue</button></p></div>", ["Red", "Blue"]),
     ("<button>Share this</button><button>Read more</button>", []),
     ("".join(f"<button>Size {i}</button>" for i in range(6)), []),
     ("<button>Pick it</button>".join([""] * 4), []), ("<button></button>", []),
     ("<label>Weight <input value=7></label>", ["Weight 7"]),
     ("<form><label>Email</label><input value=x><button>Subscribe</button></form>", ["Email x"]),
     ("<label>Number</label><input value=1><button>Sold out</button>", ["Number 1", "Sold out"]),
     ("<button><div>One <b>two</b> <i>three</i></div></button>", ["One two three"]),
     ("<textarea readonly>No refund.</textarea>", ["No refund."]),
     ("<button><div>How long?</div></button><p>A year in all, from the day on.</p>", ["How long?"]),
     ("<select><option selected>Huge</select>", ["Huge"]), ("<button><img src=/i></button>", [])],
)  # fmt: skip
def test_controls_are_kept_where_they_stand_in_content(html: str, kept: list[str]) -> None:
    for before, behind in ((PROSE, PROSE), (PROSE, FRAME.format("")), ("", PROSE)):
        tree, pieces = taken(f"<main><h1>Title of it</h1>{before}{html}{behind}</main>")
        found = [
            text_of(tree, it, UNSEEN) for it in chosen(tree, pieces, "") if in_control(tree, it)
        ]
        assert found == kept


@pytest.mark.parametrize(
    ("html", "kept"),
    [("<p>Related stories</p>", []), ("<p>Send feedback</p>", []), ("<h3>You may like</h3>", []),
     ("<p>Call us now.</p>", ["Call us now."]), ("<h3>Related work</h3>", ["Related work"])],
)  # fmt: skip
def test_labels_of_the_frame_are_left_out_between_kept_pieces(html: str, kept: list[str]) -> None:
    tree, pieces = taken(f"<main><h1>Title of it</h1>{PROSE}{html}{PROSE}</main>")
    texts = [text_of(tree, piece) for piece in chosen(tree, pieces, "Title of it")]
    assert [text for text in texts if text not in {"Title of it", texts[1]}] == kept


def test_controls_of_the_frame_are_left_out() -> None:
    tree, pieces = taken(
        f"<main><h1>T</h1>{PROSE * 3}</main>" + FRAME.format("<button>Klang</button>")
    )
    assert "Klang" in [text_of(tree, piece, UNSEEN) for piece in pieces]
    assert not [piece for piece in chosen(tree, pieces, "") if in_control(tree, piece)]


def test_on_a_page_of_controls_these_are_judged() -> None:
    tree, pieces = taken("<main><button>How long is it valid, and where?</button></main>")
    assert list(chosen(tree, pieces, "")) == pieces


def test_images_follow_what_stands_beside_them() -> None:
    image = "<p><img src=/i.png alt=Door></p>"
    tree, pieces = taken(f"<main><h1>T</h1>{PROSE}{image}{PROSE}</main>{FRAME.format(image)}")
    found = [piece for piece in chosen(tree, pieces, "") if not text_of(tree, piece)]
    assert [tree.tag(piece.nodes[0]) for piece in found] == ["img"]


@pytest.mark.parametrize("caption", ["Fig. 1", "Door", "Photo: A. Smith", "A red door, half open."])
def test_captions_follow_what_stands_beside_them(caption: str) -> None:
    figure = f"<figure><img src=/i.png><figcaption>{caption}</figcaption></figure>"
    tree, pieces = taken(f"<main><h1>T</h1>{PROSE}{figure}{PROSE}</main>{FRAME.format(figure)}")
    found = [text_of(tree, piece) for piece in chosen(tree, pieces, "")]
    assert found[2:4] == ["", caption]
    assert found.count(caption) == 1


def test_what_a_control_says_changes_nothing_in_the_rows_of_others() -> None:
    html = "<main><p>One, two.{}</p><div>three</div><ul><li>a{}<li>b</ul></main>"
    without = html.format("", "")
    with_them = html.format("<label>more</label>", "<button>more</button><input value=7>")
    for number in range(3):
        assert row(without, number, {}) == row(with_them, number, {})


SENTENCE = "You agree, to the fullest extent of the law, that this service is given as it is. "
SECTION = SENTENCE * 5
SECTIONS = {
    "paragraphs": "<p>{}</p>",
    "headings and paragraphs": "<h2>Section</h2><p>{}</p>",
    "items": "<li>{}</li>",
    "items of a list in each item": "<li><ol><li>{}</li></ol></li>",
    "numbered divisions": "<div class=number>1.</div><div class=text>{}</div>",
    "sections": "<section><h3>Section</h3><p>{}</p></section>",
    "named sections": "<section class='part legal'><h3>Section</h3><p>{}</p></section>",
    "rows of text": "<div class=row><div class=column><p>{}</p></div></div>",
    "tables of two columns": "<table><tr><td><p>{0}</p></td><td><p>{0}</p></td></tr></table>",
    "details": "<details open><summary>Section</summary><p>{}</p></details>",
    "quotes": "<blockquote><p>{}</p></blockquote>",
    "panels of an accordion": "<div class=panel><h4>Section</h4><div><p>{}</p></div></div>",
}


def long_page(section: str, number: int, below: str = "") -> list[str]:
    """Return what is chosen of a long page of such sections, each of which says its number."""
    parts = [section.format(f"Part {i} begins. {SECTION}") for i in range(number)]
    text = f"<div class='page legal'><h1>Terms</h1><div class=text>{''.join(parts)}</div></div>"
    tree = tree_of(f"<title>Terms</title>{text}{below}")
    pieces = Pieces(tree)
    found = [text_of(tree, piece) for piece in chosen(tree, pieces, "Terms")]
    assert found == [text_of(tree, it) for it in reference.chosen(tree, pieces, "Terms")]
    return found


@pytest.mark.parametrize("section", SECTIONS.values(), ids=SECTIONS.keys())
def test_a_long_text_is_content_to_its_end(section: str) -> None:
    text = " ".join(long_page(section, 150))
    assert [i for i in range(150) if f"Part {i} begins" not in text] == []


def test_what_stands_below_a_long_text_is_no_part_of_it() -> None:
    below = "<footer class=footer><p>We and our partners use cookies to show adverts.</p></footer>"
    assert not any("cookies" in text for text in long_page(SECTIONS["paragraphs"], 150, below))


def test_what_goes_on_with_a_text_that_stands_in_the_element_around_it() -> None:
    runs = "".join(f"Part {i} begins. {SECTION}<hr>" for i in range(60))
    tree = tree_of(f"<title>Terms</title><div>{runs}{f'<p>{SECTION}</p>' * 5}</div>")
    pieces = Pieces(tree)
    kept, words = set(range(60)), [len(text.split()) for text in pieces.texts]
    likely = [True] * len(pieces)
    assert not list(
        reference._continued(pieces, kept, words, likely, reference._Frame(pieces, kept))
    )
    # With three of the paragraphs the others are of the text.
    kept |= {60, 61, 62}
    assert list(
        reference._continued(pieces, kept, words, likely, reference._Frame(pieces, kept))
    ) == [63, 64]


_FUNCTION = """<div class=refsect2><h3>tok_{0} ()</h3><pre>int tok_{0} (Pool *pool);</pre><p>{1}</p>
<div class=refsect3><h4>Parameters</h4><div class=informaltable><table class=informaltable><tbody>
<tr><td class=parameter_name><p>pool</p></td><td class=parameter_description><p>a Pool</p></td></tr>
</tbody></table></div></div><div class=refsect3><h4>Returns</h4><p>{2}</p></div>
<p class=since>Since: {3}</p></div>"""
_FUNCTIONS = (
    ("new", "Makes a pool with room for tokens, handed out in the order in which they were put in.",
     "0, or -1 where there is no memory.", "1.0"),
    ("take", "Takes a token out of the pool and waits where there is none until one is given back.",
     "the number of the token.", "1.0"),
    ("drop", "Gives all tokens back, and ends the processes that wait for one with an error.", "0.",
     "1.2"),
    ("peek", "See tok_take().", "-1, always.", "1.4"),
)  # fmt: skip


def test_pieces_of_the_kinds_that_are_kept_elsewhere_stay_in_a_manual() -> None:
    html = (
        "<title>Pools</title><table class=navigation><tr><td><a href=a>Up</a></table><div class="
        "refentry><div class=refsect1><h2>Functions</h2><div class=informaltable><table class="
        "informaltable><tbody>"
        + "".join(f"<tr><td>int</td><td>tok_{name[0]} ()</td></tr>" for name in _FUNCTIONS)
        + "</tbody></table></div></div><div class=refsect1><h2>Description</h2><p>A pool hands out "
        "tokens to processes of the same host, and takes them back after a period of silence.</p>"
        "</div><div class=refsect1><h2>Details</h2>"
        + "".join(_FUNCTION.format(*each) for each in _FUNCTIONS)
        + "</div></div><div class=footer>Generated by a tool</div>"
    )
    tree, pieces = taken(html)
    kept = [text_of(tree, piece) for piece in chosen(tree, pieces, "Pools")]
    assert kept == [text_of(tree, piece) for piece in reference.chosen(tree, pieces, "Pools")]
    counts = [kept.count(heading) for heading in ("Parameters", "Returns", "Functions")]
    assert counts == [4, 4, 1]
    assert sum(text.startswith("Since:") for text in kept) == 4
    assert not any(text.startswith(("Up", "Generated")) for text in kept)


def _labelled(label: str, *, paragraphs: int, menu: str) -> str:
    text = f"<p>{SENTENCE * 3}</p>" * paragraphs
    return f"{menu}<main><article><h1>A long law</h1>{text}<p>{label}</p>{text}</article></main>"


_MENU = "<nav><ul>" + "<li><a href=/n>Section of the site</a>" * 40 + "</ul></nav>"
_LABEL = "Browse all articles and topics"


@pytest.mark.parametrize(
    ("label", "paragraphs", "menu", "stays"),
    [
        pytest.param(_LABEL, 4, _MENU, False, id="label"),
        pytest.param("Share this article", 4, _MENU, False, id="call"),
        pytest.param(_LABEL, 4, "", True, id="nearly all is kept"),
        pytest.param(_LABEL, 1, "", True, id="short page"),
        pytest.param(f"{_LABEL};", 24, _MENU * 20, True, id="clause of a long text"),
        pytest.param(_LABEL, 24, _MENU * 20, False, id="label in a long text"),
        pytest.param("Why are related articles shown?", 4, _MENU, True, id="question"),
        pytest.param("Related articles 7", 4, _MENU, True, id="digit"),
        pytest.param("Share this article@all", 4, _MENU, True, id="address"),
        pytest.param("Neueste Artikel", 4, _MENU, True, id="other language"),
        pytest.param("related_articles_all ()", 4, _MENU, True, id="identifier"),
    ],
)
def test_labels_go_by_their_words(label: str, paragraphs: int, menu: str, stays: bool) -> None:
    tree, pieces = taken(_labelled(label, paragraphs=paragraphs, menu=menu))
    kept = [text_of(tree, piece) for piece in chosen(tree, pieces, "A long law")]
    assert kept == [text_of(tree, piece) for piece in reference.chosen(tree, pieces, "A long law")]
    assert (label in kept) == stays
    assert sum(text.startswith("You agree") for text in kept) == 2 * paragraphs
