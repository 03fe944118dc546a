"""One recorded run of pushes, alerts and moves, which many tests ask about.

First a daemon keeps seven sites for two days. Each names a hub that behaves in its own way, hubs
and strangers push, and a receiver takes alerts. Then a daemon keeps a site whose pages move, for
fifty days on the same store.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.extensions.lab.synthetic_web.fetcher import SyntheticFetcher
from freshet.crawler.extensions.lab.synthetic_web.web import showcase
from freshet.crawler.fetch.client import Request
from freshet.crawler.frontier.clock import VirtualClock
from freshet.crawler.run.daemon import keep
from freshet.crawler.run.orders import DaemonOrder
from freshet.storage.entries import Outcome
from freshet.storage.records import FetchResult
from tests.crawler.extensions.alerts.test_alerts import receiving
from tests.integration.hubs import Habits, Hub, free_port
from tests.integration.quick import assert_consistent, quick, unwatched
from tests.storage.small_store import rows

DAY_S = 86_400.0
HOUR_S = 3_600.0
ORIGIN = "http://site.localhost"
KEY = "0a1b2c3d4e"

#: What a URL shows on a day: a text, or where it leads with which status.
Shown = str | tuple[int, str]


def front(name: str) -> str:
    """The front page of a site, which is the topic of its hub."""
    return f"http://{name}.localhost/"


#: "shop" has a hub that never verifies, which "docs" does only when it is made to.
HABITS: Final[Mapping[str, Habits]] = {
    "news": Habits("subscribe"), "docs": Habits(), "shop": Habits(),
    "wiki": Habits("subscribe", lease_s="3600"), "status": Habits("denied"),
    "notes": Habits(status=500), "events": Habits(),
}  # fmt: skip
FEED: Final = (
    b'<?xml version="1.0"?><rss version="2.0"><channel><title>n</title>'
    b"<item><title>a</title><link>http://news.localhost/pushed-page</link></item>"
    b"<item><title>b</title><link>http://elsewhere.localhost/x</link></item>"
    b"</channel></rss>"
)


def text(name: str, edition: int = 0) -> str:
    """A page of its own, of which one paragraph is another in each edition."""
    own = " ".join(f"{name}{i} tells of matter {i} at some length." for i in range(40))
    return f"<p>{own}</p><p>Today it is about {name} number {edition}, and nothing else.</p>"


def busy(name: str, begin: float = 0.0) -> Callable[[float], Shown]:
    """A page with a new edition every two days, from a day on."""
    return lambda day: text(name, int(day / 2)) if day >= begin else (404, "")


def moving(name: str, on: float, to: str, status: int = 301) -> Callable[[float], Shown]:
    """A busy page, until it leads elsewhere."""
    return lambda day: (status, to) if day >= on else busy(name)(day)


def there(day: float) -> Shown:
    return (301, "/back") if 10 <= day < 30 else busy("turning")(day)


def back(day: float) -> Shown:
    return busy("turning")(day) if 10 <= day < 30 else (301, "/there")


QUIET: Final = {f"/quiet-{i}": lambda _, i=i: text(f"quiet{i}") for i in range(4)}
LINKED: Final[Mapping[str, Callable[[float], Shown]]] = {
    "/old": moving("moved", 20.2, "/new"),
    "/lent": moving("lent", 10.0, "/for-now", 302),
    "/closed": moving("closed", 15.0, "/"),
    "/there": there,
    "/a": lambda _: (301, "/b"),
    "/b": lambda _: (301, "/a"),
    "/early": moving("early", 20.0, "/late"),
    "/late": busy("early", 19.0),
    "/spelled?utm_source=x": lambda _: (301, "/spelled"),
    "/pong?utm_source=a": lambda _: (301, "/pong?utm_source=b"),
    **QUIET,
}
UNLINKED: Final[Mapping[str, Callable[[float], Shown]]] = {
    "/new": busy("moved", 20.0),
    "/for-now": busy("lent", 10.0),
    "/back": back,
    "/spelled": lambda _: text("spelled"),
    "/pong?utm_source=b": lambda _: (301, "/pong?utm_source=a"),
}


@dataclass(slots=True)
class MovingSite:
    """A host that shows what its pages say for the day, and notes what was asked for when."""

    clock: VirtualClock
    linked: Mapping[str, Callable[[float], Shown]] = field(default_factory=lambda: LINKED)
    unlinked: Mapping[str, Callable[[float], Shown]] = field(default_factory=lambda: UNLINKED)
    begin: float = field(init=False)
    asked: list[tuple[float, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.begin = self.clock.now()

    def days(self, path: str) -> list[float]:
        """The days on which a path was asked for."""
        return [day for day, other in self.asked if other == path]

    async def fetch(self, request: Request) -> FetchResult:
        now, path = self.clock.now(), request.url.removeprefix(ORIGIN)
        day = (now - self.begin) / DAY_S
        self.asked.append((day, path))
        shown = self._shown(path, day)
        if isinstance(shown, tuple):
            status, place = shown
            led: Outcome = "gone" if status == 404 else "redirected"
            return FetchResult(
                request.url, led, now, 0.0, status=status,
                reason=f"http_{status}", location=ORIGIN + place if place else None,
            )  # fmt: skip
        body = f"<html><body><main>{shown}</main></body></html>".encode()
        headers = ((b"Content-Type", b"text/html; charset=utf-8"),)
        return FetchResult(
            request.url, "fetched", now, 0.0, status=200, headers=headers,
            wire_body=body, body=body,
        )  # fmt: skip

    def _shown(self, path: str, day: float) -> Shown:
        if path == "/":
            links = "".join(f'<a href="{each}">{each}</a> ' for each in self.linked)
            return text("home") + f"<p>{links}</p>"
        page = {**self.linked, **self.unlinked}.get(path)
        return (404, "") if page is None else page(day)

    async def keep(self, db: Path, days: float, budget: float) -> None:
        """Let a daemon keep the site."""
        seeds = seeds_from_arguments([f"{ORIGIN}/"]).seeds
        order = DaemonOrder(db, seeds, budget, time_limit_s=days * DAY_S)
        settings = quick(daemon__audit_share=0.0, robots__sitemaps=False, robots__max_age_s=86_400)
        await keep(settings, order, watch=unwatched, fetcher=self, clock=self.clock, rng=Random(1))
        assert_consistent(db)


@dataclass(slots=True)
class Eventful:
    """A store, and what the others have seen of its daemons.

    ``answers`` are the daemon's to each kind of push, ``alerts`` what the receiver was told, and
    ``pushed_at`` is the time of the notification.
    """

    db: Path
    port: int = field(default_factory=free_port)
    hub: Hub = field(init=False)
    site: MovingSite = field(init=False)
    answers: dict[str, list[int]] = field(default_factory=dict)
    alerts: list[dict[str, Any]] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    pushed_at: float = 0.0

    def __post_init__(self) -> None:
        web = showcase(seed=7, traps=False)
        clock = VirtualClock(web.start_at + 5 * DAY_S)
        topics = {front(name): habits for name, habits in HABITS.items()}
        self.hub = Hub(SyntheticFetcher(web, clock.now), clock, topics)
        self.hub.texts[f"{front('events')}{KEY}.txt"] = f"{KEY}\n"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def rows(self, query: str) -> list[tuple[object, ...]]:
        return rows(self.db, query)

    def subscription(self, name: str) -> tuple[object, ...]:
        sql = f"SELECT state, lease_until, detail FROM subscription WHERE topic = '{front(name)}'"
        (row,) = self.rows(sql)
        return row

    def page_id(self, path: str) -> int:
        return int(str(self.rows(f"SELECT id FROM page WHERE url = '{ORIGIN}{path}'")[0][0]))

    def kinds(self, path: str) -> list[str]:
        found = f"SELECT kind FROM finding WHERE page_id = {self.page_id(path)} ORDER BY id"
        return [str(kind) for (kind,) in self.rows(found)]

    async def run(self) -> None:
        """Make the recording."""
        logger, handler = logging.getLogger("freshet"), logging.Handler()
        handler.emit = lambda record: self.log.append(record.getMessage())  # type: ignore[method-assign]
        logger.addHandler(handler)
        try:
            await self._pushed()
        finally:
            logger.removeHandler(handler)
        self.site = MovingSite(self.hub.clock)
        await self.site.keep(self.db, 50.0, 36.0)

    async def _pushed(self) -> None:
        for hours, name, push in (
            (2.0, "news", self._notify), (2.5, "news", self._forge), (3.0, "news", self._feed),
            (0.4, "docs", self._verify), (0.4, "wiki", self._silence),
            (0.7, "wiki", self._late), (1.5, "wiki", self._late),
            (1.0, "events", self._ping), (3.0, "events", self._ping_again),
            (2.0, "shop", self._make_keys_up),
        ):  # fmt: skip
            self.hub.after(hours, front(name), push)
        seeds = seeds_from_arguments([front(name) for name in HABITS]).seeds
        order = DaemonOrder(self.db, seeds, 480.0, time_limit_s=2 * DAY_S)
        with receiving() as (url, told):
            rule = {"match": "*", "kinds": ["new", "changed", "gone"]}
            rules = [
                rule | {"name": "now", "url": url},
                rule | {"name": "days", "url": url + "2", "mode": "daily", "hour": 0},
            ]
            settings = quick(
                receiver__listen=f"127.0.0.1:{self.port}", receiver__public_url=self.url,
                alerts__rules=rules,
            )  # fmt: skip
            await keep(
                settings, order, watch=unwatched, fetcher=self.hub, clock=self.hub.clock,
                rng=Random(1),
            )  # fmt: skip
        self.alerts = told

    # -- pushes ------------------------------------------------------------------

    def _note(self, what: str, answer: tuple[int, str]) -> None:
        self.answers.setdefault(what, []).append(answer[0])

    async def _notify(self, hub: Hub) -> None:
        self.pushed_at = hub.clock.now()
        self._note("notified", await hub.distribute(hub.form(front("news"))))

    async def _forge(self, hub: Hub) -> None:
        form = hub.form(front("news"))
        for _ in range(3):
            self._note("forged", await hub.distribute(form, secret="guessed"))
        unknown = {**form, "hub.callback": f"{self.url}/websub/guessed"}
        self._note("forged", await hub.distribute(unknown))

    async def _feed(self, hub: Hub) -> None:
        self._note("feed", await hub.distribute(hub.form(front("news")), FEED))

    async def _verify(self, hub: Hub) -> None:
        form = hub.form(front("docs"))
        for changes in (
            {"hub_topic": "http://other.localhost/"}, {"hub_mode": "unsubscribe"},
            {"hub_mode": "publish"}, {"hub_challenge": ""}, {"hub_lease_seconds": "-5"},
        ):  # fmt: skip
            self._note("verified", await hub.verify(form, **changes))
        self._note("verified", await hub.get(f"{self.url}/websub/x", {"hub.challenge": "a"}))
        # This is what was asked for, late, but in time; a second time nobody waits for it.
        for _ in range(2):
            self._note("verified", await hub.verify(form))

    async def _silence(self, hub: Hub) -> None:
        hub.topics[front("wiki")] = Habits()

    async def _late(self, hub: Hub) -> None:
        self._note("lease", await hub.distribute(hub.form(front("wiki"))))

    async def _ping(self, hub: Hub) -> None:
        events = front("events")
        said = {"host": "events.localhost", "key": KEY, "urlList": [events, f"{events}pinged"]}
        self._note("pinged", await hub.post_json(f"{self.url}/indexnow", said))

    async def _ping_again(self, hub: Hub) -> None:
        query = {"url": f"{front('events')}second", "key": KEY}
        self._note("pinged", await hub.get(f"{self.url}/indexnow", query))

    async def _make_keys_up(self, hub: Hub) -> None:
        for n in range(12):
            query = {"url": front("shop"), "key": f"{n:08}"}
            self._note("made up", await hub.get(f"{self.url}/indexnow", query))
