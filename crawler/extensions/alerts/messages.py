"""Composition of messages from the alerts that are due."""

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from sqlite3 import Connection
from typing import Any, Final, TypeAlias

import numpy as np

from freshet.config.settings import Settings
from freshet.config.sites import Sites
from freshet.crawler.errors import UnknownPage
from freshet.crawler.extensions.alerts import tables as alerts_tables
from freshet.crawler.extensions.alerts.rules import Channel, Condition, in_words
from freshet.crawler.extensions.alerts.tables import (
    REJECTED,
    WITHDRAWN,
    Message,
    PendingAlert,
    key_of,
)
from freshet.crawler.frontier.clock import Clock, iso
from freshet.crawler.read.documents import change_summary, in_counts, in_kinds, read_text
from freshet.crawler.read.lists import (
    Audience,
    Impression,
    RankedPage,
    audience_in,
    link_to,
    seed_of,
)
from freshet.crawler.reduce.parser_process import Parser
from freshet.crawler.run.importance import ImportanceData, Importances, ListedPage, terms, weigh
from freshet.crawler.run.terminal import plain
from freshet.storage.database import Database, reading
from freshet.storage.entries import REFRESHED
from freshet.storage.errors import StoreError, StoreUnavailable
from freshet.storage.queries import page
from freshet.storage.queries.page import StoredVersion
from freshet.storage.tables import hosts

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
        "kinds": (pending.kinds or "").split(),
        "summary": summary,
        "importance": importance,
    }


def single(alert: Mapping[str, Any]) -> str:
    """Return the message of one alert."""
    return _message(f"page.{alert['kind']}", alert["seen"], alert)


def digest(
    rule: str,
    period: tuple[float, float],
    alerts: Sequence[Mapping[str, Any]],
    left_out: int | None = None,
) -> str:
    """Return the message of the alerts of an hour or a day; those ``left_out`` are counted."""
    begin, end = map(iso, period)
    told = {"rule": rule, "from": begin, "to": end, "changes": alerts}
    return _message("digest", end, told if left_out is None else told | {"left_out": left_out})


def trial(rule: str, now: float) -> str:
    """Return a test message without an alert."""
    return _message("test", iso(now), {"rule": rule, "summary": "Freshet can reach you."})


def _message(kind: str, timestamp: str, data: Mapping[str, Any]) -> str:
    message = {"type": kind, "timestamp": timestamp, "data": data}
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"))


log = logging.getLogger(__name__)

#: The fulfilled parts of a rule's condition, as :meth:`Condition.fired` returns them, or None.
_Because: TypeAlias = list[dict[str, Any]] | None
_Judged: TypeAlias = tuple[PendingAlert, _Because]

#: Kinds of alerts that no condition of a rule concerns, and that no digest leaves out.
_ALWAYS: Final = frozenset({WITHDRAWN, REJECTED})
_SUMMARY_WIDTH: Final = 200
_TITLE_WIDTH: Final = 300
#: Alerts in one message; a kilobyte each at most. The others follow in another one.
_AT_MOST: Final = 1_000
#: Alerts among which a digest with a limit chooses the best.
_CHOSEN_AMONG: Final = 20_000


def stored_importances(database: Database, settings: Settings) -> Importances:
    """Return the importance of pages by the site list, links and rules; looked up once."""
    known: list[ImportanceData] = []
    sites = Sites(settings.sites)

    async def importances(pending: Sequence[ListedPage]) -> Sequence[float]:
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


def _states(
    pending: PendingAlert, known: Sequence[StoredVersion]
) -> tuple[StoredVersion | None, StoredVersion | None]:
    """Return the versions before and after a change, None before a new page and after its end.

    Raises:
        UnknownPage: the store does not have them.
    """
    after = next((each for each in known if each.version_id == pending.version_id), None)
    before = None if pending.kind == "new" else _before(pending, known)
    if (before is None and pending.kind != "new") or (after is None and pending.kind != "gone"):
        raise UnknownPage("the store does not have what the page was before and after")
    return before, after


def _before(pending: PendingAlert, known: Sequence[StoredVersion]) -> StoredVersion | None:
    """Return the last version before an event that counts as a change."""
    last = inf if pending.version_id is None else pending.version_id
    until = pending.seen_at
    earlier = [v for v in known if v.significant and v.version_id < last and v.at <= until]
    return earlier[-1] if earlier else None


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The alerts of a message, the importance of each, their pages' places, and who sees them."""

    judged: Sequence[_Judged]
    weights: Sequence[float]
    showings: Mapping[int, Impression] = field(default_factory=dict)
    audience: Audience | None = None


def _body(
    channel: Channel, period: tuple[float, float], alerts: Sequence[Mapping[str, Any]], *,
    waiting: int,
) -> str:  # fmt: skip
    """Return the message of these alerts; a limited digest counts what else was ``waiting``."""
    if channel.mode == "immediate":
        return single(alerts[0])
    left_out = waiting - len(alerts) if channel.most else None
    return digest(channel.name, period, alerts, left_out)


def _shown(chosen: _Chosen, page_id: int) -> dict[str, Any]:
    """Return the payload's entry about a page's place in a digest with a limit."""
    showing = chosen.showings.get(page_id)
    if showing is None or chosen.audience is None:
        return {}
    link = {"open": link_to(showing)} if chosen.audience.links else {}
    return {"is_new": showing.promoted} | link


def _placed(
    judged: Sequence[_Judged], weights: Sequence[float], listed: Sequence[RankedPage],
    audience: Audience | None,
) -> _Chosen:  # fmt: skip
    """Return the alerts of the listed pages in order, and then the alerts that are always sent."""
    showings = [each.shown_at(place) for place, each in enumerate(listed, 1)]
    place = {each.page_id: n for n, each in enumerate(listed)}
    rows = [
        (place.get(each.page_id, len(place)), (each, because), weight)
        for (each, because), weight in zip(judged, weights, strict=True)
        if each.page_id in place or each.kind in _ALWAYS
    ]
    rows.sort(key=lambda row: row[0])
    return _Chosen(
        [each for _, each, _ in rows],
        [weight for _, _, weight in rows],
        {each.page_id: each for each in showings},
        audience,
    )


@dataclass(slots=True, eq=False)
class MessageComposer:
    """Composer of the messages of rules, each just before it is first sent.

    *Invariant.* A message has alerts that are in no other, in one transaction. An alert that is
    withdrawn before that is never sent, a later withdrawal follows as a message. Changes for which
    a rule's condition does not hold are forgotten; those that cannot be judged are sent.
    """

    database: Database
    parser: Parser
    importances: Importances
    clock: Clock
    settings: Settings

    async def due_at(self, channel: Channel) -> float:
        """Return the time at which a rule's next message is due, ``inf`` if it has no alert."""
        oldest = await self._oldest(channel)
        return inf if oldest is None else channel.period(oldest)[1]

    async def compose(self, channel: Channel) -> None:
        """Make the due message, unless its alerts were withdrawn."""
        now = self.clock.now()
        oldest = await self._oldest(channel)
        if oldest is None:
            return
        at_once = channel.mode == "immediate"
        period = channel.period(oldest)
        judged = await self._waiting(channel, inf if at_once else period[1])
        if not judged:
            return
        found = [each for each, _ in judged]
        keys = [each.key for each in found]
        key = keys[0] if at_once else key_of("digest", channel.name, period[1], keys)
        chosen = await self._chosen(channel, judged, key)
        alerts = await self._alerts(channel.name, chosen)
        body = _body(channel, period, alerts, waiting=len(judged))
        since = min(each.at for each in found)
        message = Message(0, key, channel.name, body, since=since, tries=0, next_at=now)

        def write(db: Connection) -> None:
            if alerts_tables.compose(db, message, found) and chosen.audience is not None:
                chosen.audience.recording("digest", now, list(chosen.showings.values()))(db)

        await self.database.write(write)

    async def _waiting(self, channel: Channel, before: float) -> list[_Judged]:
        """Return the alerts of a message with why they are sent; forget those that are not."""
        limit = _CHOSEN_AMONG if channel.most else _AT_MOST
        if channel.mode == "immediate":
            limit = 1
        found = await self.database.at_once(
            partial(alerts_tables.waiting, rule=channel.name, before=before, limit=limit)
        )
        judged = [(each, await self._judged(channel.condition, each)) for each in found]
        if idle := [each.alert_id for each, because in judged if because == []]:
            await self.database.write(partial(alerts_tables.discard, alert_ids=idle))
        return [(each, because) for each, because in judged if because != []]

    async def _chosen(self, channel: Channel, judged: list[_Judged], key: str) -> _Chosen:
        """Return the alerts of a message: all, or of the pages that are worth most."""
        found: list[ListedPage] = [each for each, _ in judged]
        weights = await self.importances(found)
        if not channel.most:
            return _Chosen(judged, weights)
        now = self.clock.now()
        audience = await audience_in(self.database.reader, self.settings, now)
        pages = {
            each.page_id: RankedPage(each.page_id, each.url, weight)
            for (each, _), weight in zip(judged, weights, strict=True)
            if each.kind not in _ALWAYS
        }
        ranked = sorted(pages.values(), key=lambda it: -it.worth)
        listed = ranked[: channel.most]
        if audience is not None:
            seed = await seed_of(self.database.reader, key, now)
            listed = audience.arranged(ranked, channel.most, seed)
        return _placed(judged, weights, listed, audience)

    async def _oldest(self, channel: Channel) -> float | None:
        # Not by the reader, which may show the store of before for as long as somebody reads.
        return await self.database.at_once(partial(alerts_tables.oldest_waiting, rule=channel.name))

    async def _judged(self, condition: Condition | None, pending: PendingAlert) -> _Because:
        """Return the fulfilled parts of a rule's condition; None without a condition."""
        if condition is None or pending.kind in _ALWAYS:
            return None
        hints = condition.hints
        try:
            async with reading(self.database.path) as current:
                known = await page.versions(current, pending.page_id)
                states = _states(pending, known)
                old, new = [
                    () if it is None
                    else (await read_text(current, self.parser, pending.url, it, hints)).texts
                    for it in states
                ]  # fmt: skip
        except StoreUnavailable:
            raise
        except StoreError as error:
            return [{"what": "not judged", "why": str(error).removeprefix(f"{pending.url}: ")}]
        # Long texts take a while.
        return await asyncio.to_thread(condition.fired, old, new)

    async def _alerts(self, rule: str, chosen: _Chosen) -> list[dict[str, Any]]:
        return [
            of_alert(each, rule, plain((each.title or "")[:_TITLE_WIDTH]) or None,
                     "; ".join([*map(in_words, because or ()), await self._summary(each)]), weight)
            | {"because": because} | _shown(chosen, each.page_id)
            for (each, because), weight in zip(chosen.judged, chosen.weights, strict=True)
        ]  # fmt: skip

    async def _summary(self, pending: PendingAlert) -> str:
        """Summarise the event in a line."""
        if pending.kind == WITHDRAWN:
            return f"withdrawn: {pending.reason or 'no significant change after all'}"
        if pending.kind == REJECTED:
            async with reading(self.database.path) as current:
                rejecting = await hosts.rejecting(current)
            words = [each.words for each in rejecting if each.origin == pending.origin]
            return (words or [f"pages of {pending.origin} were no content"])[0]
        if pending.kind == REFRESHED:
            return in_kinds(pending.kinds)
        if pending.kind != "changed":
            return "gone" if pending.kind == "gone" else "new"
        return await self._summary_of_change(pending)

    async def _summary_of_change(self, pending: PendingAlert) -> str:
        """Summarise the change of the text; only count it if the text is damaged."""
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
