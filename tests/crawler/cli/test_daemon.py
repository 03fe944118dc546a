"""``freshet daemon`` refuses what it cannot follow in one line, and reads its order again."""

import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from typer.testing import Result

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.cli.daemon import order_again
from freshet.crawler.errors import CrawlError
from freshet.crawler.run.orders import DaemonOrder
from freshet.scheduler import policy
from freshet.storage.database import open_store
from freshet.storage.errors import StoreError
from tests.console import freshet

SITE = "http://127.0.0.1:2/"
daemon = partial(freshet, "daemon", SITE)


def the_line(result: Result) -> str:
    (line,) = result.stderr.splitlines()
    return line


@pytest.mark.parametrize(
    "budget", ["0/day", "-5/hour", "nan/day", "inf/day", "many", "5/week", "7"]
)
def test_a_budget_of_nothing_or_nonsense_is_refused(tmp_path: Path, budget: str) -> None:
    result = daemon("--db", str(tmp_path / "crawl.db"), "--budget", budget)
    assert result.exit_code == 2
    assert f"{budget}: must be a number" in the_line(result)
    assert not (tmp_path / "crawl.db").exists()


def test_a_policy_whose_construction_fails_is_told_under_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> object:
        raise RuntimeError("no licence")

    monkeypatch.setattr(policy, "_imported", lambda _entry: broken)
    result = daemon("--db", str(tmp_path / "crawl.db"), "--budget", "9/day")
    assert result.exit_code == 1
    assert "policy site_clock: no licence" in the_line(result)


def store_of(schema: int, path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA application_id = 0x46525348")
    connection.execute(f"PRAGMA user_version = {schema}")
    connection.execute("CREATE TABLE page (id)")
    connection.close()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (partial(store_of, 9999), "its schema 9999 is newer than the "),
        (
            partial(store_of, 13),
            "before 0.1.0 (schema 13), which this one cannot read; crawl into a new file",
        ),
        (lambda path: path.write_bytes(b"%PDF-1.7 and more" * 99), "is not a Freshet store"),
        (lambda path: path.mkdir(), "it is a folder"),
    ],
)
def test_a_file_that_is_no_store_of_this_version_is_left_as_it_is(
    tmp_path: Path, make: Callable[[Path], object], said: str
) -> None:
    path = tmp_path / "crawl.db"
    make(path)
    before = path.read_bytes() if path.is_file() else b""
    result = daemon("--db", str(path), "--budget", "9/day")
    assert result.exit_code == 1
    assert said in the_line(result)
    assert (path.read_bytes() if path.is_file() else b"") == before


async def test_a_second_writer_is_told_who_the_first_one_is(tmp_path: Path) -> None:
    database = await open_store(tmp_path / "crawl.db", owner="daemon")
    with pytest.raises(
        StoreError, match=r"db: a freshet daemon \(process \d+\) is writing it; end it"
    ):
        await open_store(tmp_path / "crawl.db")
    await database.close()


# -- reading the order again --------------------------------------------------------


def order(tmp_path: Path) -> DaemonOrder:
    return DaemonOrder(tmp_path / "crawl.db", seeds_from_arguments([SITE]).seeds, 10.0)


def test_settings_and_sites_are_taken_as_they_are_now(tmp_path: Path) -> None:
    config, sites = tmp_path / "freshet.toml", tmp_path / "sites.txt"
    config.write_text('[daemon]\nbudget = "2/hour"\npolicy = "lambda_crawl"\naudit_share = 0.2\n')
    sites.write_text("http://a.example/\nhttp://b.example/\n")
    found = order_again(order(tmp_path), config, {}, [], str(sites))
    assert (found.budget, found.policy) == (48.0, "lambda_crawl")
    assert [seed.url for seed in found.seeds] == ["http://a.example/", "http://b.example/"]
    assert found.settings is not None
    assert found.settings.daemon.audit_share == 0.2


def test_what_came_from_standard_input_stays(tmp_path: Path) -> None:
    found = order_again(order(tmp_path), None, {"daemon.budget": "9/day"}, [], "-")
    assert [seed.url for seed in found.seeds] == [SITE]


@pytest.mark.parametrize(
    ("config", "sites", "said"),
    [
        ('[daemon]\nbudget = "0/day"\n', "a.example", "0/day: must be"),
        ("[daemon\n", "a.example", "is not TOML"),
        ('[daemon]\nbudget = "9/day"\nbugdet = 1\n', "a.example", "daemon.bugdet is not a setting"),
        ('[daemon]\nbudget = "9/day"\n', None, "No such file"),
        ('[daemon]\nbudget = "9/day"\n', "", "it has no usable line"),
        ('[daemon]\nbudget = "9/day"\n', "a.example\nhttp:// b", "sites.txt:2: "),
        ('[daemon]\nbudget = "9/day"\n', "a.example\0", "binary data"),
    ],
)
def test_what_is_broken_or_half_written_is_refused_in_one_line(
    tmp_path: Path, config: str, sites: str | None, said: str
) -> None:
    (tmp_path / "freshet.toml").write_text(config)
    path = tmp_path / "sites.txt"
    if sites is not None:
        path.write_text(sites)
    with pytest.raises(CrawlError) as refused:
        order_again(order(tmp_path), tmp_path / "freshet.toml", {}, [], str(path))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
