"""The recorded sites' own server as a child: loopback, paused, at a time that the test sets."""

import json
import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import zstandard

FOLDER = os.environ.get("FRESHET_EVOLUTION_DIR")
NO_FOLDER = "FRESHET_EVOLUTION_DIR does not say where the recorded sites are"


@dataclass(frozen=True, slots=True)
class History:
    """The recorded sites, served as they were at a time that only the test sets.

    ``hosts`` are their names by origin, ``begins`` when their recordings begin (Unix seconds).
    """

    admin: str
    hosts: dict[str, str]
    begins: dict[str, float]
    log: Path

    def alive(self, origin: str) -> set[str]:
        """The paths of a site's pages that exist now."""
        return set(self._get(f"/__alive?host={self.hosts[origin]}"))

    def set_clock(self, time: str | float) -> None:
        """Let it be this day (YYYY-MM-DD), or this Unix second."""
        request = urllib.request.Request(
            f"{self.admin}/__clock", json.dumps({"time": time}).encode()
        )
        urllib.request.urlopen(request, timeout=10).close()

    def requests(self) -> list[dict[str, Any]]:
        """The server's log."""
        urllib.request.urlopen(f"{self.admin}/__flush", b"", timeout=10).close()
        return [json.loads(line) for line in self.log.read_text("utf-8").splitlines()]

    def _get(self, target: str) -> Any:
        with urllib.request.urlopen(self.admin + target, timeout=10) as answer:
            return json.load(answer)


@contextmanager
def served(sites: Sequence[str], directory: Path, *options: str) -> Iterator[History]:
    """Serve these sites, each on a port of its own, unpacked into a directory."""
    assert FOLDER is not None
    first = _free_ports(len(sites) + 2)
    command = [sys.executable, str(Path(FOLDER) / "timeserver.py")]
    for site in sites:
        _unpack(Path(FOLDER) / f"{site}.sqlite.zst", directory / f"{site}.sqlite")
        command += ["--site", str(directory / f"{site}.sqlite")]
    log = directory / "requests.jsonl"
    ports = ["--port", str(first), "--admin-port", str(first + 1), "--ports-from", str(first + 2)]
    command += ["--rewrite", "--log", str(log), *options, *ports]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        ready = json.loads(server.stdout.readline())
        at = {f"http://127.0.0.1:{port}": (host, t0) for host, _, t0, _, port in ready["sites"]}
        try:
            yield History(
                f"http://127.0.0.1:{first + 1}",
                {origin: host for origin, (host, _) in at.items()},
                {origin: float(t0) for origin, (_, t0) in at.items()},
                log,
            )
        finally:
            server.terminate()


def _unpack(packed: Path, to: Path) -> None:
    with packed.open("rb") as source, to.open("wb") as target:
        zstandard.ZstdDecompressor().copy_stream(source, target)


def _free_ports(count: int) -> int:
    """The first of some successive ports that were free a moment ago, of this worker's thousand."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
    for first in range(20_000 + 1_000 * worker, 21_000 + 1_000 * worker - count, count):
        try:
            for port in range(first, first + count):
                with socket.create_server(("127.0.0.1", port)):
                    pass
        except OSError:
            continue
        return first
    pytest.fail("no free ports")
