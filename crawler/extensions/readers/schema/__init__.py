"""The schema of the extension, apart from the tables' use: whoever opens a store reads it."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Final

STEPS: Final[Sequence[str]] = ((files(__package__) / "0001_openings.sql").read_text("utf-8"),)
DATED: Final[Mapping[str, Sequence[str]]] = {}
