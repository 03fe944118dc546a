"""``python -m scheduler.conformance NAME[:OPTION=VALUE,…]``: check an installed policy.

It prints every law, kept or broken. Exit code 0 if all are kept, 1 if not, 2 for wrong usage.
"""

import argparse
import sys

from freshet.scheduler import PolicyError, policy
from freshet.scheduler.conformance import verdicts


def main() -> int:
    """Check the policy given on the command line."""
    parser = argparse.ArgumentParser(prog="python -m freshet.scheduler.conformance")
    parser.add_argument("policy", help="NAME or NAME:OPTION=VALUE,…")
    parser.add_argument("--optimal-for", choices=["harmonic", "binary"])
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    try:
        judged = verdicts(policy.load(args.policy), optimal_for=args.optimal_for, seed=args.seed)
    except (PolicyError, TypeError) as error:
        parser.exit(2, f"{error}\n")
    for verdict in judged:
        mark = "kept" if verdict.counter_example is None else "BROKEN"
        sys.stdout.write(f"{mark:<8}{verdict}\n")
    return int(any(verdict.counter_example is not None for verdict in judged))


if __name__ == "__main__":
    sys.exit(main())
