"""The main text of a page, and what is set aside."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.reduce.main_text import plain_text
from tests.crawler.reduce.pages import blocks_of

PROSE = "<p>The first paragraph says enough to count.</p><p>The second one says more.</p>"
BLOCKS = ("The first paragraph says enough to count.", "The second one says more.")


def blocks(markup: str) -> tuple[str, ...]:
    return blocks_of(markup).texts


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
     "<p hidden>hidden</p>", "<div role=navigation>Home</div>",
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


def test_a_frame_name_on_what_holds_the_very_article_is_not_believed() -> None:
    assert blocks(f"<div class=nav-wrapper><main>{PROSE}</main></div>") == BLOCKS
    assert blocks(f"<header><article>{PROSE}</article></header>") == BLOCKS


def test_hidden_words_in_a_sentence_that_are_shown_end_no_block() -> None:
    words = "hidden words " * 30
    found = blocks(f"<p>One <b hidden>{words}</b> two.</p><p>Three.</p>")
    assert found == (f"One {words}two.", "Three.")


def test_a_frame_name_on_words_in_a_sentence_does_not_take_them_out() -> None:
    (block,) = blocks("<p>See the <a class=nav-link href=x>other page</a> first.</p>")
    assert block == "See the other page first."


def test_lists_of_links_beside_prose_are_set_aside() -> None:
    links = "<ul><li><a href=1>One</a><li><a href=2>Two</a><li><a href=3>Three</a></ul>"
    assert blocks(links + PROSE * 2) == BLOCKS * 2


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


LONG = f"<p>{'Sentences of the article say a lot. ' * 12}</p>"


@pytest.mark.parametrize(
    "wrapper",
    ["<noscript>{}</noscript>", "<div hidden>{}</div>", "<div aria-hidden=true>{}</div>",
     "<div class=sidebar-container>{}</div>", "<div class='entry share'><div>{}</div></div>"],
)  # fmt: skip
def test_an_article_is_found_whatever_its_element_is_called(wrapper: str) -> None:
    text = " ".join(["Sentences of the article say a lot."] * 12)
    assert text in blocks(f"<body><nav><p>Home</p></nav>{wrapper.replace('{}', LONG)}")


def test_short_sentences_beside_long_ones_stay() -> None:
    found = blocks(f"<main><h1>Tea</h1><p>12.50 EUR</p>{LONG}<p>In stock.</p>{LONG}</main>")
    assert {"Tea", "12.50 EUR", "In stock."} <= set(found)


def test_what_is_hidden_beside_content_is_none() -> None:
    assert "Sold out" not in blocks(f"<main>{LONG}<p hidden>Sold out</p>{LONG}</main>")
