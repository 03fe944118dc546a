"""What runs beside visits: a companion, a recorder, a fetcher, signals and costs."""

import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from sqlite3 import Connection
from typing import Final

from freshet.config.settings import Settings
from freshet.crawler.fetch.client import Fetcher, Request
from freshet.crawler.run.hooks import Companion
from freshet.crawler.run.network import LoadRules, Network
from freshet.crawler.run.wiring import RunContext
from freshet.storage.entries import Claim
from freshet.storage.extensions import Recording
from freshet.storage.records import Acknowledged, FetchResult, Visit
from freshet_ledger import LedgerSettings

log = logging.getLogger(__name__)

# -- beside the visits: ``freshet.companions`` and ``freshet.recorders`` ------------


def check(settings: Settings) -> None:
    """Find nothing wrong."""


def accompany(_context: RunContext, _network: Network) -> Companion:
    """Return what counts the visits of a run."""
    return Counting()


class Counting(Companion):
    """Counts visits as they are committed, and says at the end how many there were."""

    def __init__(self) -> None:
        self._visits = self._turns = 0

    async def turn(self, now: float) -> None:
        """Count the turns of the pool."""
        self._turns += 1

    def committed(self, batch: Sequence[Acknowledged]) -> None:
        """Count the visits of a batch."""
        self._visits += sum(isinstance(each.entry, Visit) for each in batch)

    async def close(self) -> None:
        """Log the counts."""
        log.warning("%d visits, %s", self._visits, "in turns" if self._turns else "at once")


def recorder(_settings: Settings) -> Recording:
    """Return what keeps the ledger."""
    return Ledger()


class Ledger(Recording):
    """Writes the ledger, each entry in the transaction of its visit."""

    def record(
        self, db: Connection, visits: Sequence[Visit], documents: Collection[int], now: float
    ) -> None:
        """Count the visits."""
        db.executemany(
            "INSERT INTO ledger VALUES (?, 1) ON CONFLICT DO UPDATE SET visits = visits + 1",
            [(each.due.page_id,) for each in visits],
        )


# -- requests: ``freshet.fetchers`` -------------------------------------------------

RENDERS: Final = False


def layer(settings: Settings) -> "Signing":
    """Return what signs the requests of a run."""
    return Signing(settings)


class Signing:
    """Makes fetchers that sign requests."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def around(self, inner: Fetcher, _others: Fetcher, _rules: LoadRules) -> "SigningFetcher":
        """Return a fetcher around another one."""
        return SigningFetcher(inner, self._settings)

    async def close(self) -> None:
        """Hold nothing."""


class SigningFetcher:
    """Adds a field to each request."""

    def __init__(self, inner: Fetcher, settings: Settings) -> None:
        self._inner = inner
        self.obey(settings)

    def obey(self, settings: Settings) -> None:
        """Sign as these settings say."""
        self._signature = settings.group(LedgerSettings).signature

    async def fetch(self, request: Request) -> FetchResult:
        """Make one request with the field."""
        if self._signature:
            signed = ("X-Ledger", self._signature)
            request = replace(request, headers=(*request.headers, signed))
        return await self._inner.fetch(request)


# -- responses: ``freshet.signals`` -------------------------------------------------


def signals(_url: str, result: FetchResult) -> Iterator[Claim]:
    """Yield what fields such as ``X-Changed: https://example.org/page 1764547200`` say."""
    for value in result.header_values("X-Changed"):
        page, _, at = value.partition(" ")
        if at.isdigit():
            yield Claim(page, float(at), float(at))


# -- costs: ``freshet.visit_costs`` -------------------------------------------------


def visit_costs(origins: Sequence[str], settings: Settings) -> Sequence[float]:
    """Let a visit cost what the settings say."""
    return [settings.group(LedgerSettings).cost] * len(origins)
