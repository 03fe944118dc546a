"""`freshet discover --explain` says which URLs of a site were throttled, and why."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.console import as_json, freshet
from tests.storage.small_store import SmallStore

KIND = "trap: copies"
explain = partial(freshet, "discover", "--explain")


@pytest.fixture
def store(site: SmallStore) -> SmallStore:
    site.page("/", last_at=1.0, last_kind="new")
    return site


def told(store: SmallStore, site: str = "one.example") -> Any:
    return as_json("discover", "--explain", site, "--db", store.path)


def close(store: SmallStore, held: int = 3) -> None:
    """A pattern of which 30 pages were read, two of them after it was closed."""
    store.insert(
        "trap", host_id=1, shape="/list?sort", kind=KIND, admitted=30, refused=held, copies=28,
        closed_at=50.0,
    )  # fmt: skip
    for n in range(30):
        at = 60.0 if n >= 28 else 40.0
        page = store.page(
            f"/list?sort={n}", pattern="/list?sort", last_at=at, found_at=at - 5, last_kind="new"
        )
        own = page if n in {0, 1} else 1
        store.execute("UPDATE page SET copy_of = ? WHERE id = ?", own, page)
    for n in range(30, 30 + held):
        store.page(f"/list?sort={n}", pattern="/list?sort", held_back=KIND)


def test_a_closed_pattern_is_told_with_its_evidence_its_sample_and_an_example(
    store: SmallStore,
) -> None:
    close(store)
    found = told(store)
    assert (found["known"], found["asked"], found["waiting"], found["held"]) == (34, 31, 0, 3)
    (each,) = found["throttled"]
    assert each["why"] == "28 of 30 read showed nothing of their own"
    assert each["still"] == "one in 20 is visited (2 so far)"
    assert each["example"] == "http://one.example/list?sort=30"
    yields = {p["pattern"]: (p["read"], p["own"]) for p in found["patterns"]}
    assert yields == {None: (1, 1), "/list?sort": (30, 2)}


def test_a_pattern_that_was_opened_again_throttles_nothing(store: SmallStore) -> None:
    store.insert(
        "trap", host_id=1, shape="/list?sort", kind=KIND, admitted=40, refused=0, copies=20
    )
    assert told(store)["throttled"] == []
    result = explain("one.example", "--db", store.path)
    assert result.stdout == "one.example: 1 URL known, 1 crawled; no URL was throttled\n"


@pytest.mark.parametrize(
    ("kind", "shape", "url", "why"),
    [
        ("session", "/a (sid)", "/a?sid=" + "1f" * 8, "a session id tells them apart; the first 5"),
        ("calendar", "/c/#/#", "/c/2026/11", "a date alone tells them apart; the first 5"),
        ("query", "/l?a&b", "/l?a=1&b=2", "they differ only in the values of their parameters"),
        ("path", "/a/… (repeated segments)", "/a/b/b/b/b", "endless depth"),
    ],
)
def test_of_every_kind_of_trap_the_reason_and_an_example_of_its_shape_are_told(
    store: SmallStore, kind: str, shape: str, url: str, why: str
) -> None:
    store.insert("trap", host_id=1, shape=shape, kind=f"trap: {kind}", admitted=5, refused=2)
    store.page("/other?x=1", held_back=f"trap: {kind}")
    store.page(url, held_back=f"trap: {kind}")
    (each,) = told(store)["throttled"]
    assert each["why"].startswith(why)
    assert (each["held"], each["crawled"]) == (2, 5)
    assert (each["still"], each["example"]) == (None, f"http://one.example{url}")


def test_what_is_held_back_for_another_reason_is_summed_up(store: SmallStore) -> None:
    for n in range(3):
        store.page(f"/film-{n}.mp4", held_back="extension")
    store.page("/private", held_back="nofollow")
    store.page("/deep", held_back="depth")
    found = {each["kind"]: (each["held"], each["example"]) for each in told(store)["throttled"]}
    assert found == {
        "extension": (3, "http://one.example/film-0.mp4"),
        "nofollow": (1, "http://one.example/private"),
        "depth": (1, "http://one.example/deep"),
    }


def test_for_people_it_is_a_table_with_what_holds_most_back_first(store: SmallStore) -> None:
    close(store)
    store.page("/private", held_back="nofollow")
    result = explain("one.example", "--db", store.path)
    lines = result.stdout.splitlines()
    assert lines[0] == "one.example: 35 URLs known, 31 crawled, 4 held back"
    first, second = (
        n for n, line in enumerate(lines) if "/list?sort " in line or "nofollow" in line
    )
    assert "/list?sort" in lines[first]
    assert first < second


def test_words_of_strangers_do_not_reach_the_terminal_as_they_are(store: SmallStore) -> None:
    store.insert("trap", host_id=1, shape="/\x1b[31mx?a", kind="trap: query", refused=1)
    result = explain("one.example", "--db", store.path)
    assert "\x1b" not in result.stdout


@pytest.mark.parametrize(
    ("origin", "problem"),
    [("two.example", "the store does not know the site two.example"), ("http://[", "http://[")],
)
def test_a_site_that_is_not_known_is_told_in_one_line(
    store: SmallStore, origin: str, problem: str
) -> None:
    result = explain(origin, "--db", store.path)
    assert result.exit_code != 0
    assert problem in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_without_a_store_it_says_so_in_one_line(tmp_path: Path) -> None:
    result = explain("one.example", "--db", tmp_path / "none.db")
    assert (result.exit_code, len(result.stderr.strip().splitlines())) == (1, 1)
