"""Counterfactuals: policies and budgets compared on the history of a store."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from freshet.config.settings import Daemon
from freshet.crawler import terminal
from freshet.crawler.importance import Areas, terms, weigh
from freshet.crawler.tally import CrawlError
from freshet.crawler.terminal import err, progress_bars
from freshet.scheduler.agenda.rankers import ranker_of
from freshet.scheduler.evaluate.captures import FAILED, Captures, contents_of
from freshet.scheduler.evaluate.counterfactual import Terms
from freshet.scheduler.evaluate.verdicts import (
    Bench,
    Comparison,
    Judge,
    Judging,
    Progress,
    Trial,
    Verdict,
    compare,
    in_turn,
)
from freshet.scheduler.policy import PolicyError
from freshet.storage.queries import columns, page
from freshet.storage.tables import hosts

# -- side by side ------------------------------------------------------------
# Several processes judge the trials; the verdicts are the same as of one process.
#: Asks in all from which on further processes earn back the seconds that it takes to start them.
_WORTHWHILE_ASKS: Final = 200_000
#: Each has all that its policy learns in memory: 1.4 GB where there are 100,000 pages.
_MOST: Final = 4
#: So many times each process says how far it has come.
_REPORTS: Final = 100

_Pipe: TypeAlias = "Connection[Any, Any]"


def judging(asks: float) -> Judging:
    """Return a function that judges trials, in several processes if they are worth their start."""
    processes = min(os.cpu_count() or 1, _MOST)
    return (
        partial(side_by_side, processes) if processes > 1 and asks > _WORTHWHILE_ASKS else in_turn
    )


def side_by_side(
    processes: int, bench: Bench, trials: Sequence[Trial], progress: Progress | None
) -> list[Verdict]:
    """Return the verdicts on these trials, in their order.

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
    """Give each worker a new trial whenever it has finished one."""
    found: dict[int, Verdict] = {}
    busy = dict(zip(workers, range(len(workers)), strict=True))
    for worker, number in busy.items():
        worker.send(trials[number])
    given = len(busy)
    while busy:
        ready = wait(list(busy))
        for worker in [each for each in busy if each in ready]:
            match received := _received(worker):
                case (str(name), float(share)) if progress is not None:
                    progress(name, share)
                case PolicyError():
                    raise received
                case Verdict():
                    found[busy.pop(worker)] = received
                    if given < len(trials):
                        busy[worker] = given
                        worker.send(trials[given])
                        given += 1
    return [found[number] for number in range(len(trials))]


def _received(worker: _Pipe) -> object:
    try:
        return worker.recv()
    except (EOFError, ConnectionError):
        raise CrawlError("the process of a policy was killed; is memory short?") from None


def _work(bench: Bench, pipe: _Pipe) -> None:
    """Do trials until the pipe ends."""
    # Ctrl-C reaches all processes of a terminal; the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    judge = Judge(bench)
    while True:
        try:
            name, terms = pipe.recv()
            report = _ProgressReport(pipe)
            pipe.send(judge.verdict(name, terms, report))
        except PolicyError as error:
            pipe.send(PolicyError(str(error)))
        except (EOFError, ConnectionError):
            return


class _ProgressReport:
    """Reports through a pipe how far a trial has come, when that has changed."""

    def __init__(self, pipe: _Pipe) -> None:
        self._pipe = pipe
        self._sent = 0

    def __call__(self, name: str, share: float) -> None:
        if share * _REPORTS >= self._sent + 1:
            self._sent = int(share * _REPORTS)
            self._pipe.send((name, float(share)))


# -- past --------------------------------------------------------------------
_DAY_S: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class StorePast:
    """The captures of a store; days are Unix days.

    ``url`` has the pages in the order of the rows, ``origin`` the hosts in the order of their
    codes.
    """

    captures: Captures
    url: Sequence[str]
    origin: Sequence[str]


async def read_past(db: Path, daemon: Daemon) -> StorePast:
    """Return the whole history of a store, weighted as a ``daemon`` of these settings would.

    Raises:
        StoreError: the file does not exist, or is not a store of this schema.
    """
    async with page.snapshot(db) as connection:
        pages, visits = await columns.read(connection)
        ids, host = np.unique(pages.host_id, return_inverse=True)
        known = {each.host_id: each.origin for each in await hosts.load(connection, ids.tolist())}
        weighing = await weigh(connection, daemon.importance)
    origins = [known[each] for each in ids.tolist()]
    areas = Areas().codes(pages.url)
    own = weighing.importances(pages.page_id, pages.url, host, origins)
    weights = terms(pages.url, areas, own, daemon.rules).importance
    order = np.argsort(pages.found_at, kind="stable")
    row_of = np.empty(len(order), np.intp)
    row_of[order] = np.arange(len(order))
    row = row_of[visits.page]
    # Within a page visits stay in the order in which they were made.
    by_page = np.argsort(row, kind="stable")
    content = contents_of(row[by_page], visits.kind[by_page], visits.digest[by_page])
    captures = Captures.of(
        row[by_page],
        visits.at[by_page] / _DAY_S,
        content,
        found=pages.found_at[order] / _DAY_S,
        importance=weights[order],
        host=host[order],
        area=areas[order],
    )
    return StorePast(captures, [pages.url[k] for k in order.tolist()], origins)


#: What is asked where nothing else is said: the daemon's own, the published one, all in turn.
DEFAULT_POLICIES: Final = ("site_clock", "lambda_crawl", "uniform")


@dataclass(frozen=True, slots=True)
class Question:
    """Policies and budgets (fetches a day) to compare on a store.

    Without budgets the archive's own spending on these pages is used. ``shown`` is the share of the
    archive's time that all policies see before they are judged.
    """

    db: Path
    policies: Sequence[str]
    budgets: Sequence[float]
    shown: float
    daemon: Daemon


@dataclass(frozen=True, slots=True)
class StoreComparison:
    """The comparison, with the pages and hosts to which its rows and codes belong."""

    question: Question
    past: StorePast
    comparison: Comparison


def require_policies(names: Sequence[str]) -> None:
    """Check the names of policies before any work begins.

    Raises:
        PolicyError: a name or an option of it is not known.
    """
    for name in names:
        ranker_of(name, 1.0, archived=True)


def ask(question: Question) -> StoreComparison:
    """Run the policies on the store's history.

    Raises:
        CrawlError: the store has too little history to judge by.
        StoreError: it cannot be read.
        PolicyError: a policy fails.
    """
    with err.status("Reading the archive"):
        past = terminal.run(read_past(question.db, question.daemon))
    start, end = _span(question, past)
    budgets = question.budgets or [_spent(past, start, end)]
    terms = [Terms(budget, start, end) for budget in budgets]
    asks = len(question.policies) * sum(budgets) * (end - start)
    with progress_bars() as progress:
        comparison = compare(past.captures, question.policies, terms, progress, judging(asks))
    return StoreComparison(question, past, comparison)


def _span(question: Question, past: StorePast) -> tuple[float, float]:
    captures = past.captures
    if not len(captures):
        raise CrawlError(f"{question.db}: no page has had content yet; policies cannot be compared")
    first, end = float(captures.at.min()), float(captures.until.max())
    start = first + question.shown * (end - first)
    judged = (captures.at > start) & (captures.content != FAILED)
    if not judged.any() or not np.any(np.diff(captures.offsets) > 1):
        raise CrawlError(
            f"{question.db}: no page has two captures yet; policies are judged between captures"
        )
    return start, end


def _spent(past: StorePast, start: float, end: float) -> float:
    """Return the archive's own fetches a day, in the time that is judged."""
    at = past.captures.at
    return float(((at > start) & (at <= end)).sum()) / (end - start)
