"""`freshet simulate --web` tells what budgets give the whole daemon."""

import asyncio
import json
import os
import signal
from asyncio.subprocess import Process
from functools import partial
from pathlib import Path

import pytest

from freshet.crawler.extensions.lab.cli.simulate import load
from freshet.crawler.reduce.parser_process import _Worker
from tests.console import as_json, freshet, shown

DAY_S = 86_400.0
SMALL = ("--web", "synthetic:hosts=1,pages=15", "--days", "4", "--seed", "3")
simulated = partial(freshet, "simulate")


@pytest.mark.long
def test_the_same_seed_gives_the_same_json_whatever_else_the_machine_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FRESHET_PARSE__TIME_LIMIT_S", "1.2")
    arguments = (*SMALL, "--budget", "15/day", "--budget", "4/hour", "--json")
    results = [simulated(*arguments)]
    # As if the parser's process waited for a processor longer than it may compute.
    calls, exchange = 0, _Worker._exchange

    async def starved(worker: _Worker, process: Process, call: bytes) -> bytes:
        nonlocal calls
        calls += 1
        if calls <= 2:
            os.kill(process.pid, signal.SIGSTOP)
            asyncio.get_running_loop().call_later(1.6, os.kill, process.pid, signal.SIGCONT)
        return await exchange(worker, process, call)

    monkeypatch.setattr(_Worker, "_exchange", starved)
    results.append(simulated(*arguments))
    assert calls > 2
    assert results[0].exit_code == 0, results[0].output
    assert results[0].stdout == results[1].stdout
    told = json.loads(results[0].stdout)
    assert (told["sites"], told["days"], told["measured_days"]) == (1, 4.0, 2.0)
    scarce, plenty = told["runs"]
    assert [run["budget"] for run in told["runs"]] == ["15/day", "4/hour"]
    assert scarce["policy"] == "site_clock"
    assert scarce["requests"] == pytest.approx(60, abs=2)
    assert plenty["of_budget"] == pytest.approx(1.0, abs=0.01)
    assert plenty["held"] == plenty["pages"] >= scarce["held"]
    assert plenty["audited"]["draws"] > 0
    assert plenty["freshness"]["fresh"] > scarce["freshness"]["fresh"] > 0.5
    assert plenty["freshness"]["age_days"] < scarce["freshness"]["age_days"]
    assert plenty["freshness"]["harmonic"] < scarce["freshness"]["harmonic"]


@pytest.mark.long
def test_people_get_a_table_of_each_budget_and_policy_and_the_store(tmp_path: Path) -> None:
    db = tmp_path / "kept.db"
    asked = (*SMALL, "--budget", "40/day", "--policy", "lambda_crawl", "--db", db)
    lines = shown("simulate", *asked).splitlines()
    assert lines[0].startswith("synthetic:hosts=1,pages=15: 1 site, 1")
    assert sum(line.startswith("40/day  lambda_crawl ") for line in lines) == 2
    assert lines[-1].endswith(f"freshet status --db {db}")
    kept = as_json("status", "--db", db)
    assert kept["last_run"]["fetches"] == pytest.approx(160, abs=2)


@pytest.mark.long
def test_of_news_it_counts_how_soon_it_was_found() -> None:
    news = ("--web", "newsroom:items=24,docs=1", "--days", "2", "--budget", "90/day")
    title, header, row = shown("simulate", *news).splitlines()[-3:]
    assert title.endswith("those of the measured days, utility halves in 6 h")
    assert header.split()[-3:] == ["after", "median", "utility"]
    told = as_json("simulate", *news)
    (new,) = (run["new"] for run in told["runs"])
    assert told["half_life_hours"] == 6
    assert 0 < new["utility"] < new["found"] / new["born"]
    assert row.split()[-2:] == [f"{100 * new['utility']:.1f}", "%"]
    assert f"{24 * new['median_delay_days']:.1f} h" in row


def test_a_page_that_left_all_lists_within_its_day_is_judged_too() -> None:
    web = load("newsroom:items=100,docs=1", seed=1, days=2.0)
    news = ("--web", "newsroom:items=100,docs=1", "--days", "2", "--budget", "5/day")
    told = as_json("simulate", *news)
    middle = (web.start_at + web.end_at) / 2
    assert told["runs"][0]["new"]["born"] == sum(
        middle < life.born_at <= web.end_at for life in web.lives()
    )


@pytest.mark.long
def test_the_tables_of_sites_hold_and_its_budget_and_policy_are_the_defaults(
    tmp_path: Path,
) -> None:
    config = tmp_path / "freshet.toml"
    config.write_text(
        '[daemon]\nbudget = "30/day"\npolicy = "lambda_crawl"\n'
        '[[sites]]\nmatch = "/archive/*"\nnever = true\n',
        "utf-8",
    )
    ruled = as_json("simulate", *SMALL, "--config", str(config))
    free = as_json("simulate", *SMALL, "--budget", "30/day")
    assert [ruled["runs"][0][key] for key in ("budget", "policy")] == ["30/day", "lambda_crawl"]
    assert ruled["runs"][0]["pages"] < free["runs"][0]["pages"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--web", "synthetic"], "how many requests may be sent? --budget"),
        (
            ["--web", "nothing", "--budget", "9/day"],
            "--web: 'nothing' is not known; accepted are endless",
        ),
        (["--web", "synthetic", "--budget", "9"], "--budget 9: must be a number"),
        (["--web", "synthetic", "--sources", "10"], "--sources: has no effect with --web"),
        (["--web", "synthetic", "--learn"], "--learn: has no effect with --web"),
        (["--budget", "10/day"], "--budget: has no effect without --web"),
        (["--db", "x.db"], "--db: has no effect without --web"),
        (
            ["--web", "synthetic", "--db", "x.db", "--budget", "9/day", "--budget", "8/day"],
            "--db keeps the store of one simulation",
        ),
        (
            ["--web", "synthetic", "--db", __file__, "--budget", "9/day"],
            "already exists; a simulation needs a new file",
        ),
    ],
)
def test_what_makes_no_sense_is_wrong_usage_in_one_line(arguments: list[str], told: str) -> None:
    result = simulated(*arguments)
    assert result.exit_code == 2
    assert told in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_policy_that_is_not_known_is_told_in_one_line() -> None:
    result = simulated(*SMALL, "--budget", "9/day", "--policy", "none")
    assert result.exit_code == 1
    assert "'none' is not known; accepted are" in result.stderr


def test_a_web_has_the_size_and_changes_for_the_days_asked_for() -> None:
    web = load("synthetic:hosts=3,pages=20", seed=5, days=12.0)
    assert list(web.sites) == ["news", "docs", "shop"]
    assert web.seed == 5
    assert web.end_at - web.start_at == 12 * DAY_S
    assert load("showcase", seed=5, days=90.0).end_at - web.start_at == 90 * DAY_S


def test_a_newsroom_has_its_manual_last() -> None:
    assert list(load("newsroom:items=12,docs=9", seed=5, days=2.0).sites)[-1] == "docs"


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("real", "web: 'real' is not known; accepted are endless, newsroom, showcase, synthetic"),
        ("newsroom:items=0", "web newsroom: items is 0; accepted is a number above 0"),
        ("newsroom:docs=0", "web newsroom: a web has at least one host"),
        ("synthetic:host=3", "web synthetic: option 'host=3' is not known"),
        ("synthetic:hosts=0", "web synthetic: a web has at least one host"),
        ("showcase:traps=1", "web showcase: traps is '1'; accepted are true and false"),
    ],
)
def test_a_web_that_is_not_accepted_is_told_by_name(wrong: str, told: str) -> None:
    with pytest.raises(ValueError, match=told.replace("(", r"\(")):
        load(wrong, seed=1, days=10.0)
