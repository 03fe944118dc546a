"""What writing an archive costs a crawl of real pages, in CPU time.

nginx serves documentation packages on loopback (as for bench crawl, gzipped where a client takes
that). Freshet crawls them with and without ``--archive``, and with ``--requisites``, too, by turns,
first and again with a tenth of the pages edited. CPU time is that of the whole process tree, start
included.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from scripts.benchmarks import command, crawl_competitors, crawl_nginx, crawl_tree
from scripts.benchmarks.crawl_competitors import Concurrency, Crawler
from scripts.benchmarks.crawl_figures import Run
from scripts.benchmarks.crawl_nginx import NoNginx, Served
from scripts.benchmarks.crawl_tree import NoTree, Tree

_EDITED = 0.1
_OPTIONS = {"without": (), "with": ("--archive",), "whole": ("--archive", "--requisites")}
_PLAIN, _ARCHIVED, _WHOLE = _OPTIONS


def measure(tree: Tree, served: Served, rounds: int, directory: Path) -> dict[str, object]:
    """So many rounds of a first crawl and a recrawl, with and without an archive."""
    first: list[Mapping[str, Run]] = []
    again: list[Mapping[str, Run]] = []
    sizes = [0, 0]
    for number in range(rounds):
        crawlers = [_crawler(directory / f"{n}-{number}", served, n) for n in _OPTIONS]
        if number % 2:
            crawlers.reverse()
        first.append(_crawl(crawlers, served, f"round {number + 1}, first crawl"))
        folder = directory / f"{_ARCHIVED}-{number}" / "archive"
        sizes[0] = _size(folder)
        crawl_tree.edit(tree, _EDITED, number + 1)
        again.append(_crawl(crawlers, served, f"round {number + 1}, recrawl"))
        sizes[1] = _size(folder) - sizes[0]
    return {
        "tree": tree.summary() | {"edited": _EDITED},
        "rounds": rounds,
        "first_crawl": _figures(first) | {"archive_bytes": sizes[0]},
        "recrawl": _figures(again) | {"archive_bytes": sizes[1]},
    }


def _crawler(directory: Path, served: Served, name: str) -> Crawler:
    directory.mkdir()
    seeds = directory / "seeds.txt"
    seeds.write_text("\n".join(served.seeds()) + "\n", "utf-8")
    crawler = crawl_competitors.freshet(directory, seeds, Concurrency())
    archive, *others = _OPTIONS[name] or ("",)
    options = (archive, str(directory / "archive"), *others) if archive else ()
    return replace(crawler, name=name, command=(*crawler.command, *options))


def _crawl(crawlers: Sequence[Crawler], served: Served, what: str) -> Mapping[str, Run]:
    runs = {}
    for crawler in crawlers:
        run = crawl_competitors.run(crawler, served, crawler.directory / "errors.log")
        runs[crawler.name] = run
        command.say(f"{what}: {run.crawler} archive {len(run.pages)} pages, {run.cpu_s:.2f} CPU-s")
    return runs


def _figures(rounds: Sequence[Mapping[str, Run]]) -> dict[str, object]:
    """CPU seconds of each run, and what was added, by the medians and by the fastest of each."""
    cpu = {name: [runs[name].cpu_s for runs in rounds] for name in _OPTIONS}
    pages = len(rounds[0][_PLAIN].pages)
    return {
        "pages": pages,
        "cpu_s": {name: [round(s, 2) for s in each] for name, each in cpu.items()},
        **_added("", cpu[_ARCHIVED], cpu[_PLAIN], pages),
        **_added("requisites_", cpu[_WHOLE], cpu[_ARCHIVED], pages),
    }


def _added(
    what: str, more: Sequence[float], less: Sequence[float], pages: int
) -> dict[str, object]:
    shares = {
        how: round(of(more) / of(less) - 1, 3) for how, of in (("median", median), ("fastest", min))
    }
    us = round((min(more) - min(less)) / pages * 1e6, 1)
    return {f"{what}added": shares, f"{what}added_us_a_page_fastest": us}


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*.warc.gz"))


def _parser() -> ArgumentParser:
    parser = command.arguments(__doc__)
    parser.add_argument(
        "--tree", type=Path, metavar="DIR", action="append", default=[],
        help="a directory with an index.html, a site (repeatable); not the Debian packages",
    )  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="one small site and one round")
    parser.add_argument("--rounds", type=int, default=3, help="times that all is crawled")
    return parser


def main() -> None:
    """The command ``scripts/bench archive``."""
    chosen = _parser().parse_args()
    rounds = 1 if chosen.quick else chosen.rounds
    with command.workspace() as directory:
        try:
            sources = crawl_tree.sources(chosen.tree, quick=chosen.quick)
            tree = crawl_tree.copied(sources, directory / "sites")
            with crawl_nginx.serving(tree.sites, directory) as served:
                result = measure(tree, served, rounds, directory)
        except (NoTree, NoNginx) as error:
            sys.exit(f"bench archive: {error}")
        command.finish(result, chosen.output)
