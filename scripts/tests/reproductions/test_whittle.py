"""The reproduction of the Whittle index for ephemeral content, in small."""

import ast
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scripts.reproductions import whittle, whittle_learning, whittle_measures

ROOT = Path(__file__).parents[3]


def run(monkeypatch: pytest.MonkeyPatch, *options: object) -> None:
    monkeypatch.setattr(sys, "argv", ["reproduce", *map(str, options)])
    whittle.main()


@pytest.mark.long
def test_one_command_prints_the_tables_and_writes_the_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    laws = {name: whittle_measures.LAWS[name] for name in list(whittle_measures.LAWS)[4:5]}
    monkeypatch.setattr(whittle_measures, "LAWS", laws)
    monkeypatch.setattr(whittle_measures, "SAMPLE", 500)
    monkeypatch.setattr(whittle_measures, "REPLICAS", (1, 2))
    monkeypatch.setattr(whittle_learning, "STEPS_C", (0.5,))
    monkeypatch.setattr(whittle_learning, "REGULARISATIONS", (1e-3,))
    run(
        monkeypatch, "--output", tmp_path, "--periods", 100, "--instances", 2, "--tables", 1,
        "--steps", 50, "--learner-seeds", 1,
    )  # fmt: skip
    figures = {f"whittle_{name}.png" for name in ("1", "2", "3", "4", "replicas", "learners")}
    assert {path.name for path in tmp_path.iterdir()} == figures | {"whittle.json"}
    shown = capsys.readouterr().out
    for words in (
        "printed",
        "254.66",
        "179.79",
        "285",
        "not derivable",
        "260.39",
        "337.77",
        "LSPE",
    ):
        assert words in shown
    found: Any = json.loads((tmp_path / "whittle.json").read_text("utf-8"))
    assert found["deterministic"]["1"]["means"]["round robin"] == pytest.approx(208.33, abs=0.01)
    assert found["deterministic"]["2"]["means"]["Whittle"] == pytest.approx(337.77, abs=0.01)
    assert found["optimum"]["worst"] < 0.03
    assert {budget: len(laws) for budget, laws in found["random"].items()} == {"1": 1, "2": 1}
    assert found["random"]["2"][0]["means"]["round robin"] == pytest.approx(303.6, rel=0.3)
    learners = found["learners"]
    assert learners["example"]["1"][whittle_learning.CLICKS]["share"] > 0.9
    assert 50 < learners["lspe"][whittle_learning.AS_PRINTED]["whole"] < 350
    assert len(learners["grid"]) == 1


def test_what_the_papers_print_is_read_by_the_script_alone() -> None:
    readers = [
        path.relative_to(ROOT).as_posix()
        for folder in ("config", "crawler", "scheduler", "storage", "scripts")
        for path in (ROOT / folder).rglob("*.py")
        if path.name != Path(__file__).name and "whittle_paper" in path.read_text(encoding="utf-8")
    ]
    assert readers == ["scripts/reproductions/whittle.py"]
    numbers = {
        node.value
        for path in (ROOT / "scripts/reproductions").glob("whittle*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float)
    }
    assert numbers.isdisjoint({179.79, 254.66, 208, 260, 283, 285, 160})


def test_the_gap_of_a_table_is_measured_against_its_optimum() -> None:
    gap = whittle_measures.gap_to_optimum(whittle_measures.TABLE_1, 1)
    assert gap == pytest.approx(0, abs=1e-9)
    gaps = whittle_measures.gaps_to_optimum(3, seed=4)
    assert (gaps > -5e-3).all()
    assert np.mean(gaps) < 0.02


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--periods", 5), "--periods must be at least 100"),
        (("--learner-seeds", 0), "--learner-seeds must be at least 1"),
        (("--output", __file__), "File exists"),
    ],
)
def test_bad_options_are_refused_in_a_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: tuple[object, ...],
    words: str,
) -> None:
    with pytest.raises(SystemExit) as refused:
        run(monkeypatch, *options)
    assert words in f"{refused.value}{capsys.readouterr().err}"
