"""The benchmark's pages are copies that can be edited, and what is missing is said."""

from pathlib import Path

import pytest

from scripts.benchmarks.crawl_tree import NoTree, copied, edit, edited, opened, sources

PAGE = b"<html><body><p>First.</p><p>Second.</p><p>Third.</p></body></html>"


def a_site(place: Path, pages: int) -> Path:
    place.mkdir()
    for name in ("index", *(f"page-{n}" for n in range(1, pages))):
        (place / f"{name}.html").write_bytes(PAGE)
    return place


def test_a_directory_without_a_front_page_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(NoTree, match=r"index\.html.*--tree"):
        sources([tmp_path], quick=False)


def test_chosen_directories_of_one_name_stay_apart(tmp_path: Path) -> None:
    places = [tmp_path / "a" / "html", tmp_path / "b" / "html"]
    for place in places:
        place.parent.mkdir()
        a_site(place, 1)
    assert list(sources(places, quick=False).values()) == places


def test_pages_are_copied_and_what_is_no_page_is_not(tmp_path: Path) -> None:
    site = a_site(tmp_path / "site", 3)
    (site / "style.css").write_bytes(b"p {}")
    tree = copied({"site": site}, tmp_path / "copies")
    assert [page.name for page in tree.pages] == ["index.html", "page-1.html", "page-2.html"]
    assert tree.summary()["files"] == 3


def test_an_edit_adds_a_sentence_in_the_middle_of_the_text() -> None:
    found = edited(PAGE, 7)
    assert found.index(b"Second.") < found.index(b"round 7.") < found.index(b"Third.")


def test_an_edit_takes_the_place_of_the_one_before() -> None:
    assert edited(edited(PAGE, 1), 2) == edited(PAGE, 2) != edited(PAGE, 1)


def test_a_page_without_paragraphs_is_edited_at_its_end() -> None:
    assert edited(b"plain text", 1).startswith(b"plain text Edited")


def test_a_share_of_the_pages_is_edited_and_another_one_in_the_next_round(tmp_path: Path) -> None:
    tree = opened([a_site(tmp_path / "site", 40)])
    first, second = edit(tree, 0.1, 1), edit(tree, 0.1, 2)
    assert len(first) == len(second) == 4
    assert first != second
    changed = {page for page in tree.pages if page.read_bytes() != PAGE}
    assert changed == {*first, *second}
