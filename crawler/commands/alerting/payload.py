"""What a message says, as JSON; the README gives its schema."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from freshet.storage.tables.alerts import Told


def of_alert(
    told: Told, rule: str, title: str | None, summary: str, importance: float
) -> dict[str, Any]:
    """What an alert says."""
    return {
        "id": told.key,
        "rule": rule,
        "kind": told.kind,
        "withdraws": told.withdraws,
        "reason": told.reason,
        "url": told.url,
        "title": title,
        "observation": told.observation_id,
        "last_seen": None if told.last_at is None else iso(told.last_at),
        "seen": iso(told.seen_at),
        "status": told.status,
        "resemblance": told.resemblance,
        "resemblance_se": told.resemblance_se,
        "blocks_added": told.blocks_added,
        "blocks_removed": told.blocks_removed,
        "summary": summary,
        "importance": importance,
    }


def single(alert: Mapping[str, Any]) -> str:
    """The message that tells of one alert."""
    return _message(f"page.{alert['kind']}", alert["seen"], alert)


def digest(rule: str, period: tuple[float, float], alerts: Sequence[Mapping[str, Any]]) -> str:
    """The message that tells of all alerts of an hour or a day."""
    begin, end = map(iso, period)
    return _message("digest", end, {"rule": rule, "from": begin, "to": end, "changes": alerts})


def trial(rule: str, now: float) -> str:
    """A message that tells of nothing, to see whether it arrives."""
    return _message("test", iso(now), {"rule": rule, "summary": "Freshet can reach you."})


def _message(kind: str, timestamp: str, data: Mapping[str, Any]) -> str:
    message = {"type": kind, "timestamp": timestamp, "data": data}
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"))


def iso(at: float) -> str:
    """A time in ISO 8601, UTC, to the microsecond."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
