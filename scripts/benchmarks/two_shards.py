"""A first crawl by one process and by two shards, in turn, on the same made sites; JSON on stdout.

CPU time is that of all processes, by what they are for: ``crawler`` are the shards' actors, or the
one process, and what they start (parsers); ``ray`` is the rest: the program that started the
shards, the coordinator and Ray's own. What a crawl of one page a site takes is the start, and
left out of pages per CPU-second. Memory is the largest sum of a crawler and what it started (PSS).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median
from time import monotonic, sleep

from scripts.benchmarks import command
from scripts.benchmarks.linked_sites import LinkedSites, serving
from scripts.benchmarks.process_tree import MARK, Process, Tree, cpu_s, pss_mb

_EVERY_S = 0.25


def crawled(sites: LinkedSites, folder: Path, shards: int) -> dict[str, float]:
    """One crawl: its pages, wall time, CPU time and memory of a crawler."""
    folder.mkdir()
    tree, cpu, kinds = Tree(f"{os.getpid()} {folder.name}"), dict[int, float](), dict[int, str]()
    memory = 0.0
    with serving(sites, folder / "log") as port:
        (folder / "freshet.toml").write_text(sites.settings(), "utf-8")
        (folder / "sites.txt").write_text("\n".join(sites.roots(port)) + "\n", "utf-8")
        options = ["--db", "store", "--sites", "sites.txt", "--config", "freshet.toml", "--json",
                   "--delay", "0", *(["--shards", str(shards)] if shards > 1 else [])]  # fmt: skip
        program = str(Path(sys.executable).with_name("freshet"))
        began = monotonic()
        with subprocess.Popen(
            [program, "crawl", *options], stdout=subprocess.PIPE, cwd=folder, text=True,
            env=os.environ | {MARK: tree.mark},
        ) as driver:  # fmt: skip
            while driver.poll() is None:
                alive = tree.alive()
                by_id = {it.pid: it for it in alive}
                sums: defaultdict[int, float] = defaultdict(float)
                for it in alive:
                    head = _head(it, by_id, "driver" if shards == 1 else "shard")
                    cpu[it.pid] = cpu_s(it)
                    kinds[it.pid] = "ray" if head is None else "crawler"
                    if head is not None:
                        sums[head] += pss_mb(it)
                memory = max([memory, *sums.values()])
                sleep(_EVERY_S)
            wall = monotonic() - began
            assert driver.stdout is not None
            report = json.loads(driver.stdout.read())
    spent = {kind: sum(cpu[pid] for pid, each in kinds.items() if each == kind)
             for kind in ("crawler", "ray")}  # fmt: skip
    assert report["pages"] == len(sites.urls(port)), report
    return {"pages": report["pages"], "wall_s": wall, "crawl_s": report["seconds"],
            "memory_mb": memory, **spent}  # fmt: skip


def _head(process: Process, by_id: dict[int, Process], role: str) -> int | None:
    """Return the process of this role that a process is, or that has started it."""
    it: Process | None = process
    while it is not None:
        if it.role == role:
            return it.pid
        it = by_id.get(it.parent)
    return None


def main() -> None:
    """Crawl, and print the result."""
    parser = command.arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--hosts", type=int, default=20)
    parser.add_argument("--pages", type=int, default=250, help="of each host")
    given = parser.parse_args()
    rounds: dict[int, list[dict[str, float]]] = {1: [], 2: []}
    with command.workspace() as directory:
        small, large = LinkedSites(given.hosts, 1, 0.0), LinkedSites(given.hosts, given.pages, 0.0)
        starts = {n: crawled(small, directory / f"start{n}", n) for n in (1, 2)}
        for number in range(given.rounds):
            for shards in (1, 2):
                found = crawled(large, directory / f"round{number}of{shards}", shards)
                own = found["crawler"] - starts[shards]["crawler"]
                found["pages_per_cpu_s"] = found["pages"] / own
                with_ray = found["crawler"] + found["ray"]
                found["pages_per_cpu_s_with_all"] = found["pages"] / with_ray
                rounds[shards].append({name: round(value, 2) for name, value in found.items()})
                command.say(f"round {number}, {shards}: {rounds[shards][-1]}")
    ratios = {
        name: round(
            median(two[name] / one[name] for one, two in zip(*rounds.values(), strict=True)), 3
        )
        for name in ("pages_per_cpu_s", "pages_per_cpu_s_with_all", "wall_s", "crawl_s")
    }
    more = max(it["memory_mb"] for it in rounds[2]) - max(it["memory_mb"] for it in rounds[1])
    told = {shards: {name: round(value, 2) for name, value in it.items()}
            for shards, it in starts.items()}  # fmt: skip
    command.finish(
        {"two_by_one": ratios, "memory_of_a_shard_more_mb": round(more, 1), "starts": told,
         "rounds": rounds}, given.output,
    )  # fmt: skip
