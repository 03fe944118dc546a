"""Which elements link, and where they lead."""

from random import Random

import pytest

from freshet.crawler.reduce.links import gathered, links_of
from freshet.crawler.reduce.page import parse
from freshet.crawler.reduce.tree import TreeLimits
from freshet.crawler.reduce.tree_parser import tree_of
from freshet.storage.records import Links
from tests.crawler.reduce.reference.links import page_links

BASE = "https://h.example/docs/page.html"


def columns(markup: str, limit: int = 100) -> tuple[Links, bool]:
    tree = tree_of(markup, TreeLimits(links=2 * limit))
    return links_of(tree, BASE, limit)


def links(markup: str) -> Links:
    return columns(markup)[0]


def test_links_of_all_elements_come_in_document_order_with_rel_and_anchor() -> None:
    found = links("""
        <head><link rel="next" href="2"></head>
        <a href="/a" rel=" Me NOOPENER me ">  An
        <b>anchor</b> </a><map><area href="b" alt="Area"></map><iframe src="c" title="F"></iframe>
        <a href="d"><img src="x" alt="An image"></a><a name="no-href">x</a>""")
    assert found == Links(
        urls=tuple(f"https://h.example/{p}" for p in ("docs/2", "a", "docs/b", "docs/c", "docs/d")),
        fetch_urls=found.urls,
        rels=("next", "me noopener", "", "", ""),
        anchors=("", "An anchor", "Area", "F", "An image"),
    )


def test_the_frames_of_a_frameset_are_links() -> None:
    found = links("<frameset><frame src=menu><frame src=main></frameset>")
    assert found.urls == ("https://h.example/docs/menu", "https://h.example/docs/main")


def test_a_canonical_url_comes_once_with_its_first_anchor_and_fetch_url() -> None:
    found = links("<a href='p?utm_source=x#top'>First</a><a href=q>Q</a><a href='p#b'>Again</a>")
    assert found.urls == ("https://h.example/docs/p", "https://h.example/docs/q")
    assert found.fetch_urls[0] == "https://h.example/docs/p?utm_source=x"
    assert found.anchors == ("First", "Q")


def test_an_occurrence_that_may_be_followed_beats_one_that_may_not() -> None:
    found = links("<a href=p rel=nofollow>No</a><a href=q>Q</a><a href=p>Yes</a>")
    assert found.urls == ("https://h.example/docs/p", "https://h.example/docs/q")
    assert (found.rels, found.anchors) == (("", ""), ("Yes", "Q"))
    assert links("<a href=p>Yes</a><a href=p rel='nofollow ugc'>No</a>").rels == ("",)


@pytest.mark.parametrize("rel", ["next", "PREV", "alternate", "author", "license", "canonical up"])
def test_link_elements_with_a_relation_to_another_page_count(rel: str) -> None:
    assert len(links(f'<link rel="{rel}" href="x">')) == 1


@pytest.mark.parametrize(
    "attributes",
    ["rel=stylesheet", "rel='alternate stylesheet'", "rel='shortcut icon'", "rel=preload",
     "rel=dns-prefetch", "rel=alternate type=application/rss+xml",
     "rel=alternate type=application/pdf", "rel=''", ""],
)  # fmt: skip
def test_link_elements_that_load_something_do_not(attributes: str) -> None:
    assert len(links(f"<link {attributes} href=x>")) == 0


def test_what_is_not_http_is_no_link() -> None:
    for href in ("javascript:void(0)", "mailto:a@b", "tel:1", "ftp://h/x", "http://["):
        assert len(links(f'<a href="{href}">x</a>')) == 0


def test_an_anchor_is_at_most_200_characters_long() -> None:
    assert links(f"<a href=x>{'word ' * 100}</a>").anchors[0] == ("word " * 40).rstrip()


def test_more_links_than_the_limit_are_left_out_and_that_is_said() -> None:
    markup = "".join(f"<a href={i}>x</a><a href={i}>again</a>" for i in range(3_000))
    found, is_cut = columns(markup, limit=2_000)
    assert (len(found), is_cut) == (2_000, True)
    assert not columns(markup, limit=3_000)[1]


@pytest.mark.parametrize("around", ["svg", "math"])
@pytest.mark.parametrize(
    "name", ["style", "script", "xmp", "iframe", "noembed", "noframes", "template", "plaintext"]
)
def test_in_drawings_and_formulas_no_element_hides_links(around: str, name: str) -> None:
    page = f"<{around}><{name}><a href=x>T</a></{name}></{around}><a href=y>U</a>"
    assert [url[-1] for url in links(page).urls] == ["x", "y"]


@pytest.mark.parametrize(
    "inner",
    ["<a href=x>T</a>", "<p><a href=x>T</a>", "<slot></slot><a href=x>T</a>",
     "<nav><a href=x>T</a>", "<map><area href=x alt=T>", "<ul><li><a href=x>T</a></ul>",
     "<x-b><template shadowrootmode=open><a href=x>T</a></template></x-b>",
     "<style>p{}</style><a href=x>T</a>", "<a href=x><img alt=T></a>",
     "<iframe src=x title=T></iframe>"],
)  # fmt: skip
@pytest.mark.parametrize("mode", ["open", "closed"])
def test_links_in_declarative_shadow_roots_count(inner: str, mode: str) -> None:
    page = f"<x-a><template shadowrootmode={mode}>{inner}</template></x-a>"
    found = parse(page.encode(), BASE, "text/html").links
    assert (found.urls, found.anchors) == (("https://h.example/docs/x",), ("T",))
    assert not parse(page.replace(" shadowrootmode=", " x=").encode(), BASE, None).links


@pytest.mark.parametrize("levels", [90, 101, 102, 150, 400])
def test_links_count_however_deep_they_stand(levels: int) -> None:
    page = "<div>" * levels + "<a href=x rel=next>T <b>u</b></a>v<a href=y><img alt=P></a>"
    found = links(page)
    assert [url[-1] for url in found.urls] == ["x", "y"]
    assert (found.rels, found.anchors[0]) == (("next", ""), "T u")
    assert found.anchors[1] == "P"


#: Parts of references; most of them the core resolves by itself.
PARTS = """. .. ... / // /./ /../ ./ ../ ? # : @ ; % %2e %2E %41 %c3 & = a b1 A_b- é ß ( )
    /( /(S(x)) ! $ ' * + , | [ ] \\\\ ^ ` { } ~ ;jsessionid=1 utm_source=x &gclid=2 ?q=1&b= && =x?
    http: https: http:// https:// //h.example h.example H.example x.example:80 1.2.3.4 xn--a.b -a.b
    mailto: JavaScript: tel: data: &#32; &#10; &#9;""".split()
RELATIONS = [
    "",
    "",
    "",
    "nofollow",
    "NoFollow  me",
    "\u2167 next",
    "a b a",
    "ugc&#10;next",
    "\u017f",
]
BASES = [
    BASE, "https://h.example/", "http://h.example:8080/a/b/?q=1&utm_id=3", "https://u:p@h.example/a/b",
    "https://h.example/a%20b/(S(1))/c;d", "data:text/html,x", "https://h.example/a/b#c",
]  # fmt: skip


@pytest.mark.parametrize("base", BASES)
def test_the_core_finds_the_links_that_the_reference_finds(base: str) -> None:
    random = Random(base)
    for limit in (100, 100, 100, 7):
        markup = list[str]()
        for _ in range(300):
            href = "".join(random.choices(PARTS, k=random.randrange(6)))
            rel = random.choice(RELATIONS)
            tag = random.choice(["a", "a", "a", "a", "area", "iframe", "link", "frame"])
            source = "src" if "frame" in tag else "href"
            markup.append(f'<{tag} {source}="{href}" rel="{rel}" title="T&#10;t">{tag}</{tag}>\n')
        tree = tree_of("".join(markup), TreeLimits(links=2000))
        assert links_of(tree, base, limit) == gathered(page_links(tree, base), limit)
