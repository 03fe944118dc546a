"""The reproduction of the LambdaCrawl paper, on a few hundred sources."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from freshet.scheduler.evaluate.world import surrogate
from scripts.reproductions import lambdacrawl, learning

TINY = (
    "--sources 2000 --runs 2 --run-sources 300 --index-sources 300 --days 2 --seed 1".split()
)  # fmt: skip


@pytest.fixture(scope="module")
def printed() -> dict[str, Any]:
    """The paper's numbers."""
    return tomllib.loads(lambdacrawl.PAPER.read_text("utf-8"))


@pytest.mark.long
def test_one_command_writes_four_figures_with_their_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lambdacrawl, "BUDGETS", (0.1, 0.5))
    monkeypatch.setattr(sys, "argv", ["reproduce", "--output", str(tmp_path), *TINY])
    lambdacrawl.main()
    names = {f"figure_{n}.{kind}" for n in range(1, 5) for kind in ("png", "csv")}
    assert {path.name for path in tmp_path.iterdir()} == names
    assert all(path.stat().st_size for path in tmp_path.iterdir())
    shown = capsys.readouterr().out
    assert shown.startswith("A surrogate population, not the paper's data")
    assert all(f"Figure {n}" in shown for n in range(1, 5))


def test_the_papers_numbers_are_shown_and_read_by_nothing_else(printed: dict[str, Any]) -> None:
    table = surrogate(1_000, np.random.default_rng(1))
    ours = lambdacrawl.figure_1(table, printed["figure_1"])
    without = lambdacrawl.figure_1(table, {"harmonic": {}, "binary": {}})
    assert [(b.policy, b.harmonic, b.binary) for b in ours] == [
        (b.policy, b.harmonic, b.binary) for b in without
    ]
    assert ours[0].paper_harmonic == printed["figure_1"]["harmonic"]["LC"]


def test_the_order_of_policies_is_the_papers(printed: dict[str, Any]) -> None:
    bars = lambdacrawl.figure_1(surrogate(20_000, np.random.default_rng(1)), printed["figure_1"])
    cost = {bar.policy: bar.harmonic for bar in bars}
    assert cost["LC"] < cost["LCA"] < cost["BLCε"] < cost["UC"] < cost["CC"] < cost["BLC"]


def test_learning_comes_nearer_to_the_cost_of_known_rates_day_by_day() -> None:
    runs = learning.runs(2, 2_000, 0.2, seed=1)
    curve, known = runs.mean["LLC"], runs.known["LLC"]
    assert len(curve) == learning.EPOCHS
    assert known < curve[20] < curve[5] < curve[0]
    assert (runs.half_width["LLC"] > 0).all()
    assert len(list(runs.rows())) == 3 * learning.EPOCHS
