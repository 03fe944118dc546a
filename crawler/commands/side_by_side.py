"""Policies before one archive in several processes at once: the same verdicts in less time."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Sequence
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any, Final, TypeAlias

from freshet.crawler.errors import CrawlError
from freshet.scheduler.evaluate.verdicts import (
    Bench,
    Judge,
    Judging,
    Progress,
    Trial,
    Verdict,
    in_turn,
)
from freshet.scheduler.policy import PolicyError

#: Asks in all from which on further processes earn back the seconds that it takes to start them.
_WORTHWHILE_ASKS: Final = 200_000
#: Each has all that its policy learns in memory: 1.4 GB where there are 100,000 pages.
_MOST: Final = 4
#: So many times each process says how far it has come.
_TIMES_TOLD: Final = 100

_Pipe: TypeAlias = "Connection[Any, Any]"


def judging(asks: float) -> Judging:
    """How policies are judged that ask so often in all: by processes if they earn their start."""
    processes = min(os.cpu_count() or 1, _MOST)
    return (
        partial(side_by_side, processes) if processes > 1 and asks > _WORTHWHILE_ASKS else in_turn
    )


def side_by_side(
    processes: int, bench: Bench, trials: Sequence[Trial], progress: Progress | None
) -> list[Verdict]:
    """Verdicts on these trials, in their order.

    Raises:
        PolicyError: a policy is not known, or it fails.
        CrawlError: a process was killed.
    """
    # Others than those that are spawned would inherit the threads of this one in any state.
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe() for _ in range(min(processes, len(trials)))]
    workers = [
        context.Process(target=_work, args=(bench, theirs), daemon=True) for _, theirs in pipes
    ]
    try:
        for worker, (_, theirs) in zip(workers, pipes, strict=True):
            worker.start()
            theirs.close()
        return _verdicts([ours for ours, _ in pipes], trials, progress)
    finally:
        for worker in (each for each in workers if each.pid is not None):
            worker.kill()
            worker.join()


def _verdicts(
    workers: Sequence[_Pipe], trials: Sequence[Trial], progress: Progress | None
) -> list[Verdict]:
    """Give each worker a trial whenever it has done one."""
    found: dict[int, Verdict] = {}
    busy = dict(zip(workers, range(len(workers)), strict=True))
    for worker, number in busy.items():
        worker.send(trials[number])
    given = len(busy)
    while busy:
        ready = wait(list(busy))
        for worker in [each for each in busy if each in ready]:
            match told := _received(worker):
                case (str(name), float(share)) if progress is not None:
                    progress(name, share)
                case PolicyError():
                    raise told
                case Verdict():
                    found[busy.pop(worker)] = told
                    if given < len(trials):
                        busy[worker] = given
                        worker.send(trials[given])
                        given += 1
    return [found[number] for number in range(len(trials))]


def _received(worker: _Pipe) -> object:
    try:
        return worker.recv()
    except (EOFError, ConnectionError):
        raise CrawlError("a process that let a policy ask was killed; is memory short?") from None


def _work(bench: Bench, pipe: _Pipe) -> None:
    """Do trials until nobody gives any more."""
    # Ctrl-C reaches all processes of a terminal; the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    judge = Judge(bench)
    while True:
        try:
            name, terms = pipe.recv()
            told = _Telling(pipe)
            pipe.send(judge.verdict(name, terms, told))
        except PolicyError as error:
            pipe.send(PolicyError(str(error)))
        except (EOFError, ConnectionError):
            return


class _Telling:
    """Says through a pipe how far a trial has come, when that is news."""

    def __init__(self, pipe: _Pipe) -> None:
        self._pipe = pipe
        self._told = 0

    def __call__(self, name: str, share: float) -> None:
        if share * _TIMES_TOLD >= self._told + 1:
            self._told = int(share * _TIMES_TOLD)
            self._pipe.send((name, float(share)))
