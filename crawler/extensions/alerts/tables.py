"""Tables ``alert``, ``alert_review`` and ``alert_message``: alerts of observations, and the outbox.

*Invariant.* An alert is written in the transaction of its observation or amendment. Consequence: a
kill neither loses nor repeats an alert. An alert without a message can be deleted; one in a message
is followed by an alert of the kind ``withdrawn``.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain
from sqlite3 import Connection
from typing import Final

from aiosqlite import Connection as Reader

from freshet.storage.database import as_json, columns_of, row_to
from freshet.storage.entries import REBASED, REFRESHED, TEXT_CHANNELS, summed
from freshet.storage.records import Observation, Visit
from freshet.storage.tables import hosts
from freshet.storage.tables.observations import SIGNIFICANT

#: Kind of an alert that takes back the one before it.
WITHDRAWN: Final = "withdrawn"
#: Kind of an alert that many pages of a host are not content; it names the last such page.
REJECTED: Final = "rejected"
#: Kinds of observations that can make alerts.
_KINDS: Final = frozenset({"new", "changed", "gone", REFRESHED})
#: Those with kinds of change.
_DIFFERING: Final = frozenset({"changed", REFRESHED})
#: Age from which an amended observation makes no alert; its alerts may have been deleted.
_LATE_S: Final = 30 * 86_400.0


@dataclass(frozen=True, slots=True)
class AlertFilter:
    """Selects observations of these kinds, of pages with a matching URL, for rule ``name``.

    The kind :data:`REJECTED` selects hosts, a kind of change the pages that differ in it, whether
    it counts or not. Words that differ without an edit are for :data:`REFRESHED` alone.
    """

    name: str
    kinds: frozenset[str]
    pattern: re.Pattern[str]

    def wants(
        self, kind: str, url: str, differs: str | None = None, rung: str | None = None
    ) -> bool:
        """Return whether the rule asks for an alert of an observation."""
        differing = set((differs or "").split()) if kind in _DIFFERING else set()
        said = {kind, *(differing - TEXT_CHANNELS if rung == "minor" else differing)}
        return not said.isdisjoint(self.kinds) and self.pattern.fullmatch(url) is not None


@dataclass(frozen=True, slots=True)
class _Alert:
    """A stored alert; it is in a message if ``sent``."""

    alert_id: int
    kind: str
    sent: bool


@dataclass(frozen=True, slots=True)
class _Seen:
    """An observation with its current verdict."""

    observation_id: int
    at: float
    kind: str
    url: str
    role: str
    kinds: str | None
    rung: str | None


def record(db: Connection, rules: Sequence[AlertFilter], visits: Iterable[Visit]) -> None:
    """Write the alerts of these visits, after their observations."""
    told: set[int] = set()
    for visit in visits:
        if visit.rejected is not None and visit.due.host_id not in told:
            told.add(visit.due.host_id)
            _tell_of_host(db, rules, visit)
        if visit.role == "page":
            _tell_of_page(db, rules, visit)


def _tell_of_page(db: Connection, rules: Sequence[AlertFilter], visit: Visit) -> None:
    """Write the alerts of a visit's observation."""
    seen = visit.observation
    kind = REFRESHED if seen.kind == "unchanged" and seen.kinds else seen.kind
    if kind not in _KINDS:
        return
    wanting = [rule for rule in rules if rule.wants(kind, visit.due.url, seen.kinds, seen.rung)]
    if wanting and _is_news(db, seen):
        sql = "SELECT max(id) FROM observation WHERE page_id = ? AND at = ?"
        found = _seen(db, *db.execute(sql, (seen.page_id, seen.at)).fetchone())
        for rule in wanting:
            _insert(db, rule.name, found, kind, seen.at)


def _tell_of_host(db: Connection, rules: Sequence[AlertFilter], visit: Visit) -> None:
    """Write an alert of a page's host if many of its pages are not content: one a month."""
    seen, host_id = visit.observation, visit.due.host_id
    wanting = [rule for rule in rules if rule.wants(REJECTED, visit.due.url)]
    if not wanting or not hosts.is_rejecting(db, host_id):
        return
    sql = "SELECT max(id) FROM observation WHERE page_id = ? AND at = ?"
    found = _seen(db, *db.execute(sql, (seen.page_id, seen.at)).fetchone())
    sql = (
        "SELECT 1 FROM alert AS a JOIN observation AS o ON o.id = a.observation_id "
        "JOIN page AS p ON p.id = o.page_id WHERE a.rule = ? AND a.kind = ? AND a.at > ? "
        "AND p.host_id = ?"
    )
    for rule in wanting:
        if not db.execute(sql, (rule.name, REJECTED, seen.at - _LATE_S, host_id)).fetchone():
            _insert(db, rule.name, found, REJECTED, seen.at)


def review(db: Connection, rules: Sequence[AlertFilter], now: float) -> None:
    """Correct the alerts of observations that were amended."""
    rows = db.execute("DELETE FROM alert_review RETURNING observation_id").fetchall()
    by_name = {rule.name: rule for rule in rules}
    for (observation_id,) in rows:
        seen = _seen(db, observation_id)
        alerts = _alerts_of(db, observation_id)
        for name in dict.fromkeys((*alerts, *by_name)):
            wanted = _wanted(by_name.get(name), seen, alerts.get(name, []))
            _agree(db, name, seen, alerts.get(name, []), wanted=wanted, now=now)


def _wanted(rule: AlertFilter | None, seen: _Seen, alerts: Sequence[_Alert]) -> str | None:
    """Return the kind of alert that a rule asks for now, or None."""
    if rule is None:
        # A rule that is not in the settings any more gets only withdrawals.
        return seen.kind if any(alert.kind == seen.kind for alert in alerts) else None
    wants = rule.wants(seen.kind, seen.url, seen.kinds, seen.rung)
    is_wanted = seen.role == "page" and wants
    return seen.kind if is_wanted else None


def _agree(
    db: Connection, rule: str, seen: _Seen, alerts: Sequence[_Alert], wanted: str | None, now: float
) -> None:
    """Delete wrong unsent alerts, withdraw wrong sent ones, and write the right one."""
    if _stands(alerts) == wanted or (not alerts and now - seen.at > _LATE_S):
        return
    unsent = [alert.alert_id for alert in alerts if not alert.sent]
    sql = "DELETE FROM alert WHERE id IN (SELECT value FROM json_each(?))"
    db.execute(sql, (as_json(unsent),))
    sent = _stands([alert for alert in alerts if alert.sent])
    if sent == wanted:
        return
    if sent is not None:
        _insert(db, rule, seen, WITHDRAWN, now)
    if wanted is not None:
        _insert(db, rule, seen, wanted, now)


def _stands(alerts: Sequence[_Alert]) -> str | None:
    """Return the kind of the last of these alerts, None if it withdraws."""
    last = alerts[-1].kind if alerts else None
    return None if last == WITHDRAWN else last


def _is_news(db: Connection, seen: Observation) -> bool:
    """Return False for a page that was gone before, and for a new baseline."""
    if seen.kind != "gone":
        return seen.reason != REBASED
    sql = "SELECT kind FROM finding WHERE page_id = ? AND at < ? ORDER BY at DESC, id DESC LIMIT 1"
    rows = db.execute(sql, (seen.page_id, seen.at)).fetchall()
    return any(row[0] in {"new", "changed", "unchanged"} for row in rows)


def _seen(db: Connection, observation_id: int) -> _Seen:
    row = db.execute(
        f"SELECT f.id, f.at, iif(f.kind = 'unchanged' AND f.kinds IS NOT NULL, '{REFRESHED}', "
        "f.kind), p.url, p.role, f.kinds, f.rung FROM finding AS f "
        "JOIN page AS p ON p.id = f.page_id WHERE f.id = ?",
        (observation_id,),
    ).fetchone()
    return _Seen(*row)


def _alerts_of(db: Connection, observation_id: int) -> dict[str, list[_Alert]]:
    """Return the alerts of an observation by rule, oldest first."""
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
    """Write an alert; its key counts the earlier ones of the same observation."""
    found = rule, seen.observation_id
    sql = "SELECT count(*) FROM alert WHERE rule = ? AND observation_id = ?"
    parts = rule, seen.url, seen.at, kind, *db.execute(sql, found).fetchone()
    sql = "INSERT INTO alert (key, rule, observation_id, kind, at) VALUES (?, ?, ?, ?, ?)"
    db.execute(sql, (key_of("alert", *parts), *found, kind, at))


def key_of(word: str, *parts: object) -> str:
    """Return a name that is always the same for the same parts.

    >>> key_of("alert", "prices", 7)
    'alert_7122f042a771068746eb7ced3752b80a'
    """
    digest = blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()
    return f"{word}_{digest}"


# -- messages: the outbox ----------------------------------------------------
# *Invariant.* A message is committed with its key and its bytes before it is first sent, and
# settled after the response. Consequence: after a kill the same bytes are sent under the same key,
# and a receiver can recognise them.

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


@dataclass(frozen=True, slots=True)
class Message:
    """A message to be sent, tried ``tries`` times; ``since`` is the time of its oldest alert."""

    message_id: int
    key: str
    rule: str
    body: str
    since: float
    tries: int
    next_at: float


@dataclass(frozen=True, slots=True)
class PendingAlert:
    """An alert with the facts to send.

    ``last_at`` is the time of the visit before, ``before_id`` its version; ``withdraws`` is the key
    of the alert that this one takes back.
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
    kinds: str | None


@dataclass(frozen=True, slots=True)
class RuleCounts:
    """Counts of the waiting alerts and of the messages of a rule; ``answer`` is the last error."""

    rule: str
    waiting: int
    pending: int
    sent: int
    failed: int
    sent_at: float | None
    next_at: float | None
    answer: str | None


_PENDING = columns_of(
    PendingAlert,
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
    before_id=f"(SELECT max(version_id) FROM ({SIGNIFICANT} AND page_id = f.page_id) "
    "  WHERE version_id < f.version_id)",
    withdraws="iif(a.kind = 'withdrawn', (SELECT b.key FROM alert AS b WHERE b.rule = a.rule "
    "  AND b.observation_id = a.observation_id AND b.id < a.id ORDER BY b.id DESC LIMIT 1), NULL)",
)


def head(db: Connection, rules: Sequence[str]) -> Message | None:
    """Return the oldest message of these rules that has not been settled."""
    sql = (
        f"SELECT {columns_of(Message, message_id='id')} FROM alert_message "
        "WHERE rule IN (SELECT value FROM json_each(?)) AND state = 'pending' ORDER BY id LIMIT 1"
    )
    return next(map(row_to(Message), db.execute(sql, (as_json(list(rules)),)).fetchall()), None)


def oldest_waiting(db: Connection, rule: str) -> float | None:
    """Return when the first alert of a rule that is in no message was written, or None."""
    sql = "SELECT min(at) FROM alert WHERE rule = ? AND message_id IS NULL"
    return next((row[0] for row in db.execute(sql, (rule,)).fetchall()), None)


def waiting(db: Connection, rule: str, before: float, limit: int) -> list[PendingAlert]:
    """Return the oldest alerts of a rule, written before a time, that are in no message."""
    sql = (
        f"SELECT {_PENDING} FROM alert AS a JOIN finding AS f ON f.id = a.observation_id "
        "JOIN page AS p ON p.id = f.page_id JOIN host AS h ON h.id = p.host_id "
        "WHERE a.rule = ? AND a.message_id IS NULL AND a.at < ? ORDER BY a.id LIMIT ?"
    )
    return list(map(row_to(PendingAlert), db.execute(sql, (rule, before, limit)).fetchall()))


def compose(db: Connection, message: Message, alerts: Sequence[PendingAlert]) -> bool:
    """Store a message of these alerts; return False and store nothing if one was deleted."""
    ids = as_json([alert.alert_id for alert in alerts])
    (count,) = db.execute(
        "SELECT count(*) FROM alert WHERE message_id IS NULL "
        "AND id IN (SELECT value FROM json_each(?))",
        (ids,),
    ).fetchone()
    if count != len(alerts):
        return False
    (made,) = db.execute(
        "INSERT INTO alert_message (key, rule, made_at, body, state, since, next_at) "
        "VALUES (?, ?, ?, ?, 'pending', ?, ?) RETURNING id",
        (message.key, message.rule, message.next_at, message.body, message.since, message.next_at),
    ).fetchone()
    sql = "UPDATE alert SET message_id = ? WHERE id IN (SELECT value FROM json_each(?))"
    db.execute(sql, (made, ids))
    return True


def discard(db: Connection, alert_ids: Sequence[int]) -> None:
    """Delete alerts that are not to be sent, and are not in a message."""
    ids = "SELECT value FROM json_each(?)"
    sql = f"DELETE FROM alert WHERE message_id IS NULL AND id IN ({ids})"
    db.execute(sql, (as_json(list(alert_ids)),))


def sent(db: Connection, message_id: int, now: float) -> None:
    """Record that a message was accepted, and delete its body."""
    db.execute(
        "UPDATE alert_message SET state = 'sent', body = NULL, settled_at = ?, said = NULL, "
        "tries = tries + 1 WHERE id = ?",
        (now, message_id),
    )


def tried(db: Connection, message_id: int, next_at: float, said: str) -> None:
    """Record that a message was refused; it is tried again."""
    sql = "UPDATE alert_message SET tries = tries + 1, next_at = ?, said = ? WHERE id = ?"
    db.execute(sql, (next_at, said, message_id))


def failed(db: Connection, message_id: int, now: float, said: str) -> None:
    """Record that a message was given up."""
    db.execute(
        "UPDATE alert_message SET state = 'failed', tries = tries + 1, settled_at = ?, said = ? "
        "WHERE id = ?",
        (now, said, message_id),
    )


def requeue(db: Connection, rule: str | None, now: float) -> int:
    """Retry pending and failed messages, of one rule or of all, at once; count them."""
    sql = (
        "UPDATE alert_message SET state = 'pending', tries = 0, since = :now, next_at = :now, "
        "settled_at = NULL WHERE state <> 'sent' AND rule = coalesce(:rule, rule) RETURNING id"
    )
    return len(db.execute(sql, {"now": now, "rule": rule}).fetchall())


def drop(db: Connection, rule: str) -> RuleCounts | None:
    """Delete all alerts and messages of a rule; return their counts, None without any."""
    stood = [RuleCounts(*row) for row in db.execute(_COUNTS) if row[0] == rule]
    db.execute("DELETE FROM alert WHERE rule = ?", (rule,))
    db.execute("DELETE FROM alert_message WHERE rule = ?", (rule,))
    return stood[0] if stood else None


async def counts(db: Reader) -> list[RuleCounts]:
    """Return the counts of every rule with alerts."""
    return [RuleCounts(*row) for row in await db.execute_fetchall(_COUNTS)]


def merged(found: Iterable[Sequence[RuleCounts]]) -> list[RuleCounts]:
    """Return the counts of every rule in several stores together."""
    by_rule: dict[str, list[RuleCounts]] = {}
    for each in chain.from_iterable(found):
        by_rule.setdefault(each.rule, []).append(each)
    return [
        summed(
            some,
            rule=rule,
            sent_at=max((each.sent_at for each in some if each.sent_at is not None), default=None),
            next_at=min((each.next_at for each in some if each.next_at is not None), default=None),
            answer=next((each.answer for each in some if each.answer is not None), None),
        )
        for rule, some in sorted(by_rule.items())
    ]
