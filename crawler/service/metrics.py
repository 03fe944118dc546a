"""The metrics of a daemon, as Prometheus reads them.

Events are counted as they commit; the current state is read from memory at a scrape.
*Invariant.* No label is a URL, a host or anything else that the web makes up. Consequence:
the number of series is fixed, however much is crawled, and a scrape costs about a millisecond.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, get_args

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from freshet.crawler.bounds import met
from freshet.crawler.service.health import DaemonPhase
from freshet.scheduler.agenda.audit import Staleness
from freshet.storage.entries import HostState, Outlook
from freshet.storage.records import Acknowledged, Entry, Note, Visit

_LAG_BUCKETS: Final = (0.001, 0.005, 0.02, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0)
_WORK_BUCKETS: Final = (0.001, 0.01, 0.1, 0.5, 2.0, 10.0, 60.0, 300.0)
_EXCHANGE_BUCKETS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


@dataclass(frozen=True, slots=True)
class Figures:
    """The state of a daemon at one moment; counts are since it began.

    ``granted`` are the requests that the budget of ``per_day`` allowed, ``spent`` and
    ``forgone`` their parts. ``queued`` pages are in the ready queue, ``backlog`` entries wait for
    the writer; the sizes are those of the store's file and of its log. None is not exported.
    """

    per_day: float
    granted: float
    spent: int
    forgone: float
    watched: int
    queued: int
    active: int
    backlog: int
    hosts: int
    parked: int
    store_bytes: int
    log_bytes: int
    store_is_away: bool
    committed_at: float | None
    outlook: Outlook | None
    measured: Staleness | None


def process_metrics(version: str) -> CollectorRegistry:
    """Return a registry of what is known of any process of this version."""
    # Start times of series are of no use to a scraper, and double their number.
    disable_created_metrics()  # type: ignore[no-untyped-call]
    registry = CollectorRegistry()
    says = "The version that runs."
    Gauge("freshet_build_info", says, ["version"], registry=registry).labels(version).set(1)
    ProcessCollector(registry=registry)
    return registry


class Metrics:
    """The registry of one daemon, and its counters.

    Attributes:
        registry: the collectors that a scrape reads.
    """

    def __init__(self, version: str) -> None:
        in_ours = self.registry = process_metrics(version)
        self._state = Gauge("freshet_state", "Phase of the daemon.", ["state"], registry=in_ours)
        self._healthy = Gauge("freshet_healthy", "1 while /healthz answers 200.", registry=in_ours)
        self._exchanges = Counter(
            "freshet_exchanges", "Requests whose outcome has committed.",
            ["purpose", "outcome", "host_state"], registry=in_ours,
        )  # fmt: skip
        self._duration = Histogram(
            "freshet_exchange_duration_seconds", "From the request to the end of the response.",
            buckets=_EXCHANGE_BUCKETS, registry=in_ours,
        )  # fmt: skip
        self._observations = Counter(
            "freshet_observations", "Observations of pages.", ["kind"], registry=in_ours
        )
        self._retries = Counter("freshet_retries", "Visits that will be retried.", registry=in_ours)
        self._admitted = Counter("freshet_urls_admitted", "New URLs found.", registry=in_ours)
        self._commits = Counter(
            "freshet_commits", "Batches that the writer committed.", registry=in_ours
        )
        self._reloads = Counter(
            "freshet_reloads", "Reloads requested.", ["result"], registry=in_ours
        )
        self._lag = Histogram(
            "freshet_event_loop_lag_seconds", "Delay of a timer of the event loop.",
            buckets=_LAG_BUCKETS, registry=in_ours,
        )  # fmt: skip
        self._stretch = Gauge(
            "freshet_event_loop_longest_stretch_seconds",
            "Longest CPU time in which no other task had a turn, since the start.",
            registry=in_ours,
        )
        self._longest = 0.0
        self._work = Histogram(
            "freshet_learning_duration_seconds", "Learning, valuing all pages, and replanning.",
            ["work"], buckets=_WORK_BUCKETS, registry=in_ours,
        )  # fmt: skip
        for result in ("done", "refused"):
            self._reloads.labels(result)

    def stand(self, figures: Callable[[], Figures | None]) -> None:
        """Export these figures from now on, too; None: export none."""
        self.registry.register(_Standing(figures))

    def is_in(self, state: DaemonPhase, *, healthy: bool) -> None:
        """Note the daemon's phase."""
        for each in get_args(DaemonPhase):
            self._state.labels(each).set(each == state)
        self._healthy.set(healthy)

    def count(self, batch: Sequence[Acknowledged]) -> None:
        """Count a committed batch."""
        self._commits.inc()
        for item in batch:
            self._admitted.inc(item.admitted)
            self._count(item.entry)

    def _count(self, entry: Entry) -> None:
        if entry.fetches:
            labels = (_purpose(entry), _outcome(entry), _host_state(entry.host))
            self._exchanges.labels(*labels).inc(entry.fetches)
        if not isinstance(entry, Visit):
            return
        if entry.fetches:
            self._duration.observe(entry.observation.duration_s)
        if entry.retry_at is not None:
            self._retries.inc()
        elif entry.role == "page":
            self._observations.labels(entry.observation.kind).inc()

    def reloaded(self, *, done: bool) -> None:
        """Count a reload, successful or not."""
        self._reloads.labels("done" if done else "refused").inc()

    def lagged(self, seconds: float, cpu_s: float) -> None:
        """Record the delay of a timer of the event loop, and the loop's CPU time meanwhile."""
        self._lag.observe(seconds)
        if (stretch := min(seconds, cpu_s)) > self._longest:
            self._longest = stretch
            self._stretch.set(stretch)

    def worked(self, work: str, seconds: float) -> None:
        """Record the duration of a piece of learning; may be called in any thread."""
        self._work.labels(work).observe(seconds)


def _purpose(entry: Entry) -> str:
    match entry:
        case Visit():
            return str(entry.role)
        case Note(robots=(_, _)):
            return "robots"
        case _:
            return "probe"


def _outcome(entry: Entry) -> str:
    match entry:
        case Visit():
            return str(entry.observation.kind)
        case Note(robots=(_, record)):
            return str(record.standing)
        case _:
            return "settled"


def _host_state(state: HostState | None) -> str:
    """Return the host's state after the visit: answering, or its degree of trouble."""
    if state is None:
        return "unknown"
    if state.parked_until is not None and state.parked_until > state.last_exchange_at:
        return "parked"
    return "failing" if state.failures else "well"


class _Standing(Collector):
    """Collector of the figures at a scrape."""

    def __init__(self, figures: Callable[[], Figures | None]) -> None:
        self._figures = figures

    def describe(self) -> list[Metric]:
        """Return nothing: the names are fixed, and no other collector has them."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield the current figures."""
        figures = self._figures()
        if figures is None:
            return
        yield from _standing(figures)
        bounded = CounterMetricFamily("freshet_bounds_met", "Bounds met.", labels=["bound"])
        for name, times in met.items():
            bounded.add_metric([name], times)
        yield bounded
        if figures.outlook is not None:
            yield from _expected(figures.outlook)
        if figures.measured is not None:
            yield from _measured(figures.measured)


def _standing(it: Figures) -> Iterator[Metric]:
    yield _gauge("budget_requests_per_day", "Budget, in requests a day.", it.per_day)
    yield _counter("budget_granted_requests", "Requests that the budget allowed.", it.granted)
    yield _counter("budget_spent_requests", "Requests sent.", it.spent)
    yield _counter(
        "budget_forgone_requests", "Requests allowed while no host was ready.", it.forgone
    )
    yield _gauge("pages_watched", "Pages kept fresh, or waiting for a first visit.", it.watched)
    yield _gauge("queue_pages", "Pages in the ready queue.", it.queued)
    yield _gauge("exchanges_active", "Requests under way.", it.active)
    yield _gauge("writer_backlog_entries", "Entries that wait for a commit.", it.backlog)
    yield _gauge("hosts", "Hosts (scheme, name and port) that are known.", it.hosts)
    yield _gauge("hosts_parked", "Host queues paused after failures.", it.parked)
    size = GaugeMetricFamily("freshet_store_bytes", "Size of the store.", labels=["file"])
    size.add_metric(["database"], it.store_bytes)
    size.add_metric(["log"], it.log_bytes)
    yield size
    if it.committed_at is not None:
        says = "When the writer last committed."
        yield _gauge("last_commit_timestamp_seconds", says, it.committed_at)
    available = not it.store_is_away
    yield _gauge("store_available", "0 while fetching waits for the store.", available)


def _expected(it: Outlook) -> Iterator[Metric]:
    yield _gauge("outlook_timestamp_seconds", "Time of the last survey of all pages.", it.at)
    yield _gauge("pages_captured", "Pages of which there is a copy.", it.captured)
    yield _gauge("pages_waiting", "Pages that were found and never fetched.", it.waiting)
    yield _gauge("pages_gone", "Pages that are no longer there.", it.gone)
    yield _gauge("hosts_capped", "Hosts whose plan politeness limits.", len(it.capped))
    found = it.discovered
    says = "Estimated number of new pages not found yet."
    yield _gauge("pages_unknown_expected", says, found.unknown_pages)
    if found.share is not None:
        says = "Visits since the start that were made to find pages."
        yield _gauge("discovery_looks_ratio", says, found.share)
    if it.stale is not None:
        fresh = 1 - it.stale
        yield _gauge("freshness_expected_ratio", "Expected fresh share of importance.", fresh)
    if it.harmonic is not None:
        yield _gauge("harmonic_cost_expected", "Mean of H(missed changes), expected.", it.harmonic)


def _measured(it: Staleness) -> Iterator[Metric]:
    name, stale = "freshness_measured", it.binary
    yield _gauge(f"{name}_ratio", "Fresh share of importance, by the audit sample.", 1 - stale.mean)
    yield _gauge(f"{name}_lower_ratio", "Lower end of its 95 % interval.", 1 - stale.upper)
    yield _gauge(f"{name}_upper_ratio", "Upper end of its 95 % interval.", 1 - stale.lower)
    says = "Mean of H(missed changes), by the sample."
    yield _gauge("harmonic_cost_measured", says, it.harmonic.mean)
    yield _gauge("audit_draws", "Pages of the audit sample in the last seven days.", it.draws)


def _gauge(name: str, says: str, value: float) -> Metric:
    return GaugeMetricFamily(f"freshet_{name}", says, value=value)


def _counter(name: str, says: str, value: float) -> Metric:
    return CounterMetricFamily(f"freshet_{name}", says, value=value)
