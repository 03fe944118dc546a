"""A package of others adds to Freshet in each way there is: scripts/examples/extension."""

import asyncio
import json
import re
import shutil
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp
import pytest

from freshet.config.settings import Settings
from freshet.crawler.run import hooks
from tests.integration.hubs import free_port
from tests.integration.scripted import Page, scripted
from tests.integration.test_commands import LOCAL, Shell, links, page

if TYPE_CHECKING:
    import freshet_ledger
    from freshet_ledger import interests, outlets, policy, run, status
    from freshet_ledger import page as of_dashboard

    from freshet.crawler.extensions.alerts.receivers import Receiver
    from freshet.crawler.extensions.connectors.targets import Target
    from freshet.crawler.extensions.dashboard.request import ExtensionPage
    from freshet.crawler.run.capacities import VisitCosts
    from freshet.crawler.run.importance import Interests
    from freshet.crawler.run.network import Fetching
    from freshet.crawler.signals.headers import SignalReader
    from freshet.scheduler.policy import IndexPolicy
    from freshet.storage.extensions import Tables

    # mypy compares the package with the Protocols.
    TABLES: Tables = freshet_ledger
    COMPANION: hooks.Accompanying = run
    FETCHER: Fetching = run
    SIGNALS: SignalReader = run.signals
    COSTS: VisitCosts = run.visit_costs
    STATUS: hooks.StatusPart = status
    INTERESTS: Interests = interests
    POLICY: IndexPolicy = policy.MostStale()
    RECEIVER: Receiver = outlets.Receiver("", None, 0.0)
    TARGET: Target = outlets.Target("")
    PAGE: ExtensionPage = of_dashboard.LedgerPage(Path(), Settings.model_validate({}))

EXAMPLE = Path(__file__).parents[3] / "scripts/examples/extension"
ENTRY_POINTS = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]["entry-points"]
SETTINGS = """
[ledger]
signature = "me"
cost = 5.0

[[alerts.rules]]
name = "all"
match = "*"
kinds = ["new", "changed", "rejected"]
url = "ledger://alerts.jsonl"

[daemon]
policy = "most_stale"
importance = "opened"
"""
LEDGER = {"Content-Type": "application/x-ledger"}


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """The directory of commands, which find the package there, as their processes do."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    install(tmp_path)
    (tmp_path / "freshet.toml").write_text(SETTINGS)
    return Shell(tmp_path)


def install(folder: Path) -> None:
    """Write what an installer writes."""
    shutil.copytree(EXAMPLE / "freshet_ledger", folder / "freshet_ledger", dirs_exist_ok=True)
    declare(folder, "freshet_ledger", ENTRY_POINTS)


def declare(folder: Path, name: str, groups: Mapping[str, Mapping[str, str]]) -> None:
    """Write the metadata of a package."""
    (metadata := folder / f"{name}-1.dist-info").mkdir(exist_ok=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    lines = (
        f"[{group}]\n" + "".join(f"{it} = {value}\n" for it, value in entries.items())
        for group, entries in groups.items()
    )
    (metadata / "entry_points.txt").write_text("\n".join(lines))


def remove(folder: Path) -> None:
    shutil.rmtree(folder / "freshet_ledger")
    shutil.rmtree(folder / "freshet_ledger-1.dist-info")


async def test_it_has_a_part_in_all_that_is_done(shell: Shell) -> None:
    changed = {"X-Changed": "{origin:a}/1 1700000000"}
    start = page(0, links("/1", "/book"))
    site = {
        "/": Page(start.body, headers=changed),
        "/1": page(1),
        "/book": Page("1;A crane\n2;Two ropes\n", headers=LEDGER),
    }
    async with scripted({"a": site}) as web:
        base = f"{web.origin('a')}/"
        code, _, told = await shell("crawl", base, *LOCAL)
        assert code == 0, told
        # A request hook, for robots.txt too.
        assert len(web.sent) >= 4
        assert {each["X-Ledger"] for each in web.sent} == {"me"}
        # A listener of visits, and chores.
        assert "3 visits, in turns" in told
        # A table that is written with the visits, and a verb.
        assert await shell.json("ledger") == dict.fromkeys([base, f"{base}1", f"{base}book"], 1)
        status = await shell.json("status", "--json")
        assert status["ledger"][base] == 1
        # A format.
        _, text, _ = await shell("text", f"{base}book")
        assert text.split() == "A crane Two ropes".split()
        # A signal.
        signals = await shell.json("signals", "--json")
        assert [(it["kind"], it["url"]) for it in signals["sources"]] == [
            ("ping", f"{web.origin('a')}#ledger")
        ]
        # A receiver of alerts.
        messages = (shell.directory / "alerts.jsonl").read_text().splitlines()
        assert {json.loads(each)["data"]["kind"] for each in messages} == {"new"}
        # A connector.
        assert (await shell("sync", "ledger:passages.json", "--once"))[0] == 0
        passages = json.loads((shell.directory / "passages.json").read_text())["pages"]
        assert set(passages) == {base, f"{base}1", f"{base}book"}
        # A policy, importance, and costs of visits.
        daemon = ("daemon", "--budget", "100000/day", "--time-limit", "2", *LOCAL)
        code, report, told = await shell(*daemon)
        assert code == 0, told
        assert json.loads(report)["fetches"] > 0
        explained = await shell.json("explain", f"{base}1", "--json")
    assert explained["prospect"]["policy"] == "most_stale"
    assert explained["prospect"]["importance"]["divided_by"] == "opened"


async def test_it_has_a_page_of_the_dashboard(shell: Shell) -> None:
    async with scripted({"a": {"/": page(0)}}) as web:
        assert (await shell("crawl", f"{web.origin('a')}/", *LOCAL))[0] == 0
    port = free_port()
    serving = await shell.start("serve", "--listen", f"127.0.0.1:{port}")
    try:
        assert serving.stderr is not None
        assert b"listening" in await asyncio.wait_for(serving.stderr.readline(), 30)
        async with (
            aiohttp.ClientSession(f"http://127.0.0.1:{port}") as people,
            people.get("/ledger", headers={"Accept": "text/html"}) as answer,
        ):
            assert (answer.status, "/</bdi>: 1" in await answer.text()) == (200, True)
    finally:
        serving.terminate()
        await serving.communicate()


async def test_a_store_goes_on_without_it_and_with_it_again(shell: Shell) -> None:
    async with scripted({"a": {"/": page(0, links("/1")), "/1": page(1)}}) as web:
        base = f"{web.origin('a')}/"
        assert (await shell("crawl", base, *LOCAL))[0] == 0
        remove(shell.directory)
        unknown = await shell("status")
        assert unknown[0] == 2
        assert "ledger.signature is not a setting" in unknown[2]
        (shell.directory / "freshet.toml").unlink()
        assert (await shell("crawl", base, *LOCAL))[0] == 0
        forgotten = await shell("forget", f"{base}1", "--keep-refusing")
        assert forgotten[0] == 0, forgotten
        install(shell.directory)
        assert await shell.json("ledger") == {base: 1}
        assert (await shell("crawl", base, *LOCAL))[0] == 0
    assert await shell.json("ledger") == {base: 2}


def test_its_policy_obeys_the_laws(tmp_path: Path) -> None:
    install(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "freshet.scheduler.conformance", "most_stale"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


BROKEN = [
    ("settings", "config show"), ("tables", "crawl http://127.0.0.1:1/"), ("verbs", "--help"),
    ("formats", "crawl http://127.0.0.1:1/"), ("signals", "crawl http://127.0.0.1:1/"),
    ("fetchers", "crawl http://127.0.0.1:1/"), ("status", "status"),
]  # fmt: skip


async def test_an_extension_that_cannot_be_loaded_is_named_in_one_line(shell: Shell) -> None:
    remove(shell.directory)
    (shell.directory / "freshet.toml").unlink()
    async with scripted({"a": {"/": page(0)}}) as web:
        assert (await shell("crawl", f"{web.origin('a')}/", *LOCAL))[0] == 0
    for group, verb in BROKEN:
        declare(shell.directory, "broken", {f"freshet.{group}": {"broken": "nowhere:NOTHING"}})
        code, _, told = await shell(*verb.split())
        assert (code, len(told.splitlines())) == (1, 1), (group, told)
        assert told.startswith("freshet: the extension broken (nowhere:NOTHING, of broken) cannot")


async def test_an_extension_may_be_one_module_with_its_files_beside_it(shell: Shell) -> None:
    source, script = (EXAMPLE / "freshet_ledger" / it for it in ("__init__.py", "0001_ledger.sql"))
    remove(shell.directory)
    (shell.directory / "solo.py").write_text(source.read_text())
    shutil.copy(script, shell.directory)
    shutil.copy(EXAMPLE / "freshet_ledger/defaults.toml", shell.directory)
    groups = {
        "freshet.settings": {"ledger": "solo:LedgerSettings"},
        "freshet.tables": {"l": "solo"},
    }
    declare(shell.directory, "solo", groups)
    async with scripted({"a": {"/": page(0)}}) as web:
        (shell.directory / "freshet.toml").write_text("[ledger]\ncost = 2\n")
        assert (await shell("crawl", f"{web.origin('a')}/", *LOCAL))[0] == 0
    with closing(sqlite3.connect(shell.directory / "crawl.db")) as db:
        assert db.execute("SELECT count(*) FROM ledger").fetchone() == (0,)


def test_of_a_package_that_is_installed_twice_the_first_counts(shell: Shell) -> None:
    declare(shell.directory, "freshet", {"freshet.fetchers": {"other": "other"}})
    program = "from freshet.entry_points import found; print(*[it.name for it in found({!r})])"
    words = sys.executable, "-c", program.format("freshet.fetchers")
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {"ledger", "other"}


def test_another_package_comes_before_ours(shell: Shell) -> None:
    program = "from freshet.entry_points import found; print(*[it.name for it in found({!r})])"
    for group, ours in (("connectors", "http"), ("interests", "readers")):
        words = sys.executable, "-c", program.format(f"freshet.{group}")
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        names = done.stdout.split()
        assert names.index("ledger") < names.index(ours)


def test_each_kind_of_addition_is_documented_with_its_protocol() -> None:
    listed = set(re.findall(r"^- ``(freshet\.\w+)``", hooks.__doc__ or "", re.MULTILINE))
    ours = tomllib.loads((EXAMPLE.parents[2] / "pyproject.toml").read_text())
    assert listed >= ENTRY_POINTS.keys() | ours["project"]["entry-points"].keys()
