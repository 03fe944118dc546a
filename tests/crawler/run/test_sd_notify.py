"""The service manager hears what systemd's protocol asks for, where there is one."""

import os
import socket
import time
from pathlib import Path

import pytest

from freshet.crawler.run.service import NotifySocket

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
