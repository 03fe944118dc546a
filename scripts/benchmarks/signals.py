"""What hearing the signals of the web takes.

Each flag runs one benchmark; without any all of them run. Prints one JSON object.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from scripts.benchmarks import (
    signals_complete,
    signals_forged,
    signals_sitemap,
    signals_sites,
    signals_surrogate,
)
from scripts.benchmarks.command import arguments, finish, say

BENCHMARKS: dict[str, tuple[Callable[[], dict[str, object]], str]] = {
    "forged": (signals_forged.figures, "a daemon for a minute under 1,000 forged signals a second"),
    "sitemap": (signals_sitemap.figures, "read a sitemap of 50,000 URLs and 50 MB"),
}


_SITES = Path(os.environ.get("FRESHET_EVOLUTION_DIR", "evolution"))
_OF_SITES = "recorded sites with their sitemaps, true and lying (*.sqlite.zst)"


def main() -> None:
    """Run the benchmarks asked for."""
    parser = arguments(__doc__)
    for name, (_, help_text) in BENCHMARKS.items():
        parser.add_argument(f"--{name}", action="store_true", help=help_text)
    parser.add_argument(
        "--sites", nargs="?", const=_SITES, type=Path, metavar="DIR", help=_OF_SITES
    )
    parser.add_argument(
        "--surrogate", action="store_true", help="instead, the whole daemon in virtual time"
    )
    parser.add_argument(
        "--complete",
        nargs="?",
        const="lambda_crawl",
        metavar="POLICY",
        help="instead, what complete observations save a daemon that follows it",
    )
    parser.add_argument("--pages", type=int, help="with --surrogate (10,000) or --complete (500)")
    parser.add_argument("--seed", type=int, default=1, help="with --complete: the web")
    parser.add_argument("--seeds", type=int, default=1, help="with --surrogate: webs")
    parser.add_argument(
        "--dated", action="store_true", help="with --surrogate: pages have a Last-Modified"
    )
    options = parser.parse_args()
    if options.surrogate:
        pages = options.pages or signals_surrogate.PAGES
        found = signals_surrogate.figures(pages, options.seeds, dated=options.dated)
        finish(found, options.output)
        return
    if options.complete is not None:
        pages = options.pages or signals_complete.PAGES
        finish(signals_complete.figures(pages, options.seed, options.complete), options.output)
        return
    if options.sites is not None:
        finish(signals_sites.figures(options.sites), options.output)
        return
    chosen = [name for name in BENCHMARKS if getattr(options, name)] or list(BENCHMARKS)
    result: dict[str, object] = {}
    for name in chosen:
        say(f"== {name}")
        result[name] = BENCHMARKS[name][0]()
    finish(result, options.output)
