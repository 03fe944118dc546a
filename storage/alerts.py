"""Tables ``alert`` and ``alert_review``: what is to be told of observations, and to whom.

*Invariant.* An alert is written in the transaction of what it tells of, be that an observation or
an amendment of one. Consequence: who was killed at any moment has lost none and has none twice.
What has not gone into a message yet can still be taken back; what has is followed by an alert of
the kind ``withdrawn``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

import aiosqlite

from freshet.storage.records import Observation, Visit
from freshet.storage.words import Kind, Role

#: The kind of an alert that takes back the one before it.
WITHDRAWN: Final = "withdrawn"
#: What can be told.
TOLD_KINDS: Final = frozenset({Kind.NEW, Kind.CHANGED, Kind.GONE})
#: What is seen otherwise so long after it was seen is no news, and may have been told in alerts
#: that are kept no longer.
_LATE_S: Final = 30 * 86_400.0


@dataclass(frozen=True, slots=True)
class AlertRule:
    """Tell ``name`` of observations of these kinds of the pages whose URL matches wholly."""

    name: str
    kinds: frozenset[Kind]
    pattern: re.Pattern[str]

    def wants(self, kind: str, url: str) -> bool:
        """Whether it is to be told of an observation."""
        return kind in self.kinds and self.pattern.fullmatch(url) is not None


@dataclass(frozen=True, slots=True)
class _Alert:
    """An alert that there is; ``sent`` ones are in a message."""

    alert_id: int
    kind: str
    sent: bool


@dataclass(frozen=True, slots=True)
class _Seen:
    """An observation as it is seen today."""

    observation_id: int
    at: float
    kind: str
    url: str
    role: str


async def record(
    connection: aiosqlite.Connection, rules: Sequence[AlertRule], visits: Iterable[Visit]
) -> None:
    """Write the alerts of these visits, after their observations were written."""
    for visit in visits:
        seen = visit.observation
        if seen.kind not in TOLD_KINDS or visit.role is not Role.PAGE:
            continue
        wanting = [rule for rule in rules if rule.wants(seen.kind, visit.due.url)]
        if wanting and await _is_news(connection, seen):
            found = await _seen(connection, await _id_of(connection, seen))
            for rule in wanting:
                await _insert(connection, rule.name, found, seen.kind, seen.at)


async def review(connection: aiosqlite.Connection, rules: Sequence[AlertRule], now: float) -> None:
    """Let the alerts of observations that were amended since agree with the amendments."""
    rows = await connection.execute_fetchall("DELETE FROM alert_review RETURNING observation_id")
    by_name = {rule.name: rule for rule in rules}
    for (observation_id,) in rows:
        seen = await _seen(connection, observation_id)
        told = await _told(connection, observation_id)
        for name in dict.fromkeys((*told, *by_name)):
            wanted = _wanted(by_name.get(name), seen, told.get(name, []))
            await _agree(connection, name, seen, told.get(name, []), wanted, now)


def _wanted(rule: AlertRule | None, seen: _Seen, told: Sequence[_Alert]) -> str | None:
    """What a rule is to be told of an observation by now; None: nothing."""
    if rule is None:
        # It is in the settings no longer, and hears nothing but that something was wrong.
        return seen.kind if any(alert.kind == seen.kind for alert in told) else None
    if seen.role != Role.PAGE or not rule.wants(seen.kind, seen.url):
        return None
    return seen.kind


async def _agree(
    connection: aiosqlite.Connection,
    rule: str,
    seen: _Seen,
    told: Sequence[_Alert],
    wanted: str | None,
    now: float,
) -> None:
    """Take back what is wrong, unsent alerts without a word, and tell what is right."""
    if _stands(told) == wanted or (not told and now - seen.at > _LATE_S):
        return
    unsent = [alert.alert_id for alert in told if not alert.sent]
    await connection.execute(
        "DELETE FROM alert WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(unsent),)
    )
    sent = _stands([alert for alert in told if alert.sent])
    if sent == wanted:
        return
    if sent is not None:
        await _insert(connection, rule, seen, WITHDRAWN, now)
    if wanted is not None:
        await _insert(connection, rule, seen, wanted, now)


def _stands(told: Sequence[_Alert]) -> str | None:
    """What the last of these alerts says."""
    last = told[-1].kind if told else None
    return None if last == WITHDRAWN else last


async def _is_news(connection: aiosqlite.Connection, seen: Observation) -> bool:
    """A page that was gone, or never there, is not gone again."""
    if seen.kind is not Kind.GONE:
        return True
    rows = await connection.execute_fetchall(
        "SELECT kind FROM finding WHERE page_id = ? AND at < ? ORDER BY at DESC, id DESC LIMIT 1",
        (seen.page_id, seen.at),
    )
    return any(row[0] in {Kind.NEW, Kind.CHANGED, Kind.UNCHANGED} for row in rows)


async def _id_of(connection: aiosqlite.Connection, seen: Observation) -> int:
    rows = await connection.execute_fetchall(
        "SELECT max(id) FROM observation WHERE page_id = ? AND at = ?", (seen.page_id, seen.at)
    )
    return int(next(iter(rows))[0])


async def _seen(connection: aiosqlite.Connection, observation_id: int) -> _Seen:
    rows = await connection.execute_fetchall(
        "SELECT f.id, f.at, f.kind, p.url, p.role FROM finding AS f "
        "JOIN page AS p ON p.id = f.page_id WHERE f.id = ?",
        (observation_id,),
    )
    return _Seen(*next(iter(rows)))


async def _told(connection: aiosqlite.Connection, observation_id: int) -> dict[str, list[_Alert]]:
    """The alerts of an observation by rule, oldest first."""
    rows = await connection.execute_fetchall(
        "SELECT rule, id, kind, message_id IS NOT NULL FROM alert WHERE observation_id = ? "
        "ORDER BY id",
        (observation_id,),
    )
    found: dict[str, list[_Alert]] = {}
    for rule, alert_id, kind, sent in rows:
        found.setdefault(rule, []).append(_Alert(alert_id, kind, bool(sent)))
    return found


async def _insert(
    connection: aiosqlite.Connection, rule: str, seen: _Seen, kind: str, at: float
) -> None:
    """Write an alert; its name counts those of the same observation that are there before it."""
    rows = await connection.execute_fetchall(
        "SELECT count(*) FROM alert WHERE rule = ? AND observation_id = ?",
        (rule, seen.observation_id),
    )
    await connection.execute(
        "INSERT INTO alert (key, rule, observation_id, kind, at) VALUES (?, ?, ?, ?, ?)",
        (
            key_of("alert", rule, seen.url, seen.at, kind, next(iter(rows))[0]),
            rule, seen.observation_id, kind, at,
        ),
    )  # fmt: skip


def key_of(word: str, *parts: object) -> str:
    """A name that the same parts always have: what is told again is known by it.

    >>> key_of("alert", "prices", 7)
    'alert_7122f042a771068746eb7ced3752b80a'
    """
    digest = blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()
    return f"{word}_{digest}"
