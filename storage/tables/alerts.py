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
from enum import StrEnum
from hashlib import blake2b
from sqlite3 import Connection
from typing import Final

from aiosqlite import Connection as Reader

from freshet.storage.database import columns_of, row_to
from freshet.storage.records import Observation, Visit
from freshet.storage.words import REBASED, Kind, Role

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


def record(db: Connection, rules: Sequence[AlertRule], visits: Iterable[Visit]) -> None:
    """Write the alerts of these visits, after their observations were written."""
    for visit in visits:
        seen = visit.observation
        if seen.kind not in TOLD_KINDS or visit.role is not Role.PAGE:
            continue
        wanting = [rule for rule in rules if rule.wants(seen.kind, visit.due.url)]
        if wanting and _is_news(db, seen):
            found = _seen(db, _id_of(db, seen))
            for rule in wanting:
                _insert(db, rule.name, found, seen.kind, seen.at)


def review(db: Connection, rules: Sequence[AlertRule], now: float) -> None:
    """Let the alerts of observations that were amended since agree with the amendments."""
    rows = db.execute("DELETE FROM alert_review RETURNING observation_id").fetchall()
    by_name = {rule.name: rule for rule in rules}
    for (observation_id,) in rows:
        seen = _seen(db, observation_id)
        told = _told(db, observation_id)
        for name in dict.fromkeys((*told, *by_name)):
            wanted = _wanted(by_name.get(name), seen, told.get(name, []))
            _agree(db, name, seen, told.get(name, []), wanted, now)


def _wanted(rule: AlertRule | None, seen: _Seen, told: Sequence[_Alert]) -> str | None:
    """What a rule is to be told of an observation by now; None: nothing."""
    if rule is None:
        # It is in the settings no longer, and hears nothing but that something was wrong.
        return seen.kind if any(alert.kind == seen.kind for alert in told) else None
    if seen.role != Role.PAGE or not rule.wants(seen.kind, seen.url):
        return None
    return seen.kind


def _agree(
    db: Connection, rule: str, seen: _Seen, told: Sequence[_Alert], wanted: str | None, now: float
) -> None:
    """Take back what is wrong, unsent alerts without a word, and tell what is right."""
    if _stands(told) == wanted or (not told and now - seen.at > _LATE_S):
        return
    unsent = [alert.alert_id for alert in told if not alert.sent]
    db.execute(
        "DELETE FROM alert WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(unsent),)
    )
    sent = _stands([alert for alert in told if alert.sent])
    if sent == wanted:
        return
    if sent is not None:
        _insert(db, rule, seen, WITHDRAWN, now)
    if wanted is not None:
        _insert(db, rule, seen, wanted, now)


def _stands(told: Sequence[_Alert]) -> str | None:
    """What the last of these alerts says."""
    last = told[-1].kind if told else None
    return None if last == WITHDRAWN else last


def _is_news(db: Connection, seen: Observation) -> bool:
    """Return False for a page that was gone before, and for a new baseline."""
    if seen.kind is not Kind.GONE:
        return seen.reason != REBASED
    rows = db.execute(
        "SELECT kind FROM finding WHERE page_id = ? AND at < ? ORDER BY at DESC, id DESC LIMIT 1",
        (seen.page_id, seen.at),
    ).fetchall()
    return any(row[0] in {Kind.NEW, Kind.CHANGED, Kind.UNCHANGED} for row in rows)


def _id_of(db: Connection, seen: Observation) -> int:
    rows = db.execute(
        "SELECT max(id) FROM observation WHERE page_id = ? AND at = ?", (seen.page_id, seen.at)
    ).fetchall()
    return int(next(iter(rows))[0])


def _seen(db: Connection, observation_id: int) -> _Seen:
    rows = db.execute(
        "SELECT f.id, f.at, f.kind, p.url, p.role FROM finding AS f "
        "JOIN page AS p ON p.id = f.page_id WHERE f.id = ?",
        (observation_id,),
    ).fetchall()
    return _Seen(*next(iter(rows)))


def _told(db: Connection, observation_id: int) -> dict[str, list[_Alert]]:
    """The alerts of an observation by rule, oldest first."""
    rows = db.execute(
        "SELECT rule, id, kind, message_id IS NOT NULL FROM alert WHERE observation_id = ? "
        "ORDER BY id",
        (observation_id,),
    ).fetchall()
    found: dict[str, list[_Alert]] = {}
    for rule, alert_id, kind, sent in rows:
        found.setdefault(rule, []).append(_Alert(alert_id, kind, bool(sent)))
    return found


def _insert(db: Connection, rule: str, seen: _Seen, kind: str, at: float) -> None:
    """Write an alert; its name counts those of the same observation that are there before it."""
    rows = db.execute(
        "SELECT count(*) FROM alert WHERE rule = ? AND observation_id = ?",
        (rule, seen.observation_id),
    ).fetchall()
    db.execute(
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


# -- alert messages ----------------------------------------------------------
#
# Table ``alert_message``: the outbox. A message is made from alerts, tried, and settled.
#
# *Invariant.* A message is committed, with its name and its bytes, before it is sent for the first
# time, and settled after it was answered. Consequence: after a kill in between the same bytes go
# out under the same name, and a receiver can tell.

_COUNTS = (
    "SELECT r.rule, (SELECT count(*) FROM alert AS a "
    "    WHERE a.rule = r.rule AND a.message_id IS NULL), "
    "  sum(m.state IS 'pending'), sum(m.state IS 'sent'), sum(m.state IS 'failed'), "
    "  max(iif(m.state = 'sent', m.settled_at, NULL)), "
    "  min(iif(m.state = 'pending', m.next_at, NULL)), "
    "  (SELECT said FROM alert_message AS s WHERE s.rule = r.rule AND s.state <> 'sent' "
    "    AND s.said IS NOT NULL ORDER BY s.state DESC, s.id LIMIT 1) "
    "FROM (SELECT rule FROM alert UNION SELECT rule FROM alert_message) AS r "
    "LEFT JOIN alert_message AS m ON m.rule = r.rule GROUP BY r.rule ORDER BY r.rule"
)


class State(StrEnum):
    """How a message stands; what has failed is tried no more until it is asked for."""

    PENDING = "pending"
    SENT = "sent"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Message:
    """A message to be sent: ``since`` the oldest thing in it happened, tried so often by now."""

    message_id: int
    key: str
    rule: str
    body: str
    since: float
    tries: int
    next_at: float


@dataclass(frozen=True, slots=True)
class Told:
    """An alert with what there is to say of it.

    ``last_at`` is when the page was looked at before, ``before_id`` its version then;
    ``withdraws`` is the name of the alert that this one takes back.
    """

    alert_id: int
    key: str
    kind: str
    at: float
    observation_id: int
    seen_at: float
    last_at: float | None
    page_id: int
    url: str
    origin: str
    title: str | None
    status: int | None
    resemblance: float | None
    resemblance_se: float | None
    blocks_added: int | None
    blocks_removed: int | None
    version_id: int | None
    before_id: int | None
    withdraws: str | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class RuleCounts:
    """How many alerts of a rule wait, and messages are pending, sent and failed; ``said`` last."""

    rule: str
    waiting: int
    pending: int
    sent: int
    failed: int
    sent_at: float | None
    next_at: float | None
    said: str | None


_TOLD = columns_of(
    Told,
    "f",
    alert_id="a.id",
    key="a.key",
    kind="a.kind",
    at="a.at",
    observation_id="f.id",
    seen_at="f.at",
    last_at="(SELECT max(b.at) FROM finding AS b WHERE b.page_id = f.page_id AND b.at < f.at "
    "  AND b.kind IN ('new', 'changed', 'unchanged'))",
    url="p.url",
    origin="h.origin",
    title="p.title",
    before_id="(SELECT max(v.id) FROM version AS v "
    "  WHERE v.page_id = f.page_id AND v.id < f.version_id)",
    withdraws="iif(a.kind = 'withdrawn', (SELECT b.key FROM alert AS b WHERE b.rule = a.rule "
    "  AND b.observation_id = a.observation_id AND b.id < a.id ORDER BY b.id DESC LIMIT 1), NULL)",
)


def head(db: Connection, rules: Sequence[str]) -> Message | None:
    """The oldest message of these rules that has not been settled."""
    rows = db.execute(
        f"SELECT {columns_of(Message, message_id='id')} FROM alert_message "
        "WHERE rule IN (SELECT value FROM json_each(?)) AND state = 'pending' ORDER BY id LIMIT 1",
        (json.dumps(list(rules)),),
    ).fetchall()
    return next(map(row_to(Message), rows), None)


def oldest_waiting(db: Connection, rule: str) -> float | None:
    """When the first alert of a rule that is in no message became known."""
    rows = db.execute(
        "SELECT min(at) FROM alert WHERE rule = ? AND message_id IS NULL", (rule,)
    ).fetchall()
    return next((row[0] for row in rows), None)


def waiting(db: Connection, rule: str, before: float, limit: int) -> list[Told]:
    """The oldest alerts of a rule that are in no message and became known before a time."""
    rows = db.execute(
        f"SELECT {_TOLD} "
        "FROM alert AS a JOIN finding AS f ON f.id = a.observation_id "
        "JOIN page AS p ON p.id = f.page_id JOIN host AS h ON h.id = p.host_id "
        "WHERE a.rule = ? AND a.message_id IS NULL AND a.at < ? ORDER BY a.id LIMIT ?",
        (rule, before, limit),
    ).fetchall()
    return list(map(row_to(Told), rows))


def compose(db: Connection, message: Message, alerts: Sequence[Told]) -> bool:
    """Write a message of these alerts, or nothing (False) if some are not there any more.

    Its ``message_id`` does not matter.
    """
    ids = json.dumps([alert.alert_id for alert in alerts])
    rows = db.execute(
        "SELECT count(*) FROM alert WHERE message_id IS NULL "
        "AND id IN (SELECT value FROM json_each(?))",
        (ids,),
    ).fetchall()
    if next(iter(rows))[0] != len(alerts):
        return False
    made = db.execute(
        "INSERT INTO alert_message (key, rule, made_at, body, state, since, next_at) "
        "VALUES (?, ?, ?, ?, 'pending', ?, ?) RETURNING id",
        (message.key, message.rule, message.next_at, message.body, message.since, message.next_at),
    ).fetchall()
    db.execute(
        "UPDATE alert SET message_id = ? WHERE id IN (SELECT value FROM json_each(?))",
        (next(iter(made))[0], ids),
    )
    return True


def sent(db: Connection, message_id: int, now: float) -> None:
    """A message was taken; its bytes are needed no more."""
    db.execute(
        "UPDATE alert_message SET state = 'sent', body = NULL, settled_at = ?, said = NULL, "
        "tries = tries + 1 WHERE id = ?",
        (now, message_id),
    )


def tried(db: Connection, message_id: int, next_at: float, said: str) -> None:
    """A message was not taken, and is tried again."""
    db.execute(
        "UPDATE alert_message SET tries = tries + 1, next_at = ?, said = ? WHERE id = ?",
        (next_at, said, message_id),
    )


def failed(db: Connection, message_id: int, now: float, said: str) -> None:
    """A message was given up."""
    db.execute(
        "UPDATE alert_message SET state = 'failed', tries = tries + 1, settled_at = ?, said = ? "
        "WHERE id = ?",
        (now, said, message_id),
    )


def requeue(db: Connection, rule: str | None, now: float) -> int:
    """Let what was given up, of one rule or of all, be tried again, and what waits at once."""
    rows = db.execute(
        "UPDATE alert_message SET state = 'pending', tries = 0, since = ?1, next_at = ?1, "
        "settled_at = NULL WHERE state <> 'sent' AND rule = coalesce(?2, rule) RETURNING id",
        (now, rule),
    ).fetchall()
    return len(rows)


def drop(db: Connection, rule: str) -> RuleCounts | None:
    """Forget a rule, with what it was told and what it was not; how it stood, None: unknown."""
    stood = [RuleCounts(*row) for row in db.execute(_COUNTS) if row[0] == rule]
    db.execute("DELETE FROM alert WHERE rule = ?", (rule,))
    db.execute("DELETE FROM alert_message WHERE rule = ?", (rule,))
    return stood[0] if stood else None


async def counts(db: Reader) -> list[RuleCounts]:
    """How the alerts of every rule stand that has any."""
    return [RuleCounts(*row) for row in await db.execute_fetchall(_COUNTS)]
