"""Chunks lose no words, have the sizes that they promise, and stay while their text stays."""

import re
from collections.abc import Sequence
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.read.chunks import Chunk, chunks_of
from freshet.crawler.reduce.document import document

URL = "https://h.example/a"
WORDS = "stone river mill larch lamp miner valley bridge harbour wind".split()


def made(html: str, chars: int = 1_200) -> tuple[Chunk, ...]:
    found = document(f"<html lang=en><title>T</title><body>{html}".encode(), URL, "text/html")
    outline = [
        (level, text, name)
        for (level, text), name in zip(found.headings, found.anchors, strict=True)
    ]
    return chunks_of(
        found.blocks, outline, chars, url=URL, title=found.title, language=found.language
    )


def prose(seed: int, chars: int) -> str:
    random = Random(seed)
    text = ""
    while len(text) < chars:
        text += f"{' '.join(random.choices(WORDS, k=9)).capitalize()} {random.random():.6f}. "
    return text.strip()


def plain(texts: Sequence[str]) -> str:
    return "".join("".join(texts).split())


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(1, 4_000)), max_size=30),
    st.integers(200, 2_000),
)
def test_no_word_is_lost_and_sizes_are_kept(sections: list[tuple[int, int]], chars: int) -> None:
    blocks, headings = list[str](), list[tuple[int, str, str]]()
    for number, (level, length) in enumerate(sections):
        if level:
            blocks.append(f"{'#' * level} Heading {number}")
            headings.append((level, f"Heading {number}", ""))
        blocks.append(prose(number, length))
    found = chunks_of(blocks, headings, chars, url=URL)
    assert plain([each.markdown for each in found]) == plain(blocks)
    assert all(len(each.markdown) <= chars for each in found)
    ids = [each.id for each in found]
    assert len(set(ids)) == len(ids)
    assert [each.previous for each in found] == [None, *ids][: len(ids)]
    assert [each.next for each in found] == [*ids[1:], None][: len(ids)]
    # What is short ends a page or the sections below a heading, and fits to nothing before it.
    for before, each in pairwise(found):
        if len(each.markdown) < chars // 6:
            assert len(before.markdown) + 2 + len(each.markdown) > chars


@pytest.mark.parametrize(
    "block",
    [
        "| a | b |\n| --- | --- |\n" + "\n".join(f"| {n:09} | x |" for n in range(40)),
        "```py\n" + "\n".join(f"line_{n:03} = {n}" for n in range(40)) + "\n```",
        "\n".join(f"- item {n:04} of a list\n  - below it" for n in range(30)),
        "> " + "\n> ".join(f"quoted line {n:04}" for n in range(30)),
        "\u3002".join(f"第{n}句話在這裡說明一些事情" for n in range(60)),
        "x" * 1_000,
    ],
    ids=["table", "code", "list", "quote", "Chinese", "no spaces"],
)
def test_long_blocks_are_cut_between_rows_lines_and_items(block: str) -> None:
    found = [each.markdown for each in chunks_of([block], [], 200, url=URL)]
    assert 33 <= min(map(len, found)) <= max(map(len, found)) <= 200
    if block.startswith("|"):
        assert all(each.startswith("| a | b |\n| --- | --- |\n| 0") for each in found)
        rows = [line for each in found for line in each.split("\n")[2:]]
        assert rows == block.split("\n")[2:]
    elif block.startswith("`"):
        assert all(each.startswith("```py\n") and each.endswith("\n```") for each in found)
        assert [line for it in found for line in it.split("\n")[1:-1]] == block.split("\n")[1:-1]
    elif block[0] in "->":
        assert "\n".join(found) == block
        assert all(each[0] == block[0] for each in found)
    else:
        assert "".join(found) == block


def test_a_row_and_a_line_of_code_are_never_cut() -> None:
    table = "| a |\n| --- |\n" + "\n".join(f"| {c * 900} |" for c in "bc")
    assert len(chunks_of([table], [], 300, url=URL)) == 2
    code = "```\n" + "d" * 900 + "\ne\n```"
    parts = [it.markdown for it in chunks_of([code], [], 300, url=URL)]
    assert parts == ["```\n" + "d" * 900 + "\n```", "```\ne\n```"]


def test_a_chunk_says_where_it_stands() -> None:
    first, second, third = made(
        f"<h1 id=top>Mills</h1><p>{prose(1, 300)}</p>"
        f"<section id=wind><h2>Wind <code>mills</code></h2><p>{prose(2, 300)}</p></section>"
        f"<h2>Water</h2><p>The *old*, <b>half-sunken</b> mill. {prose(3, 300)}</p>"
    )
    assert first.headings == ("Mills",)
    assert (second.headings, second.url) == (("Mills", "Wind mills"), f"{URL}#wind")
    assert second.markdown.startswith("## Wind `mills`\n\n")
    assert (second.title, second.language, second.position) == ("T", "en", 1)
    assert third.headings == ("Mills", "Water")
    assert third.url == f"{URL}#:~:text=Water"
    assert third.to_embed.startswith("Mills > Water\n\n## Water")


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("<h2 id=x>A</h2>", "x"),
        ("<h2><a name=x></a>A</h2>", "x"),
        ("<h2><span id=x>A</span></h2>", "x"),
        ("<section id=x><h2>A</h2></section>", "x"),
        ("<section id=y><span id=x></span><h2>A</h2></section>", "x"),
        ("<p><a name=x></a></p><h2>A</h2>", "x"),
        ("<div id=x>words before <h2>A</h2></div>", ""),
        ("<div id=x><p>words</p></div><h2>A</h2>", ""),
        ("<h2 id='x y'>A</h2>", ""),
        ("<h2 id=é>A</h2>", "é"),
    ],
)
def test_the_anchor_of_a_heading_is_what_a_link_can_name(heading: str, anchor: str) -> None:
    html = f"<body id=b><h1 id=t>T</h1><p>{prose(1, 300)}</p>{heading}<p>{prose(2, 300)}</p>"
    assert document(html.encode(), URL, "text/html").anchors == ("t", anchor)


def test_text_fragments_are_the_words_that_a_reader_sees() -> None:
    (found,) = made("<p>See <a href='/x(1)'>a *starred*, half-done link</a> &amp; 1 more word here")
    assert found.url == (
        f"{URL}#:~:text=See%20a%20%2Astarred%2A%2C%20half%2Ddone%20link%20%26%201%20more"
    )


def test_an_edit_changes_the_ids_of_few_neighbours() -> None:
    """Of a section of thirty chunks, where packing to the full would change six, and up to all."""
    changed = []
    for seed in range(40):
        random = Random(seed)
        blocks = [prose(1_000 * seed + n, random.randint(40, 500)) for n in range(100)]
        before = {each.id for each in chunks_of(blocks, [], url=URL)}
        place = random.randrange(100)
        for edited in (
            [*blocks[:place], prose(seed, 200), *blocks[place + 1 :]],
            [*blocks[:place], *blocks[place + 1 :]],
            [*blocks[:place], prose(seed, 333), *blocks[place:]],
        ):
            after = {each.id for each in chunks_of(edited, [], url=URL)}
            changed.append(len(after - before))
    assert sum(changed) / len(changed) < 3.5
    assert max(changed) < 15


def test_equal_passages_of_a_page_have_ids_of_their_own_and_pages_share_none() -> None:
    blocks = ["## A", prose(1, 500), "## A", prose(1, 500)]
    one, two = chunks_of(blocks, [(2, "A", ""), (2, "A", "")], url=URL)
    (other, _) = chunks_of(blocks, [(2, "A", ""), (2, "A", "")], url=f"{URL}b")
    assert len({one.id, two.id, other.id}) == 3
    assert all(re.fullmatch("[0-9a-f]{32}", each.id) for each in (one, two))


def test_soft_hyphens_make_no_other_chunk() -> None:
    one, two = (chunks_of([text], [], url=URL)[0] for text in ("hyphen", "hy\xadphen"))
    assert one.id == two.id


def test_a_page_without_text_has_no_chunks() -> None:
    assert chunks_of([], [], url=URL) == ()
    with pytest.raises(ValueError, match="200 characters, not 199"):
        chunks_of([], [], 199, url=URL)


@pytest.mark.parametrize(
    "block",
    [
        f"- {'word ' * 400}\n\n- b",
        f"- {'Word is here. ' * 200}\n\n- b",
        f"- {'x' * 1_500}\n\n  {'y' * 1_500}\n\n- b",
        "- " + "line\n  " * 400 + "\n\n- b",
    ],
)
def test_an_item_before_an_empty_line_is_cut_where_it_is_too_long(block: str) -> None:
    chunks = chunks_of([block], [], url="http://x.example/")
    assert max(len(each.markdown) for each in chunks) <= 1_200
    words = " ".join(each.markdown for each in chunks)
    assert re.sub(r"\s", "", words) == re.sub(r"\s", "", block)
