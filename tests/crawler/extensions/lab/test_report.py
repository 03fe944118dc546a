"""`freshet replay --plots --parquet`: figures and tables of a comparison."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from freshet.crawler.extensions.lab.report import TABLES
from tests.console import as_json, freshet
from tests.storage.small_store import SmallStore

DAY_S = 86_400.0
replay = partial(freshet, "replay")


@pytest.fixture
def store(site: SmallStore) -> SmallStore:
    """Six pages, visited once a day; one of them changes every day."""
    for number in range(6):
        page = site.page(f"/{number}", checked_at=1.0)
        for day in range(40):
            kind = "new" if day == 0 else "changed" if number == 3 else "unchanged"
            site.observe(page, (day + number / 100) * DAY_S, kind)
    return site


@pytest.mark.long
@pytest.mark.parametrize(
    ("budgets", "calibrated"), [(["2/hour"], ["48"]), (["2/day", "4/day"], ["2", "4"])]
)
def test_each_budget_has_its_figures_and_several_have_one_of_all(
    store: SmallStore, tmp_path: Path, budgets: list[str], calibrated: list[str]
) -> None:
    pytest.importorskip("matplotlib")
    folder = tmp_path / "figures"
    options = ["--policy", "greedy_index", "--policy", "uniform"]
    options += [word for each in budgets for word in ("--budget", each)]
    assert replay(store.path, *options, "--plots", folder).exit_code == 0
    expected = {
        f"{name}_{budget}_a_day.png"
        for name in ("costs", "days", "calibration", "fetches")
        for budget in calibrated
    } | {"change_rates.png"}
    if len(budgets) > 1:
        expected.add("budgets.png")
    assert {file.name for file in folder.iterdir()} == expected
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in folder.iterdir())


def test_the_tables_hold_what_json_says(store: SmallStore, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    folder = tmp_path / "tables"
    options = ("--policy", "uniform", "--budget", "2/day", "--budget", "4/day")
    assert replay(store.path, *options, "--parquet", folder).exit_code == 0
    # The second time they take the place of the first ones.
    found = as_json("replay", store.path, *options, "--parquet", folder)
    assert {file.stem for file in folder.iterdir()} == set(TABLES)

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
        (("--plots", store.path), "not a folder"),
        (("--plots", tmp_path / "no" / "figures"), "the folder does not exist"),
        (("--parquet", store.path), "not a folder"),
        (("--parquet", tmp_path / "no" / "tables"), "the folder does not exist"),
    ):
        result = replay(store.path, *options)
        assert result.exit_code in {1, 2}
        assert words in result.stderr
        assert result.stderr.count("\n") == 1
    monkeypatch.setattr("freshet.crawler.extensions.lab.plan_sources.find_spec", lambda name: None)
    monkeypatch.setattr("freshet.crawler.extensions.lab.report.find_spec", lambda name: None)
    for option, extra in (("--parquet", "parquet"), ("--plots", "plots")):
        without = replay(store.path, option, tmp_path / "made")
        assert f"needs the extra '{extra}'" in without.stderr
        assert without.stderr.count("\n") == 1
        assert not (tmp_path / "made").exists()
    assert store.path.read_bytes() == before
