"""`freshet replay` asks the past of a store which policy would have kept it fresher."""

from functools import partial
from pathlib import Path

import pytest

from tests.console import as_json, freshet, shown
from tests.storage.small_store import SmallStore

DAY_S = 86_400.0
DAYS = 60
replay = partial(freshet, "replay")


def fill(small: SmallStore) -> None:
    """Ten pages, visited once a day: one changes each day, the others never."""
    small.run(0.0)
    small.host()
    for number in range(10):
        page = small.page(f"/{number}", checked_at=1.0)
        for day in range(DAYS):
            kind = "new" if day == 0 else "changed" if number == 3 else "unchanged"
            small.observe(page, (day + number / 100) * DAY_S, kind)


def test_the_policy_that_looks_where_changes_are_is_the_fresher_one(small: SmallStore) -> None:
    fill(small)
    found = as_json("replay", small.path, "--budget", "2/day", "--budget", "5/day")
    assert found["pages"] == 10
    assert found["captures"] == 600
    cost = {
        (verdict["policy"], verdict["budget_per_day"]): verdict["harmonic"]
        for verdict in found["verdicts"]
    }
    assert set(cost) == {
        (name, budget)
        for name in ("site_clock", "lambda_crawl", "uniform")
        for budget in (2.0, 5.0)
    }
    for harmonic in cost.values():
        assert harmonic["clairvoyant"] <= harmonic["optimistic"] <= harmonic["early"]
        assert harmonic["early"] <= harmonic["pessimistic"]
    assert cost["site_clock", 2.0]["early"] < cost["uniform", 2.0]["early"]
    assert cost["uniform", 5.0]["early"] < cost["uniform", 2.0]["early"]
    verdict = found["verdicts"][0]
    assert sum(verdict["fetches_by_host"].values()) == verdict["fetches"]
    assert len(verdict["daily"]["harmonic"]) == len(verdict["daily"]["binary"]) == 54


def test_the_table_names_each_policy_and_says_what_the_ranges_are(small: SmallStore) -> None:
    fill(small)
    told = shown("replay", small.path, "--policy", "uniform", "--budget", "2/hour")
    assert "With 48 fetches a day" in told
    assert "uniform" in told
    assert "Flagged: pages that a policy visited more often" in told


def test_without_a_budget_it_is_what_the_store_spent(small: SmallStore) -> None:
    fill(small)
    found = as_json("replay", small.path, "--policy", "uniform")
    assert found["verdicts"][0]["budget_per_day"] == pytest.approx(10.0, rel=0.02)


def test_what_cannot_be_answered_is_said_in_one_line(small: SmallStore, tmp_path: Path) -> None:
    empty = replay(small.path)
    assert empty.exit_code == 0
    assert "no page has had content yet" in empty.stderr
    small.run(0.0)
    small.host()
    small.observe(small.page("/", checked_at=1.0), 1.0, "new")
    once = replay(small.path)
    assert once.exit_code == 0
    assert "no page has two captures yet" in once.stderr
    text = tmp_path / "text"
    text.write_text("no store")
    for result, code in (
        (replay(text), 2),
        (replay(small.path, "--policy", "nothing"), 2),
        (replay(small.path, "--budget", "many"), 2),
        (replay(small.path, "--db", str(tmp_path / "new.db")), 2),
    ):
        assert result.exit_code == code
        assert result.stderr.count("\n") == 1
