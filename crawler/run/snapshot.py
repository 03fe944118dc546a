"""The status of a running daemon at one moment, for progress."""

from __future__ import annotations

from dataclasses import dataclass

from freshet.storage.entries import Outlook


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonSnapshot:
    """A daemon at one moment, and its last outlook.

    ``spent`` requests of the ``flowed`` ones, which the budget has allowed since the start;
    ``next_url`` is requested next, not before ``next_at``.
    """

    spent: int
    flowed: float
    next_at: float
    next_url: str | None
    outlook: Outlook | None
