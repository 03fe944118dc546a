"""``freshet crawl`` and ``freshet daemon`` as processes, the way that their users start them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from scripts.benchmarks.loopback import Server

_ROOT = Path(__file__).parents[2]


@dataclass(slots=True)
class CrawlProcess:
    """A crawl or daemon that runs or has ended; standard output and error go to files."""

    process: subprocess.Popen[bytes]
    output: Path
    errors: Path
    started_at: float = field(default_factory=monotonic)
    killed: bool = False

    @property
    def pid(self) -> int:
        """The process id, which is also that of its group."""
        return self.process.pid

    def wait(self, timeout_s: float | None = None) -> bool:
        """Whether it has ended within the time."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout_s)
        return self.process.returncode is not None

    def kill(self) -> None:
        """SIGKILL to the whole group, from outside; it has ended when this returns."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()
        self.killed = self.process.returncode == -signal.SIGKILL

    def report(self) -> dict[str, Any]:
        """What ``--json`` printed.

        Raises:
            RuntimeError: the command failed, with what it said.
        """
        self.wait()
        if self.process.returncode != 0:
            said = self.errors.read_text("utf-8", "replace").strip()
            raise RuntimeError(f"freshet ended with {self.process.returncode}: {said[-2000:]}")
        report: dict[str, Any] = json.loads(self.output.read_bytes())
        return report


@contextmanager
def crawl(server: Server, store: Path, *options: str) -> Iterator[CrawlProcess]:
    """Start a crawl of the server's sites in a process group of its own.

    What runs still at the end of the block is killed.
    """
    with freshet("crawl", store, server.seeds(), *options) as running:
        yield running


@contextmanager
def freshet(
    verb: str, store: Path, seeds: Sequence[str], *options: str, program: Sequence[str] = ()
) -> Iterator[CrawlProcess]:
    """Start ``freshet crawl`` or ``daemon`` likewise, with these seeds as its site list.

    A ``program`` of the scripts may run it.
    """
    directory = store.parent
    sites = directory / "sites.txt"
    sites.write_text("\n".join(seeds) + "\n", "utf-8")
    command = [*(program or [str(Path(sys.executable).with_name("freshet"))]), verb, "--json"]
    command += ["--db", str(store), "--sites", str(sites), "--allow-private-addresses", *options]
    with started(command, directory) as running:
        yield running


@contextmanager
def started(
    command: Sequence[str], directory: Path, within: Path | None = None
) -> Iterator[CrawlProcess]:
    """Start a command in a process group of its own; its files stand in the directory.

    It works in that, or ``within`` another one.
    """
    directory.mkdir(exist_ok=True)
    output, errors = directory / "output.json", directory / "errors.log"
    with output.open("wb") as stdout, errors.open("wb") as stderr:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr,
            cwd=within or (_ROOT if command[0] == sys.executable else directory),
            env=_environment(directory), start_new_session=True,
        )  # fmt: skip
    running = CrawlProcess(process, output, errors)
    try:
        yield running
    finally:
        if not running.wait(0):
            running.kill()


def _environment(directory: Path) -> dict[str, str]:
    """This environment without the user's own settings of Freshet."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("FRESHET_")}
    return kept | {"XDG_CONFIG_HOME": str(directory)}
