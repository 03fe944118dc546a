"""The table ``subscription``: agreements with the hubs of pages."""

from dataclasses import asdict, dataclass
from sqlite3 import Connection
from typing import Literal, TypeAlias

from aiosqlite import Connection as Reader

from freshet.storage.database import columns_of, row_to

#: State of a subscription at its hub. ``wanted``: missing or expired; the hub is asked. ``active``:
#: verified, its lease runs. ``denied``: the hub refused. ``leaving``: to be ended.
SubscriptionState: TypeAlias = Literal["wanted", "active", "denied", "leaving"]


@dataclass(frozen=True, slots=True)
class Subscription:
    """The subscription to a page's topic at its hub.

    ``token`` names it in the callback's path, ``secret`` signs notifications; neither can be
    guessed. The hub may verify the last request before ``pending_until`` and is asked again at
    ``next_at``; ``lease_until`` is None before the first verification.
    """

    page_id: int
    host_id: int
    url: str
    hub: str
    topic: str
    token: str
    secret: str
    next_at: float
    state: SubscriptionState = "wanted"
    pending_until: float | None = None
    lease_until: float | None = None
    failures: int = 0
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class SubscriptionChange:
    """A change of the table: a subscription has a new state, or does not exist any more."""

    subscription: Subscription
    ended: bool = False

    def __call__(self, db: Connection, /) -> None:
        """Write it."""
        row = asdict(self.subscription)
        del row["host_id"], row["url"]
        if self.ended:
            db.execute("DELETE FROM subscription WHERE page_id = ?", (row["page_id"],))
            return
        db.execute(
            f"INSERT OR REPLACE INTO subscription ({', '.join(row)}) "
            f"VALUES ({', '.join('?' * len(row))})",
            (*row.values(),),
        )


async def load_subscriptions(db: Reader) -> list[Subscription]:
    """Return all subscriptions."""
    rows = await db.execute_fetchall(
        f"SELECT {columns_of(Subscription, 's', host_id='p.host_id', url='p.url')} "
        "FROM subscription AS s JOIN page AS p ON p.id = s.page_id ORDER BY s.page_id"
    )
    return list(map(row_to(Subscription), rows))
