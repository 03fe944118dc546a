"""Readers: the pages that they open of lists, and the worth of pages to them and to searchers."""

from collections.abc import Mapping, Sequence
from typing import Final

STEPS: Final[Sequence[str]] = ("schema/0001_openings.sql",)
DATED: Final[Mapping[str, Sequence[str]]] = {}
