"""What is found within seven days: who is asked what, and how covers compare."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from scripts.reproductions import discovery_weekly as weekly
from scripts.reproductions.discovery_measures import OPTIMAL
from scripts.reproductions.discovery_recorded import recorded
from scripts.reproductions.discovery_weekly import BOUND, BUDGETS, UNIFORM, Turn
from scripts.reproductions.growing_site import growing_sites
from scripts.reproductions.link_history import LinkHistory

_FOLDER = os.environ.get("FRESHET_EVOLUTION_DIR")


@pytest.fixture(scope="module")
def rows() -> weekly.Rows:
    return weekly.compared(growing_sites(3, 500, 900, 16, seed=3))


def test_looks_in_turn_come_to_every_page_that_is_there() -> None:
    turn, alive = Turn(2), np.array([True, True, False, True, True])
    assert [turn.choose(alive).tolist() for _ in range(3)] == [[0, 1], [3, 4], [0, 1]]
    more = np.append(alive, True)
    assert [turn.choose(more).tolist() for _ in range(2)] == [[3, 4], [5, 0]]
    assert turn.choose(np.zeros(6, np.bool_)).tolist() == []


def test_no_algorithm_exceeds_what_may_be_looked_at_nor_who_knows(rows: weekly.Rows) -> None:
    for name, by_budget in rows.items():
        for budget in BUDGETS:
            if name != BOUND:
                assert by_budget[budget].depth <= budget
                assert by_budget[budget].coverage <= rows[OPTIMAL][budget].coverage + 1e-12
            if name in {"COV-WIN", "OD-WIN", "CLIQ-WIN", "COV"}:
                assert by_budget[budget].coverage <= rows[BOUND][budget].coverage


def test_on_sites_with_mirrors_and_archives_overlaps_decide(rows: weekly.Rows) -> None:
    for budget in (10, 30):
        assert not weekly.is_dearer(rows, budget)
        assert rows["COV-WIN"][budget].coverage > rows["OD-WIN"][budget].coverage
        assert rows[UNIFORM][budget].coverage < 0.2


def test_an_index_that_is_gone_takes_no_looks() -> None:
    """Page 0 told of a page a week until it went; page 1 tells of one a week from then on."""
    born = np.concatenate(([0, 0], np.arange(1, 20)))
    pages = np.arange(2, 21)
    history = LinkHistory(
        "site", 20, born,
        np.where(pages < 14, 0, 1), pages, born[2:], np.full(19, 99),
        np.concatenate(([12, 99], np.full(19, 99))),
    )  # fmt: skip
    row = weekly.compared([history])["OD-WIN"][1]
    # Of weeks 7 to 19 only the 13th is missed: page 0 is gone, and page 1 revealed nothing yet.
    assert row.coverage == pytest.approx(1 - 1 / 13)


@pytest.mark.skipif(_FOLDER is None, reason="FRESHET_EVOLUTION_DIR names no recorded sites")
def test_on_no_recorded_site_is_cov_win_below_or_dearer() -> None:
    leads = {}
    # Every other one, for the time that it takes; the script compares all.
    for history in islice(recorded(Path(_FOLDER or "")), 0, None, 2):
        found = weekly.compared([history])
        for budget in BUDGETS:
            assert not weekly.is_dearer(found, budget), (history.name, budget)
            leads[history.name, budget] = weekly.lead(found, budget)
    assert min(leads.values()) >= 0
    assert max(leads.values()) > 0
