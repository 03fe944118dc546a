"""Hostile sites, loads and files end to end: the rows of scripts/bench hostile, one by one."""

import sys
from pathlib import Path

import pytest

from scripts.benchmarks.hostile import MOST, run
from scripts.benchmarks.hostile_rows import ROWS

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="needs addresses of 127.0.0.0/8 and /proc"),
    # Each serves one port of all addresses.
    pytest.mark.xdist_group("hostile"),
]

#: Those that end in time whatever runs beside them; the others are long.
QUICK = {"deep_toml"}


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in ROWS]
)
def test_a_row_ends_as_a_recorded_outcome_within_bounds(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Beside another test; alone scripts/bench hostile holds half of it.
    monkeypatch.setitem(MOST, "stretch_ms", 300.0)
    found = run(ROWS[name], tmp_path)
    # How much the neighbours get is measured where the machine does nothing else.
    assert found["broken"] == []
