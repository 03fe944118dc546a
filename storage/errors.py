"""The exceptions of the store that cross modules."""

from pathlib import Path


class StoreError(Exception):
    """The store cannot do its work; the message is one line for the user."""


class StoreUnavailable(StoreError):
    """The store cannot be read or written now, for a reason (``why``) that may pass."""

    def __init__(self, path: Path, why: str, advice: str = "") -> None:
        super().__init__(f"{path}: {why}; {advice}" if advice else f"{path}: {why}")
        self.why = f"{path}: {why}"


class CursorGone(Exception):
    """A cursor is too old to tell what changed since; the message says how to go on."""


class SnapshotError(Exception):
    """A part of a snapshot is missing, damaged or of another version, and is learnt anew."""
