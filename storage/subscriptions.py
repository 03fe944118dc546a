"""Table ``subscription``: what is agreed with the hubs of pages."""

from __future__ import annotations

from collections.abc import Sequence

import aiosqlite

from freshet.storage.subscribing import Subscription, SubscriptionNoted, SubscriptionState


async def record(connection: aiosqlite.Connection, noted: Sequence[SubscriptionNoted]) -> None:
    """Write how these subscriptions stand; the last word on each counts."""
    for each in noted:
        s = each.subscription
        if each.ended:
            await connection.execute("DELETE FROM subscription WHERE page_id = ?", (s.page_id,))
            continue
        await connection.execute(
            "INSERT OR REPLACE INTO subscription (page_id, hub, topic, token, secret, state, "
            "next_at, pending_until, lease_until, failures, detail) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (s.page_id, s.hub, s.topic, s.token, s.secret, s.state, s.next_at, s.pending_until,
             s.lease_until, s.failures, s.detail),
        )  # fmt: skip


async def load_subscriptions(connection: aiosqlite.Connection) -> list[Subscription]:
    """All subscriptions."""
    rows = await connection.execute_fetchall(
        "SELECT s.page_id, p.host_id, p.url, s.hub, s.topic, s.token, s.secret, s.next_at, "
        "s.state, s.pending_until, s.lease_until, s.failures, s.detail "
        "FROM subscription AS s JOIN page AS p ON p.id = s.page_id ORDER BY s.page_id"
    )
    return [_subscription(row) for row in rows]


def _subscription(row: aiosqlite.Row) -> Subscription:
    return Subscription(
        page_id=row[0], host_id=row[1], url=row[2], hub=row[3], topic=row[4], token=row[5],
        secret=row[6], next_at=row[7], state=SubscriptionState(row[8]), pending_until=row[9],
        lease_until=row[10], failures=row[11], detail=row[12],
    )  # fmt: skip
