"""`freshet duplicates` shows which pages are one page."""

import asyncio
import pickle
from functools import partial
from pathlib import Path

import pytest
from datasketch import MinHash

from freshet.crawler.reduce.sketch import sketch
from tests.console import as_json, freshet
from tests.storage.sketched_store import sketched_store
from tests.storage.small_store import HOST

duplicates = partial(freshet, "duplicates", "--db")

PAGES = {
    "/storm": "storm", "/storm?sort=up": "storm", "/storm?sort=down": "storm",
    "/storm/print": "storm", "http://two.example/storm": "storm",
    "/calm": "calm", "/alone": "alone", "/still/calm": "calm",
}  # fmt: skip


#: Pages that an earlier version stored, which did not pack sketches.
STORED_BEFORE = {"/storm?sort=up", "/calm"}


def words(name: str, *, is_packed: bool = True) -> bytes:
    made = sketch([" ".join(f"{name}{n}" for n in range(60))])
    return made.to_bytes() if is_packed else made.plain()


@pytest.fixture
def db(tmp_path: Path) -> Path:
    path = tmp_path / "crawl.db"
    asyncio.run(fill(path))
    return path


async def fill(path: Path) -> None:
    async with sketched_store(path) as store:
        for url, name in PAGES.items():
            store.page(url, words(name, is_packed=url not in STORED_BEFORE))


def test_datasketch_finds_in_the_index_what_the_store_calls_duplicates(
    db: Path, tmp_path: Path
) -> None:
    result = duplicates(db, "--lsh", tmp_path / "lsh")
    assert "8 pages" in result.stderr
    made = pickle.loads((tmp_path / "lsh").read_bytes())
    minhashes = made["minhashes"]
    storm = {url for url in minhashes if "/storm" in url}
    assert len(storm) == 5
    assert set(made["index"].query(minhashes[f"{HOST}/storm"])) == storm
    assert minhashes[f"{HOST}/calm"].jaccard(minhashes[f"{HOST}/still/calm"]) == 1.0
    other = MinHash(128, 1)
    other.update_batch([b"a", b"b"])
    assert made["index"].query(other) == []


def test_an_index_that_cannot_be_written_is_one_line(db: Path, tmp_path: Path) -> None:
    result = duplicates(db, "--lsh", tmp_path / "no" / "lsh")
    assert result.exit_code == 1
    assert "No such file or directory; name another file with --lsh" in result.stderr


def test_groups_are_shown_with_their_kinds_and_the_total(db: Path) -> None:
    result = duplicates(db, "--update")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    lines = [line.split() for line in result.stdout.splitlines() if line]
    assert lines == [
        f"{HOST}/storm (2 parameter variants, 1 printer version, 1 mirror)".split(),
        ["duplicate", "kind", "resemblance"],
        [f"{HOST}/storm/print", "printer", "version", "1.00"],
        [f"{HOST}/storm?sort=down", "parameter", "variant", "1.00"],
        [f"{HOST}/storm?sort=up", "parameter", "variant", "1.00"],
        ["http://two.example/storm", "mirror", "1.00"],
        f"{HOST}/calm (1 other URL)".split(),
        ["duplicate", "kind", "resemblance"],
        [f"{HOST}/still/calm", "other", "URL", "1.00"],
        "5 of 8 pages with a text are duplicates, in 2 groups".split(),
    ]


def test_json_is_one_object(db: Path) -> None:
    told = as_json("duplicates", "--db", db, "--update", "--limit", "1")
    assert told["state"] == {
        "parameters": {"threshold": 0.9, "bands": 9, "band_rows": 14},
        "pages": 8, "groups": 2, "duplicates": 5, "unseen": 0, "waiting": 0,
    }  # fmt: skip
    (group,) = told["groups"]
    assert group["representative"] == f"{HOST}/storm"
    assert [(d["kind"], d["resemblance"]) for d in group["duplicates"]] == [
        ("printer_version", 1.0), ("parameters", 1.0), ("parameters", 1.0), ("mirror", 1.0),
    ]  # fmt: skip


def test_without_an_update_nothing_is_written_and_what_waits_is_said(db: Path) -> None:
    for _ in range(2):
        result = duplicates(db)
        assert result.exit_code == 0
        assert result.stdout == (
            "0 of 0 pages with a text are duplicates, in 0 groups\n"
            "Some pages have changed since they were compared; --update compares them\n"
        )


def test_a_limit_says_what_it_leaves_out(db: Path) -> None:
    result = duplicates(db, "--update", "--limit", "1")
    assert "… and 1 more group; --limit shows more" in result.stdout


def test_another_threshold_is_a_rebuild_and_says_so(db: Path) -> None:
    assert "threshold" not in duplicates(db, "--update", "--threshold", "0.9").stderr
    result = duplicates(db, "--update", "--threshold", "0.8")
    assert result.stderr == "threshold 0.9 became 0.8: all pages were compared again\n"
    assert as_json("duplicates", "--db", db)["state"]["parameters"]["threshold"] == 0.8


@pytest.mark.parametrize(
    "arguments", [("--threshold", "0.8"), ("--update", "--threshold", "1"), ("--limit", "0")]
)
def test_wrong_usage_ends_with_2(db: Path, arguments: tuple[str, ...]) -> None:
    assert duplicates(db, *arguments).exit_code == 2
