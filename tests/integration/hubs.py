"""A web whose pages name a hub, and the hub: it verifies, distributes, and forges if told to.

Pages and hub answer in virtual time; what the hub sends goes over loopback to the daemon's own
listener, while the clock stands.
"""

import hashlib
import hmac
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from urllib.parse import parse_qsl

import aiohttp

from freshet.crawler.fetch.client import Fetcher, Request
from freshet.crawler.frontier.clock import VirtualClock
from freshet.storage.entries import Outcome
from freshet.storage.records import FetchResult

HUB = "https://hub.localhost/"
Push = Callable[["Hub"], Awaitable[object]]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@dataclass(frozen=True, slots=True)
class Habits:
    """If and how a hub verifies: the mode ("" for never); and the status of its answers."""

    mode: str = ""
    lease_s: str = "864000"
    status: int = 202


@dataclass(slots=True)
class Hub:
    """A :class:`freshet.crawler.fetch.client.Fetcher` over another one.

    ``topics`` are the pages that name the hub, with its habits there; ``texts`` are answered as
    they stand. ``pushes`` come so many seconds after it was asked about a topic.
    """

    web: Fetcher
    clock: VirtualClock
    topics: dict[str, Habits] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[float, Mapping[str, str]]] = field(default_factory=list)
    fetched: list[tuple[float, str]] = field(default_factory=list)
    answers: list[tuple[int, str]] = field(default_factory=list)
    pushes: list[tuple[str, float, Push]] = field(default_factory=list)

    def after(self, hours: float, topic: str, push: Push) -> None:
        """Push with the first request after so many hours since it was asked about a topic."""
        self.pushes.append((topic, hours * 3_600.0, push))

    def form(self, topic: str) -> Mapping[str, str]:
        """The first request to subscribe to a topic."""
        return next(form for _, form in self.asked if form["hub.topic"] == topic)

    def times(self, topic: str) -> list[float]:
        """The times of all requests on a topic."""
        return [at for at, form in self.asked if form["hub.topic"] == topic]

    async def fetch(self, request: Request) -> FetchResult:
        now = self.clock.now()
        self.fetched.append((now, request.url))
        for each in list(self.pushes):
            topic, after_s, push = each
            if min(self.times(topic), default=inf) + after_s <= now:
                self.pushes.remove(each)
                await push(self)
        if request.form is not None:
            return await self._subscribed(request.url, dict(parse_qsl(request.form)))
        if request.url in self.texts:
            body = self.texts[request.url].encode()
            headers = ((b"Content-Type", b"text/plain"),)
            return FetchResult(request.url, "fetched", now, 0.0, 200, headers=headers, body=body)
        result = await self.web.fetch(request)
        if request.url in self.topics:
            link = (b"Link", f'<{HUB}>; rel="hub", <{request.url}>; rel=self'.encode())
            result = replace(result, headers=(*result.headers, link))
        return result

    async def _subscribed(self, url: str, form: Mapping[str, str]) -> FetchResult:
        now, habits = self.clock.now(), self.topics[form["hub.topic"]]
        self.asked.append((now, form))
        if habits.mode == "denied":
            query = {"hub.mode": "denied", "hub.topic": form["hub.topic"], "hub.reason": "no"}
            self.answers.append(await self.get(form["hub.callback"], query))
        elif habits.mode:
            self.answers.append(await self.verify(form))
        outcome: Outcome = "fetched" if habits.status < 300 else "failed"
        reason = None if habits.status < 300 else f"http_{habits.status}"
        return FetchResult(url, outcome, now, 0.0, habits.status, reason)

    async def verify(self, form: Mapping[str, str], **changes: str) -> tuple[int, str]:
        query = {
            "hub.mode": form["hub.mode"], "hub.topic": form["hub.topic"],
            "hub.challenge": "c4a1", "hub.lease_seconds": self.topics[form["hub.topic"]].lease_s,
        }  # fmt: skip
        said = {key.replace("_", ".", 1): value for key, value in changes.items()}
        return await self.get(form["hub.callback"], query | said)

    async def distribute(
        self, form: Mapping[str, str], body: bytes = b"news", method: str = "sha256",
        secret: str | None = None,
    ) -> tuple[int, str]:  # fmt: skip
        key = form["hub.secret"] if secret is None else secret
        digest = hmac.new(key.encode(), body, getattr(hashlib, method)).hexdigest()
        headers = {"X-Hub-Signature": f"{method}={digest}"}
        async with aiohttp.ClientSession() as session:
            url = form["hub.callback"]
            async with session.post(url, data=body, headers=headers) as response:
                return response.status, await response.text()

    async def get(self, url: str, query: Mapping[str, str]) -> tuple[int, str]:
        async with aiohttp.ClientSession() as session, session.get(url, params=query) as response:
            return response.status, await response.text()

    async def post_json(self, url: str, said: object) -> tuple[int, str]:
        async with aiohttp.ClientSession() as session, session.post(url, json=said) as response:
            return response.status, await response.text()
