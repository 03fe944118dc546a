"""The benchmark of sitemaps on a surrogate population, small, and what must hold at any size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from freshet.crawler.fetch.client import Request
from freshet.crawler.frontier.clock import VirtualClock
from freshet.scheduler.evaluate.runners import run_index
from freshet.scheduler.evaluate.world import World
from freshet.scheduler.policies.greedy_index import GreedyIndex
from freshet.storage.records import Validators
from scripts.benchmarks.daemon_web import DAY_S
from scripts.benchmarks.signals_daemon import BEGIN
from scripts.benchmarks.signals_reference import informed, received_at
from scripts.benchmarks.signals_surrogate import compared, placed_on_hosts, recognised
from scripts.benchmarks.signals_web import SignallingWeb, rebuilt


def test_a_small_web_is_kept_as_it_should_be() -> None:
    stage, hosts = placed_on_hosts(200, 1, "complete", 12.0)
    found = compared((stage, hosts), 1, measured=3.0)
    costs = found["costs"]
    # Who knows more pays less; what is paid for polls and waited for them costs.
    assert costs["index"]["all"] < costs["index_without"]["all"] < costs["without"]["all"]
    assert costs["index"]["all"] < costs["index_best_polling"]["all"]
    assert costs["index"]["all"] < costs["index_fewer_looks"]["all"] < costs["true"]["all"]
    # So few pages in so few days show only that a whole daemon pays about what learning does.
    assert costs["index"]["all"] < costs["learning"]["all"] < 1.1 * costs["without"]["all"]
    assert costs["true"]["signalling"] < costs["without"]["signalling"]
    lambda_crawl = found["lambda_crawl"]
    assert costs["index"]["all"] < lambda_crawl["with_signals"] < lambda_crawl["without"]
    for run in ("without", "true", "lying"):
        assert sum(found["requests_a_day"][run].values()) == pytest.approx(40.0, rel=0.02)
    assert found["requests_a_day"]["without"]["sitemaps"] == 0
    sources = found["sources"]
    assert sum(sources["true"][0]["polls"]) > 0
    assert set(sources["lying"]) == {0, 1, 2, 3}


def test_the_index_that_hears_at_once_is_that_of_the_simulation() -> None:
    stage, _ = placed_on_hosts(300, 2, "complete", 6.0)
    world = World(stage.table, stage.changes, 0.0, stage.days)
    theirs = run_index(GreedyIndex(), world, stage.table, 30.0)
    ours = informed(stage, 30.0)
    assert ours.source.tolist() == theirs.source.tolist()
    _, changed = stage.changed()
    later = informed(stage, 30.0, received_at(changed, np.arange(0.5, 6.0, 0.5)))
    costs = [stage.costs(each, 2.0, 6.0).mean() for each in (ours, later)]
    assert costs[0] < costs[1]


async def test_sitemaps_tell_the_truth_or_stamp_everything_and_say_304() -> None:
    stage, hosts = placed_on_hosts(200, 3, "random", 9.0)
    clock = VirtualClock(BEGIN + 5.3 * DAY_S)
    hosts = hosts.with_sitemaps({0: np.inf, 1: 5.0})
    web = SignallingWeb(stage.changes, hosts, BEGIN, clock)
    said = {}
    for host in (0, 1):
        url = f"http://h{host}.localhost/sitemap.xml"
        found = await web.fetch(Request(url))
        said[host] = {each[:20] for each in found.body.decode().split("<lastmod>")[1:]}
        again = await web.fetch(Request(url, validators=Validators(etag=found.header("ETag"))))
        assert again.outcome == "not_modified"
    rows = np.flatnonzero(hosts.of == 0)
    assert len(said[0]) == len(set(web.pages.last_changes(rows, 5.3).tolist()))
    assert len(said[1]) == 1
    assert 4.3 < rebuilt(1, 5.3) <= 5.3
    assert [host for host, _ in web.polls] == [0, 0, 1, 1]


def test_a_page_tells_nothing_that_was_seen_before_it_was_heard_of() -> None:
    stage, _ = placed_on_hosts(200, 4, "complete", 4.0)
    _, changed = stage.changed()
    never = informed(stage, 20.0, np.full(len(changed), np.inf))
    assert not stage.table.complete_observations[never.source].any()
    assert len(informed(replace(stage, days=2.0), 20.0)) == 40


def test_recognised_is_who_is_neither_believed_nor_asked_daily_any_more() -> None:
    assert recognised(np.array([0, 9, 0, 1, 0, 0]), [1, 2]) == 3
    assert recognised(np.array([9, 9, 2, 1, 1, 2]), []) is None
    assert recognised(np.array([0, 0, 0, 1, 0, 0]), []) == 3
    assert recognised(np.array([0, 1, 0]), [3]) is None
