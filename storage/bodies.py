"""Tables ``version`` and ``body``: what pages contained, content-addressed.

Versions (digests and sketches) are kept for ever, but for those that are taken back
(:mod:`freshet.storage.retractions`); bodies and sketches as :mod:`freshet.storage.retention` says.
"""

from __future__ import annotations

from collections.abc import Iterable

import aiosqlite

from freshet.storage.records import Visit


async def append_bodies(connection: aiosqlite.Connection, visits: Iterable[Visit]) -> None:
    """Add a version for each visit with a capture, and its body where one is kept."""
    captured = [(v.due.page_id, v.observation.at, v.capture) for v in visits if v.capture]
    await connection.executemany(
        "INSERT INTO version (page_id, at, body_digest, text_digest, content_type, encoding, "
        "sketch) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (page_id, at, c.digests.body, c.digests.text, c.content_type, c.encoding, c.sketch)
            for page_id, at, c in captured
        ],
    )
    await connection.executemany(
        "INSERT OR IGNORE INTO body VALUES (?, ?, ?, ?)",
        [(c.digests.body, at, c.size_bytes, c.body) for _, at, c in captured if c.body is not None],
    )
