"""Volatility: a block that is another at every visit is frame.

Invariant: a slot is volatile from the third comparison in a row at which its block was
replaced, and content again once it has stood still at two in a row. Consequence: a stamp, a
counter or a token raises no change for long, and a price that changes now and then always
does: every comparison at which it stood still asks for one more replacement in a row.

Where the other pages of the site hold content at the same slot, the page alone needs more
to convince.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: Replacements in a row that make a slot volatile.
STREAK: Final = 3
#: The same, where other pages of the site have content at that slot.
STREAK_AGAINST_THE_SITE: Final = 8
#: Comparisons in a row without a replacement that make it content again.
STILLNESS: Final = 2
#: Comparisons that are remembered, and how many of those without a replacement are held
#: against a streak.
WINDOW: Final = 16
_MOST_HELD_AGAINST: Final = 5


@dataclass(frozen=True, slots=True)
class SlotHistory:
    """What the last comparisons found at a slot.

    ``replacements`` has a bit for each of the last ``compared`` comparisons, the newest
    lowest; ``digest`` is the block that was last seen there.
    """

    digest: int
    replacements: int = 0
    compared: int = 0
    volatile: bool = False

    @property
    def share(self) -> tuple[int, int]:
        """At how many comparisons it was replaced, of how many."""
        return self.replacements.bit_count(), self.compared

    def after(self, digest: int, *, replaced: bool, streak: int = STREAK) -> SlotHistory:
        """The history after one more comparison, which found ``digest``."""
        bits = (self.replacements << 1 | replaced) & ((1 << WINDOW) - 1)
        compared = min(self.compared + 1, WINDOW)
        return SlotHistory(digest, bits, compared, self._is_volatile(bits, compared, streak))

    def after_stillness(self, comparisons: int) -> SlotHistory:
        """The history after some comparisons at which nothing on the page differed."""
        history = self
        for _ in range(min(comparisons, WINDOW)):
            history = history.after(self.digest, replaced=False)
        return history

    def _is_volatile(self, bits: int, compared: int, streak: int) -> bool:
        if self.volatile:
            return bits & ((1 << STILLNESS) - 1) != 0
        in_a_row = (~bits & (bits + 1)).bit_length() - 1
        stood_still = compared - bits.bit_count()
        return in_a_row >= streak + min(stood_still, _MOST_HELD_AGAINST)
