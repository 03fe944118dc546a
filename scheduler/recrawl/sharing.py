"""How looks are shared between finding pages and keeping them fresh.

The worthiest look comes next, so that the shares are an outcome. Where the user sets a floor or a
ceiling, two accounts see to it: each look pays the share in, each look for discovery takes one out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: Looks by which an account may run ahead: what was not found for a week is not made up for.
_MOST: Final = 50.0


@dataclass(frozen=True, slots=True)
class NewPages:
    """What new pages are worth, and the share of the looks that may go to finding them.

    Attributes:
        worth: what a page costs that is missing, in copies that are stale.
        least, most: shares of the looks, 0 to 1.
        come: whether there can be others than those that are known.
    """

    worth: float = 1.0
    least: float = 0.0
    most: float = 1.0
    come: bool = True

    @property
    def revealed(self) -> float:
        """What a page costs that is not known yet."""
        return self.worth if self.come else 0.0


class Sharing:
    """Keeps the accounts, and counts.

    Attributes:
        found, revealed: looks for discovery: at pages never captured, and at those that may reveal
            some.
        refreshed: all others.
    """

    def __init__(self, terms: NewPages) -> None:
        self.terms = terms
        self.found = self.revealed = self.refreshed = 0
        self._below_most = self._above_least = 0.0

    @property
    def bounded(self) -> bool:
        """Whether there is a floor or a ceiling."""
        return self.terms.least > 0 or self.terms.most < 1

    @property
    def favoured(self) -> bool | None:
        """Whether a look for discovery comes next, or one that is not; None: either."""
        if self._below_most < 0:
            return False
        return True if self._above_least > 0 else None

    def took(self, *, discovers: bool, captured: bool) -> None:
        """A look was taken."""
        self.found += discovers and not captured
        self.revealed += discovers and captured
        self.refreshed += not discovers
        self._below_most = self._paid(self._below_most, self.terms.most, discovers)
        self._above_least = self._paid(self._above_least, self.terms.least, discovers)

    @staticmethod
    def _paid(account: float, share: float, discovers: bool) -> float:
        return min(max(account + share - discovers, -_MOST), _MOST)
