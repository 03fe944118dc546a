"""The main text of a page, and what is set aside."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from freshet.crawler.reduce.main_text import main_text, plain_text
from freshet.crawler.reduce.markup import read

PROSE = "<p>The first paragraph says enough to count.</p><p>The second one says more.</p>"
BLOCKS = ("The first paragraph says enough to count.", "The second one says more.")


def blocks(markup: str) -> tuple[str, ...]:
    return main_text(read(LexborHTMLParser(markup).html or "")).texts


def test_headings_paragraphs_items_cells_and_runs_of_text_are_blocks() -> None:
    markup = """<h1>Title</h1> loose <b>te</b>xt <p>A <a href=x>link</a>, and
      more.</p><ul><li>one<li>two</ul><table><tr><td>cell<td>12.50</table><pre>a
      b</pre><dl><dt>term<dd>meaning</dl><figure><figcaption>caption</figcaption></figure>
      first line<br>second line"""
    assert blocks(markup) == (
        *("Title", "loose text", "A link, and more.", "one", "two", "cell", "12.50", "a b"),
        *("term", "meaning", "caption", "first line", "second line"),
    )


def test_text_is_normalised_to_composed_characters_and_single_spaces() -> None:
    assert blocks("<p>cafe\u0301 \u00a0\n au&nbsp;lait</p>") == ("café au lait",)


@pytest.mark.parametrize(
    "frame",
    ["<script>var a = 1</script>", "<style>p {}</style>", "<noscript>Enable it</noscript>",
     "<template><p>row</p></template>", "<svg><text>drawn</text></svg>", "<nav><p>Home</p></nav>",
     "<header><p>The site</p></header>", "<footer><p>Imprint</p></footer>",
     "<aside><p>An advert that is long enough to be read as prose.</p></aside>",
     "<form><select><option>One</select><button>Go</button><textarea>x</textarea></form>",
     "<p hidden>hidden</p>", "<span aria-hidden=true>#</span>", "<div role=navigation>Home</div>",
     "<div role=contentinfo>Imprint</div>", "<div class='ad-slot top'>Buy this now</div>",
     "<div id=cookieConsent>We use cookies</div>", "<ul class=breadcrumb><li>Home<li>Here</ul>",
     "<p>Page rendered at 10:22:01</p>", "<div>© 2026 Example</div>", "<!-- a comment -->"],
)  # fmt: skip
def test_the_frame_is_set_aside_wherever_it_stands(frame: str) -> None:
    assert blocks(f"<body>{frame}{PROSE}") == BLOCKS
    assert blocks(PROSE + frame) == BLOCKS
    assert blocks(f"<body><main>{PROSE}</main>{frame}") == BLOCKS


@pytest.mark.parametrize("edge", ["header", "footer"])
@pytest.mark.parametrize("part", ["article", "main"])
def test_header_and_footer_of_an_article_are_content(part: str, edge: str) -> None:
    markup = f"<{part}><{edge}><h1>Title</h1></{edge}>{PROSE}</{part}>"
    assert blocks(markup) == ("Title", *BLOCKS)


def test_the_main_element_is_the_root_where_it_holds_enough_of_the_text() -> None:
    around = "<div>Some words around the main part of the page.</div>"
    for main in ("<main>{}</main>", "<div role=main>{}</div>", "<div id=content>{}</div>"):
        assert blocks(around + main.format(PROSE) + around) == BLOCKS
        assert blocks(main.format("") + PROSE) == BLOCKS


def test_articles_are_the_root_where_they_hold_most_of_the_text() -> None:
    assert blocks(f"<div>around</div><article>{PROSE}</article>") == BLOCKS
    teaser = "<article>A teaser</article>"
    assert blocks(teaser + PROSE) == ("A teaser", *BLOCKS)


def test_the_articles_of_the_main_element_are_the_root_where_they_hold_most_of_its_text() -> None:
    after = "<div>Read this next</div>"
    assert blocks(f"<main><article>{PROSE}</article>{after}</main>") == BLOCKS
    assert blocks(f"<main>{PROSE}<article>A teaser</article></main>") == (*BLOCKS, "A teaser")


def test_a_few_words_before_the_title_are_frame_and_many_are_content() -> None:
    title = "<h1><b>The</b> title</h1>"
    for page in ("<main>{}</main>", "<div>{}</div>"):
        assert blocks(page.format(f"<div>Our shop</div>{title}{PROSE}")) == ("The title", *BLOCKS)
        assert blocks(page.format(PROSE + title)) == (*BLOCKS, "The title")


def test_a_frame_name_on_what_holds_the_very_article_is_not_believed() -> None:
    assert blocks(f"<div class=nav-wrapper><main>{PROSE}</main></div>") == BLOCKS
    assert blocks(f"<header><article>{PROSE}</article></header>") == BLOCKS


LONG = f"<p>{'Sentences of the article say a lot. ' * 12}</p>"


@pytest.mark.parametrize(
    "wrapper",
    ["<noscript>{}</noscript>", "<div hidden>{}</div>", "<div aria-hidden=true>{}</div>",
     "<div hidden id=S:1>{}</div><div hidden id=S:2><div hidden>{}</div></div>",
     "<div class=sidebar-container>{}</div>", "<div class='entry share'><div>{}</div></div>"],
)  # fmt: skip
def test_what_is_hidden_or_named_like_frame_is_content_where_it_is_most_of_the_page(
    wrapper: str,
) -> None:
    text = " ".join(["Sentences of the article say a lot."] * 12)
    around = "<nav><p>Home</p></nav><div>A few words around it.</div>"
    found = blocks(f"<body>{around}{wrapper.replace('{}', LONG)}")
    assert found == ("A few words around it.", *[text] * wrapper.count("{}"))
    longer = "<div>Words around it.</div>" * 40
    assert blocks(f"<body>{longer}{wrapper.replace('{}', LONG)}") == ("Words around it.",) * 40


@pytest.mark.parametrize("name", ["sidebar", "menubar"])
def test_a_long_menu_is_frame_on_a_page_of_few_words(name: str) -> None:
    menu = "<li><a href=/x>Another of the many pages of this site</a>" * 40
    assert blocks(f"<body><div class={name}><ul>{menu}</ul></div>{PROSE}") == BLOCKS


def test_hidden_words_in_a_sentence_that_are_shown_end_no_block() -> None:
    words = "hidden words " * 30
    found = blocks(f"<p>One <b hidden>{words}</b> two.</p><p>Three.</p>")
    assert found == (f"One {words}two.", "Three.")


def test_a_frame_name_on_words_in_a_sentence_does_not_take_them_out() -> None:
    (block,) = blocks("<p>See the <a class=nav-link href=x>other page</a> first.</p>")
    assert block == "See the other page first."


def test_what_follows_an_article_and_lone_links_and_buttons_are_set_aside() -> None:
    after = "<h3>Related posts</h3><p>Another of the many posts.</p><div>Sign in</div>"
    link = "<div><a href=x>Our other shop</a></div>"
    assert blocks(LONG + link + LONG + after) == blocks(LONG + LONG)
    assert blocks(f"<h3>Latest news</h3>{LONG}{after}")[0] == "Latest news"
    assert blocks(PROSE + after + link)[-1] == "Our other shop"
    assert blocks("<div>Sign in</div>") == ("Sign in",)


def test_lists_of_links_beside_prose_are_set_aside() -> None:
    links = "<ul><li><a href=1>One</a><li><a href=2>Two</a><li><a href=3>Three</a></ul>"
    assert blocks(links + PROSE * 2) == BLOCKS * 2


def test_links_in_sentences_headings_and_tables_are_content() -> None:
    linked = "".join(f"<td><a href={i}>type{i}</a></td>" for i in range(5))
    headings = "".join(f"<h2><a href={i}>Story {i}</a></h2>" for i in range(3))
    found = blocks(PROSE * 5 + f"<table><tr>{linked}</tr></table>{headings}")
    assert found[len(BLOCKS) * 5 :] == (
        "type0", "type1", "type2", "type3", "type4", "Story 0", "Story 1", "Story 2"
    )  # fmt: skip


def test_an_index_page_is_its_links() -> None:
    links = "".join(f"<li><a href={i}>Entry {i}</a></li>" for i in range(5))
    assert blocks(f"<h1>Index</h1><ul>{links}</ul>") == ("Index", *(f"Entry {i}" for i in range(5)))


def test_a_page_of_nothing_but_frame_is_its_own_content() -> None:
    assert blocks("<nav><a href=x>Home</a></nav><script>x</script>") == ("Home",)
    assert blocks("<nav><p>Page rendered at 10:22:01</p></nav>") == ()


def test_a_one_word_edit_a_price_and_a_date_of_publication_stay_in_the_text() -> None:
    page = "<p>Published 21 Nov 2026</p><p>Price: {} EUR</p><p>The {} fox.</p>" + PROSE
    expected = ("Published 21 Nov 2026", "Price: 12.50 EUR", "The quick fox.")
    assert blocks(page.format("12.50", "quick"))[:3] == expected


def test_frames_within_frames_that_hold_the_article_are_looked_through_once() -> None:
    # Quadratic in the depth, this would take minutes.
    assert len(blocks("<div class=sidebar>" * 20_000 + LONG + "</div>" * 20_000)) == 1
    soup = "<div class=nav>" * 3000 + "<main>" + PROSE + "</main>" + "<header>frame</header>"
    assert blocks(soup) == BLOCKS
    assert blocks("<div class=nav><main>" * 3000 + PROSE) == BLOCKS
    assert blocks("<div>" * 3000 + "deep") == ("deep",)


PIECES = (
    "<div> </div> <p> <b> </b> <table> <td> <nav> </nav> <main> </main> <a> </a> <svg> <ul> <li> "
    "<template> <select> <option> <frameset> </body> <!-- --> text &amp; <article> <math> <br/>"
)
MARKUP = st.lists(st.sampled_from(PIECES.split()), max_size=60).map(" ".join)


@given(MARKUP)
def test_no_tag_soup_raises_and_all_blocks_are_normal(markup: str) -> None:
    for block in blocks(markup):
        assert block
        assert block == " ".join(block.split())


@given(st.lists(st.text(st.characters(codec="ascii", categories=["L"]), min_size=1), max_size=8))
def test_all_words_of_paragraphs_come_through_in_order(words: list[str]) -> None:
    # Some words by themselves are controls.
    words = [f"x{word}" for word in words]
    assert blocks("".join(f"<p>{word}</p>" for word in words)) == tuple(words)


def test_plain_text_is_cut_into_paragraphs() -> None:
    text = "one\r\nline\r\n \r\n\r\ntwo\n\nPage rendered at 10:22\n\rthree"
    assert plain_text(text).texts == ("one line", "two", "three")
    assert plain_text(" \n\n ").texts == ()
