"""What the service manager hears of a daemon, and how a stuck daemon is told from a waiting one."""

import os
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.frontier.politeness import Pacer
from freshet.crawler.run.service import DaemonVitals, LivenessJudge, NotifySocket, Service
from freshet.crawler.service.metrics import DaemonPhase


@dataclass(slots=True)
class Manager:
    """Listens as systemd does."""

    socket: socket.socket
    path: str

    def heard(self) -> list[str]:
        """What came since, without the lines for people."""
        lines = [line for message in heard(self.socket) for line in message]
        return [line for line in lines if not line.startswith(("STATUS", "MONOTONIC"))]


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    path = str(tmp_path / "notify")
    with listening(path) as server:
        yield Manager(server, path)


@dataclass(slots=True)
class Daemon:
    """Parts of which only what is asked for is there."""

    at: float = 1e9
    pool: SimpleNamespace = field(init=False)
    outages: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(is_on=False))

    def __post_init__(self) -> None:
        self.pool = SimpleNamespace(
            stopping=False, active=0, no_network_since=None, unacknowledged=0,
            pacer=Pacer(86_400.0, self.at),
            clock=SimpleNamespace(now=lambda: self.at),
            frontier=SimpleNamespace(host_count=1, parked=lambda _now: 0),
        )  # fmt: skip

    def attended(self, service: Service) -> None:
        agenda = SimpleNamespace(pages=[1, 2], queue=[1, 2], offered=lambda: 2)
        recorder: Any = SimpleNamespace(last=None, agenda=agenda)
        service.attend(cast(Any, self.pool), recorder, cast(Any, self.outages), cast(Any, None))

    async def turn(self, service: Service) -> None:
        await service.turn(self.at)


def service_of(manager: Manager) -> Service:
    return Service(None, {"NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "20000000"})


async def test_it_is_ready_when_the_pool_first_looks_for_work(manager: Manager) -> None:
    service, daemon = service_of(manager), Daemon()
    service.beat(monotonic() + 900)
    assert (await service.health())[0] == ["it is starting"]
    assert manager.heard() == ["WATCHDOG=1"]
    daemon.attended(service)
    assert manager.heard() == []
    await daemon.turn(service)
    await daemon.turn(service)
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
    await daemon.turn(service)
    service.reloaded(done=True)
    assert manager.heard() == ["READY=1"]
    service.reloads()
    await daemon.turn(service)
    assert manager.heard() == ["RELOADING=1"]
    service.reloaded(done=False)
    assert manager.heard() == ["READY=1"]
    await service.__aexit__()


async def test_the_watchdog_is_fed_at_half_of_its_time(manager: Manager) -> None:
    service, daemon = service_of(manager), Daemon()
    daemon.attended(service)
    await daemon.turn(service)
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
    await daemon.turn(service)
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
    await daemon.turn(service)
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
    await daemon.turn(service)
    daemon.pool.stopping = True
    service.beat(monotonic())
    assert manager.heard() == ["READY=1", "STOPPING=1", "WATCHDOG=1"]
    assert (await service.health())[0] == ["it is stopping"]
    await service.leave()
    assert (await service.health())[0] == ["it is stopping"]
    await service.__aexit__()
    assert manager.heard() == []


# -- life and health ---------------------------------------------------------

BUSY = DaemonVitals(turns=5, spent=9, commits=3, backlog=4, queued=7, parked=2)
HOURS_S = 7_200.0


def visited_at(vitals: DaemonVitals, state: DaemonPhase = "fetching") -> LivenessJudge:
    """After hours in which nothing has moved."""
    vitality = LivenessJudge(0.0)
    vitality.check("fetching", vitals, 1.0)
    vitality.check(state, vitals, HOURS_S)
    return vitality


def test_a_writer_that_commits_nothing_is_no_life() -> None:
    vitality = LivenessJudge(0.0)
    vitality.check("fetching", BUSY, 10.0)
    vitality.check("fetching", replace(BUSY, turns=99, spent=99), 120.0)
    assert vitality.lifeless(120.0) is None
    vitality.check("fetching", replace(BUSY, turns=100, spent=100), 140.0)
    said = vitality.lifeless(140.0)
    assert said == "nothing has been committed for 130 s although 4 entries wait"
    assert vitality.problems(140.0) == [said]
    vitality.check("fetching", replace(BUSY, turns=101, spent=100, commits=4), 141.0)
    assert vitality.lifeless(141.0) is None


def test_a_pool_that_looks_for_no_work_is_no_life() -> None:
    assert visited_at(replace(BUSY, backlog=0)).lifeless(HOURS_S) == (
        "the pool has not looked for work for 7199 s"
    )


@pytest.mark.parametrize(
    ("vitals", "state"),
    [
        (replace(BUSY, store_is_away=True), "fetching"),
        (replace(BUSY, backlog=0, held=True), "fetching"),
        (replace(BUSY, backlog=0), "upkeep"),
        (replace(BUSY, backlog=0), "stopping"),
        (replace(BUSY, backlog=0), "reloading"),
    ],
)
def test_waiting_that_is_meant_is_life(vitals: DaemonVitals, state: DaemonPhase) -> None:
    assert visited_at(vitals, state).lifeless(HOURS_S) is None


def test_a_store_that_is_away_is_a_problem_and_no_reason_for_a_new_start() -> None:
    vitality = visited_at(replace(BUSY, store_is_away=True))
    (problem,) = vitality.problems(HOURS_S)
    assert "the store is unavailable" in problem
    assert vitality.lifeless(HOURS_S) is None


def test_pages_that_are_due_and_not_fetched_are_a_problem() -> None:
    vitality = LivenessJudge(0.0)
    vitality.check("fetching", replace(BUSY, backlog=0), 0.0)
    for now in (100.0, 601.0):
        vitality.check("fetching", replace(BUSY, backlog=0, turns=int(now)), now)
    (problem,) = vitality.problems(601.0)
    assert problem.startswith("nothing has been fetched for 601 s although pages are due")
    assert "hosts parked: 2" in problem
    vitality.check("fetching", replace(BUSY, backlog=0, turns=700, spent=10), 602.0)
    assert vitality.problems(602.0) == []


@pytest.mark.parametrize("calm", [replace(BUSY, held=True), replace(BUSY, queued=0)])
def test_nothing_to_do_is_no_problem(calm: DaemonVitals) -> None:
    vitality = LivenessJudge(0.0)
    for now in (1.0, 500.0, 1_000.0, 5_000.0):
        vitals = replace(calm, backlog=0, turns=int(now))
        vitality.check("fetching", vitals, now)
    assert vitality.problems(5_000.0) == []


@pytest.mark.parametrize("state", ["starting", "stopping"])
def test_who_starts_or_stops_is_not_available(state: DaemonPhase) -> None:
    vitality = LivenessJudge(0.0)
    vitality.check(state, DaemonVitals(), 1.0)
    assert vitality.problems(1.0) == [f"it is {state}"]


@given(st.lists(st.tuples(st.integers(0, 1), st.floats(0, 119)), min_size=1, max_size=40))
def test_who_commits_in_time_lives_for_ever(steps: list[tuple[int, float]]) -> None:
    vitality, vitals, now = LivenessJudge(0.0), BUSY, 0.0
    for turned, seconds in steps:
        now += seconds
        vitals = replace(vitals, commits=vitals.commits + 1, turns=vitals.turns + 1 + turned)
        vitality.check("fetching", vitals, now)
        assert vitality.lifeless(now) is None


# -- what the manager is sent --------------------------------------------------

PROCESS = 42


def listening(address: str) -> socket.socket:
    server = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    server.bind(address)
    server.setblocking(False)
    return server


def heard(server: socket.socket) -> list[list[str]]:
    messages = []
    while True:
        try:
            messages.append(server.recv(4096).decode().split("\n"))
        except BlockingIOError:
            return messages


def test_ready_status_and_end_are_told_over_a_path(tmp_path: Path) -> None:
    path = str(tmp_path / "notify")
    with listening(path) as server:
        manager = NotifySocket({"NOTIFY_SOCKET": path}, PROCESS)
        manager.status("opening")
        manager.ready("fetching\nSTOPPING=1")
        manager.status("fetching STOPPING=1")  # what it said is not said again
        manager.alive()
        manager.stopping()
        assert heard(server) == [
            ["STATUS=opening"], ["READY=1", "STATUS=fetching STOPPING=1"], ["WATCHDOG=1"],
            ["STOPPING=1", "STATUS=stopping: waiting for requests under way"],
        ]  # fmt: skip
        manager.close()
        manager.alive()
        assert heard(server) == []


@pytest.mark.skipif(not hasattr(socket, "SOCK_CLOEXEC"), reason="abstract sockets are Linux's")
def test_a_reload_is_told_over_an_abstract_socket_with_the_time_it_began() -> None:
    name = f"freshet-test-{os.getpid()}"
    with listening(f"\0{name}") as server:
        manager = NotifySocket({"NOTIFY_SOCKET": f"@{name}"}, PROCESS)
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1_000
        manager.reloading()
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1_000
        manager.close()
        ((first, second),) = heard(server)
        assert first == "RELOADING=1"
        assert before <= int(second.removeprefix("MONOTONIC_USEC=")) <= after


@pytest.mark.parametrize("name", ["", "relative/path", "vsock:2:1"])
def test_without_a_socket_nothing_is_told(name: str) -> None:
    manager = NotifySocket({"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "1000000"}, PROCESS)
    manager.ready("fetching")
    manager.close()
    assert manager.watchdog_s is None


@pytest.mark.parametrize(
    ("said", "seconds"),
    [({"WATCHDOG_USEC": "30000000"}, 30.0),
     ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "42"}, 30.0),
     ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "43"}, None), ({"WATCHDOG_USEC": "0"}, None),
     ({"WATCHDOG_USEC": "soon"}, None), ({}, None)],
)  # fmt: skip
def test_the_watchdog_is_ours_if_it_is_set_for_this_process(
    tmp_path: Path, said: dict[str, str], seconds: float | None
) -> None:
    manager = NotifySocket({"NOTIFY_SOCKET": str(tmp_path / "none"), **said}, PROCESS)
    assert manager.watchdog_s == seconds
    manager.close()


def test_a_manager_that_is_gone_is_told_of_once_and_stops_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    manager = NotifySocket({"NOTIFY_SOCKET": str(tmp_path / "gone")}, PROCESS)
    manager.alive()
    manager.alive()
    manager.close()
    assert [record.message for record in caplog.records] == [
        "cannot notify the service manager: No such file or directory"
    ]
