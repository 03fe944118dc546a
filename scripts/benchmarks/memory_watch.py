"""The memory of a process and its children over time, as the kernel counts it (Linux)."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

_EVERY_S = 0.05
#: smaps_rollup takes milliseconds of the watched process's own lock: less often.
_ROLLUP_EVERY = 5
_KIB = 1024


@dataclass(frozen=True, slots=True)
class Sample:
    """Bytes at a time of the monotonic clock.

    ``peak`` is the highest ``resident`` ever (VmHWM); ``children`` is the sum of the
    children's resident sizes, which counts shared pages again. ``proportional`` (Pss, all
    processes, shared pages once) is None where it was not asked.
    """

    at: float
    resident: int
    peak: int
    children: int
    children_peak: int
    proportional: int | None


class MemoryWatch:
    """Samples a process from a thread of its own, from :meth:`__enter__` until it is gone."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.samples: list[Sample] = []

    def __enter__(self) -> MemoryWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def peaks(self) -> dict[str, float]:
        """The highest of each figure, in MB (10^6 bytes)."""
        samples = self.samples
        return {
            "process": _mb(max(s.peak for s in samples)),
            "largest_child": _mb(max(s.children_peak for s in samples)),
            "process_and_children": _mb(max(s.resident + s.children for s in samples)),
            "proportional_sum": _mb(max(s.proportional or 0 for s in samples)),
        }

    def _run(self) -> None:
        while not self._done.wait(_EVERY_S):
            sample = self._sample(rollup=len(self.samples) % _ROLLUP_EVERY == 0)
            if sample is None:
                return
            self.samples.append(sample)

    def _sample(self, *, rollup: bool) -> Sample | None:
        own = _fields(self._pid, "status")
        if "VmRSS" not in own:
            return None
        children = descendants(self._pid)
        statuses = [_fields(child, "status") for child in children]
        proportional = None
        if rollup:
            pids = [self._pid, *children]
            proportional = sum(_fields(pid, "smaps_rollup").get("Pss", 0) for pid in pids)
        return Sample(
            monotonic(),
            own["VmRSS"],
            own["VmHWM"],
            sum(status.get("VmRSS", 0) for status in statuses),
            max((status.get("VmHWM", 0) for status in statuses), default=0),
            proportional,
        )


def _fields(pid: int, file: str) -> dict[str, int]:
    """The fields in kB of a file of /proc, in bytes; none where it has gone, or hides."""
    try:
        lines = Path(f"/proc/{pid}/{file}").read_text("ascii", "replace").splitlines()
    except OSError:
        return {}
    pairs = (line.split() for line in lines if line.endswith(" kB"))
    return {words[0].rstrip(":"): int(words[1]) * _KIB for words in pairs}


def descendants(pid: int) -> list[int]:
    """Return the children of a process, and theirs."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(word) for word in task.read_text("ascii").split()]
        except (FileNotFoundError, ProcessLookupError):
            continue
        for child in children:
            found += [child, *descendants(child)]
    return found


def resident(pid: int) -> int:
    """Return the bytes of a process that are in memory."""
    return _fields(pid, "status")["VmRSS"]


def _mb(size: int) -> float:
    return round(size / 1e6, 1)
