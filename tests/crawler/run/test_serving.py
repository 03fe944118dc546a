"""What the service manager hears of a daemon, beat by beat."""

import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from types import SimpleNamespace
from typing import Any, cast

import pytest

from freshet.crawler.pacing import Pacer
from freshet.crawler.run.service import Service


@dataclass(slots=True)
class Manager:
    """Listens as systemd does."""

    socket: socket.socket
    path: str

    def heard(self) -> list[str]:
        """What came since, without the lines for people."""
        lines = []
        while True:
            try:
                lines += self.socket.recv(4096).decode().split("\n")
            except BlockingIOError:
                return [line for line in lines if not line.startswith(("STATUS", "MONOTONIC"))]


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(path)
        server.setblocking(False)
        yield Manager(server, path)


@dataclass(slots=True)
class Daemon:
    """Parts of which only what is asked for is there."""

    at: float = 1e9
    pool: SimpleNamespace = field(init=False)
    outages: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(is_on=False))

    def __post_init__(self) -> None:
        self.pool = SimpleNamespace(
            chores=[], stopping=False, active=0, unacknowledged=0, pacer=Pacer(86_400.0, self.at),
            clock=SimpleNamespace(now=lambda: self.at),
            frontier=SimpleNamespace(host_count=1, parked=lambda _now: 0),
        )  # fmt: skip

    def attended(self, service: Service) -> None:
        agenda = SimpleNamespace(pages=[1, 2], queue=[1, 2])
        recorder: Any = SimpleNamespace(last=None, agenda=agenda)
        service.attend(cast(Any, self.pool), recorder, cast(Any, self.outages), cast(Any, None))

    async def turn(self) -> None:
        for chore in self.pool.chores:
            await chore(self.at)


def service_of(manager: Manager) -> Service:
    return Service(None, {"NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "20000000"})


async def test_it_is_ready_when_the_pool_first_looks_for_work(manager: Manager) -> None:
    service, daemon = service_of(manager), Daemon()
    service.beat(monotonic() + 900)
    assert (await service.health())[0] == ["it is starting"]
    assert manager.heard() == ["WATCHDOG=1"]
    daemon.attended(service)
    assert manager.heard() == []
    await daemon.turn()
    await daemon.turn()
    assert manager.heard() == ["READY=1"]
    assert (await service.health())[0] == []
    await service.__aexit__()
    assert manager.heard() == ["STOPPING=1"]


async def test_a_scrape_has_every_figure_of_the_parts(manager: Manager) -> None:
    service, daemon = service_of(manager), Daemon()
    assert service.metrics.registry.get_sample_value("freshet_hosts") is None
    daemon.attended(service)
    daemon.pool.unacknowledged = 5
    daemon.outages.is_on = True
    asked = {
        "budget_requests_per_day": 86_400, "budget_granted_requests_total": 0,
        "budget_spent_requests_total": 0, "budget_forgone_requests_total": 0, "pages_watched": 2,
        "queue_pages": 2, "exchanges_active": 0, "writer_backlog_entries": 5, "hosts": 1,
        "hosts_parked": 0, "store_available": 0,
    }  # fmt: skip
    found = {name: service.metrics.registry.get_sample_value(f"freshet_{name}") for name in asked}
    assert found == asked
    await service.__aexit__()


async def test_a_reload_is_told_from_its_signal_to_its_end(manager: Manager) -> None:
    service, daemon = service_of(manager), Daemon()
    daemon.attended(service)
    service.reloads()  # a signal while it starts: the reload is part of the start
    assert manager.heard() == []
    await daemon.turn()
    service.reloaded(done=True)
    assert manager.heard() == ["READY=1"]
    service.reloads()
    await daemon.turn()
    assert manager.heard() == ["RELOADING=1"]
    service.reloaded(done=False)
    assert manager.heard() == ["READY=1"]
    await service.__aexit__()


async def test_the_watchdog_is_fed_at_half_of_its_time(manager: Manager) -> None:
    service, daemon = service_of(manager), Daemon()
    daemon.attended(service)
    await daemon.turn()
    began = monotonic()
    manager.heard()
    fed = []
    for second in range(31):
        service.beat(began + second)
        fed += [second] * len(manager.heard())
    assert fed == [0, 10, 20, 30]
    await service.__aexit__()


async def test_a_writer_that_has_stopped_is_not_kept_alive(
    manager: Manager, caplog: pytest.LogCaptureFixture
) -> None:
    service, daemon = service_of(manager), Daemon()
    daemon.attended(service)
    await daemon.turn()
    began = monotonic()
    service.beat(began)
    daemon.pool.unacknowledged = 5
    service.beat(began + 100)
    assert manager.heard() == ["READY=1", "WATCHDOG=1", "WATCHDOG=1"]
    heard = []
    for second in range(121, 200):
        service.beat(began + second)
        heard += manager.heard()
    assert heard == []
    (record,) = caplog.records
    assert record.message == (
        "nothing has been committed for 121 s although 5 entries wait: the service manager "
        "will restart the daemon"
    )
    # Until a batch commits after all.
    service.committed([])
    service.beat(began + 201)
    assert manager.heard() == ["WATCHDOG=1"]
    await service.__aexit__()


async def test_a_store_that_is_away_is_told_and_the_daemon_is_kept_alive(manager: Manager) -> None:
    service, daemon = service_of(manager), Daemon()
    daemon.attended(service)
    await daemon.turn()
    manager.heard()
    daemon.outages.is_on = True
    daemon.pool.unacknowledged = 5
    began = monotonic()
    heard = []
    for second in range(0, 4_000, 100):
        service.beat(began + second)
        heard += manager.heard()
    assert heard == ["WATCHDOG=1"] * 40
    assert "the store is unavailable" in (await service.health())[0][0]
    await service.__aexit__()


async def test_a_drain_is_told_and_fed(manager: Manager) -> None:
    service, daemon = service_of(manager), Daemon()
    daemon.attended(service)
    await daemon.turn()
    daemon.pool.stopping = True
    service.beat(monotonic())
    assert manager.heard() == ["READY=1", "STOPPING=1", "WATCHDOG=1"]
    assert (await service.health())[0] == ["it is stopping"]
    await service.leave()
    assert (await service.health())[0] == ["it is stopping"]
    await service.__aexit__()
    assert manager.heard() == []
