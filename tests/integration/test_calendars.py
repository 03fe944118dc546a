"""A calendar without end: its events are found, and empty days are asked for seldom."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from urllib.parse import parse_qs, urlsplit

import pytest

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.fetch.client import Request
from freshet.crawler.frontier.clock import VirtualClock
from freshet.crawler.run.crawl import CrawlOrder, crawl
from freshet.storage.records import FetchResult
from tests.integration.quick import quick, unwatched
from tests.variants import first

SITE = "https://club.localhost"
NOW = 1_800_000_000.0
TODAY = datetime.fromtimestamp(NOW, UTC).date()
HTML = ((b"Content-Type", b"text/html; charset=utf-8"),)
FRAME = " ".join(f"Members meet in room {n} of the old mill by the river." for n in range(9))


class Club:
    """A site with a calendar: each day links to the ones before and after it."""

    def __init__(self, spelled: str, day_of: Callable[[str], date], events: set[date]) -> None:
        self.spelled, self.day_of, self.events = spelled, day_of, events
        self.clock = VirtualClock(NOW)
        self.asked: list[date] = []

    def link(self, day: date, word: str) -> str:
        return f'<a href="{day.strftime(self.spelled)}">{word}</a>'

    async def fetch(self, request: Request) -> FetchResult:
        at, target = self.clock.now(), request.url.removeprefix(SITE)
        if target == "/robots.txt":
            return FetchResult(request.url, "gone", at, 0.0, 404, "http_404")
        day = TODAY if target in {"", "/"} else self.day_of(target)
        self.asked.append(day)
        step = timedelta(days=1)
        links = self.link(day - step, "before") + self.link(day + step, "after")
        said = "<p>Nothing is planned.</p>"
        if day in self.events:
            chance = Random(day.toordinal())
            said = "".join(
                f"<p>{' '.join(f'w{chance.randrange(9_999)}' for _ in range(30))}</p>"
                for _ in range(3)
            )
        body = (
            f"<!doctype html><title>{day}</title><main><h1>{day:%A, %d %B %Y}</h1>{said}"
            f"<p>{FRAME}</p>{links}</main>"
        )
        return FetchResult(request.url, "fetched", at, 0.0, 200, headers=HTML, body=body.encode())

    async def crawl(self, db: Path) -> None:
        order = CrawlOrder(db, seeds_from_arguments([SITE]).seeds)
        settings = quick(politeness__delay_s=1.0, store__batch=4)
        await crawl(settings, order, watch=unwatched, fetcher=self, clock=self.clock)


def in_path(target: str) -> date:
    year, month, day = (int(part) for part in target.split("/")[2:5])
    return date(year, month, day)


def in_query(target: str) -> date:
    return date.fromisoformat(parse_qs(urlsplit(target).query)["date"][0])


@pytest.mark.parametrize(
    ("spelled", "day_of"), [("/calendar/%Y/%m/%d", in_path), ("/events?date=%Y-%m-%d", in_query)]
)
@pytest.mark.parametrize("every", first(2, [1, 14, 2, 3, 7, 30]))
async def test_events_to_come_are_found_and_the_past_ends(
    tmp_path: Path, spelled: str, day_of: Callable[[str], date], every: int
) -> None:
    events = {TODAY + timedelta(days=n) for n in range(1, min(84 * every, 255), every)}
    club = Club(spelled, day_of, events)
    await club.crawl(tmp_path / "crawl.db")
    assert len(events & set(club.asked)) >= 0.95 * len(events)
    assert sum(day < TODAY for day in club.asked) <= 66
