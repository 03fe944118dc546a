"""Hosts that cannot be asked for a while: told once when they go, once when they are back."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from freshet.crawler.commands.display import span
from freshet.storage.entries import HostState
from freshet.storage.records import Acknowledged

log = logging.getLogger(__name__)

#: Shorter pauses are everyday life.
_TOLD_FROM_S: Final = 300.0


class Absences:
    """Listens to what politeness remembers; a host goes by its politeness key."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def told(self, batch: Sequence[Acknowledged]) -> None:
        """A batch has committed."""
        for item in batch:
            if item.entry.host is not None:
                self._look(item.entry.host)

    def _look(self, state: HostState) -> None:
        since = self._since.get(state.lane)
        parked_until = state.parked_until or state.last_exchange_at
        if since is None and parked_until - state.last_exchange_at >= _TOLD_FROM_S:
            self._since[state.lane] = state.last_exchange_at
            log.warning(
                "%s cannot be asked (%s, %d times in a row); it is tried ever more rarely, and its "
                "part of the budget goes to other hosts",
                state.lane,
                state.parked_reason,
                state.failures,
            )
        elif since is not None and not state.failures:
            del self._since[state.lane]
            away_s = state.last_exchange_at - since
            log.warning("%s answers again after %s", state.lane, span(away_s))
