"""The frontier hands out what may start now, and forgets nothing."""

from dataclasses import replace
from datetime import UTC

import pytest

from freshet.crawler.frontier.frontier import PageRequest, ProbeRequest, Refusal, RobotsRequest
from freshet.crawler.frontier.politeness import Hours, PolitenessRules
from freshet.storage.entries import RobotsRecord
from tests.crawler.frontier.frontier_world import (
    ALLOW,
    DAY_S,
    PRIVATE,
    RULES,
    SLOW,
    World,
    page,
    parsed,
)


@pytest.fixture
def world() -> World:
    return World()


def test_a_hosts_robots_txt_comes_before_its_first_page(world: World) -> None:
    world.add(1, "a")
    world.supply(page(1, 1))
    (request,) = world.requests(100.0)
    assert request == RobotsRequest(1, "http://h1", "http://h1/robots.txt", "a")
    world.fine("a", 100.5)
    world.settle(1, parsed(ALLOW, 100.5), 100.5)
    assert world.requests(100.5) == []
    assert world.frontier.wakes_at() == 101.5
    assert world.requests(101.5) == [PageRequest(page(1, 1), "a")]


def test_a_crawl_delay_holds_from_the_robots_txt_that_states_it(world: World) -> None:
    world.add(1, "a")
    world.supply(page(1, 1))
    world.requests(100.0)
    world.fine("a", 100.0)
    world.settle(1, parsed(SLOW, 100.0), 100.0)
    assert world.frontier.wakes_at() == 107.0


def test_refusals_do_not_occupy_the_queue(world: World) -> None:
    world.add(1, "a", parsed(PRIVATE, 0.0))
    refused = [page(i, 1, f"private/{i}") for i in range(5)]
    world.supply(*refused, page(9, 1))
    requests = world.requests(0.0)
    assert requests[:5] == [Refusal(due, "Disallow: /private") for due in refused]
    assert requests[5:] == [PageRequest(page(9, 1), "a")]


def test_a_spelling_is_asked_for_as_found_unless_only_the_canonical_one_is_allowed() -> None:
    due = replace(page(1, 1), fetch_url="http://h1/1?utm_source=x")
    for rules, taken in ((ALLOW, due), (b"User-agent: *\nDisallow: /*utm_\n", page(1, 1))):
        world = World()
        world.add(1, "a", parsed(rules, 0.0))
        world.supply(due)
        assert world.requests(0.0) == [PageRequest(taken, "a")]


def test_a_shared_queue_rotates_between_its_hosts(world: World) -> None:
    for host_id in (1, 2, 3):
        world.add(host_id, "d", parsed(ALLOW, 0.0))
        world.supply(*(page(host_id * 10 + i, host_id) for i in range(3)))
    assert [host for _, host in world.order(60.0)] == [1, 2, 3] * 3


def test_one_huge_host_does_not_starve_the_others(world: World) -> None:
    for host_id in range(1, 5):
        world.add(host_id, f"queue {host_id}", parsed(ALLOW, 0.0))
    world.supply(*(page(i, 1) for i in range(100)))
    world.supply(*(page(1_000 + host_id, host_id) for host_id in (2, 3, 4)))
    order = world.order(3.0)
    assert {host for at, host in order if at == 0.0} == {1, 2, 3, 4}


def test_queues_are_served_in_the_order_in_which_they_became_ready(world: World) -> None:
    for host_id in (1, 2, 3):
        world.add(host_id, f"queue {host_id}", parsed(ALLOW, 0.0))
        world.supply(page(host_id, host_id), page(10 + host_id, host_id))
    first = [world.frontier.next(0.0) for _ in range(3)]
    assert [e.due.host_id for e in first if isinstance(e, PageRequest)] == [1, 2, 3]
    for queue, at in (("queue 2", 1.0), ("queue 3", 2.0), ("queue 1", 3.0)):
        world.fine(queue, at)
    again = world.requests(10.0)
    assert [e.due.host_id for e in again if isinstance(e, PageRequest)] == [2, 3, 1]


def test_new_urls_do_not_cost_a_ready_queue_its_place(world: World) -> None:
    for host_id in (1, 2):
        world.add(host_id, f"queue {host_id}", parsed(ALLOW, 0.0))
    world.supply(page(1, 1), page(2, 2), page(3, 2))
    assert world.frontier.next(0.0) == PageRequest(page(1, 1), "queue 1")
    world.supply(page(4, 2))
    world.add(3, "queue 3", parsed(ALLOW, 0.0))
    world.supply(page(5, 3))
    assert world.frontier.next(0.0) == PageRequest(page(2, 2), "queue 2")


def test_a_robots_txt_that_grows_old_is_asked_for_even_while_the_pool_is_full(world: World) -> None:
    world.add(1, "a", parsed(ALLOW, 0.0))
    world.add(2, "b", parsed(ALLOW, 10.0))
    world.supply(page(1, 1), page(2, 2))
    world.supply(*(page(10 + i, 2) for i in range(3)))
    # The queue of host 2 is ready and stays so, because one request at a time is taken.
    assert world.frontier.next(DAY_S - 1) == PageRequest(page(1, 1), "a")
    request = world.frontier.next(DAY_S + 10)
    assert request == RobotsRequest(2, "http://h2", "http://h2/robots.txt", "b")


def test_an_unreachable_robots_txt_closes_its_host_until_the_next_try(world: World) -> None:
    world.add(1, "a")
    world.supply(page(1, 1))
    world.requests(0.0)
    world.fine("a", 0.0)
    world.settle(1, RobotsRecord("unreachable", 0.0, b"", "timeout"), 0.0)
    wakes_at = world.frontier.wakes_at()
    assert wakes_at is not None
    assert RULES.back_off_initial_s <= wakes_at <= RULES.back_off_initial_s * 1.25
    assert world.requests(wakes_at - 0.1) == []
    assert world.frontier.waits(1.0) == {1: "robots.txt unreachable: timeout"}
    assert [type(e) for e in world.requests(wakes_at)] == [RobotsRequest]


def test_a_closed_host_does_not_close_the_others_on_its_queue(world: World) -> None:
    world.add(1, "a")
    world.add(2, "a", parsed(ALLOW, 0.0))
    world.supply(page(1, 1), page(2, 2))
    world.requests(0.0)
    world.fine("a", 0.0)
    world.settle(1, RobotsRecord("unreachable", 0.0), 0.0)
    assert world.requests(1.0) == [PageRequest(page(2, 2), "a")]


def test_the_pages_of_a_barred_host_are_refused_at_once(world: World) -> None:
    world.add(1, "a")
    world.supply(page(1, 1), page(2, 1))
    world.requests(0.0)
    world.fine("a", 0.0)
    world.book.bar(1, "no_such_host", "h1: no such name")
    world.settle(1, RobotsRecord("unreachable", 0.0), 0.0)
    assert [type(e) for e in world.requests(1.0)] == [Refusal, Refusal]
    assert world.frontier.wakes_at() is None


def test_a_robots_redirect_waits_for_the_queue_of_its_target(world: World) -> None:
    world.add(1, "a")
    world.add(2, "b", parsed(ALLOW, 0.0))
    world.supply(page(1, 1), page(2, 2))
    robots = next(e for e in world.requests(0.0) if isinstance(e, RobotsRequest))
    world.fine("a", 0.0)
    hop = replace(robots, url="http://h2/other.txt", queue="b", redirects=1)
    world.frontier.follow(hop)
    assert world.requests(50.0) == []
    world.frontier.ended("b", 50.0, 0.0, "throttled", 600.0, "http_429")
    assert world.frontier.waits(51.0) == {1: "http_429"}
    assert world.requests(650.0) == [hop]


def test_a_robots_txt_can_be_asked_for_before_any_url_is_due(world: World) -> None:
    world.add(1, "a")
    world.frontier.ask_robots(1)
    world.frontier.ask_robots(1)
    assert world.requests(0.0) == [RobotsRequest(1, "http://h1", "http://h1/robots.txt", "a")]
    world.fine("a", 0.0)
    world.settle(1, parsed(ALLOW, 0.0), 0.0)
    assert world.frontier.wakes_at() is None


@pytest.mark.parametrize("connections", [1, 2, 3])
def test_a_queue_has_as_many_exchanges_at_once_as_connections(connections: int) -> None:
    world = World(PolitenessRules(connections_per_host=connections))
    world.add(1, "a", parsed(ALLOW, 0.0))
    world.supply(*(page(i, 1) for i in range(5)))
    assert len(world.requests(0.0)) == connections


def test_a_queue_obeys_the_strictest_of_its_hosts_and_others_the_rules_of_all() -> None:
    own = {"http://h1": PolitenessRules(0.5, 4), "http://h2": PolitenessRules(5.0, 2)}
    world = World(PolitenessRules(delay_s=2.0))
    world.frontier.rules_at = lambda rules, origin: own.get(origin, rules)
    for host_id, queue in ((1, "a"), (2, "b"), (3, "c"), (1, "d"), (2, "d"), (3, "d")):
        world.add(host_id + (10 if queue == "d" else 0), queue, parsed(ALLOW, 0.0))
    own |= {"http://h11": own["http://h1"], "http://h12": own["http://h2"]}
    pace = [(0.5, 4), (5.0, 2), (2.0, 1), (2.0, 1)]
    for queue, expected in zip("abcd", pace, strict=True):
        rules = world.frontier._queues[queue].state.rules
        assert (rules.delay_s, rules.connections_per_host) == expected
    # As after a reload.
    world.frontier.obey(PolitenessRules(delay_s=3.0), world.frontier.rules_at)
    pace = [(0.5, 4), (5.0, 2), (3.0, 1), (5.0, 1)]
    for queue, expected in zip("abcd", pace, strict=True):
        rules = world.frontier._queues[queue].state.rules
        assert (rules.delay_s, rules.connections_per_host) == expected


def test_requests_start_within_the_hours_of_a_host_and_wait_for_them() -> None:
    world = World(PolitenessRules(delay_s=1_800.0, hours=(Hours(60, 180, UTC),)))
    world.add(1, "a", parsed(ALLOW, 0.0))
    world.supply(*(page(i, 1) for i in range(8)))
    times = [at / 3_600.0 for at, _ in world.order(20 * 3_600.0)]
    assert times == [1.0, 1.5, 2.0, 2.5]
    assert world.frontier.wakes_at() == 25 * 3_600.0


def test_a_queue_that_is_ready_when_its_hours_end_waits_for_the_next() -> None:
    world = World(PolitenessRules(delay_s=0.0, hours=(Hours(0, 60, UTC),)))
    world.add(1, "a", parsed(ALLOW, 0.0))
    world.supply(page(1, 1))
    assert world.frontier.next(0.0, pages=False) is None
    assert world.requests(3_600.0) == []
    assert world.frontier.wakes_at() == DAY_S


def test_the_memory_of_waiting_queues_does_not_grow_with_their_wakes(world: World) -> None:
    world.add(1, "a", parsed(ALLOW, 0.0))
    world.supply(page(0, 1))
    world.requests(0.0)
    world.frontier.ended("a", 0.0, 0.0, "throttled", 3600.0, "http_429")
    for i in range(1, 100):
        world.supply(page(i, 1))
    assert len(world.frontier._waiting) == 1


def test_the_frontier_uses_what_time_politeness_leaves(world: World) -> None:
    for host_id in range(20):
        world.add(host_id, f"queue {host_id}", parsed(ALLOW, 0.0))
        world.supply(*(page(host_id * 1_000 + i, host_id) for i in range(100)))
    order = world.order(99.0, response_s=0.25)
    # 20 hosts, 1.25 s for each exchange: what a perfect crawler would do in 100 seconds.
    assert len(order) == 20 * 80


def test_a_host_is_active_unless_it_is_kept_waiting_or_has_no_work(world: World) -> None:
    for host_id, queue in ((1, "a"), (2, "b"), (3, "c")):
        world.add(host_id, queue, parsed(ALLOW, 0.0))
    world.supply(page(1, 1), page(2, 2), page(3, 2))
    assert world.frontier.active(0.0) == 2
    assert len(world.requests(0.0)) == 2
    assert world.frontier.active(0.0) == 2
    world.fine("a", 0.5)
    assert world.frontier.active(0.5) == 1
    world.frontier.ended("b", 0.5, 0.1, "down", None, "connect")
    assert world.frontier.active(0.5) == 0
    assert world.frontier.waits(0.5) == {2: "connect"}


def test_a_probe_goes_before_the_next_page_and_keeps_the_delay(world: World) -> None:
    world.add(1, "a", parsed(ALLOW, 0.0))
    world.supply(page(1, 1), page(2, 1))
    assert world.requests(0.0) == [PageRequest(page(1, 1), "a")]
    assert world.frontier.probe(1, "http://h1/none")
    assert world.requests(0.0) == []
    world.fine("a", 0.5)
    assert world.requests(1.0) == []
    assert world.requests(1.5) == [ProbeRequest(1, "http://h1/none", "a")]
    world.fine("a", 1.5)
    assert world.requests(2.5) == [PageRequest(page(2, 1), "a")]


def test_a_probe_is_sent_where_no_more_pages_are_wanted(world: World) -> None:
    world.add(1, "a", parsed(ALLOW, 0.0))
    world.supply(page(1, 1))
    assert world.frontier.probe(1, "http://h1/none")
    assert world.frontier.next(0.0, pages=False) == ProbeRequest(1, "http://h1/none", "a")
    world.fine("a", 0.0)
    assert world.frontier.next(9.0, pages=False) is None


def test_what_robots_txt_forbids_is_not_probed(world: World) -> None:
    world.add(1, "a", parsed(PRIVATE, 0.0))
    assert not world.frontier.probe(1, "http://h1/private/none")
    assert world.frontier.wakes_at() is None


def test_a_host_without_room_in_its_budget_is_not_probed(world: World) -> None:
    world.add(1, "a", parsed(ALLOW, 0.0))
    world.shelf.unprobed.add(1)
    assert not world.frontier.probe(1, "http://h1/none")
    assert world.frontier.wakes_at() is None


def test_a_host_that_turns_us_away_by_its_content_is_left_alone_as_after_a_429(
    world: World,
) -> None:
    world.add(1, "a", parsed(ALLOW, 0.0))
    world.supply(page(1, 1), page(2, 1))
    world.requests(0.0)
    world.fine("a", 0.0)
    world.frontier.heed("a", 0.0, "throttled", 90.0, "rate_limited_page")
    assert world.requests(89.0) == []
    assert world.frontier.waits(89.0) == {1: "rate_limited_page"}
    assert world.requests(90.0) == [PageRequest(page(2, 1), "a")]


def test_no_load_asks_a_host_outside_its_hours() -> None:
    night = Hours(22 * 60, 6 * 60, UTC)
    frontier = World(PolitenessRules(hours=(night,))).frontier
    waits = [frontier.pause_s("a", hour * 3_600.0) / 3_600 for hour in (5, 6, 21, 23)]
    assert waits == [0, 16, 1, 0]


def test_of_hosts_that_nobody_asked_for_few_are_asked_at_a_time_and_all_in_the_end() -> None:
    strangers = {f"http://h{n}": f"q{n}" for n in range(1, 6)}
    world = World(strangers=strangers)
    for n in range(1, 8):
        world.add(n, f"q{n}", parsed(ALLOW, 0.0) if n % 2 else None)
        world.supply(page(n, n))
    under_way = [request.queue for request in _started(world, 0.0)]
    assert len(set(under_way) & set(strangers.values())) == 2
    assert {"q6", "q7"} < set(under_way)
    asked = list(under_way)
    while under_way:
        world.fine(under_way.pop(0), 100.0)
        begun = [request.queue for request in _started(world, 100.0)]
        under_way += begun
        asked += begun
        assert len(set(under_way) & set(strangers.values())) <= 2
    assert set(asked) == {f"q{n}" for n in range(1, 8)}


def _started(world: World, now: float) -> list[PageRequest | RobotsRequest]:
    return [r for r in world.requests(now) if isinstance(r, PageRequest | RobotsRequest)]
