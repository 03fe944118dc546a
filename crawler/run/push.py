"""The composition root of what is pushed to a daemon: the parts of ``crawler.receiving``, wired."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from urllib.parse import urlsplit

from freshet.config.settings import ReceiverSettings
from freshet.crawler.alerts.messages import Composing, Importances
from freshet.crawler.alerts.outbox import Outbox
from freshet.crawler.alerts.rules import channels, receiver
from freshet.crawler.fetch.addresses import CachingResolver
from freshet.crawler.pool import FetchPool
from freshet.crawler.push.hints import Hints, Inbox
from freshet.crawler.push.indexnow import Pinging
from freshet.crawler.push.server import Endpoint, PushListener, Refusals
from freshet.crawler.push.websub import Bulletins, LeaseRules, Leases, Subscriber
from freshet.crawler.run.wiring import Assembly, Surroundings
from freshet.crawler.service.logs import hide
from freshet.crawler.tally import CrawlError
from freshet.storage.records import Acknowledged, Entry
from freshet.storage.tables import claims

_DAY_S = 86_400.0
#: Random bytes of a token and of a secret: 43 characters each.
_RANDOM_BYTES = 32


class Reception:
    """The parts that hear what is pushed; ``endpoint`` answers.

    Attributes:
        refusals: what was refused, by reason.
    """

    def __init__(
        self, around: Surroundings, assembly: Assembly, pool: FetchPool, leases: Leases
    ) -> None:
        settings = around.settings.receiver
        self._clock = around.clock
        self._inbox = Inbox(pool.wake)
        self.refusals = Refusals()
        hints = Hints(assembly.admission)
        self._subscriber = None
        if settings.public_url:
            self._subscriber = Subscriber(
                leases, assembly.api_requests, hints, self._inbox, around.lane_key,
                f"{settings.public_url.rstrip('/')}/websub/",
            )  # fmt: skip
        self._pinging = Pinging(assembly.frontier, assembly.api_requests, hints, self._inbox)
        self._bulletins = Bulletins(around.parser, around.clock.now)
        self.endpoint = Endpoint(
            self._subscriber, self._pinging, self._bulletins, self.refusals, around.clock.now,
            max_body_bytes=settings.max_body_bytes,
        )  # fmt: skip

    def told(self, batch: Sequence[Acknowledged]) -> None:
        """The writer has committed these."""
        self._inbox.told(batch)
        if self._subscriber is not None:
            self._subscriber.told(batch)

    async def turn(self, now: float, *, asking: bool) -> list[Entry]:
        """Ask whom there is to ask, unless nothing is sent any more; what is to be written."""
        self.refusals.tell(now)
        asked: list[Entry] = []
        if asking:
            asked += await self._subscriber.ask(now) if self._subscriber is not None else []
            asked += self._pinging.ask(now)
        return [*asked, *self._inbox.take()]

    async def close(self) -> None:
        """Leave what is under way, and tell the rest."""
        await self._bulletins.close()
        self.refusals.tell(self._clock.now(), at_once=True)


@asynccontextmanager
async def receiving(
    around: Surroundings, assembly: Assembly, pool: FetchPool
) -> AsyncIterator[Reception | None]:
    """Listen while the block runs, if the settings say where; None: they do not.

    Raises:
        CrawlError: the address cannot be listened at, or nothing listens at the public one.
        StoreError: the store cannot be read.
    """
    settings = around.settings.receiver
    if not settings.listen:
        if settings.public_url:
            raise CrawlError(
                "receiver.public_url is set, and nothing would listen there: set receiver.listen, "
                'such as "127.0.0.1:8460"'
            )
        yield None
        return
    reception = Reception(around, assembly, pool, await _leases(around, settings))
    listener = PushListener(
        reception.endpoint.answer, reception.refusals, proxies=settings.proxies,
        most=settings.max_connections,
    )  # fmt: skip
    _attach(reception, assembly, pool)
    place = urlsplit(f"//{settings.listen}")
    await listener.open(place.hostname or "", place.port or 0)
    try:
        yield reception
    finally:
        await listener.close()
        await reception.close()


async def _leases(around: Surroundings, settings: ReceiverSettings) -> Leases:
    rules = LeaseRules(settings.lease_days * _DAY_S, settings.max_subscriptions)
    stored = await claims.load_subscriptions(around.database.reader)
    for each in stored:
        hide(each.token)
        hide(each.secret)
    return Leases(rules, _secret, stored)


def _secret() -> str:
    """A new token or secret, which no log line will hold."""
    made = secrets.token_urlsafe(_RANDOM_BYTES)
    hide(made)
    return made


def _attach(reception: Reception, assembly: Assembly, pool: FetchPool) -> None:
    """Let the pool's turns be the reception's, after what they are for already."""

    async def chore(now: float) -> None:
        for entry in await reception.turn(now, asking=not pool.stopping):
            await pool.submit(entry)

    pool.chores.append(chore)
    assembly.listeners.append(reception.told)


# -- sending -----------------------------------------------------------------
#
# The sender of an invocation, wired.


def sender(around: Surroundings, resolver: CachingResolver, importances: Importances) -> Outbox:
    """The outbox of a run by its settings; it has not begun to send.

    Raises:
        CrawlError: something in the rules cannot be used.
    """
    settings = around.settings
    composing = Composing(around.database, around.parser, importances, around.clock)
    receiver_of = partial(receiver, settings=settings, resolver=resolver)
    outbox = Outbox(
        around.database, composing, receiver_of, settings.alerts, around.clock, around.rng
    )
    outbox.obey(settings.alerts, channels(settings.alerts))
    return outbox
