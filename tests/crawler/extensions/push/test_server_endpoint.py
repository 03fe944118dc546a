"""Who is answered what, and that the cheap refusals come first."""

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from freshet.crawler.admission.admit import Admission, Scope
from freshet.crawler.admission.traps import TrapLimits
from freshet.crawler.extensions.push.indexnow import Pinging
from freshet.crawler.extensions.push.server import Endpoint, PushRequest, PushResponse, Refusals
from freshet.crawler.extensions.push.tables import Subscription, SubscriptionChange
from freshet.crawler.extensions.push.websub import Leases, Subscriber
from freshet.crawler.frontier.frontier import ApiRequest
from freshet.crawler.reduce.parser_process import Parser
from freshet.crawler.service.senders import Inbox
from freshet.storage.entries import HubLink, Outcome
from freshet.storage.records import (
    Acknowledged,
    DueUrl,
    Entry,
    FetchResult,
    Observation,
    StoreUpdate,
    Visit,
)
from tests.crawler.frontier.frontier_world import ALLOW, PRIVATE, World, parsed

KEY = "0a1b2c3d"
SITE = "http://h1"
MOST = 1_000


@dataclass(slots=True)
class Stage:
    """An endpoint, with a writer that commits at once unless it is ``away``."""

    now: float = 100.0
    away: bool = False
    robots: bytes = ALLOW
    written: list[Entry] = field(default_factory=list)
    world: World = field(default_factory=World)
    refusals: Refusals = field(default_factory=Refusals)
    inbox: Inbox = field(init=False)
    leases: Leases = field(init=False)
    subscriber: Subscriber = field(init=False)
    pinging: Pinging = field(init=False)
    endpoint: Endpoint = field(init=False)
    reads: int = 0

    def __post_init__(self) -> None:
        self.world.add(1, "a", parsed(self.robots, self.now))
        self.world.add(2, "b", parsed(self.robots, self.now))
        self.inbox = Inbox(self.commit, patience_s=0.01)
        admission = Admission(Scope("host", [f"{SITE}/"]), TrapLimits())
        minted = iter(["token", "secret" * 5])
        self.leases = Leases(lambda: next(minted))

        self.subscriber = Subscriber(
            leases=self.leases, frontier=self.world.frontier, admission=admission,
            inbox=self.inbox, parser=Parser(), queues=self,
            callback_base="https://cb.example/websub/",
        )  # fmt: skip
        self.pinging = Pinging(self.world.frontier, admission, self.inbox)
        self.endpoint = Endpoint(
            self.subscriber, self.pinging, self.refusals, lambda: self.now, max_body_bytes=MOST,
        )  # fmt: skip

    async def queue_key(self, _url: str) -> str:
        return "hub"

    def commit(self) -> None:
        if not self.away:
            entries = self.inbox.take()
            self.written += entries
            self.inbox.acknowledged([Acknowledged(entry) for entry in entries])

    def subscribe(self, hub: str = "https://hub.example/") -> Subscription:
        said = HubLink(hub, f"{SITE}/")
        new = self.leases.advertised(1, 1, f"{SITE}/", said, self.now)
        assert new is not None
        self.leases.requested(new.token, self.now)
        active = self.leases.verified(new.token, "subscribe", new.topic, 86_400.0, self.now)
        assert active is not None
        return active

    async def send(
        self, method: str, path: str, query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None, body: bytes | Exception = b"",
        length: int | None = -1, source: str = "192.0.2.1",
    ) -> PushResponse:  # fmt: skip
        async def read(most: int) -> bytes | None:
            self.reads += 1
            if isinstance(body, Exception):
                raise body
            return body if len(body) <= most else None

        size = len(body) if length == -1 and isinstance(body, bytes) else length
        return await self.endpoint.answer(
            PushRequest(method, path, query or {}, headers or {}, size, source, read)
        )

    async def notify(self, body: bytes = b"x", **headers: str) -> PushResponse:
        secret = self.leases.of("token")
        assert secret is not None
        digest = hmac.new(secret.secret.encode(), body, hashlib.sha256).hexdigest()
        signed = {"x-hub-signature": f"sha256={digest}"} | headers
        return await self.send("POST", "/websub/token", headers=signed, body=body)

    async def ping(self, key: str = KEY, source: str = "192.0.2.1", url: str = f"{SITE}/x") -> int:
        query = {"url": url, "key": key}
        return (await self.send("GET", "/indexnow", query, source=source)).status

    def answer_calls(self, body: bytes, outcome: Outcome = "fetched") -> int:
        """Answer what is being asked for by now; how many requests that was."""
        self.written += self.pinging.ask(self.now)
        requests = [e for e in self.world.requests(self.now) if isinstance(e, ApiRequest)]
        for request in requests:
            status = 200 if outcome == "fetched" else 404
            result = FetchResult(request.url, outcome, self.now, 0.0, status, body=body)
            self.written += request.handle(result, self.now)
            self.written += self.pinging.ask(self.now)
        return len(requests)

    def announced(self) -> list[str]:
        found = [entry.said for entry in self.written if entry.said is not None]
        return [claim.url for said in found for claim in said.claims]


@pytest.fixture
def stage() -> Stage:
    return Stage()


async def test_unknown_callbacks_and_paths_are_refused_unread(stage: Stage) -> None:
    for path in ("/websub/", "/websub/guess", "/websub/token/../x", "/", "/admin"):
        for method in ("GET", "POST", "PUT"):
            assert (await stage.send(method, path, body=b"x" * MOST)).status == 404
    assert stage.reads == 0
    assert stage.written == []


async def test_a_notification_that_is_signed_is_committed_before_it_is_confirmed(
    stage: Stage,
) -> None:
    stage.subscribe()
    for _ in range(3):  # further ones say nothing new until a visit has answered
        assert (await stage.notify()).status == 202
    assert stage.announced() == [f"{SITE}/"]
    due = DueUrl(1, f"{SITE}/", f"{SITE}/", 1, stage.now)
    before, after = (
        Acknowledged(Visit(due, Observation(1, at, "unchanged")))
        for at in (stage.now - 1, stage.now)
    )
    for claims, visit in enumerate((before, after), 1):
        stage.subscriber.acknowledged([visit])
        assert (await stage.notify()).status == 202
        assert len(stage.announced()) == claims
    stage.subscriber.acknowledged([after])
    stage.away = True
    assert await stage.notify() == PushResponse(503, "the store is busy")


async def test_a_hub_over_plain_http_gets_no_secret_and_signs_nothing(stage: Stage) -> None:
    known = stage.subscribe("http://hub.example/")
    assert "hub.secret" not in stage.leases.request(known, "https://cb.example/")
    assert (await stage.send("POST", "/websub/token", body=b"<rss/>")).status == 202
    assert stage.announced() == [f"{SITE}/"]


@pytest.mark.parametrize(
    ("headers", "length", "body", "status", "reads"),
    [
        ({}, -1, b"x", 202, 0),
        ({"x-hub-signature": "md5=00"}, -1, b"x", 202, 0),
        ({"x-hub-signature": "sha1=" + "0" * 40}, -1, b"x", 202, 1),
        ({"x-hub-signature": "sha1=" + "0" * 40}, MOST + 1, b"x", 413, 0),
        ({"x-hub-signature": "sha1=" + "0" * 40}, None, b"x" * (MOST + 1), 413, 1),
        ({"x-hub-signature": "sha1=" + "0" * 40, "content-encoding": "gzip"}, -1, b"x", 415, 0),
        ({"x-hub-signature": "sha1=" + "0" * 40}, 9, TimeoutError(), 408, 1),
        ({"x-hub-signature": "sha1=" + "0" * 40}, 9, ConnectionResetError(), 400, 1),
    ],
)
async def test_notifications_that_are_not_what_they_should_be(
    stage: Stage, headers: dict[str, str], length: int, body: bytes | Exception, status: int,
    reads: int,
) -> None:  # fmt: skip
    stage.subscribe()
    reply = await stage.send("POST", "/websub/token", headers=headers, length=length, body=body)
    assert (reply.status, stage.reads, stage.announced()) == (status, reads, [])


async def test_a_subscription_may_say_so_much_and_no_more(stage: Stage) -> None:
    stage.subscribe()
    statuses = [(await stage.notify()).status for _ in range(61)]
    assert statuses == [202] * 60 + [429]
    stage.now += 1.0
    assert (await stage.notify()).status == 202


async def test_what_cannot_be_noted_is_not_confirmed_to_the_hub(stage: Stage) -> None:
    new = stage.leases.advertised(1, 1, f"{SITE}/", HubLink("https://h.example/", "t:"), 0.0)
    assert new is not None
    stage.leases.requested(new.token, stage.now)
    stage.away = True
    query = {"hub.mode": "subscribe", "hub.topic": "t:", "hub.challenge": "c"}
    assert (await stage.send("GET", "/websub/token", query)).status == 503
    stage.away = False
    assert await stage.send("GET", "/websub/token", query) == PushResponse(200, "c")
    changes = [each.change for each in stage.written if isinstance(each, StoreUpdate)]
    noted = [each.subscription for each in changes if isinstance(each, SubscriptionChange)]
    assert [s.lease_until is None for s in noted] == [False, True, False]


# -- pings -------------------------------------------------------------------------


async def test_a_ping_waits_for_its_key_and_later_ones_do_not(stage: Stage) -> None:
    assert await stage.ping() == 202
    assert await stage.ping(url=f"{SITE}/y") == 202
    assert stage.announced() == []
    assert stage.answer_calls(KEY.encode()) == 1
    assert stage.announced() == [f"{SITE}/x", f"{SITE}/y"]
    assert await stage.ping(url=f"{SITE}/z") == 200
    assert stage.announced()[2:] == [f"{SITE}/z"]


@pytest.mark.parametrize("outcome", ["fetched", "gone"])
async def test_a_ping_with_a_wrong_key_is_dropped(stage: Stage, outcome: Outcome) -> None:
    await stage.ping()
    stage.answer_calls(b"another", outcome)
    assert stage.announced() == []
    assert await stage.ping() == 403


async def test_a_key_that_robots_txt_forbids_is_not_asked_for() -> None:
    stage = Stage(robots=PRIVATE)
    query = {"url": f"{SITE}/private/x", "key": KEY, "keyLocation": f"{SITE}/private/k.txt"}
    assert (await stage.send("GET", "/indexnow", query)).status == 202
    assert stage.answer_calls(KEY.encode()) == 0
    assert (await stage.send("GET", "/indexnow", query)).status == 403


@pytest.mark.parametrize("url", ["http://h2/x", "http://nobody.example/x"])
async def test_hosts_that_are_not_watched_are_refused(stage: Stage, url: str) -> None:
    assert await stage.ping(url=url) == 422
    assert stage.answer_calls(b"") == 0


async def test_who_pings_badly_is_heard_no_more_and_others_are(stage: Stage) -> None:
    statuses = [await stage.ping(key="bad") for _ in range(25)]
    assert statuses == [422] * 20 + [429] * 5
    assert await stage.ping(source="192.0.2.2") == 202
    stage.now += 10.0
    assert await stage.ping() == 202
    # One who sends slowly is heard no more at once.
    assert (await stage.send("POST", "/indexnow", length=9, body=TimeoutError())).status == 408
    assert await stage.ping() == 429


async def test_bodies_of_pings_are_bounded_over_all_senders(stage: Stage) -> None:
    sources = [f"192.0.{n // 250}.{n % 250}" for n in range(4_200)]
    statuses = [
        (await stage.send("POST", "/indexnow", body=b"x" * 500, source=each)).status
        for each in sources
    ]
    assert statuses.count(400) == 4 * 2**20 // 1_000 == stage.reads
    assert statuses.count(429) == 4_200 - stage.reads


async def test_the_urls_of_a_host_are_bounded_by_the_day(stage: Stage) -> None:
    await stage.ping()
    stage.answer_calls(KEY.encode())
    stage.endpoint.max_body_bytes = 10**7
    said = {"host": "h1", "key": KEY, "urlList": [f"{SITE}/{n}" for n in range(10_000)]}
    statuses = [
        (await stage.send("POST", "/indexnow", body=json.dumps(said).encode())).status
        for _ in range(2)
    ]
    assert statuses == [200, 429]
    assert len(stage.announced()) == 10_001


async def test_what_was_refused_is_told_once_a_minute(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(1_000):
        await stage.send("POST", "/websub/guess")
    stage.refusals.tell(0.0)
    await stage.send("POST", "/websub/guess")
    stage.refusals.tell(59.0)
    stage.refusals.tell(60.0)
    stage.refusals.tell(1_000.0)
    assert [record.getMessage() for record in caplog.records] == [
        "refused pushed requests: unknown callback 1,000 (last from 192.0.2.1)",
        "refused pushed requests: unknown callback 1 (last from 192.0.2.1)",
    ]
