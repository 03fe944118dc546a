#!/usr/bin/env python3
"""Orders of a small search: by opens, by appeal, by indices, with promotion."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.benchmarks.command import enter_environment

if __name__ == "__main__":
    enter_environment()
    from scripts.reproductions import small_search

    small_search.main()
