"""A running daemon at one moment, for progress."""

from __future__ import annotations

from dataclasses import dataclass

from freshet.storage.entries import Outlook


@dataclass(frozen=True, slots=True)
class Glimpse:
    """A daemon at this moment, and its last outlook.

    ``spent`` are the requests since it began, of those that ``flowed``; ``next_url`` is what it
    asks for next, at ``next_at`` at the earliest.
    """

    spent: int
    flowed: float
    next_at: float
    next_url: str | None
    outlook: Outlook | None
