"""The schema's history: numbered SQL files, each applied once, in one transaction."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema; ``number`` becomes ``PRAGMA user_version``."""

    number: int
    name: str
    sql: str


def migrations() -> list[Migration]:
    """All steps in order, read from ``NNNN_name.sql`` beside this module."""
    files = [f for f in resources.files(__name__).iterdir() if f.name.endswith(".sql")]
    return [
        Migration(int(f.name[:4]), f.name[5:-4], f.read_text("utf-8"))
        for f in sorted(files, key=lambda f: f.name)
    ]


def newest() -> int:
    """The number of the last migration."""
    return migrations()[-1].number
