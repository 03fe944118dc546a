"""Entries that move between the pages of a list, and edits of a page that look alike."""

from collections.abc import Sequence

import pytest

from freshet.crawler.compare.history import Layout, difference
from freshet.crawler.compare.list_pages import has_moved, is_later_page
from freshet.crawler.compare.minor import Difference
from freshet.crawler.reduce.sketch import sketch

_TITLE, _TEASER, _OTHER = 1, 2, 3

Row = tuple[int, str]


def entry(number: object) -> list[Row]:
    return [(_TITLE, f"Title of post {number}"), (_TEASER, f"How post {number} begins")]


def entries(*numbers: object, beside: Sequence[Row] = ()) -> list[Row]:
    return [*beside, *(row for each in numbers for row in entry(each))]


def moved(old: Sequence[Row], new: Sequence[Row]) -> bool:
    before, after = (
        Layout.of(sketch([text for _, text in rows], [place for place, _ in rows]))
        for rows in (old, new)
    )
    found = difference(before, after)
    return has_moved(Difference(before, after, found.removed, found.added))


HEAD: Row = (_OTHER, "What we wrote about gardens")
TEN = entries(*range(20, 10, -1))

MOVES = {
    "one": (TEN, entries(*range(21, 11, -1))),
    "two": (TEN, entries(*range(22, 12, -1))),
    "nine": (TEN, entries(*range(29, 19, -1))),
    "back, as one was deleted": (TEN, entries(*range(19, 9, -1))),
    "onto the last page, which grows": (entries(3, 2, 1), entries(4, 3, 2, 1)),
    "below a heading": (entries(3, 2, 1, beside=[HEAD]), entries(4, 3, 2, beside=[HEAD])),
    "of titles alone": ([(_TITLE, "a"), (_TITLE, "b")], [(_TITLE, "c"), (_TITLE, "a")]),
    "of letters": (entries("c", "d", "e"), entries("b", "c", "d")),
    "of a list of two": (entries(2, 1), entries(3, 2)),
    "by two, as two were deleted": (TEN, entries(*range(18, 8, -1))),
}


@pytest.mark.parametrize("kind", MOVES)
def test_entries_that_come_at_one_end_and_go_at_the_other_have_moved(kind: str) -> None:
    assert moved(*MOVES[kind])


EDITS = {
    "a title": (TEN, [(p, t.replace("post 15", "post fifteen")) for p, t in TEN]),
    "the first entry": (TEN, [(p, t.replace("post 20", "post twenty")) for p, t in TEN]),
    "the last entry": (TEN, [(p, t.replace("post 11", "post eleven")) for p, t in TEN]),
    "the heading": ([HEAD, *TEN], [(_OTHER, "What we wrote about cars"), *TEN]),
    "a move and the heading": (
        entries(3, 2, 1, beside=[HEAD]),
        entries(4, 3, 2, beside=[(_OTHER, "What we wrote about cars")]),
    ),
    "an entry in the middle": (TEN, entries(20, 19, 18, "new", *range(17, 10, -1))),
    "an entry at the end": (entries(1, 2, 3), entries(1, 2, 3, 4)),
    "an entry at the end that is gone": (TEN, TEN[:-2]),
    "the first entry that is gone": (TEN, TEN[2:]),
    "all entries": (entries(3, 2, 1), entries(6, 5, 4)),
    "two places apart": (TEN, entries(21, *range(20, 16, -1), *range(15, 10, -1))),
    "nothing": (TEN, TEN),
}


@pytest.mark.parametrize("kind", EDITS)
def test_other_differences_of_a_list_are_none(kind: str) -> None:
    assert not moved(*EDITS[kind])


@pytest.mark.parametrize(
    ("path", "rels", "is_later"),
    [
        ("/?page=2", (), True),
        ("/news?tag=x&page=17", (), True),
        ("/news?paged=3", (), True),
        ("/board?start=40", (), True),
        ("/board?offset=25&sort=new", (), True),
        # A post of WordPress, or a page of a list: nobody can tell.
        ("/?p=2", (), False),
        ("/p/2", (), False),
        ("/page/2/", (), True),
        ("/blog/page/12", (), True),
        ("/blog/page-3", (), True),
        ("/liste/seite/4", (), True),
        ("/?page=1", ("next", "prev"), True),
        ("/?page=1", ("next",), False),
        ("/?page=0", ("prev",), False),
        ("/", ("prev",), False),
        ("/page/1/", (), False),
        ("/page/about", (), False),
        ("/2026/11/", (), False),
        ("/product?pagecount=200", (), False),
        ("/post?id=12", ("prev", "next"), False),
        ("/page/2nd-edition", (), False),
    ],
)
def test_a_later_page_is_known_by_its_number(
    path: str, rels: tuple[str, ...], is_later: bool
) -> None:
    assert is_later_page(f"https://list.example{path}", rels) is is_later
