"""Politeness end to end, by the log of the server: scripts/bench politeness in small."""

import sys
from pathlib import Path

import pytest

from scripts.benchmarks.politeness import Load, measure

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs addresses of 127.0.0.0/8")


def test_no_two_requests_to_a_host_are_closer_than_the_delay(tmp_path: Path) -> None:
    hosts, pages = 6, 5
    found = measure(Load(hosts, pages, delay_s=0.1, latency_s=0.01, time_limit_s=60), tmp_path)
    assert found["gaps_below_delay"] == 0
    assert found["requests"] == hosts * (1 + pages)
    assert found["crawl"]["ending"] == "nothing due"
