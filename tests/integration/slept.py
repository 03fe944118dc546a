"""``python -m tests.integration.slept daemon …``: Freshet, for which a day passes at each SIGCONT.

All of Python's clocks move; that of uvloop, which is read in C, does not: time limits of requests
are to be shorter than the stop.
"""

import signal
import sys
import time
from collections.abc import Callable
from typing import Any

DAY_S = 86_400.0
slept_s = 0.0


def _sleep_a_day(*_: object) -> None:
    global slept_s  # noqa: PLW0603 - the clock of this process
    slept_s += DAY_S


def _later(clock: Callable[..., float]) -> Callable[..., Any]:
    return lambda *names: clock(*names) + slept_s


if __name__ == "__main__":
    for name in ("time", "monotonic", "clock_gettime"):
        setattr(time, name, _later(getattr(time, name)))
    signal.signal(signal.SIGCONT, _sleep_a_day)
    from freshet.crawler.cli import run

    sys.argv[0] = "freshet"
    run()
