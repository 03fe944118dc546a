"""Pages that move while a daemon keeps them: their identity moves along."""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.cli.page_forecast import PageForecast, forecast_page
from freshet.crawler.clock import VirtualClock
from freshet.crawler.fetch.client import Request
from freshet.crawler.run.daemon import keep
from freshet.crawler.run.orders import DaemonOrder
from freshet.storage.database import reading
from freshet.storage.entries import Outcome
from freshet.storage.records import FetchResult
from tests.integration.quick import assert_consistent, quick, unwatched

DAY_S = 86_400.0
START = 1_800_000_000.0
ORIGIN = "http://site.localhost"

#: What a URL shows on a day: a text, or where it leads with which status.
Shown = str | tuple[int, str]


def text(name: str, edition: int = 0) -> str:
    """A page of its own, of which one paragraph is another in each edition."""
    own = " ".join(f"{name}{i} tells of matter {i} at some length." for i in range(40))
    return f"<p>{own}</p><p>Today it is about {name} number {edition}, and nothing else.</p>"


@dataclass(slots=True)
class Site:
    """A host that shows what its pages say for the day, and notes what was asked for when."""

    clock: VirtualClock
    pages: dict[str, Callable[[float], Shown]]
    asked: list[tuple[float, str]] = field(default_factory=list)

    @property
    def day(self) -> float:
        return (self.clock.now() - START) / DAY_S

    def days(self, path: str) -> list[float]:
        """The days on which a path was asked for."""
        return [day for day, other in self.asked if other == path]

    async def fetch(self, request: Request) -> FetchResult:
        path = request.url.removeprefix(ORIGIN)
        self.asked.append((self.day, path))
        page = self.pages.get(path)
        shown: Shown = (404, "") if page is None else page(self.day)
        if isinstance(shown, tuple):
            status, place = shown
            led = Outcome.GONE if status == 404 else Outcome.REDIRECTED
            return FetchResult(
                request.url, led, self.clock.now(), 0.0, status=status,
                reason=f"http_{status}", location=ORIGIN + place if place else None,
            )  # fmt: skip
        body = f"<html><body><main>{shown}</main></body></html>".encode()
        headers = ((b"Content-Type", b"text/html; charset=utf-8"),)
        return FetchResult(
            request.url, Outcome.FETCHED, self.clock.now(), 0.0, status=200, headers=headers,
            wire_body=body, body=body,
        )  # fmt: skip

    async def close(self) -> None:
        pass


@dataclass(slots=True)
class Stage:
    """A site and a store, on which daemons run one after the other."""

    db: Path
    pages: dict[str, Callable[[float], Shown]]
    site: Site = field(init=False)

    def __post_init__(self) -> None:
        links = "".join(f'<a href="{path}">{path}</a> ' for path in self.pages)
        home = text("home") + f"<p>{links}</p>"
        shown = {"/": lambda _: home} | self.pages
        self.site = Site(VirtualClock(START), shown)

    async def keep(self, days: float, budget: float = 12.0) -> None:
        seeds = seeds_from_arguments([f"{ORIGIN}/"]).seeds
        order = DaemonOrder(self.db, seeds, budget, time_limit_s=days * DAY_S)
        settings = quick(daemon__audit_share=0.0, robots__sitemaps=False, robots__max_age_s=86_400)
        await keep(
            settings, order, watch=unwatched, fetcher=self.site, clock=self.site.clock,
            rng=Random(1),
        )  # fmt: skip
        assert_consistent(self.db)

    def rows(self, query: str) -> list[tuple[object, ...]]:
        connection = sqlite3.connect(self.db)
        rows = connection.execute(query).fetchall()
        connection.close()
        return rows

    def id(self, path: str) -> int:
        return int(str(self.rows(f"SELECT id FROM page WHERE url = '{ORIGIN}{path}'")[0][0]))

    def kinds(self, path: str) -> list[str]:
        found = f"SELECT kind FROM finding WHERE page_id = {self.id(path)} ORDER BY id"
        return [str(kind) for (kind,) in self.rows(found)]

    async def forecast(self, path: str) -> PageForecast | None:
        async with reading(self.db) as connection:
            return await forecast_page(connection, self.id(path), self.site.clock.now())


def moving(name: str, on: float, to: str, status: int = 301) -> Callable[[float], Shown]:
    """A page with a new edition every two days, until it leads elsewhere."""
    return lambda day: (status, to) if day >= on else text(name, int(day / 2))


def arriving(name: str, on: float) -> Callable[[float], Shown]:
    return lambda day: text(name, int(day / 2)) if day >= on else (404, "")


QUIET = {f"/quiet-{i}": lambda _, i=i: text(f"quiet{i}") for i in range(4)}


def led(stage: Stage, path: str, to: str) -> bool:
    return bool(
        stage.rows(
            f"SELECT 1 FROM alias WHERE url = '{ORIGIN}{path}' AND page_url = '{ORIGIN}{to}'"
        )
    )


async def test_a_page_that_moves_takes_its_history_and_its_place_along(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "crawl.db", {"/old": moving("busy", 20.2, "/new"), **QUIET})
    stage.site.pages["/new"] = arriving("busy", 20.0)
    await stage.keep(45.0)
    assert led(stage, "/old", "/new")
    assert stage.kinds("/new")[0] in {"changed", "unchanged"}
    moved_at = stage.site.days("/new")[0]
    assert moved_at - stage.site.days("/old")[-1] < 3.5
    # It is looked at as often as before, at once: what was learnt holds.
    before = [d for d in stage.site.days("/old") if 10 < d < 20]
    after = [d for d in stage.site.days("/new") if moved_at < d < moved_at + 10]
    assert len(before) >= 4
    assert len(after) >= 0.7 * len(before)
    quiet = [d for d in stage.site.days("/quiet-1") if moved_at < d < moved_at + 10]
    assert len(after) > len(quiet)
    found = await stage.forecast("/new")
    assert found is not None
    assert found.rate.compared == sum(
        kind in {"changed", "unchanged"} for kind in stage.kinds("/old") + stage.kinds("/new")
    )
    assert found.rate.per_day == pytest.approx(0.5, rel=0.5)
    old = await stage.forecast("/old")
    assert old is not None
    assert not old.captured
    assert old.not_before is not None


async def test_the_old_url_is_looked_at_ever_more_rarely_also_after_a_restart(
    tmp_path: Path,
) -> None:
    stage = Stage(tmp_path / "crawl.db", {"/old": moving("busy", 5.0, "/new"), **QUIET})
    stage.site.pages["/new"] = arriving("busy", 5.0)
    for _ in range(4):
        await stage.keep(65.0, budget=5.0)
    waits = [b - a for a, b in pairwise([d for d in stage.site.days("/old") if d >= 5.0])]
    assert waits == pytest.approx([30, 30, 60, 120], rel=0.1)


async def test_a_temporary_redirect_moves_nothing(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "crawl.db", {"/old": moving("busy", 10.0, "/new", 302), **QUIET})
    stage.site.pages["/new"] = arriving("busy", 10.0)
    await stage.keep(75.0)
    assert stage.kinds("/new")[0] == "new"
    waits = [b - a for a, b in pairwise([d for d in stage.site.days("/old") if d >= 10.0])]
    assert len(waits) == 2
    assert all(30 <= wait < 33 for wait in waits)
    found = await stage.forecast("/new")
    assert found is not None
    assert found.rate.compared == sum(k in {"changed", "unchanged"} for k in stage.kinds("/new"))


async def test_pages_that_are_sent_to_the_front_page_leave_its_history_alone(
    tmp_path: Path,
) -> None:
    stage = Stage(tmp_path / "crawl.db", {"/old": moving("busy", 15.0, "/"), **QUIET})
    await stage.keep(30.0)
    assert led(stage, "/old", "/")
    found = await stage.forecast("/")
    assert found is not None
    assert found.rate.compared == sum(k in {"changed", "unchanged"} for k in stage.kinds("/"))
    assert found.rate.per_day < 0.1


async def test_a_page_that_moves_back_within_the_run_is_found_again(tmp_path: Path) -> None:
    def old(day: float) -> Shown:
        return (301, "/new") if 10 <= day < 40 else text("busy", int(day / 2))

    def new(day: float) -> Shown:
        return (301, "/old") if not 10 <= day < 40 else text("busy", int(day / 2))

    stage = Stage(tmp_path / "crawl.db", {"/old": old, **QUIET})
    stage.site.pages["/new"] = new
    await stage.keep(60.0)
    turned = next(day for day in stage.site.days("/new") if day >= 40)
    assert turned < 45
    again = [day for day in stage.site.days("/old") if day >= turned]
    assert again[0] - turned < 1.0
    assert len(again) >= 4
    assert "failed" not in stage.kinds("/new") + stage.kinds("/old")


async def test_a_loop_of_redirects_is_a_failure_and_not_asked_for_all_day(tmp_path: Path) -> None:
    stage = Stage(
        tmp_path / "crawl.db",
        {"/a": lambda _: (301, "/b"), "/b": lambda _: (301, "/a"), **QUIET},
    )
    await stage.keep(60.0)
    reasons = {str(why) for (why,) in stage.rows("SELECT reason FROM finding WHERE reason NOTNULL")}
    assert "redirect_loop" in reasons
    assert len(stage.site.days("/a")) + len(stage.site.days("/b")) < 25


async def test_a_page_that_was_linked_at_its_new_url_first_has_its_history_by_the_next_day(
    tmp_path: Path,
) -> None:
    stage = Stage(
        tmp_path / "crawl.db",
        {"/old": moving("busy", 20.0, "/new"), "/new": arriving("busy", 19.0), **QUIET},
    )
    await stage.keep(45.0)
    assert stage.kinds("/new")[:1] == ["gone"]
    first = next(kind for kind in stage.kinds("/new") if kind != "gone")
    assert first in {"changed", "unchanged"}
    found = await stage.forecast("/new")
    assert found is not None
    assert found.rate.compared > sum(k in {"changed", "unchanged"} for k in stage.kinds("/new"))


async def test_another_spelling_of_a_page_is_asked_for_at_once_and_not_for_ever(
    tmp_path: Path,
) -> None:
    a, b = "/pong?utm_source=a", "/pong?utm_source=b"
    stage = Stage(
        tmp_path / "crawl.db",
        {
            "/spelled?utm_source=x": lambda _: (301, "/spelled"),
            a: lambda _: (301, b),
            **QUIET,
        },
    )
    stage.site.pages |= {"/spelled": lambda _: text("spelled"), b: lambda _: (301, a)}
    await stage.keep(20.0)
    (asked,) = stage.site.days("/spelled?utm_source=x")
    assert stage.site.days("/spelled")[0] - asked < 1.0
    assert 2 <= len(stage.site.days(a) + stage.site.days(b)) < 12
