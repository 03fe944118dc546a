"""`freshet plan` divides a budget, and says what comes of it."""

import csv
from functools import partial
from math import log
from pathlib import Path
from typing import Any

import duckdb
import pytest

from freshet.scheduler.planning import COMPARED
from freshet.scheduler.policies.lambda_crawl import solve
from freshet.scheduler.policies.whittle import index_after, utility_after
from tests.console import as_json, freshet
from tests.storage.small_store import HOST, SmallStore

DAY_S = 86_400.0

#: Two pages of one host, one of another whose changes are all signalled, one that never changes.
SOURCES = """url,importance,change_rate,host,complete_observations
https://a.example/1,6,1,a,false
https://a.example/2,1,4,a,false
https://b.example/1,6,9,b,true
https://b.example/2,5,0,b,false
"""
plan = partial(freshet, "plan")


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    path = tmp_path / "sources.csv"
    path.write_text(SOURCES)
    return path


@pytest.fixture
def store(small: SmallStore) -> SmallStore:
    small.run(0.0)
    small.host(queue="one.example", delay_s=30_000.0, last_exchange_at=1.0)
    return small


def told(*arguments: object) -> Any:
    return as_json("plan", *arguments)


def test_the_plan_is_that_of_lambda_crawl(sources: Path) -> None:
    report = told("--sources", sources, "--budget", "8/day")
    best = solve(
        [6.0, 1.0, 6.0, 5.0], [1.0, 4.0, 9.0, 0.0], 8.0,
        complete_observations=[False, False, True, False],
    )  # fmt: skip
    rate = best.crawl_rate
    assert (report["policy"], report["budget"], report["left_over"]) == ("lambda_crawl", 8.0, 0.0)
    assert report["price"] == pytest.approx(best.price)
    assert report["split"]["incomplete_observations"] == {
        "sources": 3, "crawl_rate": pytest.approx(rate[0] + rate[1]),
    }  # fmt: skip
    assert report["split"]["complete_observations"] == {
        "sources": 1, "crawl_rate": pytest.approx(rate[2]),
    }  # fmt: skip
    assert [(host["host"], host["sources"]) for host in report["split"]["by_host"]] == [
        ("b", 2), ("a", 2),
    ]  # fmt: skip
    assert [source["url"][8:] for source in report["top"]] == [
        "b.example/1", "a.example/1", "a.example/2",
    ]  # fmt: skip
    assert report["top"][1]["interval_days"] == pytest.approx(1 / rate[0])
    assert report["counts"] == {
        "sources": 4, "hosts": 2, "never_crawled": 0, "hardly_crawled": 0, "nothing_to_gain": 1,
    }  # fmt: skip


def test_every_policy_is_compared_with_lambda_crawl(sources: Path) -> None:
    policies = told("--sources", sources, "--budget", "8/day")["policies"]
    assert set(policies) == set(COMPARED)
    best = policies["lambda_crawl"]
    assert best["harmonic_ratio"] == best["binary_ratio"] == 1.0
    for name in ("lambda_crawl_approx", "uniform", "change_rate"):
        assert policies[name]["harmonic_ratio"] > 1.0
    assert policies["optimal_intervals"]["harmonic_ratio"] < 1.0
    assert 0 < best["fresh"] < 1
    assert best["fresh"] == pytest.approx(1 - best["binary_cost"] / 18)


def test_a_cost_without_end_is_null(sources: Path) -> None:
    report = told("--sources", sources, "--budget", "0.1/day", "--policy", "binary_lambda_crawl")
    own = report["policies"]["binary_lambda_crawl"]
    assert (own["harmonic_cost"], own["harmonic_ratio"]) == (None, None)
    assert report["counts"]["never_crawled"] > 0
    starved = report["starved"][0]
    assert (starved["crawl_rate"], starved["interval_days"]) == (0.0, None)


def test_an_hourly_budget_is_24_times_a_daily_one(sources: Path) -> None:
    assert told("--sources", sources, "--budget", "0.5/hour")["budget"] == 12.0


@pytest.mark.parametrize(
    "budget", ["8", "many/day", "0/day", "-1/day", "inf/day", "nan/day", "8/s"]
)
def test_a_budget_without_a_number_or_a_unit_is_wrong_usage(sources: Path, budget: str) -> None:
    result = plan("--sources", sources, f"--budget={budget}")
    assert result.exit_code == 2
    assert result.stderr == (
        f"freshet: --budget {budget}: must be a number of requests above 0 per day or hour, "
        "as 1000/day or 50/hour\n"
    )


def test_no_host_gets_more_than_politeness_allows_it(sources: Path) -> None:
    report = told("--sources", sources, "--budget", "8/day", "--delay", "86400")
    assert report["capped_hosts"] == ["a", "b"]
    assert [host["crawl_rate"] for host in report["split"]["by_host"]] == pytest.approx([1.0, 1.0])
    assert report["left_over"] == pytest.approx(6.0)
    assert (
        "6 are left over, for the hosts that could use them are at their politeness limit"
        in plan("--sources", sources, "--budget", "8/day", "--delay", "86400").stdout.replace(
            "\n", " "
        )
    )
    unlimited = told("--sources", sources, "--budget", "1e6/day", "--delay", "0")
    assert {host["capacity"] for host in unlimited["split"]["by_host"]} == {None}


def test_people_are_told_the_same_in_words(sources: Path) -> None:
    result = plan("--sources", sources, "--budget", "8/day", "--limit", "1")
    assert result.exit_code == 0, result.output
    lines = [line for line in result.stdout.splitlines() if line]
    assert lines[0].endswith("sources.csv: 8 crawls a day for 4 pages on 2 hosts, by lambda_crawl")
    assert "spent  8 crawls a day, all of the budget" in lines
    assert "1 page not crawled, because they have no importance or no changes" in lines
    (top,) = [line.split()[:1] + line.split()[-3:] for line in lines if "b.example/1" in line]
    assert top[0] == "https://b.example/1"
    assert top[-1] == "changes"
    assert [line.split()[0] for line in lines if line.split()[0] in COMPARED] == list(COMPARED)


def test_the_output_has_every_source_in_either_format(sources: Path, tmp_path: Path) -> None:
    written, parquet = tmp_path / "plan.csv", tmp_path / "plan.parquet"
    for path in (written, parquet):
        result = plan("--sources", sources, "--budget", "8/day", "--output", path)
        assert (result.exit_code, result.stderr) == (0, f"written: {path}\n")
    rows = list(csv.DictReader(written.read_text().splitlines()))
    assert list(rows[0]) == [
        "url", "host", "importance", "change_rate", "complete_observations", "crawl_rate",
        "crawl_probability", "interval_days", "harmonic_cost", "binary_cost",
    ]  # fmt: skip
    assert [row["url"] for row in rows] == [line.split(",")[0] for line in SOURCES.splitlines()[1:]]
    assert sum(float(row["crawl_rate"]) for row in rows) == pytest.approx(8.0)
    assert [row["interval_days"] for row in rows][3] == "inf"
    with duckdb.connect() as connection:
        again = connection.execute("FROM read_parquet(?)", [str(parquet)]).fetchall()
    assert [row[0] for row in again] == [row["url"] for row in rows]
    assert [row[5] for row in again] == [float(row["crawl_rate"]) for row in rows]


def test_an_older_plan_is_replaced_and_that_is_said(sources: Path, tmp_path: Path) -> None:
    path = tmp_path / "plan.csv"
    path.write_text("old")
    result = plan("--sources", sources, "--budget", "8/day", "--output", path)
    assert (result.exit_code, result.stderr) == (0, f"replaced: {path}\n")
    assert path.read_text().startswith("url,host")


def test_the_sources_are_not_replaced_by_their_plan(sources: Path) -> None:
    result = plan("--sources", sources, "--budget", "8/day", "--output", sources)
    assert result.exit_code == 2
    assert result.stderr.endswith("would replace the plan's own input; name another file\n")
    assert sources.read_text() == SOURCES


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--policy", "best"), "policy: 'best' is not known; accepted are "),
        (("--policy", "greedy_index"), "policy greedy_index: has no crawl rates"),
        (("--policy", "uniform:speed=3"), "policy uniform: option 'speed=3' is not known"),
        (("--estimator", "guess"), "--estimator guess: accepted are empirical_bayes and "),
        (("--db", "crawl.db"), "give --db or --sources, not both"),
        (("--output", "plan.xlsx"), "plan.xlsx: accepted are files that end in .csv or .parquet"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    sources: Path, arguments: tuple[str, str], words: str
) -> None:
    result = plan("--sources", sources, "--budget", "8/day", *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(f"freshet: {words}")
    assert result.stderr.count("\n") == 1


def test_bad_rows_are_wrong_usage_and_a_file_that_is_not_there_a_failure(tmp_path: Path) -> None:
    path = tmp_path / "sources.csv"
    result = plan("--sources", path, "--budget", "8/day")
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    path.write_text("url,change_rate\nhttps://a.example/,often\n")
    result = plan("--sources", path, "--budget", "8/day")
    assert result.exit_code == 2
    assert result.stderr == (
        f"freshet: {path}: line 2: change_rate: is 'often'; "
        "accepted is a finite number of at least 0\n"
    )


def test_where_there_is_nothing_to_gain_nothing_is_spent_and_that_is_said(sources: Path) -> None:
    sources.write_text("url,change_rate\nhttps://a.example/,0\n")
    report = told("--sources", sources, "--budget", "8/day")
    assert (report["left_over"], report["price"], report["interval_days"]) == (8.0, 0.0, None)
    assert report["policies"]["uniform"]["harmonic_ratio"] is None
    shown = plan("--sources", sources, "--budget", "8/day").stdout
    assert "8 are left over, for no page can use them" in shown
    assert "∞" not in shown


def test_a_store_is_planned_from_its_histories(store: SmallStore) -> None:
    lively, still = store.page("/lively", checked_at=9.0), store.page("/still", checked_at=9.0)
    for day in range(9):
        store.observe(lively, day * DAY_S, "changed" if day else "new")
        store.observe(still, day * DAY_S, "unchanged" if day else "new")
    store.page("/gone", checked_at=9.0, last_kind="gone")
    report = told("--db", store.path, "--budget", "2/day")
    assert report["note"] is None
    assert report["learning"] == {
        "estimator": "empirical_bayes", "observations": 18, "intervals": 16,
        "without_evidence": 0, "gone": 1,
    }  # fmt: skip
    assert [source["url"] for source in report["top"]] == [f"{HOST}/lively", f"{HOST}/still"]
    (host,) = report["split"]["by_host"]
    assert (host["host"], host["capacity"]) == ("one.example", pytest.approx(DAY_S / 30_000))
    shown = plan("--db", store.path, "--budget", "2/day").stdout
    assert "empirical_bayes from 16 intervals between captures" in shown
    assert "1 page that were gone at the last visit" not in shown
    assert "1 page, gone at the last visit" in shown


def news(store: SmallStore) -> tuple[int, int]:
    """Two lists at which two items a day appeared for ten days, seen twice a day; and a page."""
    store.execute("UPDATE host SET delay_s = 1.0")
    about = store.page("/about", checked_at=10 * DAY_S)
    store.observe(about, 0.0, "new")
    store.observe(about, 9 * DAY_S, "changed")
    lists = (store.page("/", checked_at=10 * DAY_S), store.page("/section", checked_at=10 * DAY_S))
    for page in lists:
        store.observe(page, 0.0, "new")
        store.link(page, page, 0.0)
        for half in range(1, 21):
            item = store.page(f"/{page}/{half}", found_at=half * DAY_S / 2)
            store.link(page, item, half * DAY_S / 2)
            store.insert(
                "churn", page_id=page, at=half * DAY_S / 2, since=(half - 1) * DAY_S / 2,
                appeared=1, dropped=1, stayed=3,
            )  # fmt: skip
    return lists


def test_ephemeral_sources_share_the_budget_at_the_same_price(store: SmallStore) -> None:
    news(store)
    report = told("--db", store.path, "--budget", "6/day")
    first, second = report["ephemeral"]
    assert {first["url"], second["url"]} == {f"{HOST}/", f"{HOST}/section"}
    assert first["arrival_rate"] == pytest.approx(2.0, rel=0.1)
    assert not first["declared"]
    assert first["half_life_hours"] == pytest.approx(6.0)
    decay = log(2) / 0.25
    income = 7.0 * first["arrival_rate"]
    # All that appeared has faded since 1970; an interval later a visit is worth the price.
    assert first["index"] == pytest.approx(income / decay)
    assert report["price"] == pytest.approx(
        index_after(first["interval_days"], income, 1.0, decay), rel=1e-2
    )
    assert first["expected_reward"] == pytest.approx(
        utility_after(2.0**20, first["arrival_rate"], 1.0, decay,
                      period=first["interval_days"] / 2**20), rel=1e-3,
    )  # fmt: skip
    assert first["reward_per_day"] == pytest.approx(
        first["expected_reward"] / first["interval_days"]
    )
    assert report["policies"]["lambda_crawl"]["crawl_rate"] == pytest.approx(6.0, rel=1e-3)


def test_a_half_life_that_openings_have_taught_is_told_as_learnt(store: SmallStore) -> None:
    source, _ = news(store)
    store.items(source, [2 * DAY_S + n for n in range(1, 13)], [0.0, 3_600.0, DAY_S])
    found = {it["url"]: it for it in told("--db", store.path, "--budget", "6/day")["ephemeral"]}
    learnt, other = found[f"{HOST}/"], found[f"{HOST}/section"]
    assert (learnt["learnt_from"], other["learnt_from"]) == (24.0, None)
    assert learnt["half_life_hours"] != pytest.approx(6.0, rel=0.1)
    assert other["half_life_hours"] == pytest.approx(6.0)
    assert (learnt["item_worth"], other["item_worth"]) == pytest.approx((7.0, 7.0))
    text = plan("--db", store.path, "--budget", "6/day").stdout
    assert "h (learnt)" in text


def test_an_item_that_two_lists_show_is_divided_between_them(store: SmallStore) -> None:
    lists = news(store)
    for half in range(1, 21):
        store.execute(
            "INSERT INTO link SELECT ?, dst_id, position, rel, anchor, first_seen_at, "
            "last_seen_at, gone_at FROM link WHERE src_id = ? AND first_seen_at = ?",
            lists[1], lists[0], half * DAY_S / 2,
        )  # fmt: skip
    found = {
        each["url"]: each for each in told("--db", store.path, "--budget", "6/day")["ephemeral"]
    }
    assert found[f"{HOST}/"]["shown_elsewhere"] == pytest.approx(0.5)
    assert found[f"{HOST}/section"]["shown_elsewhere"] == pytest.approx(0.25)


def test_where_no_look_is_worth_the_price_a_source_is_planned_as_any_page(
    store: SmallStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    news(store)
    monkeypatch.setenv("FRESHET_EPHEMERAL__ITEM_WORTH", "1e-9")
    report = told("--db", store.path, "--budget", "6/day")
    assert [each["next_crawl_at"] for each in report["ephemeral"]] == [None, None]
    shown = plan("--db", store.path, "--budget", "6/day").stdout
    assert "as any page" in shown


def test_an_empty_store_has_no_history_yet_and_that_is_no_failure(store: SmallStore) -> None:
    report = told("--db", store.path, "--budget", "2/day")
    assert (report["note"], report["counts"]["sources"]) == ("no history yet", 0)
    result = plan("--db", store.path, "--budget", "2/day")
    assert result.exit_code == 0
    assert result.stdout == (
        f"{store.path}: no history yet, no page of it has content and still exists\n"
    )


def test_pages_that_were_captured_once_are_planned_alike_and_that_is_said(
    store: SmallStore,
) -> None:
    for path in ("/1", "/2"):
        store.observe(store.page(path, checked_at=9.0), 0.0, "new")
    report = told("--db", store.path, "--budget", "2/day")
    assert report["note"] == "no history yet"
    assert [source["crawl_rate"] for source in report["top"]] == pytest.approx([1.0, 1.0])
    assert (
        "no history yet: no page was captured twice"
        in plan("--db", store.path, "--budget", "2/day").stdout
    )


def test_a_store_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    result = plan("--db", tmp_path / "none.db", "--budget", "2/day")
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
