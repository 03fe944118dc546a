"""A store that was written in the future: the machine's clock was set back since."""

from __future__ import annotations

import logging
from typing import Final

from freshet.crawler.clock import Clock
from freshet.crawler.commands.display import moment, span
from freshet.storage.database import Database
from freshet.storage.tables import hosts

log = logging.getLogger(__name__)

#: Clocks that differ by less are set all the time.
_TOLD_FROM_S: Final = 60.0


async def resume_time(database: Database, clock: Clock) -> None:
    """Let time go on where the store's ended, so that nobody waits for times to come again."""
    last, now = await hosts.last_exchange_at(database.reader), clock.now()
    if last is None or last <= now:
        return
    clock.go_on_from(last)
    if last - now > _TOLD_FROM_S:
        log.warning(
            "%s was last written at %s, and by this machine's clock that is %s ahead: time goes "
            "on from there, a little slower until both agree",
            database.path,
            moment(last, now),
            span(last - now),
        )
