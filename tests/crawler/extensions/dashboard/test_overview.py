"""The overview: curves of thirty days, what needs attention, and how far the budget goes."""

import re
import time
from pathlib import Path

import aiohttp
import pytest

from tests.crawler.extensions.dashboard.test_pages import Reader, shown
from tests.storage.small_store import SmallStore

NOW = time.time()
DAY = int(NOW // 86_400)


def days(small: SmallStore, count: int) -> None:
    """Add days of a daemon: an outlook and figures of each, and audits of the last but one."""
    run = small.run(NOW - count * 86_400, fetches=10, state="ended", ended_at=NOW)
    host = small.host(exchanges=30)
    for n in range(count):
        small.insert(
            "site_day", day=DAY - n, host_id=host, requests=100 + n, robots=1, changed=7 + n,
            failed=n, refused=2 * n,
        )  # fmt: skip
        small.insert(
            "outlook", at=(DAY - n) * 86_400 + 60.0, run_id=run, began_at=NOW - count * 86_400,
            fetches=10, budget=120.0, policy="site_clock", flowed=10.0, forgone=0.0, watched=350,
            captured=298, waiting=41, gone=11, stale=0.1 + n / 100, daily=0, weekly=0, monthly=0,
            yearly=0, rarer=0, clocked=0.0, next_at=NOW,
        )  # fmt: skip
    page = small.page("/a", checked_at=NOW)
    for n in range(20):
        at = (DAY - 1) * 86_400.0 + 100 + n
        found = small.observe(page, at, "changed" if n % 4 == 0 else "unchanged")
        small.insert(
            "audit", observation_id=found, importance=1.0, since=at - 9, expected=0.2, hazard=0.2
        )


def table(body: str, caption: str) -> list[list[str]]:
    """Return the rows of the table with a caption, as text."""
    (found,) = re.findall(rf"<caption>{caption}.*?</table>", body, re.DOTALL)
    rows = re.findall(r"<tr>(.*?)</tr>", found, re.DOTALL)
    return [re.sub(r"<[^>]+>", " ", row).split() for row in rows]


@pytest.fixture
def store(small: SmallStore) -> SmallStore:
    days(small, 3)
    return small


async def overview(path: Path) -> str:
    async with shown(path) as url, aiohttp.ClientSession() as client:
        return await Reader(url, client, None).page("/")  # type: ignore[arg-type] # no site


async def test_four_curves_show_the_days(store: SmallStore) -> None:
    body = await overview(store.path)
    assert body.count("<caption>") == 4
    fresh = table(body, "Fresh copies")
    assert [row[-1] for row in fresh[1:]] == ["88", "89", "90"]
    # A quarter of twenty audits found a change; on other days nothing was measured.
    measured, low, high = map(float, fresh[2][1:4])
    assert low < measured == 75 < high
    assert fresh[1][1:4] == fresh[3][1:4] == ["–", "–", "–"]
    assert [row[1:] for row in table(body, "Requests a day")[1:]] == [
        ["102", "120"], ["101", "120"], ["100", "120"]
    ]  # fmt: skip
    # Five audits found changes, too.
    assert [row[1] for row in table(body, "Changes a day")[1:]] == ["9", "13", "7"]
    assert [row[1:] for row in table(body, "Failures a day")[1:]] == [
        ["2", "4"], ["1", "2"], ["0", "0"]
    ]  # fmt: skip


async def test_a_sentence_says_how_far_the_budget_goes(store: SmallStore) -> None:
    assert "The budget covers 298 of 339 pages; 41 wait" in await overview(store.path)


async def test_what_needs_attention_stands_before_the_changes(store: SmallStore) -> None:
    assert "Needs attention" not in await overview(store.path)
    page = store.page("/b", checked_at=NOW)
    store.observe(page, NOW - 5, "new", version_id=None)
    store.execute("UPDATE host SET parked_until = ?, parked_reason = 'connect'", NOW + 900)
    store.due(page, NOW + 900)
    body = await overview(store.path)
    assert body.index("Needs attention") < body.index("What changed last")
    assert "it takes no connection" in body
