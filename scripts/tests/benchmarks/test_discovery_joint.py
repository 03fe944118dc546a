"""Both ends of the comparison: what copies cost, and for how long new pages are missing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scripts.benchmarks.daemon_recorded import Stretch
from scripts.benchmarks.daemon_sites import Page
from scripts.benchmarks.discovery_joint import Judged, Variant, compared, dominated, judged

DAYS = 40.0


def test_copies_cost_from_the_first_look_on_and_new_pages_are_missing_until_it() -> None:
    pages = {
        1: Page("a", -9.0, DAYS, (10.0, 20.0)),  # seen before; changes are caught after 5 days
        2: Page("b", 4.0, DAYS, ()),  # found on day 6
        3: Page("c", 10.0, 20.0, ()),  # never
        4: Page("d", 30.0, DAYS, ()),  # on day 39
        5: Page("e", 5.0, DAYS, ()),  # never, but nothing led to it
    }
    found = judged(pages, {1: [15.0, 25.0], 2: [6.0], 4: [39.0]}, {1, 2, 3, 4}, 7)
    kept = DAYS + (DAYS - 6) + 1
    assert found == Judged(
        requests=7, freshness=round(10 / kept, 5), stale=round(10 / kept, 5),
        delay=round((2 + 10 + 9) / 3, 3), seven=round(1 / 3, 4), new=3,
    )  # fmt: skip


def test_a_variant_is_beaten_by_what_is_better_in_both() -> None:
    def costs(freshness: float, delay: float) -> Judged:
        return Judged(1, freshness, freshness, delay, 1.0, 1)

    site = {"joint": costs(0.5, 2.0), "10/90": costs(0.4, 3.0), "50/50": costs(0.4, 1.0)}
    assert dominated({"one": site}, "joint") == {"one": ["50/50"]}


def test_on_a_recorded_site_no_fixed_share_is_better_in_both(tmp_path: Path) -> None:
    named = os.environ.get("FRESHET_EVOLUTION_DIR")
    if not named:
        pytest.skip("FRESHET_EVOLUTION_DIR does not say where recorded sites are")
    folder = tmp_path / "sites"
    folder.mkdir()
    name = "lean.sqlite.zst"
    (folder / name).symlink_to(Path(named).resolve() / name)
    variants = [Variant(), Variant(0.5)]
    found = compared(folder, tmp_path, [Stretch(0.0, 60.0, 20.0)], variants)
    assert {len(site) for sites in found.values() for site in sites.values()} == {2}
    assert dominated(found["20 days"], "joint") == {"lean": []}
