"""Composition of messages from the alerts that are due."""

import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any, Final

import numpy as np

from freshet.config.settings import Settings
from freshet.config.sites import Sites
from freshet.crawler.alerts.rules import Channel
from freshet.crawler.clock import Clock, iso
from freshet.crawler.documents import change_summary, in_counts
from freshet.crawler.importance import Weighing, terms, weigh
from freshet.crawler.reduce.parser_process import Parser
from freshet.crawler.terminal import plain
from freshet.storage.database import Database, StoreError, StoreUnavailable, reading
from freshet.storage.tables import alerts as alerts_tables
from freshet.storage.tables.alerts import WITHDRAWN, Message, PendingAlert, key_of

# -- payload -----------------------------------------------------------------
# docs/guide/alerts.md gives the JSON schema.


def of_alert(
    pending: PendingAlert, rule: str, title: str | None, summary: str, importance: float
) -> dict[str, Any]:
    """Return the JSON object of an alert."""
    return {
        "id": pending.key,
        "rule": rule,
        "kind": pending.kind,
        "withdraws": pending.withdraws,
        "reason": pending.reason,
        "url": pending.url,
        "title": title,
        "observation": pending.observation_id,
        "last_seen": None if pending.last_at is None else iso(pending.last_at),
        "seen": iso(pending.seen_at),
        "status": pending.status,
        "resemblance": pending.resemblance,
        "resemblance_se": pending.resemblance_se,
        "blocks_added": pending.blocks_added,
        "blocks_removed": pending.blocks_removed,
        "summary": summary,
        "importance": importance,
    }


def single(alert: Mapping[str, Any]) -> str:
    """Return the message of one alert."""
    return _message(f"page.{alert['kind']}", alert["seen"], alert)


def digest(rule: str, period: tuple[float, float], alerts: Sequence[Mapping[str, Any]]) -> str:
    """Return the message of all alerts of an hour or a day."""
    begin, end = map(iso, period)
    return _message("digest", end, {"rule": rule, "from": begin, "to": end, "changes": alerts})


def trial(rule: str, now: float) -> str:
    """Return a test message without an alert."""
    return _message("test", iso(now), {"rule": rule, "summary": "Freshet can reach you."})


def _message(kind: str, timestamp: str, data: Mapping[str, Any]) -> str:
    message = {"type": kind, "timestamp": timestamp, "data": data}
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"))


log = logging.getLogger(__name__)

#: Importance of pages, in the order of their alerts.
Importances = Callable[[Sequence[PendingAlert]], Awaitable[Sequence[float]]]

_SUMMARY_WIDTH: Final = 200
_TITLE_WIDTH: Final = 300
#: Alerts in one message; a kilobyte each at most. The others follow in another one.
_AT_MOST: Final = 1_000


def stored_importances(database: Database, settings: Settings) -> Importances:
    """Return the importance of pages by the site list, links and rules; looked up once."""
    known: list[Weighing] = []
    sites = Sites(settings.sites)

    async def importances(pending: Sequence[PendingAlert]) -> Sequence[float]:
        if not known:
            known.append(await weigh(database.reader, settings.daemon.importance))
        urls, origins = [each.url for each in pending], [each.origin for each in pending]
        rows = {origin: row for row, origin in enumerate(dict.fromkeys(origins))}
        host = np.array([rows[origin] for origin in origins], np.intp)
        ids = np.array([each.page_id for each in pending], np.int64)
        own = known[0].importances(ids, urls, host, list(rows))
        found = terms(urls, np.zeros(len(urls), np.intp), own, sites)
        return [float(value) for value in found.importance]

    return importances


@dataclass(slots=True, eq=False)
class Composing:
    """Composer of the messages of rules, each just before it is first sent.

    *Invariant.* A message has alerts that are in no other, in one transaction. An alert that is
    withdrawn before that is never sent, a later withdrawal follows as a message.
    """

    database: Database
    parser: Parser
    importances: Importances
    clock: Clock

    async def due_at(self, channel: Channel) -> float:
        """Return the time at which a rule's next message is due, ``inf`` if it has no alert."""
        oldest = await self._oldest(channel)
        return inf if oldest is None else channel.period(oldest)[1]

    async def compose(self, channel: Channel) -> None:
        """Make the message that is due; it need not come about if alerts were taken back."""
        now = self.clock.now()
        oldest = await self._oldest(channel)
        if oldest is None:
            return
        at_once = channel.mode == "immediate"
        period = channel.period(oldest)
        before, limit = (inf, 1) if at_once else (period[1], _AT_MOST)
        found = await self.database.at_once(
            partial(alerts_tables.waiting, rule=channel.name, before=before, limit=limit)
        )
        if not found:
            return
        alerts = await self._alerts(channel.name, found)
        keys = [each.key for each in found]
        key = keys[0] if at_once else key_of("digest", channel.name, period[1], keys)
        body = single(alerts[0]) if at_once else digest(channel.name, period, alerts)
        since = min(each.at for each in found)
        message = Message(0, key, channel.name, body, since=since, tries=0, next_at=now)
        await self.database.write(partial(alerts_tables.compose, message=message, alerts=found))

    async def _oldest(self, channel: Channel) -> float | None:
        # Not by the reader, which may show the store of before for as long as somebody reads.
        return await self.database.at_once(partial(alerts_tables.oldest_waiting, rule=channel.name))

    async def _alerts(self, rule: str, found: Sequence[PendingAlert]) -> list[dict[str, Any]]:
        weights = await self.importances(found)
        return [
            of_alert(each, rule, plain((each.title or "")[:_TITLE_WIDTH]) or None,
                     await self._summary(each), weight)
            for each, weight in zip(found, weights, strict=True)
        ]  # fmt: skip

    async def _summary(self, pending: PendingAlert) -> str:
        """Summarise the event in a line."""
        if pending.kind == WITHDRAWN:
            return f"withdrawn: {pending.reason or 'no significant change after all'}"
        if pending.kind != "changed":
            return "gone" if pending.kind == "gone" else "new"
        try:
            async with reading(self.database.path) as current:
                line = await change_summary(current, self.parser, pending, _SUMMARY_WIDTH)
        except StoreUnavailable:
            raise
        except StoreError as error:
            # A damaged body must not hold the message back.
            log.warning("alerts: no summary of %s: %s", pending.url, error)
            line = in_counts(pending)
        return plain(line)
