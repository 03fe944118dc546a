"""Commands with nothing but a site: what they do by default, and what a daemon reports."""

import json
import logging
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from freshet.crawler.run.logs import REPORTS
from tests.integration.scripted import scripted
from tests.integration.test_commands import Shell, links, page
from tests.integration.test_daemon import DAY_S, HOUR_S, Stage
from tests.variants import first

SITE = {"/": page(0, links("/1", "/2")), "/1": page(1, links("/3")), "/2": page(2), "/3": page(3)}


def told(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [vars(each)["figures"] for each in caplog.records if each.name == REPORTS]


@pytest.mark.long
async def test_a_daemon_without_a_budget_reads_a_site_at_once_and_each_page_daily(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", REPORTS)
    stage = Stage(tmp_path / "crawl.db")
    began_at = stage.clock.now()
    await stage.keep(None, 2.0, ["news"])
    times = [at - began_at for at, _ in stage.server.asked]
    first, last = sum(at < HOUR_S for at in times), sum(at >= DAY_S for at in times)
    pages = len(stage.rows("SELECT id FROM page WHERE held_back IS NULL"))
    assert first > 30
    assert max(Counter(int(at) for at in times).values()) <= 3  # One a second, on average.
    assert last <= 1.4 * (pages + 1) + 20
    assert last >= 0.5 * pages
    reports = told(caplog)
    kinds = Counter(each["report"] for each in reports)
    assert (kinds["started"], kinds["stopped"]) == (1, 1)
    assert kinds["hour"] in {47, 48}
    started, *_, stopped = reports
    assert (started["sites"], started["policy"], started["budget"]) == (1, "site_clock", None)
    hours = [each for each in reports if each["report"] == "hour"]
    assert sum(each["requests"] for each in hours) <= stopped["requests"] == len(times)
    assert sum(each["changed"] for each in hours) <= stopped["changed"]
    budgets = [each for each in reports if each["report"] == "budget"]
    assert budgets[0]["fresh"] is None
    assert budgets[-1]["is_default"]
    assert 0 < budgets[-1]["fresh"] < 1
    assert 0 < budgets[-1]["pages"] <= budgets[-1]["urls"] <= pages
    assert not [each for each in caplog.records if each.levelno > logging.INFO]


@pytest.mark.long
async def test_a_daemon_goes_on_by_its_default_budget_after_a_start(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "crawl.db")
    await stage.keep(None, 1.0, ["news"])
    before = len(stage.server.asked)
    await stage.keep(None, 1.0, ["news"])
    pages = len(stage.rows("SELECT id FROM page WHERE held_back IS NULL"))
    assert len(stage.server.asked) - before <= 1.2 * pages + 30


async def test_a_bare_host_and_a_number_of_pages_are_all_that_a_crawl_needs(shell: Shell) -> None:
    async with scripted({"a": SITE}) as web:
        site = web.origin("a").removeprefix("http://")
        local = ("--allow-private-addresses", "--delay", "0", "--json")
        report = await shell.json("crawl", site, "--max-pages", "50", *local)
    assert report["pages"] == len(SITE)


@pytest.mark.parametrize("style", first(1, ["console", "json"]))
async def test_a_daemon_needs_a_site_list_alone_and_logs_its_start_and_end(
    shell: Shell, style: str
) -> None:
    async with scripted({"a": SITE}) as web:
        (shell.directory / "sites.txt").write_text(f"{web.origin('a')}\n")
        code, stdout, stderr = await shell(
            "daemon", "--sites", "sites.txt", "--allow-private-addresses", "--time-limit", "4",
            "--listen", "127.0.0.1:0", "--log-format", style, "--json",
        )  # fmt: skip
    assert code == 0, stderr
    assert json.loads(stdout)["fetches"] >= 2
    lines = [line for line in stderr.splitlines() if "freshet.reports" in line]
    if style == "json":
        found = [json.loads(line) for line in lines]
        assert [each["report"] for each in found][:2] == ["started", "budget"]
        assert found[-1]["report"] == "stopped"
        assert found[0]["listens"][0].startswith("http://127.0.0.1:")
        assert (found[-1]["ending"], found[-1]["level"]) == ("limit", "info")
        return
    assert (
        "keeps crawl.db fresh: 1 site, by site_clock; it listens on http://127.0.0.1:" in lines[0]
    )
    assert "one request a second until all pages are read" in lines[1]
    assert "Change it with --budget 1000/day" in lines[1]
    assert "stopped (time limit) after " in lines[-1]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)
