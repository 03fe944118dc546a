"""The log of a daemon: its start, its budget, an hourly line, and its end."""

import logging
from collections import Counter
from math import inf
from typing import Any, Final

import numpy as np
from aiosqlite import Connection as Reader

from freshet import __version__
from freshet.crawler.frontier.politeness import Pacer
from freshet.crawler.run.daemon_settings import DefaultBudget, recurring
from freshet.crawler.run.logs import REPORTS
from freshet.crawler.run.orders import DaemonOrder, Tally
from freshet.crawler.run.pool import Ending
from freshet.crawler.run.status_recorder import StatusRecorder
from freshet.crawler.run.terminal import amount, counted, percent, span
from freshet.scheduler.costs import binary_cost
from freshet.storage.queries import columns

log = logging.getLogger(REPORTS)

_DAY_S: Final = 86_400.0
_HOUR_S: Final = 3_600.0
_BY_DEFAULT: Final = "one a URL and day, at most one a second"
_KINDS: Final = ("changed", "new", "gone", "failed")
#: The budget is logged again when the number of pages has changed by this factor.
_GROWN: Final = 1.5


class Reports:
    """Logs what a daemon does; each line has ``figures`` for programs.

    ``default`` is the default budget, or None if one was given; ``reader`` reads the store.
    """

    def __init__(
        self, recorder: StatusRecorder, pacer: Pacer, tally: Tally, default: DefaultBudget | None,
        reader: Reader,
    ) -> None:  # fmt: skip
        self._recorder = recorder
        self._pacer = pacer
        self._tally = tally
        self.default = default
        self._reader = reader
        self._began_at = 0.0
        self._next_at = inf
        self._logged_urls = -1.0
        self._last = 0, 0.0, Counter[str]()

    def started(self, order: DaemonOrder, sites: int, listens: list[str], now: float) -> None:
        """Log the start."""
        self._began_at, self._next_at = now, now + _HOUR_S
        where = f"; it listens on {' and '.join(listens)}" if listens else ""
        log.info(
            "freshet %s keeps %s fresh: %s",
            __version__, order.db, f"{counted(sites, 'site')}, by {order.policy}{where}",
            extra=_figures(
                report="started", version=__version__, store=str(order.db), sites=sites,
                policy=order.policy, budget=order.budget, listens=listens,
            ),
        )  # fmt: skip

    async def chore(self, now: float) -> None:
        """Log the budget once the first forecast exists, and a line every hour."""
        if self._recorder.last is None:
            return
        urls = len(self._recorder.agenda.pages)
        is_settled = self.default is None or not self.default.first
        grown = max(urls, 1) / max(self._logged_urls, 1)
        if self._logged_urls < 0 or (
            is_settled and self.default and not 1 / _GROWN < grown < _GROWN
        ):
            self._logged_urls = urls
            pages = await columns.known(self._reader)
            await self._recorder.agenda.at_rest()
            self._log_budget(pages, now)
        if now >= self._next_at:
            self._next_at += _HOUR_S * (1 + (now - self._next_at) // _HOUR_S)
            self._log_hour(now)

    def shift(self, by: float) -> None:
        """Adapt to a jump of the clock."""
        self._began_at += by
        self._next_at += by

    def reloaded(self, done: str) -> None:
        """Log a reload, and the budget again."""
        self._logged_urls = -1.0
        log.info("%s", done, extra=_figures(report="reloaded"))

    def ended(self, ending: Ending, now: float) -> None:
        """Log the end."""
        kinds, why = self._tally.kinds, "time limit" if ending == "limit" else ending
        figures = {kind: kinds[kind] for kind in _KINDS}
        log.info(
            "stopped (%s) after %s: %s; %s",
            why, span(now - self._began_at), counted(self._pacer.spent, "request"), _words(figures),
            extra=_figures(
                report="stopped", ending=ending, seconds=round(now - self._began_at, 1),
                requests=self._pacer.spent, **figures,
            ),
        )  # fmt: skip

    def _log_budget(self, pages: int, now: float) -> None:
        default, per_day = self.default, self._pacer.per_day
        steady = per_day if default is None else default.steady
        fresh = self._expected(steady, now)
        how = "too early to say how fresh copies will be"
        if fresh is not None:
            how = f"about {percent(fresh)} of the copies will be fresh"
        rate = f"{amount(steady)} requests a day, one every {span(max(1.0, _DAY_S / steady))}"
        if default is not None:
            rate = f"{rate} ({_BY_DEFAULT})" if pages else _BY_DEFAULT
        if default is not None and default.first:
            rate = f"one request a second until all pages are read, then {rate}"
        # Other URLs lead to pages, list them, or have no content.
        urls = int(np.count_nonzero(self._recorder.agenda.pages["gone"] == 0))
        known = f"{counted(pages, 'page')} known"
        known += f" (of {counted(urls, 'URL')})" if urls > pages else ""
        log.info(
            "%s: %s; %s. Change it with --budget 1000/day, or daemon.budget in freshet.toml",
            known, rate, how,
            extra=_figures(
                report="budget", pages=pages, urls=urls, budget=steady,
                is_default=default is not None,
                fresh=None if fresh is None else round(fresh, 4),
            ),
        )  # fmt: skip
        self._log_recurring(steady)

    def _log_recurring(self, budget: float) -> None:
        """Log how many requests the pages with a fixed interval need."""
        count, wanted = recurring(self._recorder.agenda)
        if not count:
            return
        words = "they count in the budget, and are visited first"
        if wanted > budget:
            words = (
                "that is more than the budget: they are visited first but late, and hardly any "
                f"other page is visited. Raise the budget above {amount(wanted)}/day"
            )
        log.log(
            logging.WARNING if wanted > budget else logging.INFO,
            "every: %s requests a day for %s at a fixed interval; %s",
            amount(wanted), counted(count, "page"), words,
            extra=_figures(report="every", pages=count, requests_per_day=wanted, budget=budget),
        )  # fmt: skip

    def _expected(self, per_day: float, now: float) -> float | None:
        """Return the expected share of fresh copies if all pages are visited in turn."""
        agenda = self._recorder.agenda
        pages, rate = agenda.pages, agenda.ranker.beliefs(now / _DAY_S).rate
        held = (pages["captured"] & (pages["gone"] == 0))[: len(rate)]
        importance = pages["importance"][: len(rate)][held]
        if not importance.sum() > 0:
            return None
        visits = np.full(len(importance), per_day / len(importance))
        rate = np.maximum(rate[held], 0.0)
        stale = binary_cost(importance, rate, visits, crawling="periodic")
        return float(1 - stale / importance.sum())

    def _log_hour(self, now: float) -> None:
        (spent, flowed, kinds), flows = self._last, self._pacer.flowed(now)
        self._last = self._pacer.spent, flows, Counter(self._tally.kinds)
        last = self._recorder.last
        requests, granted = self._pacer.spent - spent, round(flows - flowed)
        figures = {kind: self._tally.kinds[kind] - kinds[kind] for kind in _KINDS}
        waiting = 0 if last is None else last.waiting
        log.info(
            "the last hour: %s of %s requests; %s; %s for a first visit",
            f"{requests:,}", f"{granted:,}", _words(figures),
            counted(waiting, "page") + (" waits" if waiting == 1 else " wait"),
            extra=_figures(
                report="hour", requests=requests, budget=granted, waiting=waiting, **figures
            ),
        )  # fmt: skip


def _words(figures: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in figures.items())


def _figures(**figures: Any) -> dict[str, dict[str, Any]]:
    return {"figures": figures}
