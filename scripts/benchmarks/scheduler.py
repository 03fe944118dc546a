"""The scheduler's figures, each beside its alternative in the same run.

Sections: ``solve`` (LambdaCrawl, exact, at scale, with host capacities; what other policies
pay on the surrogate population), ``estimators`` (speed and error of change-rate estimates),
``signals`` (noisy signals heeded, ignored and believed), ``ephemeral`` (whom to crawl of a million
sources whose items fade), ``simulation`` (realised costs, rates known and learned). Prints one
JSON object; times are those of one core.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from scripts.benchmarks import (
    scheduler_ephemeral,
    scheduler_estimators,
    scheduler_signals,
    scheduler_simulation,
    scheduler_solve,
)
from scripts.benchmarks.command import arguments, finish, say

SECTIONS: dict[str, Callable[..., dict[str, object]]] = {
    "solve": scheduler_solve.figures,
    "estimators": scheduler_estimators.figures,
    "signals": scheduler_signals.figures,
    "ephemeral": scheduler_ephemeral.figures,
    "simulation": scheduler_simulation.figures,
}


def main() -> None:
    """Run the sections asked for."""
    parser = arguments(__doc__)
    parser.add_argument(
        "--only", action="append", choices=SECTIONS, metavar="SECTION",
        help=f"one of {', '.join(SECTIONS)}; may be repeated (default: all)",
    )  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="small populations, seconds")
    options = parser.parse_args()
    result: dict[str, object] = {"cpu_affinity": len(os.sched_getaffinity(0))}
    for name in options.only or SECTIONS:
        say(f"== {name}")
        result[name] = SECTIONS[name](quick=options.quick)
    finish(result, options.output)
