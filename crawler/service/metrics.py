"""The metrics of a daemon for Prometheus.

Events are counted when they are committed; the current state is read from memory at a scrape.
*Invariant.* No label is a URL, a host or other data from the web. Consequence: the number of series
is fixed, however much is crawled, and a scrape takes about a millisecond.
"""

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Final, Literal, TypeAlias, TypeVar, get_args

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from freshet.scheduler.queue.audit import Staleness
from freshet.storage.entries import HostState, Outlook
from freshet.storage.records import Acknowledged, Entry, StoreUpdate, Visit

#: The documentation of each metric.
DOCUMENTATION: Final = tomllib.loads((files(__package__) / "metrics.toml").read_text("utf-8"))
_LAG_BUCKETS: Final = (0.001, 0.005, 0.02, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0)
_WORK_BUCKETS: Final = (0.001, 0.01, 0.1, 0.5, 2.0, 10.0, 60.0, 300.0)
_EXCHANGE_BUCKETS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

#: The phase of a daemon.
DaemonPhase = Literal["starting", "fetching", "reloading", "upkeep", "stopping"]
#: Values for a scrape, by the names in metrics.toml; a mapping has values by label. None is not
#: exported.
Figures: TypeAlias = Mapping[str, float | Mapping[str, float] | None]

T = TypeVar("T")


def process_metrics(version: str) -> CollectorRegistry:
    """Return a registry with the metrics of any process of this version."""
    # Start times of series are useless here, and double their number.
    disable_created_metrics()  # type: ignore[no-untyped-call]
    registry = CollectorRegistry()
    _made(Gauge, "build_info", registry, ["version"]).labels(version).set(1)
    ProcessCollector(registry=registry)
    return registry


class Metrics:
    """The registry and counters of one daemon.

    Attributes:
        registry: the collectors that a scrape reads.
    """

    def __init__(self, version: str) -> None:
        ours = self.registry = process_metrics(version)
        self._state = _made(Gauge, "state", ours, ["state"])
        self._healthy = _made(Gauge, "healthy", ours)
        self._exchanges = _made(Counter, "exchanges", ours, ["purpose", "outcome", "host_state"])
        self._duration = _made(
            Histogram, "exchange_duration_seconds", ours, buckets=_EXCHANGE_BUCKETS
        )
        self._observations = _made(Counter, "observations", ours, ["kind"])
        self._retries = _made(Counter, "retries", ours)
        self._admitted = _made(Counter, "urls_admitted", ours)
        self._commits = _made(Counter, "commits", ours)
        self._reloads = _made(Counter, "reloads", ours, ["result"])
        self._lag = _made(Histogram, "event_loop_lag_seconds", ours, buckets=_LAG_BUCKETS)
        self._stretch = _made(Gauge, "event_loop_longest_stretch_seconds", ours)
        self._longest = 0.0
        self._work = _made(
            Histogram, "learning_duration_seconds", ours, ["work"], buckets=_WORK_BUCKETS
        )
        for result in ("done", "refused"):
            self._reloads.labels(result)

    def stand(self, figures: Callable[[], Figures]) -> None:
        """Export these figures as well from now on."""
        self.registry.register(_Standing(figures))

    def is_in(self, state: DaemonPhase, *, healthy: bool) -> None:
        """Record the daemon's phase."""
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
            self._exchanges.labels(*_labels(entry)).inc(entry.fetches)
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
        """Record the delay of an event loop timer, and the loop's CPU time during the delay."""
        self._lag.observe(seconds)
        if (stretch := min(seconds, cpu_s)) > self._longest:
            self._longest = stretch
            self._stretch.set(stretch)

    def worked(self, work: str, seconds: float) -> None:
        """Record the duration of a piece of learning; may be called in any thread."""
        self._work.labels(work).observe(seconds)


def _labels(entry: Entry) -> tuple[str, str, str]:
    """Return the purpose of a request, its outcome, and the state of the host after it."""
    match entry:
        case Visit():
            labels = str(entry.role), str(entry.observation.kind)
        case StoreUpdate(robots=(_, record)):
            labels = "robots", str(record.standing)
        case _:
            labels = "probe", "settled"
    return *labels, _host_state(entry.host)


def _host_state(state: HostState | None) -> str:
    """Return the host's state after the visit: answering, failing or parked."""
    if state is None:
        return "unknown"
    if state.parked_until is not None and state.parked_until > (state.last_exchange_at or 0.0):
        return "parked"
    return "failing" if state.failures else "well"


def of_outlook(it: Outlook | None) -> Figures:
    """Return the figures of a daemon's forecast."""
    if it is None:
        return {}
    return {
        "outlook_timestamp_seconds": it.at,
        "pages_captured": it.captured,
        "pages_waiting": it.waiting,
        "pages_gone": it.gone,
        "hosts_capped": len(it.capped),
        "pages_unknown_expected": it.discovered.unknown_pages,
        "discovery_looks_ratio": it.discovered.share,
        "freshness_expected_ratio": None if it.stale is None else 1 - it.stale,
        "harmonic_cost_expected": it.harmonic,
    }


def of_sample(it: Staleness | None) -> Figures:
    """Return the figures of the audit sample."""
    if it is None:
        return {}
    return {
        "freshness_measured_ratio": 1 - it.binary.mean,
        "freshness_measured_lower_ratio": 1 - it.binary.upper,
        "freshness_measured_upper_ratio": 1 - it.binary.lower,
        "harmonic_cost_measured": it.harmonic.mean,
        "audit_draws": it.draws,
    }


def of_shards(texts: Mapping[int, bytes]) -> bytes:
    """Return the expositions of shards, in the text format, as one with a label ``shard``."""
    families: dict[str, Metric] = {}
    for shard, text in sorted(texts.items()):
        for family in text_string_to_metric_families(text.decode()):
            its = families.setdefault(
                family.name, Metric(family.name, family.documentation, family.type)
            )
            for each in family.samples:
                labels = {"shard": str(shard), **each.labels}
                its.add_sample(each.name, labels, each.value, each.timestamp, each.exemplar)
    return generate_latest(_Collected(families))


class _Collected(dict[str, Metric], Collector):
    """Collector of metric families collected elsewhere, by name."""

    def collect(self) -> Iterable[Metric]:
        """Return the families."""
        return self.values()


def _made(
    kind: Callable[..., T],
    name: str,
    registry: CollectorRegistry,
    labels: Sequence[str] = (),
    **options: object,
) -> T:
    return kind(
        f"freshet_{name}", DOCUMENTATION["events"][name], labels, registry=registry, **options
    )


class _Standing(Collector):
    """Collector of the current figures at a scrape."""

    def __init__(self, figures: Callable[[], Figures]) -> None:
        self._figures = figures

    def describe(self) -> list[Metric]:
        """Return an empty list: the names are fixed and unique."""
        return []

    def collect(self) -> Iterator[Metric]:
        families = {"counters": CounterMetricFamily, "gauges": GaugeMetricFamily}
        for name, value in self._figures().items():
            kind = "counters" if name in DOCUMENTATION["counters"] else "gauges"
            label = [DOCUMENTATION["labels"][name]] if isinstance(value, Mapping) else []
            found = families[kind](f"freshet_{name}", DOCUMENTATION[kind][name], labels=label)
            if isinstance(value, Mapping):
                for each, number in value.items():
                    found.add_metric([each], number)
            elif value is not None:
                found.add_metric([], value)
            if value is not None:
                yield found
