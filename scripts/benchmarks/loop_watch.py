"""A command of Freshet that is watched from inside: ``loop_watch.py FIGURES command …``.

A heartbeat comes every few milliseconds by a timer of the event loop. The CPU time of the main
thread between two of them is the time in which nobody else had a turn; sleep does not count, nor
what another process took from this one. A thread looks where the main thread is when one is late.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
import traceback
from importlib.metadata import entry_points
from pathlib import Path
from threading import Thread, main_thread
from time import clock_gettime, pthread_getcpuclockid, thread_time

import uvloop

_EVERY_S = 0.005
_LOOKS_EVERY_S = 0.02
_LATE_S = 0.06
_FRAMES_SHOWN = 6


class LoopWatch:
    """The longest stretch of an event loop without a turn, in seconds of CPU, and where it was."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self.where: list[str] = []
        self._last = 0.0
        self._seen: list[str] = []

    def watch(self, loop: asyncio.AbstractEventLoop) -> asyncio.AbstractEventLoop:
        """Watch a loop that is about to run."""
        self._last = thread_time()
        loop.call_soon(self._beat, loop)
        Thread(target=self._look, daemon=True).start()
        return loop

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        now = thread_time()
        if now - self._last > self.longest_s:
            self.longest_s, self.where = now - self._last, self._seen
        self._last, self._seen = now, []
        loop.call_later(_EVERY_S, self._beat, loop)

    def _look(self) -> None:
        ident = main_thread().ident
        assert ident is not None
        clock = pthread_getcpuclockid(ident)
        while True:
            time.sleep(_LOOKS_EVERY_S)
            if clock_gettime(clock) - self._last > _LATE_S and not self._seen:
                frames = traceback.extract_stack(sys._current_frames()[ident])
                places = [
                    f"{Path(f.filename).name}:{f.lineno} {f.name}"
                    for f in frames
                    if "importlib" not in f.filename
                ]
                self._seen = places[-_FRAMES_SHOWN:]


def main() -> None:
    """Run the command, and write the figures when it ends."""
    output = Path(sys.argv.pop(1))
    watch, make = LoopWatch(), uvloop.new_event_loop
    uvloop.new_event_loop = lambda: watch.watch(make())  # type: ignore[assignment,return-value]
    (command,) = entry_points(group="console_scripts", name="freshet")
    try:
        command.load()()
    finally:
        own, children = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        figures = {
            "cpu_s": own.ru_utime + own.ru_stime,
            "cpu_children_s": children.ru_utime + children.ru_stime,
            "stretch_ms": watch.longest_s * 1e3,
            "where": watch.where,
        }
        output.write_text(json.dumps(figures), "utf-8")


if __name__ == "__main__":
    main()
