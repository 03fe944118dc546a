"""Kinds and places of blocks."""

import pytest

from freshet.crawler.reduce.blocks import ROOT, Blocks, below, kind_of
from freshet.crawler.reduce.main_text import plain_text
from tests.crawler.reduce.pages import blocks_of


def blocks(markup: str) -> Blocks:
    return blocks_of(markup)


def places(markup: str) -> tuple[int, ...]:
    return blocks(markup).places


def test_each_block_has_the_kind_of_its_innermost_element() -> None:
    found = blocks(
        "<h2>Title</h2><p>Prose with <b>words</b>.</p><ul><li>one</ul>"
        "<table><tr><td>cell</table><div>loose</div>"
    )
    assert found.kinds == ("heading", "paragraph", "item", "cell", "text")
    assert len(found) == len(found.kinds) == len(found.places)


def test_rows_of_a_table_share_a_place_and_cells_of_other_tables_do_not() -> None:
    table = "<table class={}><tr><td>a<tr><td>b<tr><td>c</table>"
    found = places(table.format("prices") + table.format("dates"))
    assert len(set(found[:3])) == len(set(found[3:])) == 1
    assert found[0] != found[3]


def test_text_after_an_element_stands_where_text_before_it_stood() -> None:
    before, inside, after = places("<div>before<p>inside</p>after</div>")
    assert before == after != inside


def test_inline_elements_are_no_part_of_a_place() -> None:
    assert places("<p>word</p>") == places("<p><span class=price>word</span></p>")


@pytest.mark.parametrize(
    ("markup", "one", "other"),
    [("<div class='{}'><p>x</div>", "card odd", "card even"),
     ("<div id={}><p>x</div>", "post-12", "post-13"),
     ("<div class='{}'><p>x</div>", "a b", "b a"),
     ("<h2 id={}>x</h2>", "first-steps", "next-steps")],
)  # fmt: skip
def test_names_that_count_or_pass_tell_nothing(markup: str, one: str, other: str) -> None:
    assert places(markup.format(one)) == places(markup.format(other))


def test_ids_and_classes_that_people_gave_tell_places_apart() -> None:
    names = ("", "id=notes", "class=notes", "class=x")
    assert len({places(f"<div {name}><p>x</p></div>") for name in names}) == 4


def test_a_place_is_the_same_for_ever() -> None:
    # Stored places are compared with new ones.
    assert below(ROOT, "div", "main-part", "wide card") == 0x71F842EF2E8487C2
    assert kind_of("section") == "text"


def test_paragraphs_of_plain_text_share_one_place() -> None:
    found = plain_text("one\n\ntwo")
    assert found.texts == ("one", "two")
    assert len(set(found.places)) == 1
