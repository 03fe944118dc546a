"""Hostile pages end to end: scripts/bench_hostile in small."""

import sys
from pathlib import Path

import pytest

from scripts.benchmarks.hostile import ATTACKS, Load, crawl_beside

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="needs addresses of 127.0.0.0/8 and /proc"
)


def test_every_hostile_page_is_an_outcome_and_no_other_page_is_lost(tmp_path: Path) -> None:
    load = Load(hosts=4, pages=8, delay_s=0.05, bomb_mib=256)
    found = crawl_beside(ATTACKS, load, tmp_path / "beset")
    reasons = {attack: outcome["reason"] for attack, outcome in found["outcomes"].items()}
    assert reasons == {
        "gzip_bomb": "too_large", "brotli_bomb": "too_large", "zstd_bomb": "too_large",
        "endless_body": "too_large", "nested_tags": "unparsable",
        "many_headers": "headers_too_large",
    }  # fmt: skip
    assert found["requests_to_others"] == load.hosts * (1 + load.pages)
    assert found["peak_mb"]["process"] <= 250
