"""On recorded sites, whose histories are complete, replaying finds the truth."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from freshet.scheduler.evaluate.bounds import BINARY, HARMONIC, PageVisits, bill
from freshet.scheduler.evaluate.captures import Captures, Timeline
from freshet.scheduler.evaluate.verdicts import BoundedCost
from scripts.benchmarks.daemon_sites import Page, Run, load, recorded
from scripts.benchmarks.replay_drawing import draw
from scripts.benchmarks.replay_thinned import (
    FIGURES,
    SHARES,
    beside,
    complete,
    kept,
    thinned,
    visited,
)

SITES = os.environ.get("FRESHET_EVOLUTION_DIR")


class _Noted(Run):
    """Keeps what was visited when."""

    def __init__(self, pages: list[Page]) -> None:
        super().__init__(pages, 1, None)
        self.visits: list[tuple[Page, float]] = []

    def visit(self, now: float) -> None:
        before = self.last.copy()
        super().visit(now)
        (row,) = np.flatnonzero(self.last != before)
        self.visits.append((self.pages[row], now))


def page_visits(run: _Noted, pages: list[Page]) -> PageVisits:
    row_of = {id(page): row for row, page in enumerate(pages)}
    visits = sorted((row_of[id(page)], at) for page, at in run.visits)
    number = np.bincount([row for row, _ in visits], minlength=len(pages))
    copy = np.array([max(page.birth, 0.0) for page in pages])
    return PageVisits(np.append(0, np.cumsum(number)), np.array([at for _, at in visits]), copy)


def agrees(pages: list[Page], every: float) -> None:
    run = _Noted(pages)
    true = run.costs(len(pages) / every)
    end = max(page.death for page in pages)
    visits, one = page_visits(run, pages), np.ones(len(pages))
    found = bill(Timeline.of(complete(pages)), visits, one, 0.0, end)[0].sum(axis=0)
    assert found[HARMONIC] == pytest.approx([true.harmonic] * 3)
    assert found[BINARY] == pytest.approx([true.binary] * 3)
    daily = visited(pages, 1.0)
    thin = thinned(daily, kept(daily, 0.1, seed=1))
    opened = bill(Timeline.of(thin), visits, one, 0.0, end)[0].sum(axis=0)
    for columns, cost in ((HARMONIC, true.harmonic), (BINARY, true.binary)):
        optimistic, early, pessimistic = opened[columns].tolist()
        assert optimistic < cost < early < pessimistic


def test_a_small_site_is_judged_as_by_its_true_history() -> None:
    rng = np.random.default_rng(2)
    pages = [
        Page(
            f"http://recorded.localhost/{k}", birth, birth + 80.0,
            tuple(sorted((birth + rng.uniform(0.1, 79.9, 6)).tolist())),
        )
        for k, birth in enumerate(np.sort(rng.uniform(0, 60, 12)).tolist())
    ]  # fmt: skip
    agrees(pages, 10.0)


@pytest.mark.skipif(SITES is None, reason="FRESHET_EVOLUTION_DIR names no recorded sites")
def test_recorded_sites_are_judged_as_by_their_true_histories(tmp_path: Path) -> None:
    assert SITES is not None
    for path in recorded(Path(SITES), tmp_path):
        agrees(load(path), 20.0)


def test_a_thinned_archive_knows_nothing_between_its_captures() -> None:
    at = np.array([0.0, 2.0, 4.0])
    captures = Captures.of([0, 0, 0], at, [0, 1, 2], until=at + 1, importance=[1.0])
    thin = thinned(captures, np.array([True, False, True]))
    assert thin.at.tolist() == thin.until.tolist() == [0.0, 4.0]


def between(optimistic: float, early: float) -> BoundedCost:
    return BoundedCost(optimistic, early, 9.0, 0.0, np.empty((0, 3)))


def test_an_order_is_set_beside_the_true_one() -> None:
    true = {"a": 1.0, "b": 1.5, "c": 4.0}
    same = {"a": between(0.1, 3.0), "b": between(0.2, 4.0), "c": between(0.3, 4.5)}
    crossed = same | {"b": between(0.2, 2.5)}
    assert beside(true, [same, crossed], "optimistic") == {"tau": [1.0, 1.0], "cost": [1.0, 1.0]}
    assert beside(true, [same, crossed], "early") == {"tau": [1.0, 0.333], "cost": [1.0, 1.5]}


def test_the_orders_are_drawn(tmp_path: Path) -> None:
    tau = {figure: {"tau": [0.6, 1.0], "cost": [1.0, 1.0]} for figure in FIGURES}
    sites = {name: {"thinned": {f"{share:g}": tau for share in SHARES}} for name in ("a", "b")}
    draw({"policies": ("x", "y"), "seeds": 2, "sites": sites}, tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
