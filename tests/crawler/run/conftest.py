"""Fixtures of tests that load states."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from freshet.scheduler.queue import snapshots
from freshet.storage.tables.snapshots import SnapshotParts


@pytest.fixture(autouse=True)
def _snapshots_are_closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close what states have read from: left open, it would be a warning of another test."""
    opened: list[SnapshotParts] = []

    class Noted(SnapshotParts):
        def __init__(self, path: Path) -> None:
            super().__init__(path)
            opened.append(self)

    monkeypatch.setattr(snapshots, "SnapshotParts", Noted)
    yield
    for parts in opened:
        parts.close()
