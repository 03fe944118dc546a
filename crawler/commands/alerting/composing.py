"""Messages out of alerts: what is due to be told, with what there is to say of it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from math import inf
from typing import Any, Final

from freshet.config.settings import Settings
from freshet.crawler.alerts.periods import Mode
from freshet.crawler.clock import Clock
from freshet.crawler.commands.alerting.payload import digest, of_alert, single
from freshet.crawler.commands.alerting.rules import Channel
from freshet.crawler.commands.change_summary import Versions, change_summary, in_counts
from freshet.crawler.commands.display import plain
from freshet.crawler.parsing.quarantine import Parser
from freshet.storage.database import Database, StoreError, StoreUnavailable
from freshet.storage.tables import alerts as alerts_tables
from freshet.storage.tables.alerts import WITHDRAWN, Message, Told, key_of
from freshet.storage.words import Kind

log = logging.getLogger(__name__)

#: What pages weigh, in the order of their alerts.
Importances = Callable[[Sequence[Told]], Awaitable[Sequence[float]]]

_SUMMARY_WIDTH: Final = 200
_TITLE_WIDTH: Final = 300
#: Alerts in one message; a kilobyte each at most. The others follow in another one.
_AT_MOST: Final = 1_000


def stored_importances(database: Database, settings: Settings) -> Importances:
    """What pages weigh by the site list, links and rules; looked up once."""
    known: list[Importances] = []

    async def importances(told: Sequence[Told]) -> Sequence[float]:
        if not known:
            # What weighs takes half a second to import: a crawl without news need not spend it.
            from freshet.crawler.commands.alerting.importances import importances_of  # noqa: PLC0415

            known.append(await importances_of(database, settings))
        return await known[0](told)

    return importances


class Composing:
    """Makes the messages of rules, each when it is about to be sent for the first time.

    *Invariant.* A message is made of alerts that are in no other, in one transaction. What is
    taken back before that is never told, what is taken back later follows.
    """

    def __init__(
        self, database: Database, parser: Parser, importances: Importances, clock: Clock
    ) -> None:
        self._database = database
        self._parser = parser
        self._importances = importances
        self._clock = clock

    async def due_at(self, channel: Channel) -> float:
        """When the next message of a rule is to be made, ``inf`` if there is nothing to tell."""
        oldest = await alerts_tables.oldest_waiting(self._database.writer, channel.name)
        return inf if oldest is None else channel.rhythm.period(oldest)[1]

    async def compose(self, channel: Channel) -> None:
        """Make the message that is due; it need not come about if alerts were taken back."""
        current, now = self._database.writer, self._clock.now()
        oldest = await alerts_tables.oldest_waiting(current, channel.name)
        if oldest is None:
            return
        at_once = channel.rhythm.mode is Mode.IMMEDIATE
        period = channel.rhythm.period(oldest)
        before, limit = (inf, 1) if at_once else (period[1], _AT_MOST)
        found = await alerts_tables.waiting(current, channel.name, before, limit)
        if not found:
            return
        alerts = await self._alerts(channel.name, found)
        keys = [each.key for each in found]
        key = keys[0] if at_once else key_of("digest", channel.name, period[1], keys)
        body = single(alerts[0]) if at_once else digest(channel.name, period, alerts)
        since = min(each.at for each in found)
        message = Message(0, key, channel.name, body, since, 0, now)
        async with self._database.transaction() as connection:
            await alerts_tables.compose(connection, message, found)

    async def _alerts(self, rule: str, found: Sequence[Told]) -> list[dict[str, Any]]:
        weights = await self._importances(found)
        return [
            of_alert(each, rule, plain((each.title or "")[:_TITLE_WIDTH]) or None,
                     await self._summary(each), weight)
            for each, weight in zip(found, weights, strict=True)
        ]  # fmt: skip

    async def _summary(self, told: Told) -> str:
        """What happened, in a line."""
        if told.kind == WITHDRAWN:
            return f"told by mistake: {told.reason or 'no significant change after all'}"
        if told.kind != Kind.CHANGED:
            return "gone" if told.kind == Kind.GONE else "new"
        both = Versions(
            told.url, told.version_id, told.before_id, told.blocks_added, told.blocks_removed
        )
        try:
            line = await change_summary(self._database.writer, self._parser, both, _SUMMARY_WIDTH)
        except StoreUnavailable:
            raise
        except StoreError as error:
            # A body that is damaged is no reason to keep the news back.
            log.warning("alerts: no summary of %s: %s", told.url, error)
            line = in_counts(both)
        return plain(line)
