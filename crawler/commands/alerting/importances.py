"""What pages weigh of which there are alerts, as the store says where no daemon runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from freshet.config.settings import Settings
from freshet.crawler.commands.alerting.composing import Importances
from freshet.crawler.commands.sources.page_rules import terms
from freshet.crawler.commands.sources.weighing import weigh
from freshet.storage.database import Database
from freshet.storage.tables.alerts import Told


async def importances_of(database: Database, settings: Settings) -> Importances:
    """What pages weigh by all that the store knows now."""
    weighing = await weigh(database.reader, settings.daemon.importance)

    async def importances(told: Sequence[Told]) -> Sequence[float]:
        urls, origins = [each.url for each in told], [each.origin for each in told]
        rows = {origin: row for row, origin in enumerate(dict.fromkeys(origins))}
        host = np.array([rows[origin] for origin in origins], np.intp)
        ids = np.array([each.page_id for each in told], np.int64)
        own = weighing.importances(ids, urls, host, list(rows))
        found = terms(urls, np.zeros(len(urls), np.intp), own, settings.daemon.rules)
        return [float(value) for value in found.importance]

    return importances
