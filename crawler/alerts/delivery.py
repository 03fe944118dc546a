"""Delivering a message: the seam between the outbox and whoever takes messages."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Outcome(StrEnum):
    """What became of a delivery: ``REFUSED`` is about the message, ``FAILED`` may pass."""

    TAKEN = "taken"
    REFUSED = "refused"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Answer:
    """How a delivery ended; ``retry_after_s`` is when the receiver wants to be asked again."""

    outcome: Outcome
    said: str = ""
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Dispatch:
    """A message on its way: ``key`` names it, however often it is sent; ``body`` is JSON."""

    key: str
    body: str


class Receiver(Protocol):
    """Takes messages, one at a time."""

    async def deliver(self, dispatch: Dispatch, now: float) -> Answer:
        """Hand a message over within the time limit; whatever goes wrong is in the answer."""

    async def close(self) -> None:
        """Let go of what is open."""
