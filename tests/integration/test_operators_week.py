"""A week in the life of a daemon, with all that its operator does and that happens to it."""

import asyncio
import json
import logging
import os
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from freshet.config.settings import Settings
from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.extensions.alerts import outbox
from freshet.crawler.extensions.alerts.receivers import Delivery
from freshet.crawler.extensions.alerts.rules import Channel
from freshet.crawler.extensions.alerts.tables import Message
from freshet.crawler.fetch.client import Fetcher, Request
from freshet.crawler.frontier.clock import iso
from freshet.crawler.run.daemon import keep
from freshet.crawler.run.orders import CrawlReport, DaemonOrder
from freshet.crawler.run.service import Service
from freshet.storage.backup import back_up
from freshet.storage.records import FetchResult
from scripts.benchmarks.alert_kill import KINDS, Told, seen
from tests.console import shown
from tests.integration.quick import assert_consistent, quick, unwatched
from tests.integration.test_daemon import DAY_S, HOUR_S, Stage
from tests.integration.test_outages import Disk, stage_on

SITES = ("news", "docs")
GONE = "news.localhost"
Deed = Callable[[], Awaitable[None]]


@dataclass(slots=True)
class World:
    """Answers in place of the web; what is to be done is done with the first request after it."""

    inner: Fetcher
    stage: Stage
    away: tuple[float, float]
    deeds: dict[float, Deed] = field(default_factory=dict)
    asked: int = 0

    async def fetch(self, request: Request) -> FetchResult:
        now = self.stage.clock.now()
        for at in sorted(at for at in self.deeds if at <= now):
            await self.deeds.pop(at)()
        self.asked += 1
        if GONE in request.url and self.away[0] <= now < self.away[1]:
            return FetchResult(request.url, "failed", now, 0.0, None, "no_such_host", "it is away")
        return await self.inner.fetch(request)


@dataclass(slots=True)
class Inbox:
    """Takes messages in virtual time, but for some hours."""

    down: tuple[float, float]
    taken: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    refused: int = 0

    async def deliver(self, message: Message, now: float) -> Delivery:
        await asyncio.sleep(0)
        if self.down[0] <= now < self.down[1]:
            self.refused += 1
            return Delivery("failed", "HTTP 503 Service Unavailable")
        self.taken.append((message.key, json.loads(message.body)))
        return Delivery("taken")

    async def close(self) -> None: ...

    def told(self, rule: str) -> Counter[Told]:
        """What a rule told, less what it took back."""
        found: Counter[Told] = Counter()
        for _, message in self.taken:
            data = message["data"]
            for each in data.get("changes", [data]):
                if each["rule"] == rule:
                    withdrawn = each["kind"] == "withdrawn"
                    kind = self.kind_of(each["withdraws"]) if withdrawn else each["kind"]
                    found[each["url"], each["seen"], kind] += -1 if withdrawn else 1
        return +found

    def kind_of(self, name: str) -> str:
        """Of an alert that was told."""
        data = (message["data"] for _, message in self.taken)
        each = (each for one in data for each in one.get("changes", [one]))
        return next(str(alert["kind"]) for alert in each if alert["id"] == name)


@dataclass(slots=True)
class Week:
    """The stage, the receivers and the operator."""

    stage: Stage
    world: World
    inbox: Inbox
    now: Settings
    asked_for: Callable[[], Settings] = quick
    budget: float = 240.0

    async def keep(self, days: float) -> tuple[CrawlReport, Service, int]:
        """A daemon for some days; the requests that it sent."""
        urls = [f"http://{name}.localhost/" for name in SITES]
        order = DaemonOrder(
            self.stage.db, seeds_from_arguments(urls).seeds, self.budget, time_limit_s=days * DAY_S
        )

        def reread() -> DaemonOrder:
            return replace(order, budget=self.budget, settings=self.asked_for())

        before = self.world.asked
        async with Service() as service:
            report = await keep(
                self.now, order, watch=unwatched, fetcher=self.world, clock=self.stage.clock,
                rng=Random(1), reread=reread, service=service,
            )  # fmt: skip
        return report, service, self.world.asked - before


def settings(match: str = "*", url: str = "https://inbox.example/now") -> Settings:
    rules = [
        {"name": "now", "match": match, "url": url},
        {"name": "days", "match": "*", "kinds": sorted(KINDS), "mode": "daily", "hour": 7,
         "url": "https://inbox.example/days"},
    ]  # fmt: skip
    back_off = {"politeness__back_off_initial_s": 5.0, "politeness__back_off_factor": 4.0}
    return quick(alerts__rules=rules, daemon__audit_share=0.05, **back_off)


async def ask(verb: str, *arguments: str) -> str:
    return await asyncio.to_thread(shown, verb, *arguments)


def samples(service: Service, name: str, label: str) -> dict[str, float]:
    """A counter by one of its labels."""
    found: Counter[str] = Counter()
    for family in service.metrics.registry.collect():
        for sample in family.samples:
            if sample.name == name:
                found[sample.labels[label]] += int(sample.value)
    return dict(found)


@pytest.fixture
def week(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Week:
    stage = stage_on(Disk(3.5 * DAY_S, 3.5 * DAY_S + 4 * HOUR_S), tmp_path, monkeypatch)
    begin = stage.clock.now()
    inbox = Inbox((begin + DAY_S, begin + 1.25 * DAY_S))
    monkeypatch.setattr(outbox, "receiver", lambda *_args, **_named: inbox)
    world = World(stage.server.web, stage, (begin + 2 * DAY_S, begin + 3 * DAY_S))
    return Week(stage, world, inbox, settings())


@pytest.mark.long
async def test_a_week_of_an_operator(
    week: Week, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    begin, copy = week.stage.clock.now(), tmp_path / "copy.db"
    said: dict[str, str] = {}

    async def copies() -> None:
        back_up(week.stage.db, copy, replace=False, progress=lambda _what, _share: None)

    async def visits() -> None:
        for verb, option in (("gc", "--dry-run"), ("status", "--json"), ("alerts", "--json")):
            said[verb] = await ask(verb, option, "--db", str(week.stage.db))

    async def reloads(asked_for: Callable[[], Settings]) -> None:
        week.budget, week.asked_for = 480.0, asked_for
        os.kill(os.getpid(), signal.SIGHUP)

    narrower = partial(settings, "http://docs.localhost/*")
    unusable = partial(settings, url="env:FRESHET_NOT_THERE")
    week.world.deeds |= {
        begin + 1.5 * DAY_S: copies,
        begin + 4.5 * DAY_S: partial(reloads, narrower),
        begin + 5.0 * DAY_S: partial(reloads, unusable),
        begin + 5.5 * DAY_S: visits,
    }
    runs = [await week.keep(4.0), await week.keep(3.0)]
    assert not week.world.deeds
    assert_told_once(week, begin + 4.5 * DAY_S)
    assert_logged_once(caplog.records)
    for number, run in enumerate(runs, 1):
        assert_counted(week.stage, number, *run)
    assert_consistent(week.stage.db)
    assert_consistent(copy)
    await assert_readable(week.stage, said)


def assert_told_once(week: Week, reloaded_at: float) -> None:
    """All that changed, by the rules as they were then."""
    keys = Counter(key for key, _ in week.inbox.taken)
    assert set(keys.values()) == {1}
    assert week.inbox.refused
    _, final = seen(week.stage.db)
    until = iso(Channel("daily", "", None, "daily", 7).period(week.stage.clock.now())[0])
    assert week.inbox.told("days") == Counter(each for each in final if each[1] < until)
    wanted = [
        (url, at, kind)
        for url, at, kind in final
        if kind == "changed" and (at < iso(reloaded_at) or "docs" in url)
    ]
    assert len(wanted) > 50
    assert week.inbox.told("now") == Counter(wanted)


def assert_logged_once(records: list[logging.LogRecord]) -> None:
    """What an operator should know, each a single time; one thing is an error, and is."""
    told = [r.getMessage() for r in records if r.levelno >= logging.WARNING]
    assert [r.levelname for r in records if r.levelno > logging.WARNING] == ["ERROR"]
    wanted = [
        "alerts: now: delivery to https://inbox.example/… failed",
        "alerts: now: delivery to https://inbox.example/… works again",
        "news.localhost is unreachable (no_such_host, ",
        "news.localhost answers again after ",
        "the disk is full; fetching is paused",
        "the store can be written again after ",
        " requests of the budget were not used",
        "not reloaded: alerts.rules: now: url: environment variable FRESHET_NOT_THERE is not set",
    ]
    assert len(told) == len(wanted), told
    assert all(words in line for words, line in zip(wanted, told, strict=True)), told


def assert_counted(
    stage: Stage, run_id: int, report: CrawlReport, service: Service, sent: int
) -> None:
    """What the metrics tell is what the store holds, and what was sent."""
    assert report.fetches == sent
    assert sum(samples(service, "freshet_exchanges_total", "outcome").values()) == sent
    counted = Counter(samples(service, "freshet_observations_total", "kind"))
    counted["failed"] += int(
        service.metrics.registry.get_sample_value("freshet_retries_total") or 0
    )
    rows = stage.rows(
        "SELECT o.kind, count(*) FROM observation AS o JOIN page AS p ON p.id = o.page_id "
        # Tries of sitemaps that are repeated count among the retries, too.
        f"WHERE (p.role = 'page' OR o.kind = 'failed') AND run_id = {run_id} GROUP BY 1"
    )
    assert +counted == Counter({str(kind): count for kind, count in rows})
    reloads = samples(service, "freshet_reloads_total", "result")
    assert reloads == dict.fromkeys(("done", "refused"), int(run_id == 2))


async def assert_readable(stage: Stage, said: dict[str, str]) -> None:
    """What the verbs say beside the daemon, and when it is over."""
    assert "To be deleted" in said["gc"]
    outlook = json.loads(said["status"])["daemon"]["snapshot"]
    assert (outlook["budget"], outlook["policy"]) == (480.0, "site_clock")
    rules = {each["rule"]: each for each in json.loads(said["alerts"])["rules"]}
    assert rules["now"]["sent"] > 50
    assert (rules["now"]["failed"], rules["days"]["failed"]) == (0, 0)
    db = ("--db", str(stage.db))
    assert "Daemon: not running" in await ask("status", *db)
    (url,) = stage.rows("SELECT url FROM page WHERE last_kind = 'changed' AND url LIKE '%news%'")[0]
    assert str(url) in await ask("explain", str(url), *db)
    assert "changed" in await ask("history", str(url), *db)
    sources = json.loads(await ask("signals", "--json", *db))["sources"]
    assert sources
    assert str(sources[0]["kind"]) in await ask("signals", *db)
    assert "changed" in await ask("changes", "--since", "2026-01-01", *db)
