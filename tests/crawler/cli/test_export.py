"""`freshet export` writes tables for other programs."""

import csv
import io
import json
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest

from freshet.crawler.frontier.clock import iso
from tests.console import freshet, shown
from tests.storage.small_store import HOST, SmallStore
from tests.storage.versioned_store import html, version, versioned_store

T0 = 1_760_000_000.0
export = partial(freshet, "export", "--db")


@pytest.fixture
def store(tmp_path: Path) -> SmallStore:
    """Two pages, one of which links to the other, and an alias."""
    store = versioned_store(tmp_path / "crawl.db", T0)
    one, other = store.page("/", title='=Say "hello", world'), store.page("/ü?a=1", title=None)
    store.page("/old", alias_of=one, alias_kind="permanent", alias_at=T0)
    store.observe(one, T0, "new", status=200)
    store.observe(one, T0 + 60, "changed", rung="blocks", status=200, resemblance=0.5)
    store.link(one, other, T0, anchor="the other\nline")
    return store


def test_pages_go_to_stdout_as_csv(store: SmallStore) -> None:
    first, second, alias = csv.DictReader(io.StringIO(shown("export", "--db", store.path)))
    assert (first["url"], first["title"]) == (f"{HOST}/", '\'=Say "hello", world')
    assert first["found_at"] == iso(0.0)
    assert (first["observations"], first["changes"]) == ("2", "1")
    assert second["title"] == ""
    assert alias["alias_of"] == f"{HOST}/"


def test_the_name_of_the_file_says_the_format(store: SmallStore, tmp_path: Path) -> None:
    file = tmp_path / "observations.jsonl"
    result = export(store.path, "observations", "-o", file)
    assert result.exit_code == 0, result.output
    new, changed = map(json.loads, file.read_text("utf-8").splitlines())
    assert (new["kind"], new["at"], new["rung"]) == ("new", iso(T0), None)
    assert changed["resemblance"] == 0.5
    assert "2 observations" in result.stderr
    assert not result.stdout


def test_parquet_has_the_same_rows_with_their_types(store: SmallStore, tmp_path: Path) -> None:
    file = tmp_path / "links.parquet"
    assert export(store.path, "links", "-o", str(file)).exit_code == 0
    with duckdb.connect() as connection:
        rows = connection.execute(
            "SELECT source, anchor, first_seen_at, gone_at FROM read_parquet(?)", [str(file)]
        ).fetchall()
    found_at = datetime.fromtimestamp(T0, UTC).replace(tzinfo=None)
    assert rows == [(f"{HOST}/", "the other\nline", found_at, None)]


def test_texts_and_changes_are_exported(tmp_path: Path) -> None:
    store = versioned_store(tmp_path / "crawl.db", T0)
    one = store.page("/offer", title="T")
    seen = version(store, one, T0, html("It costs 10.99 today."), kind="new")
    store.insert("change", page_id=one, kind="new", version_id=seen, at=T0)

    def rows(table: str, *words: str) -> list[dict[str, Any]]:
        file = tmp_path / f"{table}.jsonl"
        result = export(store.path, table, "-o", str(file), *words)
        assert result.exit_code == 0, result.output
        return [json.loads(line) for line in file.read_text("utf-8").splitlines()]

    (document,) = rows("documents")
    assert (document["url"], document["fetched_at"]) == (f"{HOST}/offer", iso(T0))
    assert "It costs 10.99 today." in document["markdown"]
    (chunk,) = rows("chunks", "--chunk-chars", "200")
    assert (chunk["page_url"], chunk["markdown"]) == (f"{HOST}/offer", document["markdown"])
    (change,) = rows("changes")
    assert (change["url"], change["kind"], change["at"], change["version"]) == (
        f"{HOST}/offer", "new", iso(T0), 1,
    )  # fmt: skip
    file = tmp_path / "chunks.parquet"
    assert export(store.path, "chunks", "-o", str(file)).exit_code == 0
    with duckdb.connect() as connection:
        types = connection.sql(f"SELECT typeof(fetched_at), fetched_at FROM '{file}'").fetchall()
    assert types == [("TIMESTAMP", datetime.fromtimestamp(T0, UTC).replace(tzinfo=None))]


def test_a_file_is_replaced_when_the_export_is_whole(store: SmallStore, tmp_path: Path) -> None:
    file = tmp_path / "pages.csv"
    file.write_text("old")
    assert export(store.path, "-o", str(file)).exit_code == 0
    assert file.read_text("utf-8").startswith("url,host,title")
    assert sorted(path.name for path in tmp_path.glob(".*")) == []


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("-o", "pages.xlsx"), 2, "name a .csv, .jsonl or .parquet file"),
        (("--format", "parquet"), 2, "--format parquet: needs --output FILE"),
        (("-o", "/no/such/folder/x.csv"), 1, "cannot be written: No such file or directory"),
        (("prices",), 2, ""),
    ],
)
def test_what_cannot_be_written_is_told(
    store: SmallStore, arguments: tuple[str, ...], code: int, message: str
) -> None:
    result = export(store.path, *arguments)
    assert result.exit_code == code
    assert message in result.stderr
