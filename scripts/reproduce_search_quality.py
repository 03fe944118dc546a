#!/usr/bin/env python3
"""Table 4.1 and figures 4.2 to 4.4 of Pandey's thesis: looks at pages for searchers' sake."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.benchmarks.command import enter_environment

if __name__ == "__main__":
    enter_environment()
    from scripts.reproductions import search_quality

    search_quality.main()
