"""The requester: robots.txt hop by hop, probes, API requests, and URLs that are not asked for."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from freshet.crawler.admission.admit import Seeding
from freshet.crawler.compare.not_content.check import Probes
from freshet.crawler.fetch.client import Request
from freshet.crawler.frontier.frontier import ApiRequest, PageRequest, Refusal, RobotsRequest
from freshet.crawler.robots.cache import RobotsRules
from freshet.crawler.run.requester import Requester
from freshet.storage.entries import Host, RobotsRecord
from freshet.storage.records import (
    DueUrl,
    Entry,
    FetchResult,
    Observation,
    SitemapSource,
    StoreUpdate,
    Visit,
)
from tests.crawler.frontier.frontier_world import ALLOW, PRIVATE, page, parsed
from tests.crawler.stages import DUE, NOON, SITE, Stages, answer, no_answer

ROBOTS = RobotsRequest(1, SITE, f"{SITE}/robots.txt", "queue 1")
FILE = f"User-agent: *\nDisallow: /private\nSitemap: {SITE}/map.xml\n".encode()


class Hosts:
    """A requester with its parts; ``refused`` are the pages that it did not request."""

    def __init__(self, *, lasting: bool = False) -> None:
        self.stages = stages = Stages()
        self.refused: list[int] = []
        self.probes = Probes(stages.world.frontier.probe)
        self.requester = Requester(
            pipeline=stages.pipeline, frontier=stages.world.frontier,
            clock=stages.clock, probes=self.probes,
            robots=stages.world.book, rules=RobotsRules(), admission=stages.admission,
            discovery=stages.discovery, seeding=Seeding([], stages.admission),
            queues=self, past=self,
            archive=self, lasting=lasting,
        )  # fmt: skip
        stages.pipeline.recorder.listings.past = self
        stages.admission.scope.add_seed(f"{SITE}/")

    async def queue_key(self, url: str) -> str:
        return f"queue of {url}"

    async def sources(self, page_id: int) -> list[SitemapSource]:
        return []

    async def offsite_at(self, url: str, origin: str) -> list[tuple[str, int]]:
        return [(f"{SITE}/listed", 2)] if url == "http://h2/map.xml" else []

    async def hosts(self, host_ids: Sequence[int]) -> list[Host]:
        return [Host(n, SITE, None, self.stages.world.stored.get(n)) for n in host_ids]

    def unasked(self, due: DueUrl, observation: Observation) -> None:
        self.refused.append(due.page_id)

    async def perform_next(self, *results: FetchResult, at: float = NOON) -> list[Entry]:
        """Perform what the frontier sends out now."""
        self.stages.answers.results += results
        requests = self.stages.world.requests(at)
        return [e for request in requests for e in await self.requester.perform(request)]


@pytest.fixture
async def hosts() -> Hosts:
    return Hosts()


async def test_a_robots_txt_opens_its_host_and_names_sitemaps(hosts: Hosts) -> None:
    hosts.stages.world.frontier.ask_robots(1)
    (visit,) = await hosts.perform_next(answer(FILE))
    assert isinstance(visit, StoreUpdate)
    assert visit.robots is not None
    host_id, record = visit.robots
    assert (host_id, record.standing, visit.fetches) == (1, "parsed", 1)
    assert visit.targets is not None
    assert (visit.targets.urls, visit.targets.column("roles")) == ([f"{SITE}/map.xml"], ["sitemap"])
    assert hosts.stages.world.frontier.permits(1, f"{SITE}/private/x", NOON) is False
    (asked,) = hosts.stages.answers.asked
    assert asked == Request(ROBOTS.url, "robots", max_body_bytes=RobotsRules().max_bytes + 1)


async def test_a_robots_txt_that_was_put_away_is_read_from_the_store(hosts: Hosts) -> None:
    world = hosts.stages.world
    world.settle(1, parsed(PRIVATE, NOON), NOON)
    world.supply(page(7, 1))
    world.book.room_bytes = 0
    world.book.settle(9, "http://h9", parsed(ALLOW, NOON), NOON)
    assert await hosts.perform_next() == []
    assert world.requests(NOON) == [PageRequest(page(7, 1), "queue 1")]


async def test_of_the_sitemaps_that_a_robots_txt_names_few_are_strangers(hosts: Hosts) -> None:
    hosts.stages.world.frontier.ask_robots(1)
    named = [f"Sitemap: http://s{n}/map.xml" for n in range(400)]
    named += [f"Sitemap: {SITE}/{n}.xml" for n in range(2_000)] + [f"Sitemap: {SITE}/{'a' * 3_000}"]
    (visit,) = await hosts.perform_next(answer("\n".join(named).encode()))
    assert isinstance(visit, StoreUpdate)
    assert visit.targets is not None
    own = [url.startswith(SITE) for url in visit.targets.urls if "map" in url or "xml" in url]
    assert (own.count(False), own.count(True)) == (10, 1_000)


async def test_a_relative_sitemap_line_is_meant_relative_to_its_robots_txt(hosts: Hosts) -> None:
    hosts.stages.world.frontier.ask_robots(1)
    (visit,) = await hosts.perform_next(answer(b"Sitemap: /maps/1.xml\nSitemap: 2.xml"))
    assert isinstance(visit, StoreUpdate)
    assert visit.targets is not None
    assert visit.targets.urls == [f"{SITE}/maps/1.xml", f"{SITE}/2.xml"]


async def test_what_a_sitemap_elsewhere_listed_is_admitted_once_it_may_speak(hosts: Hosts) -> None:
    hosts.stages.world.frontier.ask_robots(1)
    (visit,) = await hosts.perform_next(answer(b"Sitemap: http://h2/map.xml"))
    assert isinstance(visit, StoreUpdate)
    assert visit.targets is not None
    assert visit.targets.urls == ["http://h2/map.xml", f"{SITE}/listed"]
    assert visit.targets.column("depths") == [0, 3]


async def test_a_redirected_robots_txt_is_followed_on_the_queue_of_its_target(hosts: Hosts) -> None:
    hosts.stages.world.frontier.ask_robots(1)
    moved = no_answer("redirected", 301, "http_301", location="http://h9/robots.txt")
    assert await hosts.perform_next(moved) == []
    (request,) = hosts.stages.world.requests(NOON)
    # The host has chosen where: it is asked without secrets.
    assert request == replace(
        ROBOTS,
        url="http://h9/robots.txt",
        queue="queue of http://h9/robots.txt",
        redirects=1,
        is_anonymous=True,
    )
    hosts.stages.answers.results.append(answer(FILE))
    (visit,) = await hosts.requester.perform(request)
    assert isinstance(visit, StoreUpdate)
    assert visit.robots is not None
    assert (visit.fetches, visit.robots[1].standing) == (2, "parsed")


async def test_a_robots_txt_that_is_another_hosts_is_not_fetched_again_for_a_day(
    hosts: Hosts,
) -> None:
    world, day_s = hosts.stages.world, RobotsRules().max_age_s
    file = RobotsRecord("parsed", NOON - 3_600, FILE)
    world.add(2, "queue 2")
    world.settle(2, file, NOON - 3_600)
    world.frontier.ask_robots(1)
    moved = no_answer("redirected", 301, "http_301", location="http://h2/robots.txt")
    (note,) = await hosts.perform_next(moved)
    assert isinstance(note, StoreUpdate)
    assert (note.robots, note.fetches) == ((1, replace(file, body=FILE)), 1)
    assert world.frontier.permits(1, f"{SITE}/private/x", NOON) is False
    # As old as it is: both are fetched again at the same time.
    assert world.book.fresh_until(1) == world.book.fresh_until(2) == file.fetched_at + day_s


async def test_redirects_of_a_robots_txt_are_followed_five_times() -> None:
    moved = no_answer("redirected", 301, "http_301", location="http://h9/robots.txt")
    requester = Hosts().requester
    assert await requester.next_hop(replace(ROBOTS, redirects=4), moved) is not None
    assert await requester.next_hop(replace(ROBOTS, redirects=5), moved) is None


@pytest.mark.parametrize("lasting", [False, True])
async def test_a_host_without_an_address_is_given_up_in_a_run_that_ends(*, lasting: bool) -> None:
    hosts = Hosts(lasting=lasting)
    await hosts.requester.robots_answered(ROBOTS, no_answer("failed", None, "no_such_host"))
    visit = hosts.requester.refuse(Refusal(DUE, "Disallow: /"))
    kind, reason = ("refused", "robots") if lasting else ("failed", "no_such_host")
    assert (visit.observation.kind, visit.observation.reason) == (kind, reason)
    assert (visit.fetches, hosts.refused) == (0, [DUE.page_id])


async def test_a_file_that_broke_off_says_nothing_and_the_older_copy_counts() -> None:
    broken = replace(answer(FILE), outcome="failed", reason="cut_short")
    (visit, *_) = await Hosts().requester.robots_answered(ROBOTS, broken)
    assert isinstance(visit, StoreUpdate)
    assert visit.robots is not None
    assert (visit.robots[1].standing, visit.robots[1].stale_since) == ("parsed", NOON)


async def test_a_probe_is_asked_for_and_recorded(hosts: Hosts) -> None:
    assert hosts.stages.world.frontier.probe(1, f"{SITE}/none")
    (entry,) = await hosts.perform_next(no_answer("gone", 404, "http_404"))
    host = hosts.stages.world.frontier.host_state(1)
    assert entry == StoreUpdate(NOON, fetches=1, host=host)
    assert hosts.stages.answers.asked == [Request(f"{SITE}/none", "probe")]


async def test_what_follows_from_an_api_request_is_written_with_it(hosts: Hosts) -> None:
    noted = StoreUpdate(NOON, fetches=1)
    frontier = hosts.stages.world.frontier
    frontier.queue(ApiRequest("http://hub/", "hub", lambda _result, _now: [noted], form="a=b"))
    assert frontier.api_requests == 1
    assert await hosts.perform_next(answer(b"ok")) == [StoreUpdate(NOON, fetches=1), noted]
    asked = Request("http://hub/", "answer", form="a=b", is_anonymous=True)
    assert hosts.stages.answers.asked == [asked]
    assert frontier.api_requests == 0


async def test_a_page_is_visited_by_the_pipeline(hosts: Hosts) -> None:
    hosts.stages.world.supply(DUE)
    (visit,) = await hosts.perform_next(answer())
    assert isinstance(visit, Visit)
    assert visit.observation.kind == "new"
