"""The pages that may be asked for next, with floors and ceilings of discovery."""

from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.queue.page_rules import DiscoveryTerms
from freshet.scheduler.queue.ready import DiscoveryQuota, ReadyQueue
from freshet.storage.entries import Reason
from freshet.storage.records import DueUrl


def test_without_bounds_nothing_is_favoured() -> None:
    quota = DiscoveryQuota()
    for discovers in (True,) * 200 + (False,) * 200:
        assert quota.favoured is None
        quota.took(discovers=discovers, captured=True)
    assert (quota.found, quota.revealed, quota.refreshed) == (0, 200, 200)


@given(st.floats(0, 1), st.floats(0, 1), st.lists(st.booleans(), min_size=300, max_size=300))
def test_the_share_stays_between_floor_and_ceiling(
    one: float, other: float, would: list[bool]
) -> None:
    least, most = sorted((one, other))
    quota = DiscoveryQuota()
    quota.terms = DiscoveryTerms(least=least, most=most)
    for worthier in would:
        favoured = quota.favoured
        quota.took(discovers=worthier if favoured is None else favoured, captured=False)
    visits = len(would)
    assert least * visits - 1 <= quota.found <= most * visits + 1


def due(number: int, reason: Reason = "refresh", host: int = 1) -> DueUrl:
    url = f"http://one.example/{number}"
    return DueUrl(number, url, url, host, 0.0, reason=reason)


def test_the_favoured_kind_leaves_the_window_first_and_audits_always() -> None:
    queue = ReadyQueue()
    queue.add(5.0, due(1, "refresh"))
    queue.add(3.0, due(2, "discovery"))
    queue.add(1.0, due(3, "refresh", host=2))
    taken = queue.best({1, 2}, favoured=True)
    assert taken is not None
    assert taken.page_id == 2
    assert list(queue.paid) == [3.0]
    # There is nothing left to discover: the next best goes.
    taken = queue.best({1, 2}, favoured=True)
    assert taken is not None
    assert taken.page_id == 1
    audit = due(4, "audit", host=2)
    queue.add(9.0, audit)
    queue.add(99.0, due(5, "discovery"))
    taken = queue.best({1, 2}, favoured=False)
    assert taken is not None
    assert taken.page_id == 4


def test_it_remembers_what_the_last_pages_were_worth_when_they_were_taken() -> None:
    queue = ReadyQueue()
    for number in range(300):
        queue.add(1.0, due(number))
    queue.add(0.5, due(300, host=2))
    queue.revalue(lambda page: float(page.page_id))
    assert queue.best({1}) == due(299)
    assert queue.withdraw(1, 298) == due(298)
    assert queue.best({1}) == due(297)
    assert list(queue.paid) == [299.0, 297.0]
    while queue.best({1}) is not None:
        pass
    assert len(queue.paid) == 200
    assert queue.paid[-1] == 0.0


def test_the_worthiest_is_told_whether_or_not_its_host_is_ready() -> None:
    queue = ReadyQueue()
    assert queue.worthiest(lambda _: False) is None
    queue.add(1.0, due(1))
    queue.add(2.0, due(2, host=2))
    assert queue.worthiest(lambda _: False) == due(2, host=2)
    assert queue.best({1}) == due(1)
    assert queue.worthiest(lambda _: False) == due(2, host=2)
    # One that is closed until its session does not come next.
    assert queue.worthiest(lambda host_id: host_id == 2) is None


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4), st.integers(0, 3)), max_size=60))
def test_the_worthiest_page_of_a_ready_host_comes_first(deeds: list[tuple[int, int, int]]) -> None:
    queue = ReadyQueue()
    for number, (deed, host, worth) in enumerate(deeds):
        ready = {each for each in range(1, 5) if (host + worth) >> each & 1 or each == host}
        tops = {each: row[0][0] for each, row in queue._hosts.items() if each in ready}
        if deed < 3:
            queue.add(float(worth), due(number, host=host))
        elif deed == 3:
            queue.revalue(lambda it: float(it.page_id * 7 % 5))
        elif deed == 4:
            queue.clear(host)
        else:
            taken = queue.best(ready)
            # Of several that are worth as much, the host that has had pages for longest.
            expected = max(tops, key=lambda each: tops[each], default=None)
            assert (None if taken is None else taken.host_id) == expected
