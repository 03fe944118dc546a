"""Patterns of URLs, as rules have them."""

from __future__ import annotations

import re


def pattern(match: str) -> re.Pattern[str]:
    """``*`` stands for anything; what begins with a slash is a path, on whatever host."""
    text = ".*".join(map(re.escape, match.split("*")))
    return re.compile(f"[a-z]+://[^/]+{text}" if match.startswith("/") else text)
