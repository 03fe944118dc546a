"""Ctrl-C at any moment of a run: it is told as ended, and the next one goes on."""

from pathlib import Path

import pytest

from tests.integration.scripted import scripted
from tests.integration.test_commands import LOCAL, Shell, page
from tests.storage.small_store import rows

#: Presses Ctrl-C when a method of the program is called.
PRESSING = """
import os, signal
from freshet.crawler.{module} import {owner} as owner
method = owner.{name}
def pressing(*arguments, **named):
    os.kill(os.getpid(), signal.SIGINT)
    return method(*arguments, **named)
owner.{name} = pressing
"""


@pytest.mark.parametrize(
    ("verb", "module", "owner", "name"),
    [
        ("daemon", "run.reports", "Reports", "started"),
        pytest.param("daemon", "run.wiring", "Assembly", "ask_schemes", marks=pytest.mark.long),
        pytest.param("daemon", "run.daemon", "DaemonState", "weigh", marks=pytest.mark.long),
        pytest.param("daemon", "run.daemon", "_Daemon", "_visit", marks=pytest.mark.long),
        pytest.param("daemon", "run.wiring", "Assembly", "run", marks=pytest.mark.long),
        pytest.param("daemon", "pool", "FetchPool", "run", marks=pytest.mark.long),
        pytest.param("crawl", "run.wiring", "Assembly", "ask_schemes", marks=pytest.mark.long),
        ("crawl", "run.wiring", "Assembly", "run"),
        pytest.param("crawl", "pool", "FetchPool", "run", marks=pytest.mark.long),
        pytest.param("crawl", "run.crawl", "_CrawlRun", "_correct", marks=pytest.mark.long),
        pytest.param("crawl", "run.crawl", "_CrawlRun", "_close_run", marks=pytest.mark.long),
    ],
)
async def test_a_run_is_ended_by_an_interrupt_at_any_moment(
    tmp_path: Path, verb: str, module: str, owner: str, name: str
) -> None:
    shell = Shell(tmp_path)
    (tmp_path / "freshet.toml").write_text("[daemon]\nbudget = '1000/day'\n")
    pressing = PRESSING.format(module=module, owner=owner, name=name)
    async with scripted({"h": {"/": page(0)}}) as web:
        (tmp_path / "sites.txt").write_text(web.origin("h"))
        code, out, err = await shell(verb, "--sites", "sites.txt", *LOCAL, before=pressing)
    assert (code, bool(out)) == (0, True), err
    assert "freshet: interrupted" not in err
    assert rows(tmp_path / "crawl.db", "SELECT count(*) FROM crawl_run") == [(1,)]
