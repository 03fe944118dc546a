"""What differs from the thesis, and why, in words."""

from __future__ import annotations

from typing import Final

DIFFERENCES: Final = ("x",)
NEW_SITES: Final = "x"
