"""The pages that may be asked for next."""

from freshet.scheduler.agenda.queue import Window
from freshet.storage.records import DueUrl


def due(page_id: int, host_id: int) -> DueUrl:
    return DueUrl(page_id, f"https://a.example/{page_id}", "", host_id, 0.0)


def test_it_remembers_what_the_last_pages_were_worth_when_they_were_taken() -> None:
    window = Window()
    for number in range(300):
        window.add(1.0, due(number, 1))
    window.add(0.5, due(300, 2))
    window.revalue(lambda page: float(page.page_id))
    assert window.best({1}) == due(299, 1)
    assert window.withdraw(1, 298) == due(298, 1)
    assert window.best({1}) == due(297, 1)
    assert list(window.paid) == [299.0, 297.0]
    while window.best({1}) is not None:
        pass
    assert len(window.paid) == 200
    assert window.paid[-1] == 0.0


def test_the_worthiest_is_told_whether_or_not_its_host_is_ready() -> None:
    window = Window()
    assert window.worthiest() is None
    window.add(1.0, due(1, 1))
    window.add(2.0, due(2, 2))
    assert window.worthiest() == due(2, 2)
    assert window.best({1}) == due(1, 1)
    assert window.worthiest() == due(2, 2)
