"""The wiring of a daemon's receiver of pushes, and of its sender of alerts."""

import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from urllib.parse import urlsplit

from freshet.crawler.alerts.messages import Composing, Importances
from freshet.crawler.alerts.outbox import Outbox
from freshet.crawler.alerts.rules import channels, receiver
from freshet.crawler.errors import CrawlError
from freshet.crawler.fetch.addresses import CachingResolver
from freshet.crawler.pool import FetchPool
from freshet.crawler.push.hints import Inbox
from freshet.crawler.push.indexnow import Pinging
from freshet.crawler.push.server import Endpoint, PushListener, Refusals
from freshet.crawler.push.websub import Leases, Subscriber
from freshet.crawler.run.upkeep import enduring
from freshet.crawler.run.wiring import Assembly, RunContext
from freshet.crawler.service.logs import hide
from freshet.storage.records import Acknowledged, Entry
from freshet.storage.tables import claims

_DAY_S = 86_400.0
#: Random bytes of a token and of a secret: 43 characters each.
_RANDOM_BYTES = 32


class _PushReceiver:
    """The parts that receive pushes; ``endpoint`` answers, ``refusals`` counts."""

    def __init__(
        self, context: RunContext, assembly: Assembly, pool: FetchPool, leases: Leases
    ) -> None:
        settings, now = context.settings.receiver, context.clock.now
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
                queue_key=context.queue_key,
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
        """Place due requests unless the pool stops, and write what was received."""
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


@asynccontextmanager
async def receiving(
    context: RunContext, assembly: Assembly, pool: FetchPool
) -> AsyncIterator[None]:
    """Listen while the block runs, if the settings name an address.

    Raises:
        CrawlError: the address cannot be used, or ``public_url`` is set without ``listen``.
        StoreError: the store cannot be read.
    """
    settings = context.settings.receiver
    if not settings.listen:
        if settings.public_url:
            raise CrawlError(
                "receiver.public_url is set, but receiver.listen is not: set it to the address to "
                'listen on, such as "127.0.0.1:8460"'
            )
        yield
        return
    stored = await claims.load_subscriptions(context.database.reader)
    for each in stored:
        hide(each.token)
        hide(each.secret)
    leases = Leases(
        _secret, stored, lease_s=settings.lease_days * _DAY_S, most=settings.max_subscriptions
    )
    receiver_parts = _PushReceiver(context, assembly, pool, leases)
    listener = PushListener(
        receiver_parts.endpoint.answer,
        receiver_parts.refusals,
        proxies=settings.proxies,
        most=settings.max_connections,
    )
    pool.chores.append(enduring(receiver_parts.turn))
    assembly.listeners.append(receiver_parts.committed)
    place = urlsplit(f"//{settings.listen}")
    await listener.open(place.hostname or "", place.port or 0)
    try:
        yield
    finally:
        await listener.close()
        await receiver_parts.close()


def _secret() -> str:
    """Return a new token or secret, hidden in logs."""
    made = secrets.token_urlsafe(_RANDOM_BYTES)
    hide(made)
    return made


# -- alerts ------------------------------------------------------------------


def sender(context: RunContext, resolver: CachingResolver, importances: Importances) -> Outbox:
    """Return the outbox of a run, not yet started; raises as :func:`channels`."""
    settings = context.settings
    outbox = Outbox(
        database=context.database,
        composing=Composing(
            context.database, context.parser, importances, context.clock, settings.presentation
        ),
        receiver_of=partial(receiver, settings=settings, resolver=resolver),
        limits=settings.alerts,
        clock=context.clock,
        rng=context.rng,
    )
    outbox.obey(settings.alerts, channels(settings.alerts))
    return outbox
