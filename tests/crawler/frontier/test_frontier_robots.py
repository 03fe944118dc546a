"""An origin that only redirects to another one is judged by the robots.txt of that one."""

import pytest

from freshet.crawler.frontier.frontier import FrontierRequest, PageRequest, Refusal, RobotsRequest
from freshet.crawler.robots.cache import RobotsCache
from freshet.storage.entries import RobotsRecord
from tests.crawler.frontier.frontier_world import ALLOW, DAY_S, PRIVATE, SLOW, World, page, parsed

NAME, TARGET = 1, 2
LATER = 1.5 * DAY_S
OTHER = b"User-agent: *\nDisallow: /other\n"


def absent(at: float) -> RobotsRecord:
    return RobotsRecord("allow_all", at)


def unreachable(at: float) -> RobotsRecord:
    return RobotsRecord("unreachable", at, b"", "http_503")


def known(own: RobotsRecord, of_target: RobotsRecord, *, queues: str = "ab") -> World:
    """A world in which both files were fetched on day 0."""
    world = World()
    world.add(NAME, queues[0])
    world.add(TARGET, queues[1])
    world.settle(NAME, own, 0.0)
    world.settle(TARGET, of_target, 0.0)
    world.shelf.targets[NAME] = TARGET
    return world


def kinds(requests: list[FrontierRequest]) -> list[tuple[str, int]]:
    """Return what is requested, and of which host."""
    found = []
    for each in requests:
        match each:
            case RobotsRequest():
                found.append(("robots.txt", each.host_id))
            case PageRequest(due=due):
                found.append(("page", due.host_id))
            case Refusal(due=due):
                found.append(("refused", due.host_id))
            case _:
                raise AssertionError(each)
    return found


SHARED = {
    "the same file": (ALLOW, ALLOW),
    "the same rules": (PRIVATE, PRIVATE),
    "the same Crawl-delay": (SLOW, SLOW),
    "an empty file": (b"", PRIVATE),
    "a file without rules": (b"# nothing here\n", OTHER),
    "no file": (None, PRIVATE),
    "no file at both": (None, None),
}
OWN = {
    "other rules": (OTHER, PRIVATE),
    "rules where the target has none": (PRIVATE, b""),
    "rules where the target has no file": (PRIVATE, None),
    "a Crawl-delay of its own": (SLOW, PRIVATE),
}


def record(body: bytes | None, at: float = 0.0) -> RobotsRecord:
    return absent(at) if body is None else parsed(body, at)


@pytest.mark.parametrize("queues", ["ab", "aa"])
@pytest.mark.parametrize(("own", "of_target"), SHARED.values(), ids=SHARED)
def test_one_robots_txt_serves_both(
    own: bytes | None, of_target: bytes | None, queues: str
) -> None:
    world = known(record(own), record(of_target), queues=queues)
    world.supply(page(11, NAME))
    (asked,) = world.requests(LATER)
    assert kinds([asked]) == [("robots.txt", TARGET)]
    world.fine(queues[1], LATER)
    world.settle(TARGET, record(of_target, LATER), LATER)
    at = LATER + 60.0
    assert kinds(world.requests(at)) == [("page", NAME)]


@pytest.mark.parametrize(("own", "of_target"), OWN.values(), ids=OWN)
def test_a_file_with_rules_of_its_own_is_requested(
    own: bytes | None, of_target: bytes | None
) -> None:
    world = known(record(own), record(of_target))
    world.supply(page(11, NAME))
    assert kinds(world.requests(LATER)) == [("robots.txt", NAME)]


def test_what_the_target_forbids_is_forbidden() -> None:
    world = known(absent(0.0), parsed(ALLOW, 0.0))
    world.settle(TARGET, parsed(PRIVATE, LATER), LATER)
    world.supply(page(11, NAME, "private/x"), page(12, NAME))
    assert kinds(world.requests(LATER)) == [("refused", NAME), ("page", NAME)]


def test_a_target_with_a_fresh_file_is_not_asked_for_it() -> None:
    world = known(parsed(ALLOW, 0.0), parsed(ALLOW, 0.0))
    world.settle(TARGET, parsed(ALLOW, LATER), LATER)
    world.supply(page(11, NAME))
    assert kinds(world.requests(LATER)) == [("page", NAME)]


def test_a_url_may_be_judged_by_a_shared_file_at_once() -> None:
    world = known(parsed(PRIVATE, 0.0), parsed(PRIVATE, 0.0))
    world.settle(TARGET, parsed(PRIVATE, LATER), LATER)
    assert world.frontier.permits(NAME, "http://h1/private/x", LATER) is False
    assert world.frontier.permits(NAME, "http://h1/x", LATER) is True


def test_once_a_page_answers_its_own_file_is_due_before_the_next_page() -> None:
    world = known(parsed(ALLOW, 0.0), parsed(ALLOW, 0.0))
    world.settle(TARGET, parsed(ALLOW, LATER), LATER)
    world.supply(page(11, NAME), page(12, NAME))
    assert kinds(world.requests(LATER)) == [("page", NAME)]
    world.frontier.answered(NAME)
    world.fine("a", LATER)
    assert kinds(world.requests(LATER + 60.0)) == [("robots.txt", NAME)]
    world.fine("a", LATER + 60.0)
    world.settle(NAME, parsed(ALLOW, LATER + 60.0), LATER + 60.0)
    assert kinds(world.requests(LATER + 120.0)) == [("page", NAME)]
    world.frontier.answered(NAME)  # it has a file of its own
    assert world.book.is_fresh(NAME, LATER + 120.0)


def test_where_the_target_cannot_be_reached_the_own_file_is_requested() -> None:
    world = known(parsed(ALLOW, 0.0), unreachable(0.0))
    world.supply(page(11, NAME))
    assert kinds(world.requests(LATER)) == [("robots.txt", NAME)]
    world = known(parsed(ALLOW, 0.0), parsed(ALLOW, 0.0))
    world.supply(page(11, NAME))
    world.requests(40 * DAY_S)
    world.settle(TARGET, unreachable(40 * DAY_S), 40 * DAY_S)
    assert kinds(world.requests(40 * DAY_S + 60.0)) == [("robots.txt", NAME)]


def test_a_barred_target_shares_nothing() -> None:
    world = known(parsed(ALLOW, 0.0), parsed(ALLOW, 0.0))
    world.book.bar(TARGET, "address", "it is private")
    world.supply(page(11, NAME))
    assert kinds(world.requests(LATER)) == [("robots.txt", NAME)]


def test_a_host_that_was_never_asked_has_no_file_to_share() -> None:
    book: RobotsCache = World().book
    assert not book.may_share(NAME, TARGET)
    assert not book.part(NAME)
