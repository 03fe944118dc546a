"""Tables ``version`` and ``body``: what pages contained, content-addressed.

Versions (digests and sketches) are kept for ever, but for those that are taken back
(:mod:`storage.retractions`); bodies by count and age.
"""

from __future__ import annotations

from collections.abc import Iterable

import aiosqlite

from storage.records import Visit


async def append(connection: aiosqlite.Connection, visits: Iterable[Visit]) -> None:
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


async def prune(connection: aiosqlite.Connection, *, per_page: int, older_than: float) -> int:
    """Delete bodies that no page needs any more; how many.

    A body is needed while some page has it among its newest ``per_page`` versions and
    that version is not from before ``older_than``; a page's newest body is always kept.
    """
    cursor = await connection.execute(
        "DELETE FROM body WHERE digest NOT IN (SELECT body_digest FROM ("
        "  SELECT body_digest, at, row_number() OVER (PARTITION BY page_id ORDER BY id DESC) AS n"
        "  FROM version) WHERE n = 1 OR (n <= ? AND at >= ?))",
        (per_page, older_than),
    )
    return cursor.rowcount
