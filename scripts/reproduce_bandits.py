#!/usr/bin/env python3
"""Figures 6.3 to 6.6 of Pandey's thesis: advertisements with budgets as bandits."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.benchmarks.command import enter_environment

if __name__ == "__main__":
    enter_environment()
    from scripts.reproductions import bandits

    bandits.main()
