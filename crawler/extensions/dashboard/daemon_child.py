"""The daemon of a store that ``freshet serve`` starts and stops as its child."""

import asyncio
import os
import shlex
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from freshet.config.loading import SettingsSource
from freshet.crawler.errors import UsageError
from freshet.storage.database import SHARDS_FILE, owner_of
from freshet.storage.stores import is_folder

#: Files that container engines put into the root of a container.
_OF_CONTAINERS: Final = (Path("/.dockerenv"), Path("/run/.containerenv"))
_LINE_BYTES: Final = 1 << 16
#: Seconds for which the end of the child is waited for when the server ends.
_END_S: Final = 20.0


@dataclass(frozen=True, slots=True)
class ChildState:
    """The state of the daemon, and the possible actions.

    ``can`` is "start", "stop" or ""; in the last case ``advice`` gives the command for it. ``said``
    is the last line of a child that has ended by itself.
    """

    runs: bool
    can: str = ""
    advice: str = ""
    said: str = ""


class DaemonChild:
    """Starts and stops the daemon of a store.

    If another program manages services, systemd or a container engine, it does not start a child.
    """

    def __init__(self, db: Path, source: SettingsSource | None) -> None:
        """Start the daemon of the store ``db`` with the settings of ``source``; None: never."""
        self._db, self._source = db.absolute(), source
        self._child: Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._said = ""

    @property
    def command(self) -> list[str]:
        """The command of the daemon, without the program."""
        config = self._source.config if self._source is not None else None
        named = [] if config is None else ["--config", str(config.absolute())]
        return ["daemon", "--db", str(self._db), *named]

    def state(self) -> ChildState:
        """Return whether a daemon runs, and the possible actions."""
        owner = owner_of(self._db / SHARDS_FILE if is_folder(self._db) else self._db)
        child = self._child
        if child is not None and child.returncode is None:
            return ChildState(runs=True, can="stop")
        if owner is not None and owner.process == os.getpid():
            advice = "This server is the daemon: Ctrl-C, or who started it, ends both."
            return ChildState(runs=True, advice=advice)
        if owner is not None:
            advice = f"Process {owner.process} ({owner.name}) writes the store; end it there"
            return ChildState(runs=owner.name == "daemon", advice=f"{advice} with Ctrl-C.")
        if self._source is None:
            return ChildState(runs=False)
        if advice := kept_by(os.environ, shlex.join(["freshet", *self.command])):
            return ChildState(runs=False, advice=advice)
        return ChildState(runs=False, can="start", said=self._said)

    async def start(self) -> None:
        """Start the daemon; it ends with this server at the latest.

        Raises:
            UsageError: it cannot be started here.
        """
        state = self.state()
        if state.can != "start":
            raise UsageError(state.advice or "a daemon runs already")
        self._said = ""
        program = [sys.executable, "-c", "from freshet.crawler.cli import run; run()"]
        options = ["--listen", "", "--log-format", "console"]
        self._child = await asyncio.create_subprocess_exec(
            *program, *self.command, *options,
            stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE, limit=_LINE_BYTES,
        )  # fmt: skip
        self._reading = asyncio.create_task(self._read(self._child))

    async def stop(self) -> None:
        """End the child after its requests under way; raises UsageError without a child."""
        if self._child is None or self._child.returncode is not None:
            raise UsageError(self.state().advice or "no daemon of this server runs")
        self._child.send_signal(signal.SIGTERM)

    async def close(self) -> None:
        """End the child, and wait for that for a while."""
        if self._child is None or self._child.returncode is not None:
            return
        with suppress(ProcessLookupError):
            self._child.send_signal(signal.SIGTERM)
        with suppress(TimeoutError):
            async with asyncio.timeout(_END_S):
                await self._child.wait()

    async def _read(self, child: Process) -> None:
        """Store the last line of the child, the reason of its end; without one if it was stopped.

        Its output has to be read, else it would block.
        """
        assert child.stderr is not None  # noqa: S101 - a pipe
        with suppress(ValueError):
            async for line in child.stderr:
                self._said = line.decode("utf-8", "replace").strip() or self._said
        if await child.wait() == 0:
            self._said = ""


def kept_by(environment: Mapping[str, str], command: str) -> str:
    """Return how a daemon is started where another program keeps services, or ""."""
    if environment.get("SYSTEMD_EXEC_PID") == str(os.getpid()):
        return "systemd keeps this server: `systemctl start freshet` starts the daemon's unit."
    if any(each.exists() for each in _OF_CONTAINERS):
        return f"This server runs in a container: start another one there with `{command}`."
    return ""
