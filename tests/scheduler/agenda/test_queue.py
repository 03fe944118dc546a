"""The pages that may be asked for next."""

from __future__ import annotations

from freshet.scheduler.agenda.queue import ReadyQueue
from freshet.storage.records import DueUrl


def due(page_id: int, host_id: int) -> DueUrl:
    return DueUrl(page_id, f"https://a.example/{page_id}", "", host_id, 0.0)


def test_it_remembers_what_the_last_pages_were_worth_when_they_were_taken() -> None:
    queue = ReadyQueue()
    for number in range(300):
        queue.add(1.0, due(number, 1))
    queue.add(0.5, due(300, 2))
    queue.revalue(lambda page: float(page.page_id))
    assert queue.best({1}) == due(299, 1)
    assert queue.withdraw(1, 298) == due(298, 1)
    assert queue.best({1}) == due(297, 1)
    assert list(queue.paid) == [299.0, 297.0]
    while queue.best({1}) is not None:
        pass
    assert len(queue.paid) == 200
    assert queue.paid[-1] == 0.0


def test_the_worthiest_is_told_whether_or_not_its_host_is_ready() -> None:
    queue = ReadyQueue()
    assert queue.worthiest() is None
    queue.add(1.0, due(1, 1))
    queue.add(2.0, due(2, 2))
    assert queue.worthiest() == due(2, 2)
    assert queue.best({1}) == due(1, 1)
    assert queue.worthiest() == due(2, 2)
