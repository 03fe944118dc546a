"""The tree of a page in columns: what the core makes is what the reference in Python makes."""

import ctypes
import logging
import os
import resource
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from random import Random

import pytest
import selectolax.lexbor
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from freshet.crawler.errors import TreeLimit
from freshet.crawler.reduce import tree_parser as module
from freshet.crawler.reduce.document import document
from freshet.crawler.reduce.tree import (
    LEVELS,
    LINK,
    PARSER_OPTIONS,
    PLACES,
    TRAITS,
    UNSEEN,
    SelectorHints,
    Tree,
    TreeLimits,
    holds,
)
from freshet.crawler.reduce.tree_parser import SYMBOLS, marked, tree_of
from freshet.crawler.reduce.tree_reference import reference
from tests.crawler.reduce.test_blocks_text_version import ARTICLE, SHOP

LIMITS = TreeLimits(1 << 24, 1 << 28, 60.0)


def agree(html: str) -> Tree:
    """Return the tree of the core, which is that of the reference."""
    assert module.is_usable()
    made = tree_of(html, LIMITS._replace(links=1_000))
    text = html.encode("utf-8", "ignore").decode()
    other = reference(LexborHTMLParser(text, options=PARSER_OPTIONS), 1_000)
    for column in fields(Tree):
        ours, theirs = getattr(made, column.name), getattr(other, column.name)
        assert list(ours) == list(theirs), column.name
    assert made == other
    return made


# -- what columns say --------------------------------------------------------------


def test_nodes_are_in_document_order_and_know_what_stands_in_them() -> None:
    tree = agree("<title>T</title><p id=a class=''>One <b>two</b><!-- c --> three<p>x")
    tags = [tree.tag(node) for node in range(len(tree))]
    assert tags == [
        "html",
        "head",
        "title",
        "#text",
        "body",
        *"p #text b #text #text p #text".split(),
    ]
    first, second = tree.named("p")
    assert tree.children(first) == [first + 1, first + 2, first + 4]
    assert (tree.end[first], tree.parent[second], tree.end[0]) == (second, tree.body, len(tree))
    assert tree.text_of(first) == "One two three"
    assert tree.attributes(first) == {"id": "a", "class": ""}
    assert list(tree.saying("class")) == [first]
    assert (tree.values_of("class"), tree.values_of("x")) == ([(first, "")], [])
    assert (tree.attribute_of(first, "class"), tree.attribute_of(first, "x")) == ("", None)


def test_values_of_an_attribute_are_those_that_each_element_has() -> None:
    for said in ("one two", "één 二"):
        tree = agree(f"<p class='{said}'>a<b class=c>b</b><i id={said[0]}>c</i><p>d")
        every = [(node, tree.attributes(node).get("class")) for node in range(len(tree))]
        assert tree.values_of("class") == [each for each in every if each[1] is not None]
        assert len(tree.values_of("class")) == 2


def test_bits_tell_which_texts_a_body_holds() -> None:
    sought = b"one\0two\0three\0"
    assert [holds(body, sought) for body in (b"", b"a one", b"a\0two", b"three one")] == [
        0,
        1,
        2,
        5,
    ]


def test_texts_around_a_comment_are_one() -> None:
    tree = agree("<p>a<!-- x -->b<!----><?y>c<i></i>d")
    assert [tree.text_of(node) for node in tree.children(next(tree.named("p")))] == ["abc", "", "d"]


def test_places_are_inherited_and_roles_make_them_too() -> None:
    tree = agree("<main><ul><li><a href=/><i>x</i></a></ul></main><div role=NAVIGATION><p>y</div>")
    inner, outer = next(tree.named("i")), next(tree.named("div"))
    assert tree.place[inner] == PLACES["main"] | PLACES["li"] | LINK
    assert tree.place[outer] == PLACES["frame"]
    assert tree.place[outer + 1] == PLACES["frame"] | PLACES["p"]


def test_traits_and_characters_of_what_is_seen_are_added_up() -> None:
    tree = agree("<div> one <a href=/>two<h2>3</h2></a><img><script>four</script></div>")
    (node,) = tree.named("div")
    assert tree.holds[node] & TRAITS["image"]
    assert tree.holds[node] & TRAITS["heading"]
    assert (tree.chars[node], tree.linked[node]) == (7, 4)
    (link,) = tree.named("a")
    assert (tree.chars[link], tree.linked[link]) == (4, 0)
    # DocBook's anchors name a place, and in HTML what is behind them stands in them.
    anchored = agree("<div> one <a id=x>two<h2>3</h2></a></div>")
    (node,) = anchored.named("div")
    assert (anchored.chars[node], anchored.linked[node]) == (7, 0)
    assert [tree.tag(child) for child in tree.children(node)] == ["#text", "a", "img"]


SEEN = {
    "controls": [
        ("<div><button>Q?</button></div>", "Q?"), ("<label>Size<output>9</output>", "Size9"),
        ("<textarea>terms</textarea>", "terms"), ("<input value=42>", "42"),
        ("<input value=42 type=hidden>", ""), ("<input type=Password value=x>", ""),
        ("<input type=checkbox value=1>", "☐ "), ("<input value=1 checked type=CHECKBOX>", "☑ "),
        ("<input type=radio>a<input type=radio checked>b", "☐ a☑ b"), ("<input alt=Go>", "Go"),
        ("<meter value=3></meter>", "3"), ("<meter value=3>3 of 5</meter>", "3 of 5"),
        ("<progress value=.5></progress><progress>", ".5"), ("<datalist><option>o", ""),
        ("<select><option>a<option selected>b</select>", "b"),
        ("<select>\n<option>a<option>b</select>", "\na"), ("<select><option>a", "a"),
        ("<select multiple><option selected>a<option>b<option selected>c</select>", "ac"),
    ],
    "states": [
        ("<p role=checkbox aria-checked=true>a</p>", "☑ a"), ("<i aria-checked=FALSE></i>", "☐ "),
        ("<p aria-checked=mixed>a</p>", "a"), ("<input type=radio aria-checked=true>", "☑ "),
        ("<select><optgroup><option>a<optgroup><option>b<option selected>c</select>", "c"),
        ("<select><optgroup>\n<option>a<option>b<optgroup><option>c</select>", "\na"),
    ],
    "places": [
        ("<svg><text>t</text></svg>", ""), ("<noscript>n</noscript>", "n"), ("<input>", ""),
        ("<xmp><b></xmp>", "<b>"), ("<dialog>d</dialog>", ""), ("<dialog open>d</dialog>", "d"),
        ("<dialog OPEN=''>d", "d"),
        ("<svg><dialog open>d</dialog></svg>", ""), ("<script type=text/x>s</script>", ""),
        ("<details><summary>a</summary>b</details>", "ab"), ("<dialog data-open>d", ""),
    ],
    "formulas": [
        ("<script type='math/tex; mode=display'>x^2</script>", "x^2"),
        ("<math><semantics><mi>x</mi><annotation encoding=application/x-tex>y</annotation>", "y"),
        ("<math><semantics><mi>x</mi><annotation encoding=Maple>y</annotation>", "x"),
        ("<span class=katex><span class=katex-mathml>x</span><span class=katex-html>y</span>", "x"),
        ("<span class=katex><span class=katex-html>y</span></span>", "y"),
        ("<mjx-container><mjx-math>y</mjx-math><mjx-assistive-mml>x", "x"),
        ("<span class='MathJax_Preview'>p</span><span class=MathJax>y</span>", ""),
        ("<span class=mwe-math-element><span class=mwe-math-mathml-inline>x</span><b>y</b>", "x"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("html", "seen"), [pair for pairs in SEEN.values() for pair in pairs])
def test_what_readers_see_is_told_from_the_rest(html: str, seen: str) -> None:
    tree = agree(f"<body>{html}")
    texts = [node for node in range(len(tree)) if tree.tag(node) == "#text"]
    assert "".join(tree.text_of(it) for it in texts if not tree.place[it] & UNSEEN) == seen


@pytest.mark.parametrize(
    ("html", "places"),
    [("<div role='doc-x NOTE'>", []), ("<aside role=note>", []), ("<aside>", ["aside"]),
     ("<aside class='a my-note_x b'>", []), ("<aside class=notebook>", ["aside"]),
     ("<aside class=''>", ["aside"]), ("<div class=note>", []), ("<aside class='é;tip'>", []),
     ("<aside class='" + "x" * 300 + " \ttip\n'>", []), ("<aside class=-tip>", []),
     ("<a-very-long-name-of-an-element-that-nobody-knows role=note>", []),
     ("<aside class=x" + "y" * 300 + "-tip>", []), ("<p role='banner'>", ["p", "frame"])],
)  # fmt: skip
def test_names_with_attributes_make_places(html: str, places: list[str]) -> None:
    tree = agree(f"<body>{html}")
    assert [name for name, bit in PLACES.items() if tree.place[tree.body + 1] & bit] == places


def test_characters_of_a_control_count_in_it_and_not_around_it() -> None:
    tree = agree("<div>one<button>two <i>3</i></button><input><p><label></label></p></div>")
    (outer,), (inner,), (block,) = map(tree.named, ("div", "button", "p"))
    assert (tree.chars[outer], tree.chars[inner], tree.chars[block]) == (3, 4, 0)
    assert tree.holds[outer] & TRAITS["control"]
    assert not tree.holds[block] & TRAITS["control"]


def test_elements_too_deep_are_part_of_the_one_above() -> None:
    tree = agree("<div>" * 3 * LEVELS + "a<p>b<script>c</script>d")
    deepest = max(range(len(tree)), key=tree.parent.__getitem__)
    level, node = 0, deepest
    while node:
        level, node = level + 1, tree.parent[node]
    assert level == LEVELS + 1
    last = tree.parent[deepest]
    assert [tree.text_of(child) for child in tree.children(last)] == ["a", "b", "d"]


@pytest.mark.parametrize(
    ("html", "names"),
    [("<a href=x rel=me>t<b>u</b></a>v", "a #text #text #text"), ("<img alt=t><br>", "img"),
     ("<meta name=robots content=noindex><p>x", "meta #text"), ("<base href=x>", "base"),
     ("<iframe src=x></iframe>", "iframe"), ("<script src=x>c</script>t", "script #text"),
     ("<link rel=next href=x>", "link"), ("<area href=x>", "area"), ("<input src=x>", "input"),
     ("<svg><a href=x>u<a href=y>v</a></a></svg>w", "a a #text"), ("<b>x</b>", "#text")],
)  # fmt: skip
def test_elements_that_last_are_nodes_however_deep_they_stand(html: str, names: str) -> None:
    tree = agree("<div>" * 2 * LEVELS + html)
    deepest = max(tree.named("div"))
    below = range(deepest + 1, len(tree))
    assert [tree.tag(node) for node in below] == names.split()
    assert {tree.parent[node] for node in below} == {deepest}
    assert [tree.text_of(node) for node in tree.named("a")][:1] in ([], ["tu"], [""])


def test_characters_count_not_bytes() -> None:
    tree = agree("<p title='é🌍'>ñ🌍 x<p>\u2003\x85y\xa0<p>z")
    first, second, third = tree.named("p")
    assert (tree.text_of(first), tree.chars[first]) == ("ñ🌍 x", 4)
    assert (tree.attribute_of(first, "title"), tree.text_of(third)) == ("é🌍", "z")
    assert tree.chars[second] == 1


def test_there_are_bits_for_all_traits_and_places() -> None:
    # Columns have 32 bits. Who adds one too many makes them wider, here and in tree.c.
    assert max(*TRAITS.values(), *PLACES.values()) < 1 << 32


def test_half_characters_are_left_out() -> None:
    assert tree_of("<p>a\ud800b").text == b"ab"


# -- links ---------------------------------------------------------------------------


def links(html: str) -> list[tuple[str, str, str]]:
    tree = agree(html)
    columns = (
        column.split("\n")[:-1] for column in (tree.references, tree.relations, tree.anchors)
    )
    return list(zip(*columns, strict=True))


@pytest.mark.parametrize(
    ("html", "expected"),
    [("<a href='x#y' rel='b  a'> T <i>u</i>\n</a>", ("x", "b  a", "T u")),
     ("<a href='#y'>t</a>", ("", "", "t")), ("<a href=' #y'>t</a>", (" #y", "", "t")),
     ("<a href='x\ny\tz'>t</a>", ("xyz", "", "t")), ("<a href=x rel='a\nb'>", ("x", "a b", "")),
     ("<a href=x><img alt='An  image'><img alt=other></a>", ("x", "", "An image")),
     ("<a href=x><img alt=''><img alt=other></a>", ("x", "", "")),
     ("<a href=x alt=no><img></a>", ("x", "", "")),
     ("<a href=x>t<script>s</script><style>s</style><iframe>s</iframe></a>", ("x", "", "t")),
     ("<a href=x><button>Buy</button></a>", ("x", "", "Buy")),
     ("<a href=x><input type=submit value=Go></a>", ("x", "", "Go")),
     ("<a href=x>t<input type=hidden value=no></a>", ("x", "", "t")),
     ("<a href=x>\xa0\u2003é\x85</a>", ("x", "", "é")),
     (f"<a href=x>{'é ' * 300}</a>", ("x", "", ("é " * 100).strip())),
     (f"<a href=x>{' ' * 1_999}ab</a>", ("x", "", "a")),
     (f"<a href=x>{'y' * 199} z</a>", ("x", "", "y" * 199)),
     ("<area href=x alt=Area>", ("x", "", "Area")), ("<iframe src=x title=t>", ("x", "", "")),
     ("<link rel=Next href=x title=t>", ("x", "Next", "")),
     ("<frameset><frame src=x>", ("x", "", "")),
     ("<div>" * 150 + "<a href=x>t<b>u</b></a>v", ("x", "", "tu"))],
)  # fmt: skip
def test_a_link_is_its_reference_its_relations_and_what_it_is_called(
    html: str, expected: tuple[str, str, str]
) -> None:
    assert links(html) == [expected]


def test_of_equal_links_the_first_counts_and_all_link_elements() -> None:
    page = "<link rel=next href=x><link rel=next href=x><a href=x>A</a><area href='x#y' alt=B>"
    page += "<a href=x rel=nofollow>C</a><a href=x rel=nofollow>D</a><iframe src=x>"
    anchors = [("", "next")] * 2 + [("A", ""), ("C", "nofollow"), ("", "")]
    assert [(anchor, rel) for _, rel, anchor in links(page)] == anchors


@pytest.mark.parametrize("count", [1, 15, 16, 17, 1_000])
def test_many_links_are_told_apart(count: int) -> None:
    page = "".join(f"<a href=/{n % count}#{n}>{n}</a>" for n in range(3 * count))
    assert [reference for reference, _, _ in links(page)] == [
        f"/{n}" for n in range(min(count, 1_000))
    ]


def test_links_in_links_repeat_their_text_in_bounds() -> None:
    page = "<svg>" + "".join(f"<a href={n}>" for n in range(90)) + "word " * 40 + "</svg>"
    anchors = [anchor for _, _, anchor in links(page)]
    assert len(anchors) == 90
    assert len("".join(anchors)) < 1_000


def test_only_so_many_links_are_read() -> None:
    page = "".join(f"<a href={n}>x</a>" for n in range(9))
    assert tree_of(page, TreeLimits(links=4)).references.split() == list("0123")
    assert tree_of(page).references == ""


# -- the core and the reference ------------------------------------------------------

PIECES = (
    "<div> </div> <p> </p> <b> </b> <a/href=x> <table> <td> <tr> <ul> <li> <br> "
    "<img/alt='<'> text &amp; &lt; &nbsp; <!-- <!--> --> <script> </script> <style> </style> "
    "<xmp> </xmp> <iframe> </iframe> <noscript> <title> </title> <textarea> </textarea> "
    "<select> <option> <a<b> <p/a<b=1> <p/x<!--y=1> <template> </template> </body> <svg> "
    "</svg> <math> <mi> <foreignObject> <h2> </h2> <button> </button> <plaintext> <![CDATA[ "
    "]]> <frameset> <form> <p/role=Banner> <p/ROLE='é'> <use/xlink:href=#a> <x-y/Z=1> > < é "
    "\u2003 \x00 \r\n 🌍 <head> <html/lang=x> <body/class=y> <ruby> <rt> <nobr> <dialog> "
    "<details> <a/href=y/x=1/x=2> <input/value=v> <input/type=checkbox/checked> <dialog/open> "
    "</dialog> <option/selected> <optgroup> <i/aria-checked=true> <semantics> "
    "<annotation/encoding=tex> <aside/class=x-note> "
    "<span/class=katex> <span/class=katex-mathml> </span> <meter/value=3> </meter> <rp> "
    "<a\thref=z#q> <a\thref='z'\trel='Up\nme'> <a\thref='\tl\ni\t#k'> "
    "<area\thref=z\talt=Area> <img\talt='Of\n\u2003it'> <iframe\tsrc=i> <link\thref=l\trel=next>"
).split(" ")  # fmt: skip

#: Without those that swallow what follows.
TAME = [
    piece
    for piece in PIECES
    if piece.strip("</>")
    not in "plaintext script style xmp iframe textarea title select frameset template".split()
]


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_of_broken_markup_both_make_the_same_tree(html: str) -> None:
    agree(html)


@given(st.integers(-4, 4), st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_of_deep_markup_both_make_the_same_tree(levels: int, html: str) -> None:
    agree("<i>" * (LEVELS + levels) + html)


@given(st.text(max_size=80) | st.text("<>/!-a \"'=&;p\r\n\x00é", max_size=80))
def test_of_any_text_both_make_the_same_tree(html: str) -> None:
    agree(html)


@pytest.mark.parametrize(
    "page",
    [ARTICLE, SHOP, "", "x", "<frameset><frame></frameset>"],
    ids=["article", "shop", "nothing", "a letter", "frames"],
)
def test_of_pages_both_make_the_same_tree(page: str) -> None:
    agree(page)


def test_of_long_pages_cut_anywhere_both_make_the_same_tree() -> None:
    # The core feeds the parser by pieces of 4 KiB: tags, references and characters are cut.
    rng = Random(57)
    for _ in range(20):
        html = "".join(rng.choices(TAME, k=2_000))
        agree(f"{' ' * rng.randrange(4_096)}{html}")


# -- hostile pages, limits -----------------------------------------------------------

HOSTILE = {
    "nested elements": "<div>" * 100_000,
    "attributes": "<p " + " ".join(f"a{i}=1" for i in range(60_000)) + ">",
    # lexbor#340
    "formatting elements": "".join(f"<b id={i}><p>" for i in range(4_000)),
}


@pytest.mark.parametrize("page", HOSTILE.values(), ids=HOSTILE)
def test_a_page_that_takes_too_long_is_refused(page: str) -> None:
    with pytest.raises(TreeLimit, match=r"more than 0\.05 s of processor time"):
        tree_of(page, LIMITS._replace(seconds=0.05))


@pytest.mark.parametrize(
    ("page", "limits"),
    [("<b>x</b>" * 50, LIMITS._replace(nodes=50)),
     ("<p " + " ".join(f"a{i}" for i in range(60)) + ">", LIMITS._replace(nodes=50)),
     ("x" * 2_000, LIMITS._replace(octets=1_000)),
     # What is written short may be long: formatting elements are made again in every paragraph.
     ("<p><b a=" + "x" * 500 + ">x" + "<p>x" * 20, LIMITS._replace(octets=1_000)),
     ("<p>" + "".join(f"<i a={i}>" for i in range(20)) + "<p>x" * 20, LIMITS._replace(nodes=200))],
    ids=["nodes", "attributes", "octets", "octets made again", "nodes made again"],
)  # fmt: skip
def test_a_page_beyond_a_limit_is_refused(page: str, limits: TreeLimits) -> None:
    with pytest.raises(TreeLimit, match="a page of more than"):
        tree_of(page, limits)
    assert len(tree_of(page)) > 0


@pytest.mark.parametrize("limit", ["nodes", "octets", "seconds", "memory"])
@pytest.mark.parametrize(
    "rest",
    ["<b>x</b>", "<p a=b c=d e=f>", "<a href=x>yy</a>", "<div><ul>", "<b id={}><p>", "<table><tr>",
     "xx yy zz ", "<p x='zzzzzzzzzzz'>", "<option>o", "<svg><a href={}>"],
)  # fmt: skip
def test_of_a_page_beyond_a_limit_there_is_a_beginning(rest: str, limit: str) -> None:
    start = "<title>T</title><a href=1>one</a><p>two "
    few = {"nodes": TreeLimits(500), "octets": TreeLimits(octets=5_000)}
    few |= {"seconds": TreeLimits(), "memory": TreeLimits(memory=2_000_000)}
    limits = few[limit]._replace(links=100, seconds=0.03)
    page = start + "".join(rest.replace("{}", str(n)) for n in range(4_000))
    tree = tree_of(page, limits, partly=True)
    whole = tree_of(page[:4_000], LIMITS._replace(links=100))
    assert tree.references.startswith("1\n")
    assert tree.anchors.startswith("one\n")
    assert tree.text_of(next(tree.named("title"))) == "T"
    if limit == "nodes":
        assert len(tree) <= limits.nodes
        assert len(tree.owner) <= limits.nodes
    assert len(tree.text) <= limits.octets
    same = min(len(tree), 10)
    assert list(tree.parent[:same]) == list(whole.parent[:same])
    # All that was open is closed.
    assert tree.end[0] == len(tree)
    assert all(node < end <= len(tree) for node, end in enumerate(tree.end))
    assert all(owner < len(tree) for owner in tree.owner)
    assert tree.text_end[0] == len(tree.text)
    if tree.cut:
        with pytest.raises(TreeLimit):
            tree_of(page, limits)


def test_of_a_page_that_ends_before_its_first_element_there_is_nothing() -> None:
    with pytest.raises(TreeLimit):
        tree_of("<!--" + "x" * 100_000, LIMITS._replace(seconds=0.0), partly=True)


@pytest.mark.parametrize(
    "page",
    ["<div>" * 1_500, "<p " + " ".join(f"a{i}" for i in range(3_000)) + ">",
     "<b><p>" * 40, "<table><tr><td>" * 300, "<option>" * 3_000, "<a>" * 3_000, "&lt;" * 30_000,
     "".join(f"<x{i} y{i}>" for i in range(3_000)), "a<!---->" * 10_000],
    ids=lambda page: page[:12],
)  # fmt: skip
def test_of_hostile_pages_both_make_the_same_tree(page: str) -> None:
    agree(page)


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss has other units elsewhere")
@pytest.mark.skipif("ASAN_OPTIONS" in os.environ, reason="the checker keeps what was given back")
def test_a_thousand_pages_leave_nothing_in_memory() -> None:
    page = "".join(f"<p class=c{i}>{'word ' * 50}</p>" for i in range(200))
    limits = (LIMITS, LIMITS._replace(nodes=300), LIMITS._replace(octets=20_000))
    peak = 0
    for number in range(1_000):
        try:
            tree_of(page, limits[number % 3])
        except TreeLimit:
            assert number % 3
        if number == 100:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Each has some 100 KiB of text alone.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 4_000


def test_threads_make_trees_at_once() -> None:
    rng = Random(4)
    pages = ["".join(rng.choices(TAME, k=3_000)) for _ in range(40)]
    expected = [tree_of(page) for page in pages]
    module.is_usable.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(tree_of, pages)) == expected


# -- the parser that is installed ----------------------------------------------------


def test_selectolax_exports_what_the_core_calls() -> None:
    library = ctypes.CDLL(selectolax.lexbor.__file__)
    missing = [name for name in SYMBOLS if not hasattr(library, name)]
    assert not missing, "pyproject.toml bounds selectolax: it must not allow this version"


@pytest.mark.parametrize("fault", ["symbol", "other tree", "no library"])
def test_without_the_parser_pages_are_read_by_the_reference(
    fault: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    expected = document(ARTICLE.encode(), "http://h.example/", "text/html")
    if fault == "symbol":
        monkeypatch.setattr(module, "SYMBOLS", (*SYMBOLS[:-1], "lxb_no_such_function"))
    elif fault == "no library":
        monkeypatch.setattr(selectolax.lexbor, "__file__", "/none/lexbor.so")
    else:
        monkeypatch.setattr(module, "_native", lambda *_: reference(LexborHTMLParser("<p>")))
    module.is_usable.cache_clear()
    with caplog.at_level(logging.WARNING):
        try:
            found = [document(ARTICLE.encode(), "http://h.example/", "text/html") for _ in "two"]
        finally:
            module.is_usable.cache_clear()
    assert found == [expected] * 3
    assert [record.name for record in caplog.records] == [module.__name__]
    assert "pages are read more slowly" in caplog.text


# -- selectors of a site -------------------------------------------------------------


def test_what_a_page_says_of_our_marks_does_not_count() -> None:
    page = "<p data-freshet=ignored>One of the words.</p><p>Two of the words.</p>"
    assert "One of" in document(page.encode(), "http://h.example/", "text/html").text


@pytest.mark.parametrize("deep", [0, 2 * LEVELS, 5_000])
def test_of_a_marked_page_the_tree_shows_what_selectors_choose(deep: int) -> None:
    page = f"<title>t</title><nav>x</nav><main>a<p>b<i>c</i></p>{'<b>' * deep}</main>"
    parser = LexborHTMLParser(page, options=PARSER_OPTIONS)
    assert SelectorHints(include=("main", "p", "title"), ignore=("i", "nav")).mark(parser)
    tree, included = marked(tree_of(page), parser)
    assert [tree.tag(node) for node in included] == ["title", "main"]
    unseen = [node for node in range(len(tree)) if tree.place[node] & UNSEEN]
    assert [tree.tag(node) for node in unseen] == ["head", "nav", "#text", "i", "#text"]
    assert [tree.chars[node] for node in (tree.body, *included)] == [2, 1, 2]


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_without_marks_the_tree_is_as_it_was(html: str) -> None:
    tree = tree_of(html)
    assert marked(tree, LexborHTMLParser(html, options=PARSER_OPTIONS)) == (tree, [])
