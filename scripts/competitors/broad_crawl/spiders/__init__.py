"""The two spiders, and the seeds that both read."""

from pathlib import Path


def seeds_in(file: str) -> list[str]:
    """The URLs in a file, one a line."""
    return Path(file).read_text("utf-8").split()
