"""The processes of a command with shards, found in /proc: Ray's, the actors and their parsers.

They are those that have a mark in their environment, which children inherit, and the children of
those. A process that names itself anew has no environment any more: it is remembered.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

MARK = "FRESHET_BENCH_MARK"
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Process:
    """A process; ``began`` tells it apart from a later one with the same id."""

    pid: int
    began: str
    parent: int
    title: str

    @property
    def role(self) -> str:
        """What it is for: driver, gcs, raylet, shard, coordinator, idle, parser or ray."""
        for word, role in (("gcs_server", "gcs"), ("raylet/raylet", "raylet"),
                           ("ray::shard", "shard"), ("ray::_Shard", "shard"),
                           ("ray::_Coordinator", "coordinator"), ("ray::IDLE", "idle"),
                           ("ray::Dash", "ray"), ("ray::Runt", "ray"),
                           ("bin/freshet", "driver")):  # fmt: skip
            if word in self.title.partition(" --")[0]:
                return role
        return "ray" if "/ray/" in self.title else "parser"


@dataclass(slots=True)
class Tree:
    """All processes ever seen of the commands that have the mark."""

    mark: str
    _known: set[tuple[int, str]] = field(default_factory=set)

    def alive(self) -> list[Process]:
        """Return those that are alive now."""
        found = {it.pid: it for path in Path("/proc").iterdir() if path.name.isdecimal()
                 and (it := _read(path)) is not None}  # fmt: skip
        ours = {pid for pid, it in found.items() if (pid, it.began) in self._known
                or self._is_marked(pid)}  # fmt: skip
        while new := {pid for pid, it in found.items() if it.parent in ours and pid not in ours}:
            ours |= new
        self._known |= {(pid, found[pid].began) for pid in ours}
        return [found[pid] for pid in sorted(ours)]

    def _is_marked(self, pid: int) -> bool:
        with suppress(OSError):
            environment = Path(f"/proc/{pid}/environ").read_bytes()
            return f"{MARK}={self.mark}".encode() in environment.split(b"\0")
        return False

    def kill(self) -> int:
        """Kill all that are alive, and return how many."""
        killed = 0
        while found := self.alive():
            killed += sum(kill(it) for it in found)
        return killed


def kill(process: Process) -> bool:
    """Kill a process; return whether it was there."""
    now = _read(Path(f"/proc/{process.pid}"))
    if now is None or now.began != process.began:
        return False
    with suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGKILL)
        return True
    return False


def cpu_s(process: Process) -> float:
    """CPU time so far, without that of children."""
    with suppress(OSError):
        fields = Path(f"/proc/{process.pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS
    return 0.0


def pss_mb(process: Process) -> float:
    """Memory of a process, with its part of what it shares."""
    with suppress(OSError, StopIteration):
        lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text("utf-8").splitlines()
        return int(next(it for it in lines if it.startswith("Pss:")).split()[1]) / 1024
    return 0.0


def _read(path: Path) -> Process | None:
    with suppress(OSError):
        fields = (path / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        if fields[0] in "ZX":
            return None
        title = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        return Process(int(path.name), fields[19], int(fields[1]), title)
    return None
