"""What is pushed to a daemon, in virtual time: WebSub and pings, honest and forged."""

import socket
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.clock import VirtualClock
from freshet.crawler.run.daemon import keep
from freshet.crawler.run.orders import DaemonOrder
from freshet.crawler.synthetic_web.server import SyntheticFetcher
from freshet.crawler.synthetic_web.web import showcase
from freshet.crawler.tally import CrawlError
from tests.integration.hubs import Hub, free_port
from tests.integration.quick import assert_consistent, quick, unwatched

DAY_S = 86_400.0
HOUR_S = 3_600.0
SITE = "http://news.localhost/"


@dataclass(slots=True)
class Stage:
    """A site that names a hub, and daemons that keep it, one after the other."""

    db: Path
    port: int = field(default_factory=free_port)
    hub: Hub = field(init=False)

    def __post_init__(self) -> None:
        web = showcase(seed=7, traps=False)
        clock = VirtualClock(web.start_at + 5 * DAY_S)
        self.hub = Hub(SyntheticFetcher(web, clock), clock, frozenset({SITE}))

    @property
    def clock(self) -> VirtualClock:
        return self.hub.clock

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def keep(self, days: float, budget: float = 600.0, **changes: object) -> None:
        seeds = seeds_from_arguments([SITE]).seeds
        settings = quick(
            **{"receiver__listen": f"127.0.0.1:{self.port}", "receiver__public_url": self.url}
            | changes
        )
        await keep(
            settings, DaemonOrder(self.db, seeds, budget, time_limit_s=days * DAY_S),
            watch=unwatched, fetcher=self.hub, clock=self.clock, rng=Random(1),
        )  # fmt: skip

    def after(self, hours: float, push: Callable[[Hub], Awaitable[object]]) -> None:
        """With the first request after so many hours from now."""
        self.hub.pushes[self.clock.now() + hours * HOUR_S] = push

    def rows(self, query: str) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(self.db)) as connection:
            return connection.execute(query).fetchall()

    def subscription(self) -> tuple[object, ...]:
        (row,) = self.rows("SELECT state, lease_until, failures, detail FROM subscription")
        return row


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path / "push.db")


async def test_a_hub_that_a_page_names_is_subscribed_to_and_verified(stage: Stage) -> None:
    stage.hub.mode = "subscribe"
    await stage.keep(0.2)
    ((_, form),) = stage.hub.asked
    assert form["hub.topic"] == SITE
    assert form["hub.mode"] == "subscribe"
    assert form["hub.callback"].startswith(f"{stage.url}/websub/")
    assert 20 <= len(form["hub.secret"]) < 200
    assert stage.hub.answers == [(200, "c4a1")]
    assert stage.subscription()[0] == "active"
    fetches = stage.rows("SELECT fetches FROM crawl_run")[0][0]
    assert fetches == len(stage.hub.fetched)
    assert_consistent(stage.db)


async def test_a_notification_is_a_claim_on_its_page(stage: Stage) -> None:
    stage.hub.mode = "subscribe"
    pushed_at: list[float] = []

    async def push(hub: Hub) -> None:
        pushed_at.append(hub.clock.now())
        assert await hub.distribute(hub.asked[0][1]) == (202, "")

    stage.after(2, push)
    await stage.keep(0.2)
    claims = stage.rows(
        "SELECT s.kind, s.url, p.url, c.since, c.until FROM claim AS c "
        "JOIN claim_source AS s ON s.id = c.source_id JOIN page AS p ON p.id = c.page_id "
        "WHERE s.kind = 'websub'"
    )
    assert claims == [("websub", SITE, SITE, pushed_at[0], pushed_at[0])]


async def test_forged_notifications_are_answered_and_of_no_effect(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.hub.mode = "subscribe"

    async def push(hub: Hub) -> None:
        form = hub.asked[0][1]
        for _ in range(3):
            status, _ = await hub.distribute(form, secret="guessed")
            assert status == 202
        unknown = {**form, "hub.callback": f"{stage.url}/websub/guessed"}
        assert (await hub.distribute(unknown))[0] == 404

    stage.after(2, push)
    await stage.keep(0.2)
    assert stage.rows("SELECT * FROM claim_source WHERE kind = 'websub'") == []
    told = [r.getMessage() for r in caplog.records if "refused pushed requests" in r.getMessage()]
    counts = ("wrong signature 3", "unknown callback 1")
    assert told == [
        "refused pushed requests: " + ", ".join(f"{each} (last from 127.0.0.1)" for each in counts)
    ]


async def test_nobody_can_verify_what_was_not_asked_for(stage: Stage) -> None:
    stage.hub.mode = ""
    answers: list[int] = []

    async def push(hub: Hub) -> None:
        form = hub.asked[0][1]
        forged = (
            {"hub_topic": "http://other.localhost/"}, {"hub_mode": "unsubscribe"},
            {"hub_mode": "publish"}, {"hub_challenge": ""}, {"hub_lease_seconds": "-5"},
        )  # fmt: skip
        answers.extend([(await hub.verify(form, **changes))[0] for changes in forged])
        answers.append((await hub.get(f"{stage.url}/websub/x", {"hub.challenge": "a"}))[0])
        # The last is what was asked for, and comes late, but in time.
        answers.append((await hub.verify(form))[0])
        # And a second time nobody waits for it any more.
        answers.append((await hub.verify(form))[0])

    stage.after(0.5, push)
    await stage.keep(0.1)
    assert answers == [404, 404, 404, 400, 404, 404, 200, 404]
    assert stage.subscription()[0] == "active"


async def test_a_lease_is_renewed_before_it_ends_and_survives_a_restart(stage: Stage) -> None:
    stage.hub.mode, stage.hub.lease_s = "subscribe", str(int(DAY_S))
    await stage.keep(0.5)
    await stage.keep(0.5)
    times = [at for at, _ in stage.hub.asked]
    forms = [form for _, form in stage.hub.asked]
    assert len(forms) == 2
    assert forms[0] == forms[1]
    assert 0.8 * DAY_S <= times[1] - times[0] < 0.8 * DAY_S + 600
    assert stage.hub.answers == [(200, "c4a1")] * 2


async def test_a_hub_that_never_verifies_is_asked_ever_more_rarely(stage: Stage) -> None:
    await stage.keep(1.0)
    times = [at for at, _ in stage.hub.asked]
    gaps = [(b - a) / HOUR_S for a, b in pairwise(times)]
    assert [round(gap) for gap in gaps] == [1, 4, 16]
    assert stage.subscription()[0] == "wanted"


async def test_what_comes_after_the_lease_is_answered_with_gone(stage: Stage) -> None:
    stage.hub.mode, stage.hub.lease_s = "subscribe", str(int(HOUR_S))
    statuses: list[int] = []

    async def silence(hub: Hub) -> None:
        hub.mode = ""

    async def push(hub: Hub) -> None:
        statuses.append((await hub.distribute(hub.asked[0][1]))[0])

    stage.after(0.3, silence)
    stage.after(0.7, push)
    stage.after(1.5, push)
    await stage.keep(0.1)
    assert statuses == [202, 410]


async def test_a_denied_subscription_is_let_alone_for_a_week(stage: Stage) -> None:
    stage.hub.mode = "denied"
    await stage.keep(3.0, budget=100.0)
    assert len(stage.hub.asked) == 1
    assert stage.hub.answers == [(200, "")]
    state, lease_until, _, detail = stage.subscription()
    assert (state, lease_until, detail) == ("denied", None, "no")


async def test_a_hub_that_fails_has_its_reason_in_the_store(stage: Stage) -> None:
    stage.hub.status = 500
    await stage.keep(0.1)
    assert stage.subscription()[3] == "http_500"


async def test_what_leaves_the_scope_is_unsubscribed(stage: Stage) -> None:
    stage.hub.mode = "subscribe"
    await stage.keep(0.1)
    other = seeds_from_arguments(["http://docs.localhost/"]).seeds
    settings = quick(receiver__listen=f"127.0.0.1:{stage.port}", receiver__public_url=stage.url)
    await keep(
        settings, DaemonOrder(stage.db, other, 600.0, time_limit_s=0.2 * DAY_S),
        watch=unwatched, fetcher=stage.hub, clock=stage.clock, rng=Random(1),
    )  # fmt: skip
    assert [form["hub.mode"] for _, form in stage.hub.asked] == ["subscribe", "unsubscribe"]
    assert stage.hub.answers == [(200, "c4a1")] * 2
    assert stage.rows("SELECT * FROM subscription") == []


async def test_a_feed_that_is_pushed_tells_of_pages_of_its_own_host_only(stage: Stage) -> None:
    stage.hub.mode = "subscribe"
    feed = (
        b'<?xml version="1.0"?><rss version="2.0"><channel><title>n</title>'
        b"<item><title>a</title><link>http://news.localhost/pushed-page</link></item>"
        b"<item><title>b</title><link>http://elsewhere.localhost/x</link></item>"
        b"</channel></rss>"
    )

    async def push(hub: Hub) -> None:
        assert (await hub.distribute(hub.asked[0][1], feed))[0] == 202

    stage.after(1, push)
    await stage.keep(0.5)
    assert stage.rows("SELECT depth FROM page WHERE url LIKE '%pushed-page'") == [(1,)]
    assert stage.rows("SELECT * FROM page WHERE url LIKE '%elsewhere%'") == []
    assert (SITE + "pushed-page") in {url for _, url in stage.hub.fetched}


# -- pings -------------------------------------------------------------------------

KEY = "0a1b2c3d4e"


async def test_a_ping_counts_once_its_key_has_been_found_on_the_host(stage: Stage) -> None:
    stage.hub.texts[f"{SITE}{KEY}.txt"] = f"{KEY}\n"
    statuses: list[int] = []

    async def push(hub: Hub) -> None:
        said = {"host": "news.localhost", "key": KEY, "urlList": [SITE, f"{SITE}pinged-page"]}
        statuses.append((await hub.post_json(f"{stage.url}/indexnow", said))[0])

    async def again(hub: Hub) -> None:
        query = {"url": f"{SITE}second-page", "key": KEY}
        statuses.append((await hub.get(f"{stage.url}/indexnow", query))[0])

    stage.after(1, push)
    stage.after(2, again)
    await stage.keep(0.3)
    assert statuses == [202, 200]
    assert [url for _, url in stage.hub.fetched].count(f"{SITE}{KEY}.txt") == 1
    pinged = stage.rows(
        "SELECT p.url FROM claim AS c JOIN claim_source AS s ON s.id = c.source_id "
        "JOIN page AS p ON p.id = c.page_id WHERE s.kind = 'ping' ORDER BY c.id"
    )
    assert pinged == [(SITE,), (f"{SITE}pinged-page",), (f"{SITE}second-page",)]


async def test_made_up_keys_cost_their_host_three_requests_an_hour(stage: Stage) -> None:
    statuses: list[int] = []

    async def push(hub: Hub) -> None:
        for n in range(12):
            query = {"url": SITE, "key": f"{n:08}"}
            statuses.append((await hub.get(f"{stage.url}/indexnow", query))[0])

    stage.after(1, push)
    await stage.keep(0.2)
    assert statuses == [202] * 3 + [429] * 9
    keys = [url for _, url in stage.hub.fetched if url.endswith(".txt") and "robots" not in url]
    assert len(keys) == 3
    assert stage.rows("SELECT * FROM claim_source WHERE kind = 'ping'") == []


async def test_an_address_that_is_taken_is_told_in_one_line(stage: Stage) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", stage.port))
        taken.listen()
        with pytest.raises(CrawlError, match=r"receiver.listen: cannot listen at 127.0.0.1:\d+: "):
            await stage.keep(0.1)


async def test_a_public_url_without_a_listener_is_refused(stage: Stage) -> None:
    with pytest.raises(CrawlError, match=r"receiver\.listen is not"):
        await stage.keep(0.1, receiver__listen="")
