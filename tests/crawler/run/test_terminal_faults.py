"""What cannot be is not printed: times before any request, shares above all, tries in the past."""

from math import inf

import pytest

from freshet.config.loading import load
from freshet.crawler.extensions.alerts.cli import alerts
from freshet.crawler.extensions.alerts.tables import RuleCounts
from freshet.crawler.read.documents import in_counts
from freshet.crawler.run.explanation import explain, facts_of
from freshet.crawler.run.terminal import blocks, spending
from freshet.storage.queries.overview import PageChange
from freshet.storage.queries.page import snapshot
from tests.crawler.frontier.frontier_world import ALLOW, World, parsed
from tests.storage.small_store import HOST, SmallStore

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("requests", "allowed", "told"),
    [
        (246, 242.0, "246 today, 4 ahead of plan"),
        (46, 42.3, "46 today, 4 ahead of plan"),
        (1, 0.0, "1 today, 1 ahead of plan"),
        (12_345, 2_345.0, "12,345 today, 10,000 ahead of plan"),
        (242, 241.6, "242 of 242 today"),
        (0, 0.0, "0 of 0 today"),
        (42, 46.0, "42 of 46 today"),
    ],
)
def test_more_requests_than_allowed_are_ahead_of_plan(
    requests: int, allowed: float, told: str
) -> None:
    assert spending(requests, allowed, "today") == told


@pytest.mark.parametrize(
    ("added", "removed", "told"),
    [
        (0, 0, "within blocks"),
        (0, None, "within blocks"),
        (None, 0, "within blocks"),
        (None, None, None),
        (1, 0, "+1 −0"),
        (0, 2, "+0 −2"),
        (3, None, "+3 −0"),
    ],
)
def test_a_change_without_another_block_is_one_within_blocks(
    added: int | None, removed: int | None, told: str | None
) -> None:
    assert blocks(added, removed) == told
    change = PageChange(
        at=NOW, url=HOST, kind="changed", title=None, resemblance=0.9, blocks_added=added,
        blocks_removed=removed, version_id=None, before_id=None, version=None, reason=None,
    )  # fmt: skip
    assert not in_counts(change).startswith("0 blocks added, 0")


@pytest.mark.parametrize("stored", [None, -inf, NOW - 60.0])
async def test_a_host_without_a_request_has_no_time_of_the_last_one(
    small: SmallStore, stored: float | None
) -> None:
    small.run(0.0)
    small.host(queue="q", last_exchange_at=stored, delay_s=5.0)
    small.page("/")
    settings, _ = load(None, {})
    async with snapshot(small.path) as connection:
        told = await explain(connection, [f"{HOST}/"], settings, NOW)
    shown = facts_of(told).get("Politeness", {}).get("last request")
    assert (shown is None) == (stored is None or stored == -inf)
    assert "1001" not in f"{shown} {told.as_json()}"
    assert told.host is None or told.host.last_exchange_at in (None, NOW - 60.0)


def test_the_state_of_a_queue_in_which_no_request_has_ended_has_no_time() -> None:
    world = World()
    world.add(1, "a", parsed(ALLOW, 0.0))
    assert world.frontier.host_state(1).last_exchange_at is None


@pytest.mark.parametrize(
    ("next_at", "pending", "told"), [(None, 1, "in the next crawl or daemon"), (None, 0, None)]
)
def test_an_alert_that_is_due_waits_for_the_next_run(
    next_at: float | None, pending: int, told: str | None
) -> None:
    counts = RuleCounts(
        rule="r", waiting=0, pending=pending, sent=0, failed=0, sent_at=None, next_at=next_at,
        answer="refused",
    )  # fmt: skip
    assert alerts._next_try(counts, NOW) == told


@pytest.mark.parametrize("ago_s", [0.0, 1.0, 3_600.0, 86_400.0 * 305])
def test_a_try_in_the_past_has_no_time(ago_s: float) -> None:
    assert alerts._coming(NOW - ago_s, NOW) is None
    assert alerts._coming(NOW + 1.0, NOW) == NOW + 1.0
