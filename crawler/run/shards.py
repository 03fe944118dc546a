"""A shard of a store: its daemon, and what it does for the other shards and the coordinator.

A page belongs to the shard of its registrable domain, or of its group of hosts. A link to a page of
another shard makes a page here that is held back, and that the other shard is told of; it commits
the page before it says so (:mod:`freshet.storage.tables.outgoing`). The budget is divided by one
price (:mod:`scheduler.solve.shared_price`): a shard tells its demand, and is told the price and its
share (docs/adr/0014).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Final

import numpy as np

from freshet.crawler.admission.admit import Admission
from freshet.crawler.clock import Clock
from freshet.crawler.network import shard_of
from freshet.crawler.pacing import Pacer
from freshet.crawler.pool import FetchPool
from freshet.crawler.push.hints import Inbox
from freshet.crawler.run.state import DaemonState
from freshet.scheduler.solve.budget import Hosts
from freshet.scheduler.solve.demand import IntervalDemand
from freshet.scheduler.solve.shared_price import DemandCurve, divide
from freshet.storage.database import Database
from freshet.storage.records import Acknowledged, Note, Targets
from freshet.storage.shards import Shards
from freshet.storage.tables import outgoing

#: Pages told at once, some 150 bytes each.
_BATCH: Final = 2_000
#: Seconds after which the coordinator counts as away, and for which its price still holds.
_AWAY_S: Final = 150.0
_BY_PRICE_S: Final = 3_600.0
#: Requests a day of a shard before it is told its share: all may be there already.
_NOTHING: Final = 1.0
_DAY_S: Final = 86_400.0
#: Changes a day of pages that are not held yet: a visit is worth the more the longer it waits.
_NEW: Final = 1e6


class ShardedDaemon:
    """The parts of a running daemon that its shard works with."""

    def __init__(
        self,
        *,
        pool: FetchPool,
        admission: Admission,
        pacer: Pacer,
        state: DaemonState,
        database: Database,
        clock: Clock,
    ) -> None:
        self.pool, self.admission, self.pacer = pool, admission, pacer
        self.state, self.database, self.clock = state, database, clock
        self.inbox = Inbox(pool.wake)
        pool.chores.append(self._turn)

    async def _turn(self, _now: float) -> None:
        for entry in self.inbox.take():
            await self.pool.submit(entry)

    def committed(self, batch: Sequence[Acknowledged]) -> None:
        """Observe a committed batch."""
        self.inbox.acknowledged(batch)


class Shard:
    """One shard of a store; ``daemon`` is there while it runs.

    Attributes:
        number: from 0 on.
        daemon: the parts of the running daemon, set by that.
    """

    def __init__(
        self, shards: Shards, number: int, groups: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        """Be one of these shards; ``groups`` of hosts stay together."""
        self.number = number
        self.daemon: ShardedDaemon | None = None
        self.of = lru_cache(65_536)(partial(shard_of, shards=shards, groups=groups or {}))
        self._curve: DemandCurve | None = None
        self._price = self._told_at = 0.0

    def is_ours(self, at_origin: str) -> bool:
        """Return whether an origin belongs to this shard."""
        return self.of(at_origin) == self.number

    # -- links across shards ---------------------------------------------------------

    async def outgoing(self) -> dict[int, tuple[list[int], bytes]]:
        """Return by shard the pages to tell it of: their ids here, and a message."""
        if self.daemon is None:
            return {}
        by_shard: defaultdict[int, list[outgoing.OutgoingPage]] = defaultdict(list)
        for page in await outgoing.waiting(self.daemon.database.reader, _BATCH):
            by_shard[self.of(page.url)].append(page)
        return {shard: ([it.page_id for it in pages], _message(pages))
                for shard, pages in by_shard.items()}  # fmt: skip

    async def acknowledge(self, page_ids: Sequence[int]) -> None:
        """Forget pages that another shard has committed."""
        if self.daemon is not None:
            await self.daemon.database.write(lambda db: outgoing.acknowledge(db, page_ids))

    async def take(self, message: bytes) -> bool:
        """Admit the pages of a message; return whether they are committed."""
        if self.daemon is None:
            return False
        targets, admission = Targets(), self.daemon.admission
        for url, fetch_url, role, depth, redirects in json.loads(message):
            admission.add(targets, url, fetch_url, depth=depth, role=role, redirects=redirects)
        note = Note(self.daemon.clock.now(), targets=targets)
        return await self.daemon.inbox.commit(note)

    # -- the budget ------------------------------------------------------------------

    async def demand(self) -> bytes:
        """Return the message of the demand curve, by what is believed now."""
        if self.daemon is None:
            return b""
        state, now = self.daemon.state, self.daemon.clock.now()
        limits = await state.limits()
        agenda = state.agenda
        rate = agenda.ranker.beliefs(now / _DAY_S).rate
        pages = {name: agenda.pages[name][: len(rate)] for name in ("captured", "gone", "host")}
        wanted = (pages["gone"] == 0) & np.isfinite(rate)
        changes = np.where(pages["captured"], rate, _NEW)[wanted]
        table = IntervalDemand(agenda.pages["importance"][: len(rate)][wanted], changes)
        self._curve = DemandCurve.of(
            table, Hosts(limits.queue[pages["host"][wanted]], limits.per_day)
        )
        return self._curve.message()

    def follow(self, price: float, share: float) -> None:
        """Go by the price and the share, in requests a day, that the coordinator has found."""
        if self.daemon is not None:
            now = self.daemon.clock.now()
            self._price, self._told_at = price, now
            self._spend(share, now)

    def go_on(self) -> None:
        """Go by the last price, if the coordinator has not been heard for a while."""
        if self.daemon is None or self._curve is None:
            return
        now = self.daemon.clock.now()
        if _AWAY_S < now - self._told_at < _BY_PRICE_S and self._price > 0:
            self._spend(self._curve.at(self._price), now)

    def _spend(self, per_day: float, now: float) -> None:
        if self.daemon is not None:
            per_day = max(per_day, _NOTHING)
            self.daemon.pacer.change(per_day, now)
            self.daemon.state.agenda.budget = per_day


class Coordinator:
    """Divides a budget, in requests a day, among the shards that have told their demand lately.

    It has nothing to lose: after a restart it knows what the shards tell next. A shard that is
    silent for two minutes counts as down, and the others get its share.
    """

    def __init__(self, per_day: float) -> None:
        self._per_day = per_day
        self._told: dict[int, tuple[float, DemandCurve]] = {}

    def told(self, shard: int, message: bytes, now: float) -> None:
        """Take what a shard wants; raises ValueError for what is no demand curve."""
        self._told[shard] = now, DemandCurve.read(message)

    def divided(self, now: float) -> tuple[float, dict[int, float]]:
        """Return the price, and the share of each shard that is up."""
        up = {shard: curve for shard, (at, curve) in self._told.items() if now - at < _AWAY_S}
        if not up:
            return 0.0, {}
        price, shares = divide(list(up.values()), self._per_day)
        return price, dict(zip(up, shares.tolist(), strict=True))


def _message(pages: Sequence[outgoing.OutgoingPage]) -> bytes:
    rows = [(it.url, it.fetch_url, it.role, it.depth, it.redirects) for it in pages]
    return json.dumps(rows, ensure_ascii=False).encode("utf-8", "replace")
