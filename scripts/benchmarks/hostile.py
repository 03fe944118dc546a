"""Hostile pages: each ends as a recorded outcome, and holds up neither memory nor others.

The same well-behaved hosts are crawled twice, with and without the hostile ones beside
them; the difference of the longest gaps between their requests is what these cost them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.benchmarks import command
from scripts.benchmarks.crawling import crawl
from scripts.benchmarks.exchanges import by_host, gaps_s
from scripts.benchmarks.loopback import Server, Web, addresses, serving
from scripts.benchmarks.memory_watch import MemoryWatch
from scripts.benchmarks.sites import Calm
from scripts.benchmarks.store_inspection import reading

ATTACKS = (
    "gzip_bomb", "brotli_bomb", "zstd_bomb", "endless_body", "nested_tags", "many_headers",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Load:
    """The well-behaved hosts, and the decoded size of a bomb."""

    hosts: int = 20
    pages: int = 100
    delay_s: float = 0.2
    bomb_mib: int = 2_048
    patience_s: float = 60.0


def measure(load: Load, directory: Path) -> dict[str, Any]:
    """Crawl without and with the hostile hosts."""
    alone = crawl_beside((), load, directory / "alone")
    beset = crawl_beside(ATTACKS, load, directory / "beset")
    held_up_s = beset["longest_wait_beyond_delay_s"] - alone["longest_wait_beyond_delay_s"]
    return {"with": beset, "without": alone, "others_held_up_s": round(held_up_s, 3)}


def crawl_beside(attacks: Sequence[str], load: Load, directory: Path) -> dict[str, Any]:
    """Crawl the well-behaved hosts beside one hostile host for each attack."""
    directory.mkdir()
    hostile = dict(zip(addresses(len(attacks), network=9), attacks, strict=True))
    calm = Calm(load.pages, min_bytes=5_000, max_bytes=20_000)
    web = Web(calm, addresses(load.hosts), hostile, load.bomb_mib)
    store = directory / "store.db"
    options = ["--delay", str(load.delay_s), "--patience", str(load.patience_s)]
    with (
        serving(web, directory / "exchanges.log") as server,
        crawl(server, store, *options) as crawling,
        MemoryWatch(crawling.pid) as watch,
    ):
        report = crawling.report()
        others = by_host(e for e in server.exchanges() if e.host not in hostile).values()
        longest_s = max(gap for host in others for gap in gaps_s(host))
    return {
        "pages": report["pages"],
        "seconds": report["seconds"],
        "peak_mb": watch.peaks(),
        "requests_to_others": sum(len(host) for host in others),
        "longest_wait_beyond_delay_s": round(longest_s - load.delay_s, 3),
        "outcomes": outcomes(server, store),
    }


def outcomes(server: Server, store: Path) -> dict[str, dict[str, object]]:
    """The last observation of each hostile page, and the number of its observations."""
    columns = ("kind", "reason", "detail", "status", "duration_s")
    query = (
        f"SELECT {', '.join('o.' + column for column in columns)}, count(*) OVER () "
        "FROM observation o JOIN page p ON p.id = o.page_id WHERE p.url = ? "
        "ORDER BY o.id DESC LIMIT 1"
    )
    found: dict[str, dict[str, object]] = {}
    with reading(store) as connection:
        for address, attack in server.web.attacks.items():
            row = connection.execute(query, (f"{server.origin(address)}/",)).fetchone()
            if row is not None:
                found[attack] = dict(zip((*columns, "observations"), row, strict=True))
    return found


def main() -> None:
    """The command ``scripts/bench_hostile``."""
    parser = command.arguments(__doc__)
    parser.add_argument("--hosts", type=int, default=20, help="well-behaved hosts")
    parser.add_argument("--delay", type=float, default=0.2, help="seconds between exchanges")
    parser.add_argument("--bomb-mib", type=int, default=2_048, help="decoded size of a bomb")
    chosen = parser.parse_args()
    load = Load(chosen.hosts, delay_s=chosen.delay, bomb_mib=chosen.bomb_mib)
    with command.workspace() as directory:
        command.finish(measure(load, directory), chosen.output)
