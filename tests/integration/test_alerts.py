"""A daemon in virtual time that tells a receiver on loopback what it finds."""

import asyncio
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.frontier.clock import iso
from freshet.crawler.run.daemon import keep
from freshet.crawler.run.orders import DaemonOrder
from freshet.scheduler.queue.recrawl import RecrawlAgenda
from tests.crawler.extensions.alerts.test_alerts import receiving
from tests.integration.eventful import Eventful
from tests.integration.quick import quick, unwatched
from tests.integration.test_daemon import DAY_S, Stage

KINDS = ["new", "changed", "gone"]


def rule(name: str, url: str, **more: object) -> dict[str, object]:
    return {"name": name, "match": "*", "kinds": KINDS, "url": url} | more


async def kept(stage: Stage, days: float, *rules: dict[str, object], **changes: object) -> None:
    order = DaemonOrder(
        stage.db, seeds_from_arguments(["http://news.localhost/"]).seeds, 240.0,
        time_limit_s=days * DAY_S,
    )  # fmt: skip
    await keep(
        quick(alerts__rules=list(rules), **changes), order, watch=unwatched,
        fetcher=stage.server, clock=stage.clock, rng=Random(1),
    )  # fmt: skip


def of(name: str, told: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each["data"] for each in told if each["data"]["rule"] == name]


def test_a_daemon_tells_at_once_and_daily_of_all_that_it_found(eventful_run: Eventful) -> None:
    run = eventful_run
    at_once, digests = of("now", run.alerts), of("days", run.alerts)
    seen = run.rows(
        "SELECT p.url, o.kind FROM finding AS o JOIN page AS p ON p.id = o.page_id "
        "WHERE p.role = 'page' AND o.kind IN ('new', 'changed') AND o.run_id = 1"
    )
    assert {kind for _, kind in seen} == {"new", "changed"}
    assert len({each["id"] for each in at_once}) == len(at_once)
    stands: dict[tuple[str, str], str] = {}
    for each in at_once:
        stands[each["url"], each["seen"]] = each["kind"]
    # The clock is virtual and the receiver is not: the rest is sent by whoever comes next.
    unsent = run.rows(
        "SELECT p.url, o.at, a.kind FROM alert AS a JOIN observation AS o "
        "ON o.id = a.observation_id JOIN page AS p ON p.id = o.page_id LEFT JOIN alert_message "
        "AS m ON m.id = a.message_id WHERE a.rule = 'now' AND m.state IS NOT 'sent' ORDER BY a.id"
    )
    assert len(unsent) < len(at_once)
    for page, at, kind in unsent:
        stands[str(page), iso(float(str(at)))] = str(kind)
    left = [(page, kind) for (page, _), kind in stands.items() if kind in {"new", "changed"}]
    assert sorted(left) == sorted(seen)
    assert 1 <= len(digests) <= 2
    assert all(each["to"][11:19] == "00:00:00" for each in digests)
    assert len({each["to"] for each in digests}) == len(digests)
    changes = [change for each in digests for change in each["changes"]
               if change["kind"] == "changed"]  # fmt: skip
    assert any("→" in each["summary"] or "+" in each["summary"] for each in changes)
    assert all(each["last_seen"] < each["seen"] for each in changes)


async def test_what_was_not_taken_is_told_by_the_next_daemon(stage: Stage) -> None:
    with receiving(503) as (url, _):
        await kept(stage, 0.5, rule("now", url))
    waiting = stage.rows("SELECT count(*) FROM alert")[0][0]
    assert waiting
    assert stage.rows("SELECT count(*) FROM alert_message WHERE state = 'sent'") == [(0,)]
    with receiving() as (url, told):
        await kept(stage, 0.5, rule("now", url))
    assert len(of("now", told)) >= int(str(waiting))


async def test_a_rehearsal_tells_nobody(stage: Stage) -> None:
    from freshet.crawler.extensions.lab.daemon_trial import Plan, rehearse

    with receiving() as (url, told):
        settings = quick(alerts__rules=[rule("now", url)])
        await rehearse(settings, stage.web, Plan(200.0, "site_clock", 1.0, 1), stage.db)
    assert stage.rows("SELECT count(*) FROM page WHERE version_id NOTNULL")[0][0]
    assert told == []
    assert stage.rows("SELECT count(*) FROM alert") == [(0,)]


@pytest.mark.long
async def test_reloaded_rules_hold_from_then_on(stage: Stage) -> None:
    with receiving() as (url, told):

        def then(order: DaemonOrder) -> DaemonOrder:
            return replace(order, settings=quick(alerts__rules=[rule("later", url)]))

        await stage.keep(240.0, 2.0, ["news"], reread=then, reload_at=100)
    later = of("later", told)
    assert later
    assert len(stage.rows("SELECT id FROM finding WHERE kind = 'new'")) > len(later)


async def test_nothing_is_sent_before_the_daemon_knows_what_it_has_to_do(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiving(503) as (url, _):
        await kept(stage, 0.5, rule("now", url))
    senders: list[str] = []
    opened = RecrawlAgenda.open

    async def opening(self: RecrawlAgenda) -> None:
        await opened(self)
        senders.extend(name for task in asyncio.all_tasks()
                       if (name := task.get_name()).startswith("alerts to"))  # fmt: skip

    monkeypatch.setattr(RecrawlAgenda, "open", opening)
    with receiving() as (url, told):
        await kept(stage, 0.1, rule("now", url))
    assert senders == []
    assert told
