"""The scores of documents, and the fit of the trees that choose them."""

from typing import Any

import pytest

from scripts.benchmarks import content_fit, documents
from scripts.benchmarks.main_text import Page


def page(reference: str, body: bytes = b"") -> Page:
    return Page("p", body, reference, ("a b",), ("x y",))


def test_bags_are_scored_by_page_and_an_empty_reference_wants_an_empty_text() -> None:
    pages = [page("One two"), page(""), page("")]
    found = documents.of_bags(pages, ["two three four", "", "x"])
    assert found == pytest.approx({"f1": 1.4 / 3, "precision": 4 / 9, "recall": 0.5})


def test_runs_of_four_words_are_scored_by_the_means_of_precision_and_recall() -> None:
    pages = [page("a b c d e"), page("f g")]
    found = documents.of_runs(pages, ["a b c d x y", "f g"])
    p, r = (1 / 3 + 1) / 2, (1 / 2 + 1) / 2
    assert found == pytest.approx({"f1": 2 * p * r / (p + r), "precision": p, "recall": r})


def test_snippets_are_scored_over_all_pages() -> None:
    found = documents.of_snippets([page(""), page("")], ["a b x y", "nothing"])
    assert found == pytest.approx({"f1": 0.5, "precision": 0.5, "recall": 0.5})


def test_boilerplate_is_counted_apart_if_the_reference_has_it() -> None:
    pages = [page("no more"), page("All of X  y"), page("x y")]
    found = documents.of_boilerplate(pages, ["a X y b", "x  Y", "nothing"])
    both = {"boilerplate_kept": 2 / 3, "kept_by_the_reference_too": 1 / 3}
    assert found == pytest.approx(both)


def test_pieces_get_their_labels_and_shares_from_the_reference() -> None:
    body = b"<nav class=menu><a href=/>Home</a></nav><div class=story><p>One two three four"
    known = content_fit.known(page("One two three four five", body), 1.0)
    assert known.pieces.texts == ["Home", "One two three four"]
    assert known.is_content.tolist() == [False, True]
    assert known.shares.tolist() == pytest.approx([1 / 30, 4 / 30])
    # Four times as much is content: log(1.467 / 0.1 / 4) and log(0.4 / 0.367 / 4).
    assert content_fit.lexicon([known] * 8) == {"menu": -1.3, "story": 1.3}


def test_trees_are_written_as_columns() -> None:
    leaf: dict[str, Any] = {"leaf_value": -0.5}
    inner = {"split_feature": 7, "threshold": 2.0000001, "left_child": leaf, "right_child": leaf}
    trees: list[dict[str, Any]] = [{"tree_structure": leaf}, {"tree_structure": inner}]
    assert content_fit.columns(trees) == {
        "column": [0, 7, 0, 0],
        "limit": [0.0, 2.0, 0.0, 0.0],
        "yes": [0, 2, 2, 3],
        "no": [0, 3, 2, 3],
        "value": [-0.5, 0.0, -0.5, -0.5],
        "roots": [0, 1],
    }
