"""Alerts beside a crawl or a daemon; loaded by every crawl, and therefore short."""

from __future__ import annotations

from typing import TYPE_CHECKING

from freshet.crawler.extensions.alerts.settings import Alerts
from freshet.crawler.run.hooks import Companion
from freshet.storage.extensions import Recording

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Collection, Sequence
    from sqlite3 import Connection

    from freshet.config.settings import Settings
    from freshet.crawler.extensions.alerts.outbox import Outbox
    from freshet.crawler.extensions.alerts.tables import AlertFilter
    from freshet.crawler.run.importance import Importances, ListedPage
    from freshet.crawler.run.network import Network
    from freshet.crawler.run.pool import FetchPool
    from freshet.crawler.run.wiring import Assembly, RunContext
    from freshet.storage.records import Acknowledged, Visit


def check(settings: Settings) -> None:
    """Raise CrawlError where a secret or a URL of a rule is missing or not valid."""
    if (alerts := settings.group(Alerts)).rules:
        from freshet.crawler.extensions.alerts.rules import channels  # noqa: PLC0415 - or not

        channels(alerts)


def accompany(context: RunContext, network: Network) -> Companion:
    """Return the sender of a run's alerts."""
    return Alerting(context, network)


def recorder(settings: Settings) -> AlertRecorder:
    """Return what writes the alerts of visits by the rules of these settings."""
    alerts = settings.group(Alerts)
    if not alerts.rules:
        return AlertRecorder(())
    from freshet.crawler.extensions.alerts.rules import matching  # noqa: PLC0415 - or not

    return AlertRecorder(matching(alerts))


class AlertRecorder(Recording):
    """Writes the alerts of visits, and corrects the alerts of amended verdicts."""

    def __init__(self, rules: Sequence[AlertFilter]) -> None:
        self._rules = rules

    def record(
        self, db: Connection, visits: Sequence[Visit], documents: Collection[int], now: float
    ) -> None:
        """Write them; a rule that has left the settings still gets its withdrawals."""
        if not self._rules and not db.execute("SELECT 1 FROM alert_review LIMIT 1").fetchall():
            return
        from freshet.crawler.extensions.alerts import tables  # noqa: PLC0415 - see above

        tables.record(db, self._rules, visits)
        tables.review(db, self._rules, now)


class Alerting(Companion):
    """The sender of alerts, which is made where there is a rule.

    It starts after the first turn: during the first learning of a daemon no delivery is recorded.
    """

    def __init__(self, context: RunContext, network: Network) -> None:
        self._context = context
        self._network = network
        self._importances: Importances | None = None
        self._has_begun = False
        self._outbox: Outbox | None = None
        self.obey(context.settings)

    async def start(
        self, assembly: Assembly, pool: FetchPool, importances: Importances | None
    ) -> None:
        """Take the importance of pages from the run, if it knows it."""
        self._importances = importances

    def begun(self) -> None:
        """Begin to send."""
        self._has_begun = True
        if self._outbox is not None:
            self._outbox.start()

    def committed(self, batch: Sequence[Acknowledged]) -> None:
        """Check for new alerts."""
        if self._outbox is not None:
            self._outbox.committed()

    def obey(self, settings: Settings) -> None:
        """Apply other rules; raises CrawlError without a change."""
        alerts = settings.group(Alerts)
        if self._outbox is None and not alerts.rules:
            return
        from freshet.crawler.extensions.alerts.rules import channels  # noqa: PLC0415 - see above

        outbox = self._outbox or self._made(settings)
        outbox.obey(alerts, channels(alerts))
        if self._outbox is None and self._has_begun:
            outbox.start()
        self._outbox = outbox

    async def finish(self, told_to_stop: asyncio.Event) -> None:
        """Send due messages."""
        if self._outbox is not None:
            await self._outbox.finish(told_to_stop)

    async def close(self) -> None:
        """Close the receivers."""
        if self._outbox is not None:
            await self._outbox.close()

    def _made(self, settings: Settings) -> Outbox:
        from freshet.crawler.extensions.alerts.messages import stored_importances  # noqa: PLC0415
        from freshet.crawler.extensions.alerts.outbox import outbox_of  # noqa: PLC0415

        stored = stored_importances(self._context.database, settings)

        async def importances(pages: Sequence[ListedPage]) -> Sequence[float]:
            return await (self._importances or stored)(pages)

        return outbox_of(self._context, settings, self._network.resolver, importances)
