"""How much of its budget a daemon could use, told where that was not all of it."""

from __future__ import annotations

import logging
from typing import Final

from freshet.crawler.pacing import Pacer

log = logging.getLogger(__name__)

#: Of a budget so much may go unused without a word.
_UNTOLD: Final = 0.02


class Usage:
    """Remembers what was spent and forgone when it was told last."""

    def __init__(self) -> None:
        self._spent = 0
        self._forgone = 0.0

    def tell(self, pacer: Pacer) -> None:
        """Log what the budget had room for, since the last time, while nothing could be asked."""
        spent, forgone = pacer.spent - self._spent, pacer.forgone - self._forgone
        self._spent, self._forgone = pacer.spent, pacer.forgone
        if forgone >= max(1.0, _UNTOLD * (spent + forgone)):
            log.warning(
                "%.0f of %.0f requests of the budget could not be used: no host with pages to ask "
                "for could be asked more often",
                forgone,
                spent + forgone,
            )
