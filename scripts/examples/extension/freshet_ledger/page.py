"""A page of the dashboard: ``freshet.pages``."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from aiohttp import web

from freshet.config.settings import Settings
from freshet.crawler.extensions.dashboard.request import DashboardRequest
from freshet_ledger.status import visits


class LedgerPage:
    """The page of the ledger."""

    path, label, template = "/ledger", "Ledger", "ledger.html"

    def __init__(self, db: Path, _settings: Settings) -> None:
        """Show the ledger of a store."""
        self._db = db
        self.routes: Sequence[web.AbstractRouteDef] = []

    async def shown(self, _asked: DashboardRequest) -> Mapping[str, object]:
        """Return the visits."""
        return {"visits": await visits(self._db)}
