"""How polite a crawl is, and what use it makes of what politeness allows.

Both are judged by the server's log alone. A request for robots.txt counts like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import fmean
from typing import Any

from scripts.benchmarks import command
from scripts.benchmarks.crawling import crawl
from scripts.benchmarks.exchanges import Exchange, by_host, gaps_s, overall_utilisation, utilisation
from scripts.benchmarks.loopback import Web, addresses, serving
from scripts.benchmarks.site_contents import Calm


@dataclass(frozen=True, slots=True)
class Load:
    """What is crawled: so many hosts with so many pages, for at most ``time_limit_s``."""

    hosts: int
    pages: int
    delay_s: float
    latency_s: float
    time_limit_s: float


def measure(load: Load, directory: Path) -> dict[str, Any]:
    """Crawl, and judge the log."""
    calm = Calm(load.pages, links=load.pages, latency_s=load.latency_s)
    web = Web(calm, addresses(load.hosts), {})
    cpu_before_s = _cpu_of_ended_children_s()
    options = ["--delay", str(load.delay_s), "--time-limit", str(load.time_limit_s)]
    with (
        serving(web, directory / "exchanges.log") as server,
        crawl(server, directory / "store.db", *options) as crawling,
    ):
        report = crawling.report()
        cpu_s = _cpu_of_ended_children_s() - cpu_before_s
        verdict = judge(server.exchanges(), load)
    shown = {key: report[key] for key in ("ending", "pages", "fetches", "errors", "seconds")}
    return verdict | {"crawl": shown | {"cpu_s": round(cpu_s, 1)}}


def _cpu_of_ended_children_s() -> float:
    usage = getrusage(RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def judge(exchanges: Sequence[Exchange], load: Load) -> dict[str, Any]:
    """The figures of a log."""
    hosts = by_host(exchanges)
    gaps = sorted(gap for host in hosts.values() for gap in gaps_s(host))
    return {
        "hosts": len(hosts),
        "requests": len(exchanges),
        "delay_s": load.delay_s,
        "mean_response_s": round(fmean(e.end - e.start for e in exchanges), 4),
        "smallest_gap_s": round(gaps[0], 6),
        "median_gap_s": round(gaps[len(gaps) // 2], 6),
        "largest_gap_s": round(gaps[-1], 6),
        "clock_uncertainty_s": round(max(e.sent - e.end for e in exchanges), 6),
        "gaps_below_delay": sum(gap < load.delay_s for gap in gaps),
        "utilisation": round(utilisation(hosts.values(), load.delay_s), 4),
        "utilisation_overall": round(overall_utilisation(exchanges, load.hosts, load.delay_s), 4),
    }


def main() -> None:
    """The command ``scripts/bench politeness``."""
    parser = command.arguments(__doc__)
    parser.add_argument("--hosts", type=int, default=200, help="hosts on loopback")
    parser.add_argument("--delay", type=float, default=1.0, help="seconds between exchanges")
    parser.add_argument("--latency", type=float, default=0.03, help="seconds of each response")
    parser.add_argument("--time-limit", type=float, default=40.0, help="seconds of crawling")
    chosen = parser.parse_args()
    pages = int(chosen.time_limit / (chosen.delay + chosen.latency)) + 20
    load = Load(chosen.hosts, pages, chosen.delay, chosen.latency, chosen.time_limit)
    command.say(f"crawling {load.hosts} hosts for {load.time_limit_s:g} s")
    with command.workspace() as directory:
        command.finish(measure(load, directory), chosen.output)
