"""API requests go on their queue as politely as pages, and as robots.txt allows."""

from freshet.crawler.frontier.frontier import ApiRequest, PageRequest, RobotsReading, RobotsRequest
from tests.crawler.frontier.frontier_world import DAY_S, PRIVATE, World, page, parsed


def test_calls_keep_the_pause_of_their_queue_with_pages_and_each_other(world: World) -> None:
    world.supply(page(1, 1), page(2, 1))
    for name in ("key", "key2"):
        world.frontier.queue(ApiRequest(f"http://h1/{name}.txt", "a", lambda *_: []))
    order: list[tuple[float, type]] = []
    now = 0.0
    while requests := world.requests(now):
        (request,) = requests
        order.append((now, type(request)))
        world.fine("a", now)
        now = world.frontier.wakes_at() or now
    assert order == [(0.0, ApiRequest), (1.0, ApiRequest), (2.0, PageRequest), (3.0, PageRequest)]


def test_what_a_host_permits_is_what_its_robots_txt_says(world: World) -> None:
    permits = world.frontier.permits
    assert permits(1, "http://h1/private/k.txt", 1.0)
    assert permits(2, "http://h2/private/k.txt", 1.0) is False
    assert permits(2, "http://h2/k.txt", 1.0)


def test_a_robots_txt_is_fetched_where_that_is_wanted_though_the_store_has_it() -> None:
    world = World()
    world.add(1, "a", parsed(b"", 0.0))
    assert world.frontier.permits(1, "http://h1/", 0.0) is None
    assert world.requests(0.0) == [RobotsReading(1)]
    world.frontier.ask_robots(1)
    assert world.requests(0.0) == [RobotsRequest(1, "http://h1", "http://h1/robots.txt", "a")]


def test_a_robots_txt_that_is_not_known_is_asked_for_once(world: World) -> None:
    now = 2 * DAY_S
    assert world.frontier.permits(1, "http://h1/k.txt", now) is None
    assert world.frontier.permits(1, "http://h1/k.txt", now) is None
    (request,) = world.requests(now)
    assert isinstance(request, RobotsRequest)
    world.fine("a", now)
    world.settle(1, parsed(PRIVATE, now), now)
    assert world.frontier.permits(1, "http://h1/private/k.txt", now) is False


def test_a_host_is_found_by_its_origin(world: World) -> None:
    assert world.frontier.host_of("http://h2") == (2, "b")
    assert world.frontier.host_of("https://h2") is None
