"""What is known of robots.txt files: how long it counts, and what follows for hosts."""

from itertools import pairwise
from random import Random

import pytest

from freshet.crawler.frontier.politeness import PolitenessRules
from freshet.crawler.robots import in_force
from freshet.crawler.robots.cache import RobotsCache, RobotsRules
from freshet.storage.entries import Host, RobotsRecord, RobotsStanding

DAY_S = 86_400.0
NOON = 1_800_000_000.0
ORIGIN = "https://a.example"
PRIVATE = b"User-agent: *\nDisallow: /private\n"
SITEMAP = "https://cdn.example/map.xml"


def book() -> RobotsCache:
    return RobotsCache("freshet", RobotsRules(), PolitenessRules(), Random(0))


def parsed(at: float, body: bytes = PRIVATE) -> RobotsRecord:
    return RobotsRecord("parsed", at, body)


def unreachable(at: float, why: str = "timeout_headers") -> RobotsRecord:
    return RobotsRecord("unreachable", at, b"", why)


def test_an_unknown_host_has_no_fresh_robots_txt_and_is_not_closed() -> None:
    assert not book().is_fresh(1, NOON)
    assert book().closed(1, NOON) == (0.0, None)


@pytest.mark.parametrize("standing", ["parsed", "allow_all"])
def test_a_robots_txt_is_fresh_for_24_hours(standing: RobotsStanding) -> None:
    known = book()
    known.settle(1, ORIGIN, RobotsRecord(standing, NOON, b""), NOON)
    assert known.fresh_until(1) == NOON + DAY_S
    assert known.is_fresh(1, NOON + DAY_S - 1)
    assert not known.is_fresh(1, NOON + DAY_S)


def test_a_robots_txt_counts_for_some_requests_however_soon_it_is_to_be_read_again() -> None:
    rules = PolitenessRules(delay_s=100.0)
    known = RobotsCache("freshet", RobotsRules(max_age_s=0.0), rules, Random(0))
    known.settle(1, ORIGIN, parsed(NOON), NOON)
    assert known.is_fresh(1, NOON + 2 * rules.delay_s)
    assert not known.is_fresh(1, NOON + 4 * rules.delay_s)


def test_a_verdict_names_the_rule() -> None:
    known = book()
    known.settle(1, ORIGIN, parsed(NOON), NOON)
    assert known.verdict(1, f"{ORIGIN}/public").allowed
    verdict = known.verdict(1, f"{ORIGIN}/private/x")
    assert not verdict.allowed
    assert verdict.rule == "Disallow: /private"


def test_a_pause_that_must_not_grow_stays_as_it_is() -> None:
    rules = PolitenessRules(back_off_factor=1.0, back_off_jitter=0.0)
    known = RobotsCache("freshet", RobotsRules(), rules, Random(0))
    for _ in range(9):
        known.settle(1, ORIGIN, unreachable(NOON), NOON)
    assert known.closed(1, NOON)[0] == NOON + rules.back_off_initial_s


def test_the_pause_of_a_dead_host_grows_to_a_month() -> None:
    known, now, pauses = book(), 0.0, list[float]()
    for _ in range(20):
        known.settle(1, ORIGIN, unreachable(now), now)
        until, _ = known.closed(1, now)
        pauses.append(until - now)
        now = until
    assert pauses[6] < 8 * 3_600
    assert all(later > 0.7 * before for before, later in pairwise(pauses))
    assert pauses[-1] == 30 * 86_400


def test_an_unreachable_robots_txt_without_a_copy_closes_the_host_and_backs_off() -> None:
    known, now = book(), NOON
    for bare in (5.0, 20.0, 80.0):
        known.settle(1, ORIGIN, unreachable(now), now)
        until, why = known.closed(1, now)
        assert bare <= until - now <= bare * 1.25
        assert why == "robots.txt unreachable: timeout_headers"
        assert not known.is_fresh(1, now)
        assert not known.verdict(1, f"{ORIGIN}/public").allowed
        now = until


def test_a_copy_stands_in_while_the_file_is_unreachable_and_is_asked_for_again() -> None:
    known = book()
    known.settle(1, ORIGIN, parsed(NOON), NOON)
    now = NOON + DAY_S
    record = known.settle(1, ORIGIN, unreachable(now), now)
    assert (record.fetched_at, record.stale_since) == (NOON, now)
    assert known.closed(1, now) == (0.0, None)
    assert known.is_fresh(1, now + 4.9)
    assert not known.is_fresh(1, now + 6.3)
    assert not known.verdict(1, f"{ORIGIN}/private/x").allowed
    assert known.verdict(1, f"{ORIGIN}/public").allowed


def test_a_copy_older_than_30_days_no_longer_stands_in() -> None:
    known = book()
    known.settle(1, ORIGIN, parsed(NOON), NOON)
    now = NOON + 30 * DAY_S + 1
    assert known.settle(1, ORIGIN, unreachable(now), now).standing == "unreachable"
    assert known.closed(1, now)[0] > now


def test_a_reachable_file_ends_the_back_off() -> None:
    known = book()
    for _ in range(4):
        known.settle(1, ORIGIN, unreachable(NOON), NOON)
    known.settle(1, ORIGIN, parsed(NOON), NOON)
    known.settle(2, "https://b.example", unreachable(NOON), NOON)
    assert known.closed(1, NOON) == (0.0, None)
    later = NOON + 40 * DAY_S
    known.settle(1, ORIGIN, unreachable(later), later)
    assert known.closed(1, later)[0] <= later + 6.25


def test_what_an_earlier_run_knew_is_used_for_the_rest_of_its_24_hours() -> None:
    known = book()
    known.learn(Host(1, ORIGIN, None, parsed(NOON)))
    assert known.fresh_until(1) == NOON + DAY_S
    assert not known.verdict(1, f"{ORIGIN}/private").allowed


@pytest.mark.parametrize(
    "record", [unreachable(NOON), RobotsRecord("parsed", NOON, PRIVATE, "dns", stale_since=NOON)]
)
def test_an_earlier_runs_unreachable_file_and_its_stand_in_are_asked_for_anew(
    record: RobotsRecord,
) -> None:
    known = book()
    known.learn(Host(1, ORIGIN, None, record))
    assert not known.is_fresh(1, NOON + 1)
    assert known.closed(1, NOON + 1)[0] <= NOON + 1


def test_a_stored_copy_stands_in_when_the_first_fetch_fails() -> None:
    known = book()
    known.learn(Host(1, ORIGIN, None, parsed(NOON)))
    now = NOON + 2 * DAY_S
    assert known.settle(1, ORIGIN, unreachable(now), now).fetched_at == NOON
    assert known.is_fresh(1, now)


def test_what_this_run_has_learnt_is_not_replaced_by_what_an_earlier_knew() -> None:
    known = book()
    known.settle(1, ORIGIN, parsed(NOON, b""), NOON)
    known.learn(Host(1, ORIGIN, None, parsed(NOON - DAY_S)))
    assert known.verdict(1, f"{ORIGIN}/private").allowed


def test_a_barred_host_is_open_for_refusals_with_the_reason() -> None:
    known = book()
    known.settle(1, ORIGIN, unreachable(NOON), NOON)
    known.bar(1, "address", "a.example: 10.0.0.1 is private")
    assert known.is_fresh(1, NOON + 99 * DAY_S)
    assert known.closed(1, NOON) == (0.0, None)
    verdict = known.verdict(1, f"{ORIGIN}/")
    assert (verdict.allowed, verdict.rule) == (False, "a.example: 10.0.0.1 is private")


def test_the_crawl_delay_and_sitemaps_are_those_of_the_newest_file() -> None:
    known = book()
    assert known.crawl_delay_s(1) == 0.0
    text = f"User-agent: *\nCrawl-delay: 4\nSitemap: {SITEMAP}\n".encode()
    known.settle(1, ORIGIN, parsed(NOON, text), NOON)
    assert known.crawl_delay_s(1) == 4.0
    assert known.sitemaps(1) == (SITEMAP,)
    assert known.naming_origins(SITEMAP) == {ORIGIN}
    assert known.naming_origins("https://cdn.example/other.xml") == frozenset()
    known.settle(1, ORIGIN, parsed(NOON, b""), NOON)
    assert known.crawl_delay_s(1) == 0.0
    assert known.sitemaps(1) == ()


def test_a_host_whose_file_was_put_away_is_closed_until_it_is_restored() -> None:
    known = book()
    known.room_bytes = 50_000
    for host_id in range(100):
        known.settle(host_id, f"https://h{host_id}.example", parsed(NOON), NOON)
    assert 100 - len(known.put_away) == 50_000 // in_force(parsed(NOON)).size_bytes
    assert known.verdict(99, "https://h99.example/public").allowed
    for at in (NOON, NOON - 1):
        host_id = int(NOON - at)
        assert known.is_put_away(host_id)
        assert not known.is_fresh(host_id, NOON)
        assert not known.verdict(host_id, f"https://h{host_id}.example/public").allowed
        known.restore(Host(host_id, ORIGIN, None, parsed(at)), in_force(parsed(at)))
        assert not known.is_put_away(host_id)
        assert known.is_fresh(host_id, NOON) is (at == NOON)
