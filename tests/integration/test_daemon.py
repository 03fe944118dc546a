"""The daemon under a virtual clock, against the synthetic web."""

import asyncio
import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from math import inf
from pathlib import Path
from random import Random

import pytest

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.errors import CrawlError
from freshet.crawler.extensions.lab.synthetic_web.fetcher import SyntheticFetcher
from freshet.crawler.extensions.lab.synthetic_web.web import SyntheticWeb, showcase
from freshet.crawler.fetch.client import Fetcher, Request
from freshet.crawler.frontier.clock import VirtualClock
from freshet.crawler.run.daemon import keep
from freshet.crawler.run.explanation import sentences
from freshet.crawler.run.forecast import daemon_settings, forecast_page
from freshet.crawler.run.importance import Importance
from freshet.crawler.run.orders import CrawlReport, DaemonOrder
from freshet.crawler.run.state import load_state
from freshet.crawler.urls import canonical
from freshet.scheduler import PolicyError
from freshet.scheduler.queue.audit import staleness
from freshet.storage.database import reading
from freshet.storage.queries import columns
from freshet.storage.records import FetchResult
from tests.integration.quick import assert_consistent, quick, unwatched
from tests.storage.small_store import rows

DAY_S = 86_400.0
HOUR_S = 3_600.0


@dataclass(slots=True)
class Server:
    """Answers, and notes what was asked for when, and how many requests were repeats of others."""

    web: Fetcher
    clock: VirtualClock
    asked: list[tuple[float, str]] = field(default_factory=list)
    hang_up_at: float = inf
    repeats: int = 0
    plain: dict[str, bool] = field(default_factory=dict)

    async def fetch(self, request: Request) -> FetchResult:
        if len(self.asked) == self.hang_up_at:
            os.kill(os.getpid(), signal.SIGHUP)
        self.asked.append((self.clock.now(), request.url))
        self.repeats += request.is_plain and not self.plain.get(request.url, True)
        self.plain[request.url] = request.is_plain
        return await self.web.fetch(request)


@dataclass(slots=True)
class Stage:
    """A web, a clock and a store, on which daemons run one after the other."""

    db: Path
    audit_share: float = 0.0
    importance: str = "list"
    delay_s: float = 0.0
    policy: str = "site_clock"
    sitemaps: bool = True
    sites: list[dict[str, object]] = field(default_factory=list)
    web: SyntheticWeb = field(default_factory=lambda: showcase(seed=7, traps=False))
    clock: VirtualClock = field(init=False)
    server: Server = field(init=False)

    def __post_init__(self) -> None:
        self.clock = VirtualClock(self.web.start_at + 5 * DAY_S)
        self.server = Server(SyntheticFetcher(self.web, self.clock.now), self.clock)

    def at(self, clock: VirtualClock) -> None:
        """Go on by another clock."""
        self.clock = self.server.clock = clock
        self.server.web = SyntheticFetcher(self.web, clock.now)

    def copy(self, folder: Path) -> "Stage":
        """Return a stage of its own that goes on from here."""
        other = replace(self, db=folder / "crawl.db")
        shutil.copy(self.db, other.db)
        other.at(VirtualClock(self.clock.now()))
        other.server.asked = list(self.server.asked)
        return other

    async def keep(
        self,
        budget: float | None,
        days: float,
        names: Sequence[str] = (),
        reread: Callable[[DaemonOrder], DaemonOrder] | None = None,
        reload_at: float = inf,
        **changes: object,
    ) -> CrawlReport:
        """Run a daemon; ``reload_at`` so many requests it gets SIGHUP."""
        self.server.hang_up_at = reload_at
        urls = [f"http://{name}.localhost/" for name in names or self.web.sites]
        order = DaemonOrder(
            self.db, seeds_from_arguments(urls).seeds, budget, self.policy, days * DAY_S
        )
        settings = quick(
            daemon__audit_share=self.audit_share, sites=self.sites,
            politeness__delay_s=self.delay_s, daemon__importance=self.importance,
            robots__sitemaps=self.sitemaps, **changes,
        )  # fmt: skip
        return await keep(
            settings, order, reread=None if reread is None else partial(reread, order),
            watch=unwatched, fetcher=self.server, clock=self.clock, rng=Random(1),
        )  # fmt: skip

    def rows(self, query: str) -> list[tuple[object, ...]]:
        return rows(self.db, query)


def test_the_budget_counts_every_request_and_is_spent_whole_and_evenly(showcase_run: Stage) -> None:
    stage, budget, days = showcase_run, 150.0, 10
    times = [at for at, _ in stage.server.asked]
    assert stage.rows("SELECT fetches FROM crawl_run") == [(len(times),)]
    assert abs(len(times) - budget * days) <= 2
    (forgone,) = stage.rows("SELECT max(forgone) FROM outlook")[0]
    assert forgone == pytest.approx(0.0, abs=1.0)
    hours = Counter(int((at - times[0]) // HOUR_S) for at in times)
    assert max(hours.values()) <= budget / 24 + 1
    assert min(list(hours.values())[:-1]) >= int(budget / 24)
    assert_consistent(stage.db)


class CreepingClock(VirtualClock):
    """As on a machine, time passes between two readings, and timers are a little early."""

    def now(self) -> float:
        self._at += 1e-3
        return super().now()

    async def wait(self, changed: asyncio.Event, until: float, *, idle: bool) -> bool:
        return await super().wait(changed, until - 2.5e-3, idle=idle)


async def test_time_that_passes_while_it_decides_holds_nothing_up(stage: Stage) -> None:
    stage.at(CreepingClock(stage.clock.now()))
    await stage.keep(2 * DAY_S, 120 / DAY_S, ["news", "docs"])
    times = [at for at, _ in stage.server.asked]
    assert abs(len(times) - 240) <= 5
    assert max(b - a for a, b in pairwise(times)) < 5


def test_in_the_end_it_has_every_page_that_a_complete_crawl_finds(showcase_run: Stage) -> None:
    stage = showcase_run
    addresses = SyntheticFetcher(stage.web, stage.clock.now).addresses
    alive = stage.web.crawlable(stage.clock.now() - 2 * DAY_S)
    wanted = {canonical(addresses.url(place)) for place in alive}
    found = {url for (url,) in stage.rows("SELECT url FROM page WHERE checked_at IS NOT NULL")}
    assert wanted <= found


async def test_a_second_daemon_goes_on_and_nothing_bursts(
    showcase_run: Stage, tmp_path: Path
) -> None:
    stage = showcase_run.copy(tmp_path)
    before = len(stage.server.asked)
    stage.at(VirtualClock(stage.clock.now() + 10 * DAY_S))
    await stage.keep(150.0, 0.25)
    again = stage.server.asked[before:]
    assert abs(len(again) - 37.5) <= 1
    assert min(b - a for (a, _), (b, _) in pairwise(again)) > DAY_S / 158
    assert [state for (state,) in stage.rows("SELECT state FROM crawl_run")] == ["ended", "ended"]


async def test_the_same_seed_gives_the_same_daemon(stage: Stage, showcase_run: Stage) -> None:
    await stage.keep(150.0, 2.0)
    assert len(stage.server.asked) > 290
    assert stage.server.asked == showcase_run.server.asked[: len(stage.server.asked)]


def test_what_changes_often_is_looked_at_more_often(showcase_run: Stage) -> None:
    visits = showcase_run.rows(
        "SELECT sum(kind = 'changed'), count(*) FROM finding "
        "WHERE kind IN ('changed', 'unchanged') GROUP BY page_id HAVING count(*) > 1"
    )
    busy = [count for changed, count in visits if isinstance(changed, int) and changed >= 3]
    quiet = [count for changed, count in visits if changed == 0]
    assert busy
    assert quiet
    assert sum(map(int, map(str, busy))) / len(busy) > 2 * sum(map(int, map(str, quiet))) / len(
        quiet
    )


async def test_a_reload_takes_over_budget_policy_and_sites_at_once(stage: Stage) -> None:
    def more(order: DaemonOrder) -> DaemonOrder:
        wiki = seeds_from_arguments(["http://wiki.localhost/"]).seeds
        return replace(order, budget=480.0, policy="lambda_crawl", seeds=wiki)

    await stage.keep(240.0, 2.0, ["news"], more, reload_at=200)
    times = [at for at, _ in stage.server.asked]
    before, after = times[150] - times[149], times[-10] - times[-11]
    assert before == pytest.approx(360.0)
    assert after == pytest.approx(180.0)
    hosts = {url.split("/")[2] for _, url in stage.server.asked[:200]}
    assert hosts == {"news.localhost"}
    assert "wiki.localhost" in {url.split("/")[2] for _, url in stage.server.asked[200:]}


@pytest.mark.parametrize(
    "wrong", [{"policy": "none"}, pytest.param({"unreadable": "sites.txt"}, marks=pytest.mark.long)]
)
async def test_a_reload_that_cannot_be_followed_changes_nothing(
    stage: Stage, wrong: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    def bad(order: DaemonOrder) -> DaemonOrder:
        if "unreadable" in wrong:
            raise CrawlError(f"{wrong['unreadable']}: No such file or directory")
        return replace(order, budget=9_999.0, policy=wrong["policy"])

    await stage.keep(240.0, 1.0, ["news"], bad, reload_at=100)
    assert abs(len(stage.server.asked) - 240) <= 1
    told = [r.getMessage() for r in caplog.records if "not reloaded" in r.getMessage()]
    assert len(told) == 1
    assert "\n" not in told[0]


@pytest.mark.long
async def test_pages_drawn_at_random_measure_the_freshness(capped_run: Stage) -> None:
    stage = capped_run
    visits = stage.rows("SELECT count(*) FROM audit")[0][0]
    assert 0.2 * 1_920 < int(str(visits)) < 0.3 * 1_920
    async with reading(stage.db) as connection:
        found = await columns.audits(connection, 0.0)
    measured = staleness(found["importance"], found["stale"], found["hazard"])
    assert measured is not None
    for cost in (measured.binary, measured.harmonic):
        assert 0.02 < cost.mean < 0.9
        assert cost.expected == pytest.approx(cost.mean, abs=0.15)


@pytest.mark.long
async def test_rules_keep_pages_away_and_apart_and_bring_them_back(tmp_path: Path) -> None:
    rules = [
        {"match": "/*archive/*", "never": True},
        {"match": "http://docs.localhost/*", "least_days": 3.0},
        {"match": "http://news.localhost/about", "most_days": 0.5},
    ]
    stage = Stage(tmp_path / "crawl.db", sites=rules)
    await stage.keep(140.0, 6.0, ["news", "docs"])
    pages = [(at, url) for at, url in stage.server.asked if not url.endswith((".txt", ".xml"))]
    assert not [url for _, url in pages if "/archive/" in url]
    gaps: dict[str, list[float]] = {}
    for url in {url for _, url in pages}:
        times = [at for at, other in pages if other == url]
        gaps[url] = [b - a for a, b in pairwise(times)]
    docs = [gap for url, all_ in gaps.items() if "docs.localhost" in url for gap in all_]
    assert docs
    assert min(docs) >= 3 * DAY_S
    about = gaps["http://news.localhost/about"]
    assert len(about) >= 9
    assert max(about) <= 0.7 * DAY_S


async def test_what_it_thinks_of_a_page_can_be_told(showcase_run: Stage) -> None:
    stage = showcase_run
    async with reading(stage.db) as connection:
        found = {
            str(url): await forecast_page(connection, int(str(page_id)), stage.clock.now())
            for page_id, url in stage.rows(
                "SELECT id, url FROM page "
                "WHERE url IN ('http://news.localhost/', 'http://news.localhost/about')"
            )
        }
    busy, quiet = found["http://news.localhost/"], found["http://news.localhost/about"]
    assert busy is not None
    assert quiet is not None
    assert busy.rate.lower < busy.rate.per_day <= busy.rate.upper
    assert busy.rate.per_day > 5 * quiet.rate.per_day
    assert busy.importance == Importance(1.0, "site list", "http://news.localhost/", 1.0)
    assert busy.due_in_days is not None
    assert quiet.due_in_days is not None
    # Which is next depends on when each was visited last.
    assert 0 <= busy.due_in_days < 1
    assert 0 <= quiet.due_in_days < 60
    assert busy.estimated_at is not None
    assert 0 <= stage.clock.now() - busy.estimated_at <= HOUR_S
    said = " ".join(sentences(busy, stage.clock.now(), obstacle=None, is_running=True))
    assert "It changes about " in said


@pytest.mark.long
async def test_its_estimates_are_those_of_a_state_that_is_loaded_again(stage: Stage) -> None:
    await stage.keep(120.0, 4.0, ["news"])
    noted = "SELECT page_id, at, rate, visited_at FROM estimate ORDER BY page_id"
    before = stage.rows(noted)
    began_at = stage.clock.now()
    await stage.keep(120.0, 20 / DAY_S, ["news"])
    after = stage.rows(noted)
    assert {page_id for page_id, *_ in before} <= {page_id for page_id, *_ in after}
    assert min(float(str(at)) for _, at, *_ in after) >= began_at
    async with reading(stage.db) as connection:
        settings = await daemon_settings(connection)
        assert settings is not None
        state = await load_state(connection, settings)
        beliefs = state.ranker.beliefs(stage.clock.now() / DAY_S)
        await state.close()
        seen: dict[object, object] = {}
        seen.update((row[0], row[1]) for row in stage.rows("SELECT id, last_at FROM page"))
    for page_id, _, rate, visited_at in after:
        row = state.agenda.pages.row(int(str(page_id)))
        assert row is not None
        if float(str(visited_at)) >= float(str(seen[page_id] or 0)) - 1:
            assert float(str(rate)) == pytest.approx(beliefs.rate[row], rel=0.05)


async def test_there_must_be_something_to_keep_fresh_and_a_policy_that_can(tmp_path: Path) -> None:
    nothing = DaemonOrder(tmp_path / "none.db", [], 10.0)
    with pytest.raises(CrawlError, match="nothing to keep fresh"):
        await keep(quick(), nothing, watch=unwatched)
    with pytest.raises(PolicyError, match="is not known; accepted are"):
        await keep(quick(), DaemonOrder(tmp_path / "none.db", [], 10.0, "none"), watch=unwatched)


async def test_a_day_may_end_while_a_visit_waits_for_a_probe(stage: Stage) -> None:
    seeds = seeds_from_arguments(["http://docs.localhost/"]).seeds
    settings = quick(change__probe=True, politeness__delay_s=HOUR_S)
    # A probe goes out an hour after the visit that asks for it: in between it can be too late.
    for hours in (2.5, 3.5, 4.5):
        order = DaemonOrder(stage.db, seeds, 24.0, time_limit_s=hours * HOUR_S)
        await keep(
            settings, order, watch=unwatched, fetcher=stage.server, clock=stage.clock, rng=Random(1)
        )
    assert_consistent(stage.db)


async def told(stage: Stage, url: str) -> Importance:
    """Where the daemon has the importance of a page from."""
    page_id = stage.rows(f"SELECT id FROM page WHERE url = '{url}'")[0][0]
    async with reading(stage.db) as connection:
        found = await forecast_page(connection, int(str(page_id)), stage.clock.now())
    assert found is not None
    return found.importance


@pytest.mark.long
async def test_what_is_linked_much_is_looked_at_more_than_what_is_not(tmp_path: Path) -> None:
    visits = {}
    for by in ("list", "pagerank"):
        stage = Stage(tmp_path / f"{by}.db", importance=by, sitemaps=False)
        await stage.keep(80.0, 12.0, ["docs"])
        late = stage.clock.now() - 8 * DAY_S
        urls = Counter(url for at, url in stage.server.asked if at > late)
        linked = stage.rows(
            "SELECT p.url FROM page AS p JOIN link AS l ON l.dst_id = p.id WHERE p.role = 'page' "
            "AND p.checked_at NOTNULL GROUP BY p.id ORDER BY count(*) DESC, p.id LIMIT 5"
        )
        visits[by] = sum(urls[str(url)] for (url,) in linked)
        if by == "pagerank":
            home = await told(stage, "http://docs.localhost/")
            assert home.divided_by == "pagerank"
            assert home.share > 2
            assert home.value == pytest.approx(home.share)
    assert visits["pagerank"] > 1.5 * visits["list"]


@pytest.mark.long
async def test_a_reload_takes_over_where_importance_comes_from(stage: Stage) -> None:
    def other(order: DaemonOrder) -> DaemonOrder:
        rules = [{"match": "/about", "importance": 4}]
        settings = quick(daemon__importance="depth", sites=rules)
        return replace(order, settings=settings)

    await stage.keep(240.0, 1.5, ["news"], other, reload_at=200)
    assert (await told(stage, "http://news.localhost/")).divided_by == "depth"
    about = await told(stage, "http://news.localhost/about")
    assert about == Importance(4.0, "table", "/about", valued=4.0)


async def test_its_pages_are_compared_every_day_and_one_of_several_copies_keeps_its_weight(
    showcase_run: Stage,
) -> None:
    stage = showcase_run
    unseen = stage.rows(
        "SELECT count(*) FROM observation WHERE id > (SELECT observation_id FROM lsh)"
    )
    assert unseen == [(0,)]
    groups = stage.rows(
        "SELECT p.url, count(*) FROM duplicate AS d JOIN page AS p ON p.id = d.representative_id "
        "WHERE p.checked_at NOTNULL GROUP BY d.representative_id ORDER BY 2 DESC"
    )
    url, copies = groups[0]
    found = await told(stage, str(url))
    assert (found.near_duplicates, found.is_whole, found.value) == (copies, True, 1.0)
    duplicate = stage.rows(
        "SELECT p.url FROM duplicate AS d JOIN page AS p ON p.id = d.page_id JOIN page AS r "
        f"ON r.id = d.representative_id WHERE r.url = '{url}' LIMIT 1"
    )
    found = await told(stage, str(duplicate[0][0]))
    assert (found.near_duplicates, found.is_whole) == (copies, False)
    assert found.value == pytest.approx(1 / (1 + int(str(copies))))


@dataclass(slots=True)
class Alternating:
    """A web of which one page shows two texts by turns: its changes are judged anew."""

    web: Fetcher
    url: str
    visits: int = 0

    async def fetch(self, request: Request) -> FetchResult:
        found = await self.web.fetch(request)
        if request.url != self.url or found.outcome != "fetched":
            return found
        self.visits += 1
        words = " ".join(f"word{n}of{self.visits % 2}" for n in range(80))
        body = found.body.replace(b"</body>", f"<p>{words}</p></body>".encode())
        return replace(found, body=body, wire_body=body)


@pytest.mark.long
async def test_what_was_judged_anew_is_learnt_anew_every_day(stage: Stage) -> None:
    stage.server.web = Alternating(stage.server.web, "http://news.localhost/")
    await stage.keep(120.0, 1.3, ["news"])
    amended = stage.rows("SELECT count(*) FROM amendment")[0][0]
    assert int(str(amended)) > 0
    # The daemon that went on knows what one knows that begins with the same store now.
    expected = stage.rows("SELECT stale, harmonic FROM outlook ORDER BY at DESC LIMIT 1")
    await stage.keep(120.0, 1e-9, ["news"])
    again = stage.rows("SELECT stale, harmonic FROM outlook ORDER BY at DESC LIMIT 1")
    assert again[0] == pytest.approx(expected[0], rel=1e-5)


async def test_a_site_of_no_importance_is_expected_never(stage: Stage) -> None:
    stage.sites = [{"match": "docs.localhost", "importance": 0.0}]
    await stage.keep(240.0, 0.5, ["news", "docs"])
    sql = (
        "SELECT count(*) > 0, max(b.importance), count(due_at) FROM estimate AS b "
        "JOIN page AS p ON p.id = page_id WHERE url LIKE '%docs%' AND checked_at IS NULL"
    )
    assert stage.rows(sql) == [(1, 0.0, 0)]
