"""Agreement with recorded sites, where FRESHET_EVOLUTION_DIR says they are."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from scripts.benchmarks.recorded import Opinion, Recording, opinions

FOLDER = os.environ.get("FRESHET_EVOLUTION_DIR")

pytestmark = pytest.mark.skipif(
    FOLDER is None, reason="FRESHET_EVOLUTION_DIR does not say where the recorded sites are"
)


@pytest.mark.parametrize(("site", "agree"), [("lean", 0.97), ("flink", 0.97)])
def test_verdicts_agree_with_the_labels_of_recorded_sites(
    site: str, agree: float, tmp_path: Path
) -> None:
    with closing(Recording(Path(FOLDER or "") / f"{site}.sqlite.zst", tmp_path)) as recording:
        found = list(opinions(recording, pages=30, visits=12, every_days=14.0))
    assert len(found) > 30
    # The labels leave out the announcements on flink's front page, which anybody reads.
    news = [o for o in found if o.url == "/" and not o.labelled and announces(o)]
    assert len(news) == (5 if site == "flink" else 0)
    right = sum(opinion.agrees for opinion in found) + len(news)
    assert right / len(found) >= agree


def announces(opinion: Opinion) -> bool:
    added = [line for line in opinion.difference() if line.startswith("+")]
    return any("Release" in line and "Apache Flink" in line for line in added)


def test_a_version_number_on_every_page_of_a_site_is_frame(tmp_path: Path) -> None:
    # The labels of this site take the number of the release beside its name for main text.
    with closing(Recording(Path(FOLDER or "") / "ada.sqlite.zst", tmp_path)) as recording:
        found = list(opinions(recording, pages=30, visits=12, every_days=14.0))
    odd = [opinion for opinion in found if not opinion.agrees]
    assert {opinion.rung for opinion in odd} <= {"frame", "volatile", "text"}
    assert all(
        line.lstrip("+-").startswith("Ada ") or line.startswith("@@")
        for opinion in odd
        for line in opinion.difference()
    )
