"""Flips: a page that alternates between variants (A/B tests, rotating adverts).

A single return to an earlier text is a revert, which somebody made: a change. A page that
goes back and forth serves variants: so a block counts as a variant from its second return
on. ``A B A`` is two changes; in ``A B A B`` the fourth visit found nothing new, as both
variants had come twice within the last eight visits. Coming back more slowly (a shop that
sells out every month) stays a change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: Visits within which variants must come back.
FLIP_WINDOW: Final = 8
#: Times that a variant must have been seen, with an absence in between.
_APPEARANCES: Final = 2


@dataclass(frozen=True, slots=True)
class Presence:
    """At which of the last visits something was there: a bit for each, the newest lowest."""

    visits: int

    @classmethod
    def of_gone(cls) -> Presence:
        """Of what was there at the visit before, and is not now."""
        return cls(0b10)

    @classmethod
    def of_come(cls) -> Presence:
        """Of what is there now for the first time."""
        return cls(0b01)

    @property
    def now(self) -> bool:
        """Whether it was there at the last visit."""
        return bool(self.visits & 1)

    @property
    def alternates(self) -> bool:
        """Whether it has come at least twice in the last visits."""
        return (self.visits & ~(self.visits >> 1)).bit_count() >= _APPEARANCES

    @property
    def forgotten(self) -> bool:
        """Whether nothing was seen of its coming and going for the whole window."""
        return self.visits in {0, (1 << FLIP_WINDOW) - 1}

    def after(self, *, present: bool, visits: int = 1) -> Presence:
        """The presence after some visits that all found the same."""
        history = self.visits
        for _ in range(min(visits, FLIP_WINDOW)):
            history = (history << 1 | present) & ((1 << FLIP_WINDOW) - 1)
        return Presence(history)
