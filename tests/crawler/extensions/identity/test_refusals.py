"""Pages that are refused to a crawler, by host."""

from pathlib import Path

import pytest

from freshet.crawler.extensions.identity import refusals
from freshet.crawler.extensions.identity.refusals import (
    HostRefusals,
    lines,
    merged,
    table,
    troubles,
)
from tests.integration.scripted import Page, scripted
from tests.integration.test_commands import LOCAL, Shell, links, page
from tests.storage.small_store import SmallStore, rows


def host(origin: str, *counts: int) -> HostRefusals:
    return HostRefusals(origin, 100, *counts)


@pytest.mark.parametrize(
    ("counts", "advice"),
    [
        ((0, 0, 9, 0), "Slow down"),
        ((0, 5, 5, 0), "Slow down"),
        ((9, 2, 0, 0), "Log in"),
        ((0, 9, 1, 0), "Sign your requests"),
        ((2, 0, 0, 7), "Sign your requests"),
    ],
)
def test_advice_goes_by_how_most_pages_are_refused(counts: tuple[int, ...], advice: str) -> None:
    assert host("https://a.example", *counts).advice.startswith(advice)


def test_an_operator_hears_of_hosts_that_refuse_a_good_part() -> None:
    much, little = host("https://a.example", 0, 30, 0, 0), host("https://b.example", 0, 5, 0, 0)
    state = merged([[little], [much]])
    assert state == [much, little]
    [(told, advice)] = troubles(state)
    assert told == "30 of 100 pages of https://a.example are refused to a crawler."
    assert "freshet about" in advice
    assert lines(state) == {"refused to a crawler": "35 pages of 2 hosts"}
    assert [row[:4] for row in table(state).rows] == [
        ("https://a.example", 100, 0, 30),
        ("https://b.example", 100, 0, 5),
    ]


async def test_a_store_tells_who_refuses_its_crawler(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    paths = [f"/{n}" for n in range(1, 9)]
    hosts = {
        "a": {"/": page(0, links(*paths))} | {each: Page("no", 403) for each in paths},
        "b": {"/": page(1, links("/1", "/2"))} | {each: Page("no", 403) for each in ("/1", "/2")},
        "c": {"/": page(2, links(*paths))} | {each: page(int(each[1:])) for each in paths},
    }
    (tmp_path / "freshet.toml").write_text("[politeness]\nback_off_initial_s = 0.1\n")
    async with scripted(hosts) as web:
        starts = [f"{web.origin(name)}/" for name in hosts]
        await shell("crawl", *starts, *LOCAL, "--patience", "3")
        refusing = web.origin("a")
    status = await shell.json("status", "--json")
    assert [(it["origin"], it["visited"], it["forbidden"]) for it in status["refusals"]] == [
        (refusing, 9, 8)
    ]
    _, told, _ = await shell("status")
    assert "Refused to a crawler" in told


def test_a_status_reads_the_refused_pages_alone(small: SmallStore) -> None:
    plan = "\n".join(row[3] for row in rows(small.path, f"EXPLAIN QUERY PLAN {refusals._SQL}"))
    assert "USING INDEX page_refused" in plan
    assert "SCAN page\n" not in plan
    assert "SEARCH page USING INDEX page_host" in plan
