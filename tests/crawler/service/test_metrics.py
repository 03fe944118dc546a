"""What has committed is counted, what stands is told, and no label grows with the web."""

from dataclasses import replace
from typing import Any, get_args

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from freshet.crawler.service import http
from freshet.crawler.service.metrics import (
    DaemonPhase,
    Figures,
    Metrics,
    of_outlook,
    of_sample,
    of_shards,
)
from freshet.scheduler.queue.audit import MeasuredMean, Staleness
from freshet.storage.entries import CappedQueue, HostState, Kind, Outlook, RobotsRecord
from freshet.storage.records import Acknowledged, DueUrl, Observation, StoreUpdate, Visit

OUTLOOK = Outlook(
    5e8, 4e8, 100.0, "greedy_index", 50.0, 1.0, 9, 7, 2, 1, 0.25, 0.3, None, (1, 2, 3, 4, 5), 0.0,
    5e8, None, (CappedQueue("a.example", 1.0, 2.0, 3),),
)  # fmt: skip
SAMPLE = Staleness(MeasuredMean(0.3, 0.1, 0.5, 0.3), MeasuredMean(0.4, 0.3, 0.5, 0.4), 11)


def visit(kind: Kind, name: str = "a.example", **changes: Any) -> Acknowledged:
    url = f"https://{name}/"
    due = DueUrl(1, url, url, 1, 0.0)
    it = Visit(due, Observation(1, 9.0, kind, duration_s=0.2))
    return Acknowledged(replace(it, **changes), pages=(1, 2))


def samples(metrics: Metrics) -> dict[str, float]:
    text = generate_latest(metrics.registry).decode()
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(value for _, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


def state(**changes: Any) -> HostState:
    return replace(HostState(1, "a.example", 9.0, 1.0), **changes)


def test_exchanges_are_told_by_purpose_outcome_and_state_of_the_host() -> None:
    metrics = Metrics("1.2")
    robots = StoreUpdate(9.0, fetches=3, robots=(1, RobotsRecord("parsed", 9.0)))
    metrics.count(
        [
            visit("changed", host=state()),
            visit("failed", host=state(failures=2, parked_until=99.0)),
            visit("failed", host=state(failures=1), retry_at=10.0),
            visit("new", role="sitemap"),
            visit("refused", fetches=0),
            Acknowledged(robots),
        ]
    )
    found = samples(metrics)
    assert {name: value for name, value in found.items() if "exchanges_total" in name} == {
        "freshet_exchanges_total{well,changed,page}": 1.0,
        "freshet_exchanges_total{parked,failed,page}": 1.0,
        "freshet_exchanges_total{failing,failed,page}": 1.0,
        "freshet_exchanges_total{unknown,new,sitemap}": 1.0,
        "freshet_exchanges_total{unknown,parsed,robots}": 3.0,
    }
    assert {name: value for name, value in found.items() if "observations_total" in name} == {
        "freshet_observations_total{changed}": 1.0,
        "freshet_observations_total{failed}": 1.0,
        "freshet_observations_total{refused}": 1.0,
    }
    assert found["freshet_retries_total"] == 1
    assert found["freshet_urls_admitted_total"] == 10
    assert found["freshet_commits_total"] == 1
    assert found["freshet_exchange_duration_seconds_count"] == 4


def test_the_figures_are_those_of_the_moment_of_the_scrape() -> None:
    metrics = Metrics("1.2")
    now = list[Figures]()
    metrics.stand(lambda: now[-1] if now else {})
    assert "freshet_queue_pages" not in samples(metrics)
    now.append(
        {
            "queue_pages": 4, "store_available": True, "budget_granted_requests": 50.5,
            "store_bytes": {"database": 4_096, "log": 512}, "last_commit_timestamp_seconds": None,
            **of_outlook(OUTLOOK), **of_sample(SAMPLE),
        }
    )  # fmt: skip
    found = samples(metrics)
    told = {
        "queue_pages": 4, "store_available": 1, "budget_granted_requests_total": 50.5,
        "store_bytes{database}": 4_096, "store_bytes{log}": 512, "hosts_capped": 1,
        "outlook_timestamp_seconds": 5e8, "pages_captured": 7, "pages_waiting": 2, "pages_gone": 1,
        "freshness_expected_ratio": 0.75, "harmonic_cost_expected": 0.3,
        "freshness_measured_ratio": 0.7, "freshness_measured_lower_ratio": 0.5,
        "freshness_measured_upper_ratio": 0.9, "harmonic_cost_measured": 0.4, "audit_draws": 11,
    }  # fmt: skip
    assert {name: found[f"freshet_{name}"] for name in told} == told
    assert "freshet_last_commit_timestamp_seconds" not in found
    now.append({"store_available": False, **of_outlook(None), **of_sample(None)})
    found = samples(metrics)
    assert found["freshet_store_available"] == 0
    assert not [name for name in found if "freshness" in name]


def test_state_health_and_version_are_told() -> None:
    metrics = Metrics("1.2")
    metrics.is_in("upkeep", healthy=True)
    found = samples(metrics)
    assert found["freshet_build_info{1.2}"] == found["freshet_healthy"] == 1
    assert {each: found[f"freshet_state{{{each}}}"] for each in get_args(DaemonPhase)} == {
        each: float(each == "upkeep") for each in get_args(DaemonPhase)
    }


def test_the_number_of_series_does_not_grow_with_the_hosts() -> None:
    metrics = Metrics("1.2")
    metrics.count([visit("new")])
    before = len(samples(metrics))
    for number in range(500):
        host = state(queue=f"h{number}.example", host_id=number)
        metrics.count([visit("new", f"h{number}.example"), visit("new", host=host)])
    assert len(samples(metrics)) == before + 1  # the state of the host became known


@pytest.mark.parametrize("work", ["learn", "value"])
def test_lag_and_learning_are_distributions(work: str) -> None:
    metrics = Metrics("1.2")
    metrics.lagged(0.03, 0.01)
    metrics.lagged(0.02, 0.5)
    metrics.worked(work, 0.7)
    found = samples(metrics)
    assert found["freshet_event_loop_lag_seconds_bucket{0.02}"] == 1
    assert found["freshet_event_loop_lag_seconds_bucket{0.05}"] == 2
    assert found["freshet_event_loop_longest_stretch_seconds"] == 0.02
    assert found[f"freshet_learning_duration_seconds_sum{{{work}}}"] == 0.7


def test_the_metrics_of_shards_are_told_apart_by_a_label() -> None:
    texts = {}
    for shard in (0, 3):
        metrics = Metrics("1.2")
        metrics.count([visit("changed", host=state())] * (shard + 1))
        texts[shard] = generate_latest(metrics.registry)
    lines = of_shards(texts).decode().splitlines()
    assert len(lines) == len(set(lines))  # each family has one head
    assert [line for line in lines if line.startswith("freshet_commits_total")] == [
        'freshet_commits_total{shard="0"} 1.0', 'freshet_commits_total{shard="3"} 1.0',
    ]  # fmt: skip
    assert 'freshet_exchange_duration_seconds_bucket{le="+Inf",shard="3"} 4.0' in lines
    # Nothing else is changed or lost.
    bare = [line.replace('shard="3",', "").replace(',shard="3"', "") for line in lines]
    kept = {line.replace('{shard="3"}', "") for line in bare}
    assert {line for line in texts[3].decode().splitlines() if "process_" not in line} <= kept


def test_the_health_of_shards_names_each_of_their_problems() -> None:
    found = {1: (["it is stopping"], {"spent": 4}), 0: (list[str](), {"spent": 3})}
    assert http.of_shards(found, {2: "killed"}) == (
        ["shard 1: it is stopping", "shard 2: down: killed"],
        {"shards": {"0": {"spent": 3}, "1": {"spent": 4}}, "down": {"2": "killed"}},
    )
    assert http.of_shards({0: ([], {})}, {}) == ([], {"shards": {"0": {}}, "down": {}})
