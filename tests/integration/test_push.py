"""What is pushed to a daemon, in virtual time: WebSub and pings, honest and forged."""

import socket
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.errors import CrawlError
from freshet.crawler.extensions.lab.synthetic_web.fetcher import SyntheticFetcher
from freshet.crawler.extensions.lab.synthetic_web.web import showcase
from freshet.crawler.frontier.clock import VirtualClock
from freshet.crawler.run.daemon import keep
from freshet.crawler.run.orders import DaemonOrder
from tests.integration.eventful import DAY_S, HOUR_S, KEY, Eventful, front
from tests.integration.hubs import Habits, Hub, free_port
from tests.integration.quick import quick, unwatched
from tests.integration.test_daemon import Stage

SITE = front("news")
PORT = free_port()


def hub() -> Hub:
    web = showcase(seed=7, traps=False)
    clock = VirtualClock(web.start_at + 5 * DAY_S)
    habits = Habits("subscribe", lease_s=str(int(DAY_S)))
    return Hub(SyntheticFetcher(web, clock.now), clock, {SITE: habits})


async def kept(hub: Hub, db: Path, days: float, site: str = SITE, **changes: object) -> None:
    url = f"127.0.0.1:{PORT}"
    settings = quick(**{"receiver__listen": url, "receiver__public_url": f"http://{url}"} | changes)
    order = DaemonOrder(db, seeds_from_arguments([site]).seeds, 100.0, time_limit_s=days * DAY_S)
    await keep(settings, order, watch=unwatched, fetcher=hub, clock=hub.clock, rng=Random(1))


def test_a_hub_that_a_page_names_is_subscribed_to_and_verified(eventful_run: Eventful) -> None:
    run = eventful_run
    assert len(run.hub.times(SITE)) == 1
    form = run.hub.form(SITE)
    assert form["hub.mode"] == "subscribe"
    assert form["hub.callback"].startswith(f"{run.url}/websub/")
    assert 20 <= len(form["hub.secret"]) < 200
    assert (200, "c4a1") in run.hub.answers
    assert run.subscription("news")[0] == "active"
    fetches = run.rows("SELECT fetches FROM crawl_run ORDER BY id LIMIT 1")
    assert fetches == [(len(run.hub.fetched),)]


def claimed(run: Eventful, kind: str) -> Sequence[tuple[object, ...]]:
    return run.rows(
        "SELECT p.url, c.since, c.until FROM claim AS c JOIN claim_source AS s "
        "ON s.id = c.source_id JOIN page AS p ON p.id = c.page_id "
        f"WHERE s.kind = '{kind}' ORDER BY c.id"
    )


def test_a_notification_is_a_claim_on_its_page_and_a_forged_one_is_not(
    eventful_run: Eventful,
) -> None:
    run = eventful_run
    assert (run.answers["notified"], run.answers["forged"]) == ([202], [202] * 3 + [404])
    claims = [each for each in claimed(run, "websub") if each[0] == SITE]
    assert claims[0] == (SITE, run.pushed_at, run.pushed_at)
    assert len(claims) == 1  # that of the feed says nothing new before a visit has answered
    told = " ".join(line for line in run.log if line.startswith("refused pushed requests: "))
    assert "wrong signature 3 (last from 127.0.0.1)" in told
    assert "unknown callback" in told


def test_nobody_can_verify_what_was_not_asked_for(eventful_run: Eventful) -> None:
    assert eventful_run.answers["verified"] == [404, 404, 404, 400, 404, 404, 200, 404]
    assert eventful_run.subscription("docs")[0] == "active"


def test_a_hub_that_never_verifies_is_asked_ever_more_rarely(eventful_run: Eventful) -> None:
    times = eventful_run.hub.times(front("shop"))
    assert [round((b - a) / HOUR_S) for a, b in pairwise(times)] == [1, 4, 16]
    assert eventful_run.subscription("shop")[0] == "wanted"


def test_what_comes_after_the_lease_is_answered_with_gone(eventful_run: Eventful) -> None:
    assert eventful_run.answers["lease"] == [202, 410]


def test_a_denied_subscription_is_let_alone(eventful_run: Eventful) -> None:
    assert len(eventful_run.hub.times(front("status"))) == 1
    assert eventful_run.subscription("status") == ("denied", None, "no")


def test_a_hub_that_fails_has_its_reason_in_the_store(eventful_run: Eventful) -> None:
    assert eventful_run.subscription("notes")[2] == "http_500"


def test_a_feed_that_is_pushed_tells_of_pages_of_its_own_host_only(eventful_run: Eventful) -> None:
    run = eventful_run
    assert run.answers["feed"] == [202]
    assert run.rows("SELECT depth FROM page WHERE url LIKE '%pushed-page'") == [(1,)]
    assert run.rows("SELECT * FROM page WHERE url LIKE '%elsewhere%'") == []
    assert (SITE + "pushed-page") in {url for _, url in run.hub.fetched}


def test_a_ping_counts_once_its_key_has_been_found_on_the_host(eventful_run: Eventful) -> None:
    run, events = eventful_run, front("events")
    assert run.answers["pinged"] == [202, 200]
    assert [url for _, url in run.hub.fetched].count(f"{events}{KEY}.txt") == 1
    assert [url for url, *_ in claimed(run, "ping")] == [
        events, f"{events}pinged", f"{events}second",
    ]  # fmt: skip


def test_made_up_keys_cost_their_host_three_requests_an_hour(eventful_run: Eventful) -> None:
    run = eventful_run
    assert run.answers["made up"] == [202] * 3 + [429] * 9
    keys = [url for _, url in run.hub.fetched if url.startswith(front("shop") + "0000")]
    assert len(keys) == 3


async def test_a_lease_is_renewed_before_it_ends_and_survives_a_restart(tmp_path: Path) -> None:
    named = hub()
    for _ in range(2):
        await kept(named, tmp_path / "push.db", 0.5)
    (first, form), (second, again) = named.asked
    assert form == again
    assert 0.8 * DAY_S <= second - first < 0.8 * DAY_S + 3_600
    assert named.answers == [(200, "c4a1")] * 2


@pytest.mark.long
async def test_a_lease_of_a_second_is_renewed_every_six_hours(tmp_path: Path) -> None:
    named = hub()
    named.topics[SITE] = Habits("subscribe", lease_s="1")
    await kept(named, tmp_path / "push.db", 1.0)
    assert 2 <= len(named.asked) <= 4


async def test_what_leaves_the_scope_is_unsubscribed(tmp_path: Path) -> None:
    stage, named = Stage(tmp_path / "push.db"), hub()
    await kept(named, stage.db, 0.2)
    await kept(named, stage.db, 0.2, front("docs"))
    assert [form["hub.mode"] for _, form in named.asked] == ["subscribe", "unsubscribe"]
    assert named.answers == [(200, "c4a1")] * 2
    assert stage.rows("SELECT * FROM subscription") == []


async def test_an_address_that_is_taken_is_told_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(CrawlError, match=r"receiver.listen: cannot listen at 127.0.0.1:\d+: "):
            await kept(hub(), tmp_path / "push.db", 0.1, receiver__listen=listen)


async def test_a_public_url_without_a_listener_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CrawlError, match=r"receiver\.listen is not"):
        await kept(hub(), tmp_path / "push.db", 0.1, receiver__listen="")
