#!/usr/bin/env python3
"""Figures 5.2 to 5.12 of Pandey's thesis: ranking with rank promotion."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.benchmarks.command import enter_environment

if __name__ == "__main__":
    enter_environment()
    from scripts.reproductions import promotion

    promotion.main()
