"""What replaying the past takes, and what it is worth.

Each flag runs one benchmark. Prints one JSON object.
"""

from __future__ import annotations

import os
from pathlib import Path

from scripts.benchmarks import (
    crawl_tree,
    replay_policies,
    replay_reading,
    replay_thinned,
    replay_whole,
)
from scripts.benchmarks.command import arguments, finish, say

_SITES = Path(os.environ.get("FRESHET_EVOLUTION_DIR", "evolution"))


def main() -> None:
    """Run the benchmarks asked for."""
    parser = arguments(__doc__)
    parser.add_argument(
        "--counterfactual", action="store_true", help="five policies on a year of a store"
    )
    parser.add_argument("--pages", type=int, default=100_000, help="with --counterfactual")
    parser.add_argument(
        "--thin", nargs="?", const=_SITES, type=Path, metavar="DIR",
        help="the order of policies on recorded sites (*.sqlite.zst) of which captures are lost",
    )  # fmt: skip
    parser.add_argument("--seeds", type=int, default=8, help="with --thin: draws for each share")
    parser.add_argument("--figure", type=Path, metavar="PNG", help="with --thin: draw it there")
    parser.add_argument("--read", action="store_true", help="archives, beside a loop of warcio")
    parser.add_argument("--exchanges", type=int, default=3_000, help="with --read: in the archive")
    parser.add_argument("--rows", type=int, default=1_000_000, help="with --read: in an index")
    parser.add_argument(
        "--whole", action="store_true", help="archives into a store, beside a naive loop"
    )
    parser.add_argument("--captures", type=int, default=2_000, help="with --whole: of each crawl")
    parser.add_argument(
        "--tree", type=Path, action="append", default=[], metavar="DIR",
        help="with --whole: pages to crawl instead of Debian's documentation packages",
    )  # fmt: skip
    options = parser.parse_args()
    result: dict[str, object] = {}
    if options.counterfactual:
        say("== counterfactual")
        result["counterfactual"] = replay_policies.figures(options.pages)
    if options.thin is not None:
        say("== thin")
        result["thin"] = thin = replay_thinned.figures(options.thin, options.seeds)
        if options.figure is not None:
            # Only drawing needs matplotlib.
            from scripts.benchmarks import replay_drawing

            replay_drawing.draw(thin, options.figure)
    if options.read:
        say("== read")
        result["read"] = replay_reading.figures(options.exchanges, options.rows)
    if options.whole:
        say("== whole")
        sites = crawl_tree.sources(options.tree, quick=False)
        tree = crawl_tree.opened(list(sites.values()))
        result["whole"] = replay_whole.figures(tree, options.captures)
    if not result:
        parser.error("one of --counterfactual, --thin, --read, --whole is needed")
    finish(result, options.output)
