"""The default budget: one request a page and day, at most one a second; first visits at once."""

from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from freshet.crawler.frontier.politeness import Pacer
from freshet.crawler.run.daemon_settings import (
    MOST_PER_DAY,
    DefaultBudget,
    learning_budget,
    recurring,
)
from freshet.crawler.run.orders import DaemonOrder
from freshet.scheduler.queue.recrawl import RecrawlAgenda


def with_hosts(count: int) -> SimpleNamespace:
    return SimpleNamespace(hosts=range(count))


@dataclass
class Pages:
    """What is read of an agenda."""

    pages: Any = field(default_factory=dict)
    learner: SimpleNamespace = field(default_factory=lambda: with_hosts(1))


class Table(dict[str, Any]):
    def __len__(self) -> int:
        return len(self["gone"])


def table(
    captured: int, waiting: int = 0, gone: int = 0, every: float = inf, deferred: int = 0
) -> Table:
    n = captured + waiting + gone + deferred
    kind = np.repeat([0, 1, 2, 3], [captured, waiting, gone, deferred])
    fixed = np.zeros(n, np.bool_)
    fixed[:1] = every < inf
    return Table(
        captured=(kind == 0) | (kind == 2),
        gone=(kind == 2).astype(np.int16),
        not_before=np.where(kind == 3, 1.0, -inf),
        least=np.where(fixed, every, 0.0),
        most=np.where(fixed, every, inf),
    )


def default(agenda: Pages, pacer: Pacer | None = None) -> DefaultBudget:
    return DefaultBudget(cast(RecrawlAgenda, agenda), pacer or Pacer(1.0, 0.0), 1.0)


@pytest.mark.parametrize(
    ("pages", "hosts", "per_day"),
    [
        (table(1), 1, 2), (table(25), 1, 26), (table(25, gone=5), 1, 26), (table(400), 3, 403),
        (table(85_000), 1, 85_001), (table(100_000), 1, MOST_PER_DAY),
        (table(10, every=1 / 24), 1, 34),
        (table(1, every=1.0), 1, 2), (table(2, every=7.0), 1, 2 + 1 / 7),
        (table(10, deferred=5), 2, 17),
        (table(3, every=1 / 1_440), 1, 1_443),
    ],
)  # fmt: skip
def test_it_is_a_request_a_page_and_day_and_one_a_host(
    pages: Table, hosts: int, per_day: float
) -> None:
    found = default(Pages(pages, with_hosts(hosts)))
    assert found.per_day() == pytest.approx(per_day)
    assert not found.first


def test_while_pages_wait_for_their_first_visit_it_is_one_a_second() -> None:
    agenda, pacer = Pages(table(0)), Pacer(1.0, 0.0)
    found = default(agenda, pacer)
    assert found.per_day() == MOST_PER_DAY  # Nothing is known yet.
    for known in (1, 5, 20):
        agenda.pages = table(known, waiting=known)
        assert found.per_day() == MOST_PER_DAY
        pacer.started(known)
    agenda.pages = table(40)
    assert found.per_day() == 41
    agenda.pages = table(40, waiting=1)
    assert found.per_day() == MOST_PER_DAY


def test_pages_that_never_answer_do_not_keep_it_up() -> None:
    agenda, pacer = Pages(table(10, waiting=3)), Pacer(1.0, 0.0)
    found = default(agenda, pacer)
    assert found.per_day() == MOST_PER_DAY
    pacer.started(17)  # Two for each, and ten.
    assert found.first
    found.per_day()
    assert (found.first, found.per_day()) == (False, 14)


def test_it_does_not_follow_every_page() -> None:
    agenda = Pages(table(100))
    found = default(agenda)
    before = found.per_day()
    agenda.pages = table(103)
    assert found.per_day() == before
    agenda.pages = table(120)
    assert found.per_day() == 121


def test_a_ranker_learns_by_the_same_budget_after_the_next_start() -> None:
    order = DaemonOrder(Path("crawl.db"), [], None)
    budgets = (100.0, 110.0, 130.0, 170.0)
    assert {learning_budget(order, per_day) for per_day in budgets} == {128.0}


def test_what_fixed_intervals_ask_for_is_counted() -> None:
    agenda = Pages(table(10, every=0.25))
    assert recurring(cast(RecrawlAgenda, agenda)) == (1, 4.0)
