"""The receiver of pushes beside a daemon: its parts, and their writes."""

import secrets
from collections.abc import Awaitable, Callable, Sequence
from urllib.parse import urlsplit

from freshet.crawler.extensions.push import ReceiverSettings
from freshet.crawler.extensions.push.indexnow import Pinging
from freshet.crawler.extensions.push.server import Endpoint, PushListener, Refusals
from freshet.crawler.extensions.push.tables import load_subscriptions
from freshet.crawler.extensions.push.websub import Leases, Subscriber
from freshet.crawler.run.hooks import Companion
from freshet.crawler.run.importance import Importances
from freshet.crawler.run.logs import hide
from freshet.crawler.run.outages import enduring
from freshet.crawler.run.pool import FetchPool
from freshet.crawler.run.wiring import Assembly, RunContext
from freshet.crawler.service.senders import Inbox
from freshet.storage.records import Acknowledged, Entry

_DAY_S = 86_400.0
#: Random bytes of a token and of a secret: 43 characters each.
_RANDOM_BYTES = 32


class PushReceiver(Companion):
    """Listens for pushes beside a daemon."""

    def __init__(self, context: RunContext, settings: ReceiverSettings) -> None:
        self._context = context
        self._settings = settings
        self.listens = settings.listen
        self._parts: _Parts | None = None
        self._turn: Callable[[float], Awaitable[None]] | None = None
        self._listener: PushListener | None = None

    async def start(
        self, assembly: Assembly, pool: FetchPool, importances: Importances | None
    ) -> None:
        """Listen; raises as :class:`Companion`, and StoreError."""
        settings = self._settings
        stored = await load_subscriptions(self._context.database.reader)
        for each in stored:
            hide(each.token)
            hide(each.secret)
        leases = Leases(
            _secret, stored, lease_s=settings.lease_days * _DAY_S, most=settings.max_subscriptions
        )
        parts = self._parts = _Parts(self._context, settings, assembly, pool, leases)
        listener = PushListener(
            parts.endpoint.answer,
            parts.refusals,
            proxies=settings.proxies,
            most=settings.max_connections,
        )
        self._turn = enduring(parts.turn)
        place = urlsplit(f"//{settings.listen}")
        await listener.open(place.hostname or "", place.port or 0)
        self._listener = listener

    async def turn(self, now: float) -> None:
        """Place due requests, and write received notifications."""
        if self._turn is not None:
            await self._turn(now)

    def committed(self, batch: Sequence[Acknowledged]) -> None:
        """Pass committed entries to the parts."""
        if self._parts is not None:
            self._parts.committed(batch)

    async def stop(self) -> None:
        """Listen no more."""
        if self._listener is not None and self._parts is not None:
            await self._listener.close()
            await self._parts.close()


class _Parts:
    """The parts that receive pushes; ``endpoint`` answers, ``refusals`` counts."""

    def __init__(
        self, context: RunContext, settings: ReceiverSettings, assembly: Assembly,
        pool: FetchPool, leases: Leases,
    ) -> None:  # fmt: skip
        now = context.clock.now
        self._now = now
        self._pool = pool
        self._inbox = Inbox(pool.wake)
        self.refusals = Refusals()
        self._subscriber = None
        if settings.public_url:
            self._subscriber = Subscriber(
                leases=leases,
                frontier=assembly.frontier,
                admission=assembly.admission,
                inbox=self._inbox,
                parser=context.parser,
                queues=context.queues,
                callback_base=f"{settings.public_url.rstrip('/')}/websub/",
            )
        self._pinging = Pinging(assembly.frontier, assembly.admission, self._inbox)
        self.endpoint = Endpoint(
            self._subscriber,
            self._pinging,
            self.refusals,
            now,
            max_body_bytes=settings.max_body_bytes,
        )

    def committed(self, batch: Sequence[Acknowledged]) -> None:
        """Observe a committed batch."""
        self._inbox.acknowledged(batch)
        if self._subscriber is not None:
            self._subscriber.acknowledged(batch)

    async def turn(self, now: float) -> None:
        """Place due requests unless the pool stops, and write received notifications."""
        self.refusals.tell(now)
        entries: list[Entry] = []
        if not self._pool.stopping:
            entries += await self._subscriber.ask(now) if self._subscriber is not None else []
            entries += self._pinging.ask(now)
        for entry in [*entries, *self._inbox.take()]:
            await self._pool.submit(entry)

    async def close(self) -> None:
        """Cancel the work under way, and log the last refusals."""
        if self._subscriber is not None:
            await self._subscriber.close()
        self.refusals.tell(self._now(), at_once=True)


def _secret() -> str:
    """Return a new token or secret, hidden in logs."""
    made = secrets.token_urlsafe(_RANDOM_BYTES)
    hide(made)
    return made
