#!/usr/bin/env python3
"""Figures 1 to 3 of the LambdaCrawl paper, and cost against budget, on a surrogate population."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.benchmarks.command import enter_environment

if __name__ == "__main__":
    enter_environment()
    from scripts.reproductions import lambdacrawl

    lambdacrawl.main()
