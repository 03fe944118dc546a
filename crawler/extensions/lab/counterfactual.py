"""Counterfactuals: policies and budgets compared on the history of a store."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from math import isfinite
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from freshet.config.settings import Settings
from freshet.config.sites import Sites
from freshet.crawler.errors import CrawlError
from freshet.crawler.run import terminal
from freshet.crawler.run.importance import Areas, terms, weigh
from freshet.crawler.run.network import with_kept
from freshet.crawler.run.terminal import (
    Cell,
    amount,
    counted,
    err,
    fail,
    percent,
    progress_bars,
    show_line,
    show_list,
)
from freshet.scheduler import PolicyError
from freshet.scheduler.arrays import Floats, Ints
from freshet.scheduler.evaluate.captures import FAILED, Captures, contents_of
from freshet.scheduler.evaluate.counterfactual import ReplayTerms
from freshet.scheduler.evaluate.serving import PolicyProgress
from freshet.scheduler.evaluate.verdicts import (
    BOUNDS,
    BoundedCost,
    Comparison,
    JudgedArchive,
    Judging,
    PolicyVerdict,
    Trial,
    compare,
    in_turn,
)
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
    is_worth = processes > 1 and asks > _WORTHWHILE_ASKS
    return partial(side_by_side, processes) if is_worth else in_turn


def side_by_side(
    processes: int, bench: JudgedArchive, trials: Sequence[Trial], progress: PolicyProgress
) -> list[PolicyVerdict]:
    """Return the verdicts on these trials, in their order; CrawlError: a process was killed."""
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
    workers: Sequence[_Pipe], trials: Sequence[Trial], progress: PolicyProgress
) -> list[PolicyVerdict]:
    """Give each worker a new trial whenever it has finished one."""
    found: dict[int, PolicyVerdict] = {}
    busy = dict(zip(workers, range(len(workers)), strict=True))
    for worker, number in busy.items():
        worker.send(trials[number])
    given = len(busy)
    while busy:
        ready = wait(list(busy))
        for worker in [each for each in busy if each in ready]:
            match received := _received(worker):
                case (str(name), float(share)):
                    progress(name, share)
                case PolicyError():
                    raise received
                case PolicyVerdict():
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
        raise CrawlError(
            "the process of a policy was killed, perhaps for want of memory; compare fewer policies"
        ) from None


def _work(bench: JudgedArchive, pipe: _Pipe) -> None:
    """Do trials until the pipe ends."""
    # Ctrl-C reaches all processes of a terminal; the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            name, terms = pipe.recv()
            pipe.send(bench.verdict(name, terms, _report_to(pipe)))
        except PolicyError as error:
            pipe.send(PolicyError(str(error)))
        except (EOFError, ConnectionError):
            return


def _report_to(pipe: _Pipe) -> PolicyProgress:
    """Return a function that sends how far a trial has come, when that has changed."""
    sent = 0

    def report(name: str, share: float) -> None:
        nonlocal sent
        if share * _REPORTS >= sent + 1:
            sent = int(share * _REPORTS)
            pipe.send((name, float(share)))

    return report


# -- past --------------------------------------------------------------------
_DAY_S: Final = 86_400.0


async def read_past(db: Path, settings: Settings) -> tuple[Captures, list[str], list[str]]:
    """Return the whole history of a store, weighted as a daemon of these ``settings`` would.

    The captures in Unix days, the URLs of the pages in the order of the rows, and the origins of
    the hosts in the order of their codes.
    """
    async with page.snapshot(db) as connection:
        settings = await with_kept(settings, connection)
        pages, visits = await columns.read(connection)
        ids, host = np.unique(pages.host_id, return_inverse=True)
        known = {each.host_id: each.origin for each in await hosts.load(connection, ids.tolist())}
        weighing = await weigh(connection, settings.daemon.importance)
    origins = [known[each] for each in ids.tolist()]
    area = Areas()(pages.url)
    own = weighing.importances(pages.page_id, pages.url, host, origins)
    weights = terms(pages.url, area, own, Sites(settings.sites)).importance
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
        area=area[order],
    )
    return captures, [pages.url[k] for k in order.tolist()], origins


#: What is asked where nothing else is said: the daemon's own, the published one, all in turn.
DEFAULT_POLICIES: Final = ("site_clock", "lambda_crawl", "uniform")


@dataclass(frozen=True, slots=True)
class StoreComparison:
    """The comparison, with the pages and hosts to which its rows and codes belong."""

    db: Path
    captures: Captures
    url: Sequence[str]
    origin: Sequence[str]
    comparison: Comparison


def ask(
    db: Path,
    policies: Sequence[str],
    budgets: Sequence[float],
    seen: float,
    settings: Settings,
    tell: PolicyProgress | None = None,
) -> StoreComparison:
    """Compare policies and budgets (fetches a day) on a store's history.

    Without budgets the archive's own spending on these pages is used. ``seen`` is the share of the
    archive's time that all policies see before they are judged. ``tell`` is told
    of progress in place of the terminal; then no other process helps.
    """
    with err.status("Reading the archive"):
        captures, url, origin = terminal.run(read_past(db, settings))
    start, end = _span(db, captures, seen)
    spent = int(((captures.at > start) & (captures.at <= end)).sum())
    budgets = budgets or [spent / (end - start)]
    terms = [ReplayTerms(budget, start, end) for budget in budgets]
    asks = len(policies) * sum(budgets) * (end - start)
    with progress_bars() as progress:
        judge = in_turn if tell else judging(asks)
        comparison = compare(captures, policies, terms, tell or progress, judge)
    return StoreComparison(db, captures, url, origin, comparison)


def _span(db: Path, captures: Captures, shown: float) -> tuple[float, float]:
    """Return the first and the last day on which policies are judged."""
    if not len(captures):
        fail(f"{db}: no page has had content yet; `freshet crawl` first, then compare policies", 0)
    first, end = float(captures.at.min()), float(captures.until.max())
    start = first + shown * (end - first)
    judged = (captures.at > start) & (captures.content != FAILED)
    if not judged.any() or not np.any(np.diff(captures.offsets) > 1):
        fail(
            f"{db}: no page has two captures yet; crawl again, for policies are judged between "
            "captures",
            0,
        )
    return start, end


# -- counterfactual view -----------------------------------------------------
#
# A comparison of policies on an archive, as tables and as JSON.

#: What is told of a verdict in a table.
HEADER: Final = (
    "policy", "harmonic", "binary", "age", "new pages", "after", "fetches", "missed", "flagged",
)  # fmt: skip


def print_answer(answer: StoreComparison) -> None:
    """Print a table for each budget."""
    comparison = answer.comparison
    show_line(
        f"{answer.db}: {counted(comparison.pages, 'page')}, "
        f"{counted(comparison.captures, 'capture')}, every {amount(comparison.capture_gap_days)} "
        f"days a page (median); judged {date_of(comparison.start)} to {date_of(comparison.end)} "
        f"({amount(comparison.end - comparison.start)} days)",
        "bold",
    )
    for budget, verdicts in groupby(comparison.verdicts, key=lambda verdict: verdict.budget):
        of_budget = list(verdicts)
        least = of_budget[0]
        show_list(
            f"With {amount(budget)} fetches a day; knowing all captures: harmonic at least "
            f"{amount(least.harmonic.clairvoyant)}, "
            f"binary at least {percent(least.binary.clairvoyant)}",
            HEADER,
            [row_of(verdict) for verdict in of_budget],
        )
    show_line("")
    show_line(
        "Ranges: each change that the archive shows came as late, or as early, as its captures "
        "allow. In brackets: pages also changed whenever the archive did not visit.",
        "dim",
    )
    if any(len(verdict.flagged) for verdict in comparison.verdicts):
        show_line(
            "Flagged: pages that a policy visited more often than the archive; more than half of "
            "the visits got the same version. These figures are less reliable.",
            "dim",
        )


def as_json(answer: StoreComparison) -> dict[str, object]:
    """Return all figures except those of single pages; times in Unix seconds."""
    comparison = answer.comparison
    return {
        "store": str(answer.db),
        "from": comparison.start * _DAY_S,
        "until": comparison.end * _DAY_S,
        "pages": comparison.pages,
        "captures": comparison.captures,
        "failed_captures": comparison.failed,
        "capture_gap_days": _number(comparison.capture_gap_days),
        "pages_by_rate": comparison.by_class,
        "verdicts": [_verdict(verdict, answer) for verdict in comparison.verdicts],
    }


def row_of(verdict: PolicyVerdict) -> tuple[Cell, ...]:
    """Return the row under :data:`HEADER`; None if nothing is known."""
    return (
        verdict.policy,
        _range(verdict.harmonic, amount),
        _range(verdict.binary, percent),
        f"{amount(verdict.age_days)} days" if isfinite(verdict.age_days) else None,
        f"{verdict.found:,} of {verdict.appeared:,}" if verdict.appeared else None,
        f"{amount(verdict.delay_days)} days" if isfinite(verdict.delay_days) else None,
        f"{verdict.fetches:,} ({percent(verdict.fetches / verdict.paid)})",
        verdict.misses or None,
        f"{counted(len(verdict.flagged), 'page')} ({percent(verdict.again)} of visits)"
        if len(verdict.flagged)
        else None,
    )


def _range(cost: BoundedCost, shown: Callable[[float], str]) -> str:
    between = f"{shown(cost.optimistic)} – {shown(cost.early)}"
    if shown(cost.optimistic) == shown(cost.early):
        between = shown(cost.early)
    if shown(cost.pessimistic) == shown(cost.early):
        return between
    return f"{between} ({shown(cost.pessimistic)})"


def _verdict(verdict: PolicyVerdict, answer: StoreComparison) -> dict[str, object]:
    calibration = verdict.calibration
    return {
        "policy": verdict.policy,
        "budget_per_day": verdict.budget,
        "harmonic": {bound: getattr(verdict.harmonic, bound) for bound in BOUNDS},
        "binary": {bound: getattr(verdict.binary, bound) for bound in BOUNDS},
        "age_days": _number(verdict.age_days),
        "new_pages": {
            "appeared": verdict.appeared,
            "found": verdict.found,
            "delay_days": _number(verdict.delay_days),
        },
        "fetches": verdict.fetches,
        "budget": verdict.paid,
        "misses": verdict.misses,
        "asks_without_news": verdict.again,
        "flagged": len(verdict.flagged),
        "flagged_pages": [answer.url[row] for row in verdict.flagged.tolist()],
        "fetches_by_rate": verdict.by_class,
        "fetches_by_host": dict(zip(answer.origin, verdict.by_host.tolist(), strict=True)),
        "calibration": {
            "asks": calibration.asks.tolist(),
            "expected": _column(calibration.expected),
            "changed": calibration.changed.tolist(),
        },
        "daily": {
            "harmonic": [_column(day) for day in verdict.harmonic.daily],
            "binary": [_column(day) for day in verdict.binary.daily],
        },
    }


def _column(values: Floats | Ints) -> list[float | None]:
    return [_number(value) for value in np.asarray(values, np.float64).tolist()]


def _number(value: float) -> float | None:
    """Return a number, or None for NaN, which JSON does not have."""
    return round(value, 6) if isfinite(value) else None


def date_of(day: float) -> str:
    """Format a day (Unix) on the local calendar."""
    return f"{datetime.fromtimestamp(day * _DAY_S, UTC).astimezone():%Y-%m-%d}"
