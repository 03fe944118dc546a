"""What later visits say of earlier ones, and of other pages. Pure values.

Others take them from :mod:`freshet.storage.records`.
"""

from __future__ import annotations

from dataclasses import dataclass

from freshet.storage.words import Kind, Rung


@dataclass(frozen=True, slots=True)
class Amendment:
    """An earlier observation of a page, made at ``at``, in the light of later ones."""

    at: float
    kind: Kind
    rung: Rung
    reason: str


@dataclass(frozen=True, slots=True)
class Retraction:
    """A page's last capture, made at ``at`` (None: whenever), was no content: ``reason`` says."""

    page_id: int
    at: float | None
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class CopyFinding:
    """A page of a ``pattern`` says what another one says; ``original_id`` is None if none does.

    One that ``is_barren`` shows nothing but what others show, that one most of it: it counts for a
    page of its own if it leads to pages that were not known.
    """

    page_id: int
    pattern: str
    original_id: int | None
    is_barren: bool = False
