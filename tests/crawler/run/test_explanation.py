"""The next_visit of a URL follows from its place, robots.txt and politeness, in that order."""

from dataclasses import astuple

import pytest

from freshet.config.loading import load
from freshet.crawler.run.explanation import Explanation, explain
from freshet.storage.queries.page import snapshot
from tests.storage.small_store import HOST, SmallStore

NOW = 1_800_000_000.0
DAY_S = 86_400.0
NOT_DUE = "due in the next crawl"


def robots(site: SmallStore, body: str = "", **columns: object) -> None:
    plain: dict[str, object] = {
        "host_id": 1, "standing": "parsed", "fetched_at": NOW - 60, "body": body.encode()
    }  # fmt: skip
    site.insert("robots", **plain | columns)


async def explained(site: SmallStore, *urls: str, agent: str = "Freshet") -> Explanation:
    settings, _ = load(None, {"crawl.product": agent, "crawl.permanent_recheck_days": 30})
    async with snapshot(site.path) as connection:
        return await explain(connection, urls or [f"{HOST}/"], settings, NOW)


def way_to(told: Explanation) -> tuple[object, ...]:
    assert told.found is not None
    return astuple(told.found)


async def test_a_url_in_the_frontier_is_due_now(site: SmallStore) -> None:
    site.due(site.page("/"), NOW - 1)
    assert (await explained(site)).next_visit == "due now"


async def test_a_retry_waits_for_its_time(site: SmallStore) -> None:
    site.due(site.page("/"), NOW + 125, attempt=1)
    next_visit = (await explained(site)).next_visit
    assert next_visit.startswith("another try is due at ")
    assert next_visit.endswith("(in 2 min)")


async def test_a_deferred_url_gives_the_reason(site: SmallStore) -> None:
    site.due(site.page("/"), NOW - 1, deferred="http_503")
    assert (await explained(site)).next_visit == (
        "deferred to the next run (http_503), due first there"
    )


async def test_a_settled_url_is_due_in_the_next_run(site: SmallStore) -> None:
    site.page("/", last_kind="unchanged", last_at=NOW - 5)
    assert (await explained(site)).next_visit == NOT_DUE


async def test_a_url_that_is_held_back_says_why_and_nothing_else(site: SmallStore) -> None:
    robots(site, "User-agent: *\nDisallow: /")
    site.page("/", held_back="trap: calendar")
    assert (await explained(site)).next_visit == "not crawled: trap: calendar"


@pytest.mark.parametrize(("age_days", "asked_again"), [(29, False), (31, True)])
async def test_a_permanent_alias_is_asked_again_after_some_days(
    site: SmallStore, age_days: int, asked_again: bool
) -> None:
    page = site.page("/new")
    site.page("/", alias_of=page, alias_kind="permanent", alias_at=NOW - age_days * DAY_S)
    next_visit = (await explained(site)).next_visit
    assert (next_visit == NOT_DUE) is asked_again
    assert ("an alias, visited again in the first run after" in next_visit) is not asked_again


async def test_a_parked_host_stands_in_the_way_until_its_time(site: SmallStore) -> None:
    site.execute(
        "UPDATE host SET queue = 'one.example', last_exchange_at = ?, delay_s = 1.0, "
        "parked_until = ?, parked_reason = 'http_429'", NOW - 5, NOW + 7_300,
    )  # fmt: skip
    site.due(site.page("/"), NOW - 1)
    next_visit = (await explained(site)).next_visit
    assert next_visit.startswith("due now; its host is paused until ")
    assert next_visit.endswith("(in 2 h): http_429")


async def test_what_robots_forbids_is_told_with_rule_line_and_group(site: SmallStore) -> None:
    robots(site, "User-agent: Freshet\nCrawl-delay: 4\nDisallow: /private/\nAllow: /\n")
    site.due(site.page("/private/a"), NOW - 1)
    told = await explained(site, f"{HOST}/private/a")
    assert told.next_visit == "not visited: robots.txt forbids this page (Disallow: /private/)"
    assert told.robots is not None
    verdict = told.robots.verdict
    assert (verdict.rule, verdict.line, verdict.agent) == ("Disallow: /private/", 3, "freshet")
    assert told.robots.crawl_delay_s == 4.0


async def test_the_verdict_is_that_for_the_configured_agent(site: SmallStore) -> None:
    robots(site, "User-agent: mine\nDisallow: /\n")
    site.due(site.page("/"), NOW - 1)
    assert (await explained(site)).next_visit == "due now"
    told = await explained(site, agent="mine")
    assert "robots.txt forbids this page" in told.next_visit


async def test_an_unreachable_robots_closes_its_host(site: SmallStore) -> None:
    robots(site, standing="unreachable", reason="timeout_headers")
    site.due(site.page("/"), NOW - 1)
    told = await explained(site)
    assert told.next_visit == (
        "due now; its host is not visited while robots.txt is unreachable: timeout_headers"
    )
    assert told.robots is not None
    assert (told.robots.standing, told.robots.fresh) == ("unreachable", False)


@pytest.mark.parametrize(("age_s", "fresh"), [(3_600.0, True), (DAY_S, False)])
async def test_a_robots_is_fresh_for_as_long_as_the_settings_say(
    site: SmallStore, age_s: float, fresh: bool
) -> None:
    site.page("/")
    robots(site, fetched_at=NOW - age_s)
    told = await explained(site)
    assert told.robots is not None
    assert told.robots.fresh is fresh


async def test_a_page_is_found_by_the_first_link_with_its_anchor(site: SmallStore) -> None:
    page, home = site.page("/a"), site.page("/")
    site.link(home, page, NOW, anchor="An article", rel="nofollow")
    way = ("link", f"{HOST}/", "An article", "nofollow")
    assert way_to(await explained(site, f"{HOST}/a")) == way


async def test_a_seed_is_found_by_its_line_whatever_links_to_it(site: SmallStore) -> None:
    page, other = site.page("/"), site.page("/a")
    site.link(other, page, NOW)
    site.insert("seed", text="one.example", url=f"{HOST}/", page_id=page, added_at=NOW)
    assert way_to(await explained(site)) == ("seed", "one.example", None, None)


async def test_a_sitemaps_entry_is_found_by_the_sitemap(site: SmallStore) -> None:
    page, sitemap = site.page("/a"), site.page("/sitemap.xml", role="sitemap")
    site.link(sitemap, page, NOW, rel="sitemap")
    way = ("sitemap", f"{HOST}/sitemap.xml", None, "sitemap")
    assert way_to(await explained(site, f"{HOST}/a")) == way
    named = way_to(await explained(site, f"{HOST}/sitemap.xml"))
    assert named == ("robots.txt", None, None, None)


async def test_the_target_of_a_redirect_is_found_by_it(site: SmallStore) -> None:
    page = site.page("/new", redirects=1, found_at=NOW - 50)
    site.page("/old", alias_of=page, alias_kind="temporary", alias_at=NOW - 50)
    site.link(site.page("/later"), page, NOW)
    way = ("redirect", f"{HOST}/old", None, None)
    assert way_to(await explained(site, f"{HOST}/new")) == way


async def test_an_unknown_url_still_gets_the_verdict_of_its_host(site: SmallStore) -> None:
    site.page("/")
    robots(site, "User-agent: *\nDisallow: /x\n")
    told = await explained(site, "https://one.example/x", f"{HOST}/x")
    assert (told.url, told.known) == (f"{HOST}/x", None)
    assert told.next_visit == "not crawled: no seed, link, sitemap or redirect leads to it"
    assert told.robots is not None
    assert not told.robots.verdict.allowed
    assert told.nearest == [f"{HOST}/"]


async def test_a_url_that_was_linked_out_of_scope_names_the_link(site: SmallStore) -> None:
    site.link(site.page("/"), "https://far.example/", NOW, anchor="Far")
    told = await explained(site, "https://far.example/")
    assert told.next_visit == "not crawled: it was out of scope when a link to it was found"
    assert told.linked_out_of_scope is not None
    assert told.linked_out_of_scope.url == f"{HOST}/"


async def test_a_url_of_a_closed_pattern_says_what_it_was_closed_for(site: SmallStore) -> None:
    one = site.page("/", pattern="/list?sort", held_back="trap: copies")
    site.insert(
        "trap", host_id=1, shape="/list?sort", kind="trap: copies", admitted=31, copies=30,
        closed_at=NOW,
    )  # fmt: skip
    found = await explained(site)
    assert found.next_visit == (
        "not crawled: trap: copies: 30 of 31 pages like /list?sort repeat the text of other pages; "
        "a sample is visited to see if that changes"
    )
    site.page("/copy", pattern="/list?sort", copy_of=one)
    assert (await explained(site, f"{HOST}/copy")).copy_of == f"{HOST}/"
