"""Orders to a daemon, its budget, and the report of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import aiosqlite

from freshet.crawler.errors import UsageError
from freshet.crawler.run.terminal import fail
from freshet.storage.entries import OWN_FAULTS, REBASED, Outlook
from freshet.storage.queries import overview
from freshet.storage.queries.overview import PageChange, WaitingHost
from freshet.storage.records import Acknowledged, Observation, StoredSeed, Visit
from freshet.storage.tables import hosts, near_duplicates, runs, url_patterns
from freshet.storage.tables.hosts import RejectingHost
from freshet.storage.tables.near_duplicates import IndexState
from freshet.storage.tables.url_patterns import Throttle

if TYPE_CHECKING:
    from freshet.config.settings import Settings
    from freshet.crawler.reduce.parser_process import Parser
    from freshet.crawler.run.pool import Ending


ANSWERED = frozenset({"new", "changed", "unchanged", REBASED})


class Tally:
    """Counts of one invocation; only pages count, not robots.txt, sitemaps and feeds.

    A retried page counts once, when it is settled. ``internal_errors`` counts failures by a fault
    of Freshet, by exception name.
    """

    def __init__(self) -> None:
        self.fetches = 0
        self.admitted = 0
        self.kinds: Counter[str] = Counter()
        self.reasons: Counter[tuple[str, str]] = Counter()
        self.internal_errors: Counter[str] = Counter()
        self.retries = 0

    def add(self, batch: Sequence[Acknowledged]) -> None:
        """Count entries that the writer has committed."""
        for item in batch:
            self.fetches += item.entry.fetches
            self.admitted += item.admitted
            if isinstance(item.entry, Visit) and item.entry.role == "page":
                self._count(item.entry)
            for was, reason in item.retracted:
                self.kinds[was] -= 1
                self.kinds["failed"] += 1
                self.reasons["failed", reason] += 1

    @property
    def pages(self) -> int:
        """Pages that answered 200 or 304."""
        return sum(self.kinds[kind] for kind in ANSWERED)

    @property
    def refused_by_robots(self) -> int:
        """URLs that robots.txt forbids."""
        return self.reasons["refused", "robots"]

    @property
    def errors(self) -> int:
        """URLs that failed for good in this invocation."""
        return self.kinds["failed"]

    def _count(self, visit: Visit) -> None:
        if visit.retry_at is not None:
            self.retries += 1
            return
        observation: Observation = visit.observation
        kind = observation.kind
        self.kinds[REBASED if observation.reason == REBASED else kind] += 1
        if observation.reason is not None:
            self.reasons[observation.kind, observation.reason] += 1
        if observation.reason in OWN_FAULTS:
            # The text in brackets may differ from page to page.
            self.internal_errors[(observation.detail or "unknown").partition("(")[0]] += 1


#: Freshness is measured by the audits of this many seconds.
AUDITED_S: Final = 7 * 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonSnapshot:
    """A daemon at one moment, with its last status snapshot.

    It has sent ``spent`` requests of the ``flowed`` ones that the budget has allowed since the
    start. ``next_url`` is the next request, not before ``next_at``.
    """

    spent: int
    flowed: float
    next_at: float
    next_url: str | None
    outlook: Outlook | None


@dataclass(frozen=True, slots=True)
class DaemonOrder:
    """Seeds and options of a daemon: ``budget`` in requests a day, ``time_limit_s`` (0: none).

    ``budget`` None is the default budget, which follows the number of pages. ``settings`` are set
    only in an order to a running daemon.
    """

    db: Path
    seeds: Sequence[StoredSeed]
    budget: float | None
    policy: str = "site_clock"
    time_limit_s: float = 0.0
    settings: Settings | None = None

    @property
    def given_budget(self) -> float:
        """The budget; raise UsageError without one, because shards need it."""
        if self.budget is None:
            raise UsageError(
                "a sharded store has no default budget: give --budget 5000/day, or set "
                "daemon.budget in freshet.toml"
            )
        return self.budget


#: Reads the order again; raises CrawlError if it is invalid.
Reread = Callable[[], DaemonOrder]


# -- budget ------------------------------------------------------------------

_PER_DAY = {"day": 1.0, "hour": 24.0}


def crawls_per_day(text: str) -> float:
    """Return the requests per day that ``text`` names; exit if it is invalid."""
    try:
        return parsed(text)
    except ValueError as error:
        fail(f"--budget {error}", 2)


def budget_of(text: str) -> float | None:
    """Return the requests per day of the settings, or None for the default budget."""
    return parsed(text) if text else None


def parsed(text: str) -> float:
    """Return the requests per day that ``text`` names.

    Raises:
        ValueError: the text is not a budget.
    """
    number, slash, unit = text.partition("/")
    try:
        count = float(number)
    except ValueError:
        count = 0.0
    if not slash or unit.strip() not in _PER_DAY or not isfinite(count) or count <= 0:
        raise ValueError(
            f"{text}: must be a number of requests above 0 per day or hour, as 1000/day or 50/hour"
        )
    return count * _PER_DAY[unit.strip()]


# -- report ------------------------------------------------------------------

#: Number of changed pages that get a summary.
SUMMARISED: Final = 20
_SUMMARY_WIDTH: Final = 60


@dataclass(frozen=True, slots=True)
class CrawlReport:
    """The report of one invocation of ``freshet crawl`` or ``freshet daemon``.

    ``pages`` counts canonical URLs that answered 200 or 304; ``changed`` counts significant changes
    only. ``appeared`` and ``vanished`` are empty in a first run, in which every page is new.
    ``rejecting`` are the hosts with many block pages. ``duplicates`` describes the store's
    near-duplicates. ``unused_requests`` counts requests that a daemon's budget allowed and no host
    could take. ``requisites`` counts the resources of archived pages by outcome. ``words`` has
    summaries of the first changed pages, by URL. ``internal_errors`` counts the pages that failed
    by a fault of Freshet, by exception name.
    """

    run: int
    seeds: int
    resumed: bool
    ending: Ending
    pages: int
    fetches: int
    new: int
    changed: int
    unchanged: int
    gone: int
    redirected: int
    refused: int
    refused_by_robots: int
    skipped: int
    errors: int
    retries: int
    seconds: float
    reasons: dict[str, int]
    internal_errors: dict[str, int]
    words: dict[str, str]
    changed_pages: list[PageChange]
    appeared: list[str]
    vanished: list[str]
    deferred: list[WaitingHost]
    silent_seeds: list[tuple[str, str, str]]
    moved_seeds: list[tuple[str, str]]
    bounded: list[tuple[str, Throttle]]
    rejecting: list[RejectingHost]
    held_back: dict[str, int]
    duplicates: IndexState
    unused_requests: float | None = None
    requisites: dict[str, int] | None = None

    def as_json(self) -> dict[str, object]:
        """Return the report as JSON values."""
        found = asdict(self)
        del found["words"]
        return found | {
            "seconds": round(self.seconds, 3),
            "changed_pages": [
                {name: getattr(page, name) for name in _CHANGE} for page in self.changed_pages
            ],
            "deferred": overview.deferred_as_json(self.deferred),
            "silent_seeds": [
                {"text": text, "url": url, "reason": why} for text, url, why in self.silent_seeds
            ],
            "moved_seeds": [{"text": text, "root_url": url} for text, url in self.moved_seeds],
            "bounded": url_patterns.bounded_as_json(self.bounded),
        }


_CHANGE = ("url", "at", "resemblance", "blocks_added", "blocks_removed")


_COUNTS = (
    "pages", "fetches", "new", "changed", "unchanged", "gone", "redirected", "refused",
    "refused_by_robots", "skipped", "errors", "retries",
)  # fmt: skip
_LISTS = (
    "changed_pages",
    "appeared",
    "vanished",
    "deferred",
    "silent_seeds",
    "bounded",
    "rejecting",
)


def summed(reports: Sequence[CrawlReport]) -> CrawlReport:
    """Return one report for all shards."""
    first = reports[0]
    held_back = _added(_each(reports, "held_back"))
    # Held back here, and counted by the other shards.
    held_back.pop("shard", None)
    return replace(
        first,
        **_counts_and_lists(reports),
        run=max(_each(reports, "run")),
        resumed=any(_each(reports, "resumed")),
        ending=next((it.ending for it in reports if it.ending != "nothing due"), first.ending),
        seconds=max(_each(reports, "seconds")),
        reasons=_added(_each(reports, "reasons")),
        internal_errors=_added(_each(reports, "internal_errors")),
        words=dict(item for each in reports for item in each.words.items()),
        moved_seeds=list(dict.fromkeys(chain.from_iterable(_each(reports, "moved_seeds")))),
        held_back=held_back,
        duplicates=_duplicates_together([each.duplicates for each in reports]),
        requisites=_added(needed) if (needed := _known(reports, "requisites")) else None,
        unused_requests=(
            round(sum(unused), 1) if (unused := _known(reports, "unused_requests")) else None
        ),
    )


def _counts_and_lists(reports: Sequence[CrawlReport]) -> dict[str, Any]:
    """Return the sums of all counts, and all lists joined, by name."""
    lists = {name: list(chain.from_iterable(_each(reports, name))) for name in _LISTS}
    return {name: sum(_each(reports, name)) for name in _COUNTS} | lists


def _each(reports: Sequence[CrawlReport], name: str) -> list[Any]:
    return [getattr(each, name) for each in reports]


def _known(reports: Sequence[CrawlReport], name: str) -> list[Any]:
    return [value for value in _each(reports, name) if value is not None]


def _duplicates_together(parts: Sequence[IndexState]) -> IndexState:
    counted: dict[str, Any] = {
        name: sum(getattr(each, name) for each in parts)
        for name in ("pages", "groups", "duplicates", "unseen", "waiting")
    }
    return replace(parts[0], **counted)


def _added(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    return dict(sum(map(Counter, counts), Counter[str]()).most_common())


async def make_report(
    reader: aiosqlite.Connection,
    run_id: int,
    tally: Tally,
    ending: Ending,
    *,
    after: int,
    seconds: float,
    resumed: bool = False,
    parser: Parser | None = None,
) -> CrawlReport:
    """Make the report of an invocation, whose visits are those ``after`` an observation id.

    With a ``parser``, the first changes are summarised.
    """
    kinds = Counter(await overview.kinds(reader, run_id, after))
    first = await runs.is_first(reader, run_id)
    changed = await overview.changed(reader, run_id, after)
    return CrawlReport(
        run=run_id,
        seeds=len(await runs.load(reader)),
        resumed=resumed,
        ending=ending,
        pages=sum(kinds[kind] for kind in ANSWERED),
        fetches=tally.fetches,
        new=kinds["new"],
        changed=kinds["changed"],
        unchanged=kinds["unchanged"],
        gone=kinds["gone"],
        redirected=kinds["redirected"],
        refused=kinds["refused"],
        refused_by_robots=tally.refused_by_robots,
        skipped=kinds["skipped"],
        errors=kinds["failed"],
        retries=tally.retries,
        seconds=seconds,
        reasons={f"{kind}: {reason}": n for (kind, reason), n in tally.reasons.most_common()},
        internal_errors=dict(tally.internal_errors.most_common()),
        changed_pages=changed,
        words=await _summaries(reader, parser, changed[:SUMMARISED]),
        appeared=[] if first else await overview.appeared(reader, run_id, after),
        vanished=[] if first else await overview.vanished(reader, run_id, after),
        deferred=await overview.deferred(reader),
        silent_seeds=await overview.silent_seeds(reader, run_id),
        moved_seeds=await overview.moved_seeds(reader),
        bounded=await url_patterns.bounded(reader),
        rejecting=await hosts.rejecting(reader),
        held_back=await overview.held_back(reader),
        duplicates=await near_duplicates.state(reader),
    )


async def _summaries(
    reader: aiosqlite.Connection, parser: Parser | None, changed: Sequence[overview.PageChange]
) -> dict[str, str]:
    """Return summaries of changes, by URL; empty without a parser."""
    if parser is None or not changed:
        return {}
    from freshet.crawler.read.documents import change_summary  # noqa: PLC0415 - slow to import

    return {it.url: await change_summary(reader, parser, it, _SUMMARY_WIDTH) for it in changed}
