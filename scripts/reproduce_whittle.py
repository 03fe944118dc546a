#!/usr/bin/env python3
"""Table 1 and figures 1 to 4 of Avrachenkov and Borkar's Whittle index for ephemeral content."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.benchmarks.command import enter_environment

if __name__ == "__main__":
    enter_environment()
    from scripts.reproductions import whittle

    whittle.main()
