#!/usr/bin/env python3
"""Table 3.2 and figures 3.2 to 3.6 of Pandey's thesis: covers that discover new pages."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.benchmarks.command import enter_environment

if __name__ == "__main__":
    enter_environment()
    from scripts.reproductions import discovery

    discovery.main()
