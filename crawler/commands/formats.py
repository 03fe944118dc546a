"""Whether this program reads a store's versioned bytes: asked once, before any work."""

from __future__ import annotations

from pathlib import Path

import aiosqlite

from freshet.crawler.detection import memory, sketch
from freshet.crawler.detection.walls import site
from freshet.storage.database import StoreError, Versioned, formats

_READ = {
    Versioned.SKETCHES: sketch.VERSION,
    Versioned.MEMORIES: memory.VERSION,
    Versioned.WALLS: site.VERSION,
}


async def require_readable(connection: aiosqlite.Connection, path: Path) -> None:
    """Refuse a store that pages cannot be compared with.

    Raises:
        StoreError: its sketches, memories or walls are of a format that is not read.
    """
    for what, read in _READ.items():
        for found in await formats(connection, what):
            if found < read:
                raise StoreError(
                    f"{path}: its {what} are of format {found}, older than the {read} that this "
                    "Freshet reads; crawl into a new file (--db), this one can still be looked at"
                )
            if found > read:
                raise StoreError(
                    f"{path}: its {what} are of format {found}, newer than the {read} that this "
                    "Freshet knows; upgrade Freshet"
                )
