"""Which URLs lead to a page, by their neighbours and by the news of their folder."""

from itertools import accumulate, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.queue.existence import Existence

_SITE = "https://a.example"


def watching(*paths: str, host: int = 0) -> Existence:
    found = Existence()
    found.watch(np.full(len(paths), host), [f"{_SITE}{path}" for path in paths])
    return found


def test_a_url_exists_as_those_along_its_path_did() -> None:
    it = watching("/docs/1.html", "/docs/2.html", "/draft/1.html", "/draft/2.html", "/draft/x.html")
    assert it.of_new(np.arange(5)) == pytest.approx([0.7] * 5)
    it.tried(0, found=True)
    it.tried(2, found=False)
    it.tried(3, found=False)
    root = (1 + 0.7) / (3 + 1)
    docs, draft = (1 + root) / 2, root / 3
    assert it.of_new(np.array([1, 4])) == pytest.approx([(1 + docs) / 2, draft / 3])


@pytest.mark.parametrize(
    ("dead", "like_it", "unlike"),
    [
        ("/a/b.html", "/a/c.html", "/b/c.html"),
        ("/list?page=2", "/list?page=3", "/list"),
        ("/news/2021/5/", "/news/2022/7/", "/about/"),
        ("/a/b.pdf", "/a/c.pdf", "/a/c.html"),
        ("/v1.2/intro/a", "/v1.3/intro/b", "/intro/a"),
        ("/en/old/x", "/en/old/y", "/en/new/y"),
    ],
)
def test_what_is_dead_tells_most_of_what_is_like_it(dead: str, like_it: str, unlike: str) -> None:
    it = watching(dead, like_it, unlike)
    it.tried(0, found=False)
    like, other = it.of_new(np.array([1, 2])).tolist()
    assert like < other < 0.7


def test_hosts_tell_nothing_of_each_other() -> None:
    it = watching("/a/b")
    it.watch(np.array([1]), [f"{_SITE}/a/b"])
    it.tried(0, found=False)
    assert it.of_new(np.array([1])) == pytest.approx([0.7])


def test_a_folder_that_is_gone_goes_as_a_whole() -> None:
    it = watching("/draft/a", "/draft/b", "/draft/c", "/docs/a", "/docs/b")
    for row in range(5):
        it.tried(row, found=True)
    assert it.of_held().tolist() == [1.0] * 5
    it.visited(0, found=False)
    it.visited(1, found=False)
    it.visited(3, found=True)
    # Its own visit is the last news of a page.
    assert it.of_held() == pytest.approx([1 / 2, 1.0, 1 / 3, 1.0, 1.0])
    it.visited(2, found=True)
    assert it.of_held()[0] == pytest.approx(2 / 3)


_PATHS = ("/a/x", "/a/y", "/a/b/x.html", "/a/b/y.html", "/a/b/z?q=1", "/c/1", "/c/2", "/")


@given(
    st.lists(st.tuples(st.integers(0, len(_PATHS) - 1), st.booleans()), max_size=40),
    st.lists(st.integers(0, 40), max_size=3),
)
def test_it_knows_the_same_however_visits_are_divided(
    visits: list[tuple[int, bool]], ends: list[int]
) -> None:
    one, parts = watching(*_PATHS), watching(*_PATHS)
    tried = set[int]()
    for row, found in visits:
        (one.visited if row in tried else one.tried)(row, found=found)
        tried.add(row)
    known = np.zeros(len(_PATHS), np.bool_)
    bounds = [0, *sorted(min(end, len(visits)) for end in ends), len(visits)]
    for first, stop in pairwise(bounds):
        rows = np.array([row for row, _ in visits[first:stop]], np.intp)
        parts.recall(rows, np.array([found for _, found in visits[first:stop]], np.bool_), known)
        known[rows] = True
    read = Existence()
    read.read(parts.written())
    rows = np.arange(len(_PATHS))
    for other in (parts, read):
        assert np.allclose(one.of_new(rows), other.of_new(rows))
        assert np.allclose(one.of_held(), other.of_held())
    read.watch(np.array([0]), [f"{_SITE}/a/b/new.html"])
    one.watch(np.array([0]), [f"{_SITE}/a/b/new.html"])
    assert np.allclose(one.of_new(np.array([8])), read.of_new(np.array([8])))


def test_the_news_of_a_folder_count_in_their_order() -> None:
    # Each page is met once more, in turn; the last one's news is the last.
    paths = [f"/a/{k}" for k in range(6)]
    it = watching(*paths)
    for row in range(6):
        it.tried(row, found=True)
    for row in range(6):
        it.visited(row, found=row % 2 == 0)
    later = [sum(1 for k in range(row + 1, 6) if k % 2 == 0) for row in range(6)]
    visits = [0, *accumulate([1] * 5)][::-1]
    expected = [(1 + met) / (1 + n) for met, n in zip(later, visits, strict=True)]
    assert it.of_held() == pytest.approx(expected)
