"""`freshet replay --html --parquet`: a page that needs nothing else, and tables."""

from __future__ import annotations

import asyncio
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from freshet.crawler.cli.main import app
from freshet.crawler.lab import report
from tests.storage.small_store import SmallStore, small_store

DAY_S = 86_400.0
VOID = frozenset({"meta", "br"})


class Balanced(HTMLParser):
    """The elements of a page, which must all end where they should."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        assert not [name for name, _ in attrs if name.startswith("on") or name in {"src", "href"}]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture
def store(tmp_path: Path) -> SmallStore:
    """Six pages, looked at once a day; one has a name that is markup."""
    made = asyncio.run(small_store(tmp_path / "crawl.db"))
    made.run(0.0)
    made.host()
    for number in range(6):
        page = made.page(f"/<script>alert({number})</script>", checked_at=1.0)
        for day in range(40):
            kind = "new" if day == 0 else "changed" if number == 3 else "unchanged"
            made.observe(page, (day + number / 100) * DAY_S, kind)
    return made


def replay(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["replay", *map(str, arguments)])


@pytest.mark.parametrize("budgets", [["2/hour"], ["2/day", "4/day", "2/hour"]])
@pytest.mark.parametrize("policies", [["uniform"], ["greedy_index", "uniform"]])
def test_the_page_needs_nothing_else_and_says_what_json_says(
    store: SmallStore, tmp_path: Path, policies: list[str], budgets: list[str]
) -> None:
    html = tmp_path / "a page.html"
    options = [word for each in policies for word in ("--policy", each)]
    options += [word for each in budgets for word in ("--budget", each)]
    result = replay(store.path, *options, "--html", html, "--json")
    assert result.exit_code == 0, result.output
    found: Any = json.loads(result.stdout)
    page = html.read_text("utf-8")
    reader = Balanced()
    reader.feed(page)
    assert reader.open == []
    assert {"script", "link", "img", "a", "iframe"}.isdisjoint(reader.seen)
    assert "url(" not in page
    assert "@import" not in page
    assert "default-src 'none'" in page
    assert "nan" not in re.findall(r"[\w.]+", page.casefold())
    # The page is flagged by those that ask 48 times a day.
    assert "/%3Cscript%3E" in page or "&lt;script&gt;" in page
    for verdict in found["verdicts"]:
        cost = verdict["harmonic"]
        assert f"{cost['early']:.3g}" in page
        assert verdict["policy"] in page
        assert f"{verdict['fetches']:,} (" in page
        assert "--budget 48/day" in page
    assert list(tmp_path.glob(".*")) == []


def test_the_tables_hold_what_json_says(store: SmallStore, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    folder = tmp_path / "tables"
    options = ("--policy", "uniform", "--budget", "2/day", "--budget", "4/day")
    assert replay(store.path, *options, "--parquet", folder).exit_code == 0
    # The second time they take the place of the first ones.
    result = replay(store.path, *options, "--parquet", folder, "--json")
    assert result.exit_code == 0, result.output
    found: Any = json.loads(result.stdout)
    assert {file.stem for file in folder.iterdir()} == set(report.TABLES)

    def rows(name: str, columns: str) -> list[tuple[Any, ...]]:
        query = f"SELECT {columns} FROM read_parquet('{folder / name}.parquet')"
        return [tuple(row) for row in duckdb.sql(query).fetchall()]

    verdicts = rows("verdicts", "policy, budget_per_day, harmonic_early, fetches")
    assert [(p, b, round(h, 6), f) for p, b, h, f in verdicts] == [
        (each["policy"], each["budget_per_day"], round(each["harmonic"]["early"], 6),
         each["fetches"])
        for each in found["verdicts"]
    ]  # fmt: skip
    days = [len(each["daily"]["harmonic"]) for each in found["verdicts"]]
    assert rows("daily", "count(*), min(day)") == [(sum(days), found["from"])]
    assert rows("calibration", "count(*)") == [(40,)]
    assert rows("pages", "count(*), sum(captures)") == [(6, 240)]
    assert rows("page_verdicts", "count(*), sum(fetches)") == [
        (12, sum(each["fetches"] for each in found["verdicts"]))
    ]


def test_what_cannot_be_written_is_said_in_one_line_before_the_work(
    store: SmallStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = store.path.read_bytes()
    for options, words in (
        (("--html", tmp_path), "it is no file"),
        (("--html", tmp_path / "no" / "page.html"), "there is no folder"),
        (("--html", store.path), "would replace what is asked"),
        (("--parquet", store.path), "it is no folder"),
        (("--parquet", tmp_path / "no" / "tables"), "there is no folder"),
    ):
        result = replay(store.path, *options)
        assert result.exit_code in {1, 2}
        assert words in result.stderr
        assert result.stderr.count("\n") == 1
    monkeypatch.setattr("freshet.crawler.lab.plan_files.find_spec", lambda name: None)
    without = replay(store.path, "--parquet", tmp_path / "tables")
    assert "pip install 'freshet[parquet]'" in without.stderr
    assert without.stderr.count("\n") == 1
    assert not (tmp_path / "tables").exists()
    assert store.path.read_bytes() == before
