"""Pages per CPU-second of Freshet and of two Scrapy spiders on the same real pages.

nginx serves copies of documentation packages on loopback, and the crawlers take turns: first
a crawl, then, with a tenth of the pages edited, another one, in which Freshet knows the pages.
CPU time is that of the crawler's whole process tree, start included. What was fetched is read
from the server's log, for all alike. With --account instead: where Freshet's own time goes. With
--known N instead: Freshet's crawl into a store that knows N other pages, beside an empty one.

Pages: apt-get install nginx python3.11-doc postgresql-doc-15 libstdc++-12-doc
"""

from __future__ import annotations

import platform
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

from scripts.benchmarks import (
    command,
    crawl_account,
    crawl_competitors,
    crawl_known,
    crawl_nginx,
    crawl_tree,
)
from scripts.benchmarks.crawl_competitors import Concurrency, Crawler
from scripts.benchmarks.crawl_figures import Run, summary
from scripts.benchmarks.crawl_nginx import NoNginx, Served
from scripts.benchmarks.crawl_tree import NoTree, Tree

_EDITED = 0.1


def compare(tree: Tree, served: Served, chosen: Namespace, directory: Path) -> dict[str, object]:
    """So many rounds of a first crawl and a recrawl by everybody."""
    python = crawl_competitors.scrapy_python(chosen.scrapy_python)
    concurrency = Concurrency(chosen.concurrency, chosen.concurrency_per_host)
    first: list[Sequence[Run]] = []
    again: list[Sequence[Run]] = []
    for number in range(1, chosen.rounds + 1):
        place = directory / f"round-{number}"
        crawlers = crawl_competitors.crawlers(place, served, python, concurrency)
        first.append(_crawl(crawlers, served, number, f"round {number}, first crawl"))
        crawl_tree.edit(tree, _EDITED, number)
        again.append(_crawl(crawlers, served, number, f"round {number}, recrawl"))
    return {
        "tree": tree.summary() | {"edited": _EDITED},
        "versions": crawl_competitors.versions(python)
        | {"nginx": served.version, "python": platform.python_version()},
        "concurrency": {
            "requests": concurrency.requests,
            "requests_per_host": concurrency.requests_per_host,
        },
        "rounds": chosen.rounds,
        "first_crawl": summary(first, crawl_competitors.FRESHET),
        "recrawl": summary(again, crawl_competitors.FRESHET),
    }


def _crawl(crawlers: Sequence[Crawler], served: Served, number: int, what: str) -> list[Run]:
    """One after another; who begins changes from round to round."""
    begin = number % len(crawlers)
    runs = []
    for crawler in (*crawlers[begin:], *crawlers[:begin]):
        run = crawl_competitors.run(crawler, served, crawlers[0].directory / f"{crawler.name}.log")
        runs.append(run)
        command.say(
            f"{what}: {run.crawler} {len(run.pages)} pages, {run.cpu_s:.1f} CPU-s, "
            f"{run.pages_per_cpu_s:.0f} pages per CPU-s"
        )
    return runs


def _parser() -> ArgumentParser:
    parser = command.arguments(__doc__)
    parser.add_argument(
        "--tree", type=Path, metavar="DIR", action="append", default=[],
        help="a directory with an index.html, a site (repeatable); not the Debian packages",
    )  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="one small site and one round")
    parser.add_argument("--rounds", type=int, default=3, help="times that everybody crawls")
    parser.add_argument("--concurrency", type=int, default=100, help="requests at once")
    parser.add_argument("--concurrency-per-host", type=int, default=16, help="and to one host")
    parser.add_argument("--scrapy-python", type=Path, metavar="FILE", help="has Scrapy already")
    parser.add_argument("--account", action="store_true", help="our own CPU time by module")
    parser.add_argument("--known", type=int, metavar="N", help="other pages in our store")
    return parser


def main() -> None:
    """The command ``scripts/bench crawl``."""
    chosen = _parser().parse_args()
    if chosen.quick:
        chosen.rounds = 1
    with command.workspace() as directory:
        try:
            tree = crawl_tree.copied(
                crawl_tree.sources(chosen.tree, quick=chosen.quick), directory / "sites"
            )
            with crawl_nginx.serving(tree.sites, directory) as served:
                concurrency = Concurrency(chosen.concurrency, chosen.concurrency_per_host)
                if chosen.account:
                    result = crawl_account.measure(tree, served, concurrency, _EDITED, directory)
                elif chosen.known:
                    result = crawl_known.measure(
                        tree, served, concurrency, chosen.rounds, chosen.known, directory
                    )
                else:
                    result = compare(tree, served, chosen, directory)
        except (NoTree, NoNginx) as error:
            sys.exit(f"bench crawl: {error}")
        command.finish(result, chosen.output)
