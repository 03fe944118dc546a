"""Table ``host_signals``: what the headers of each host are worth, by what they showed so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import aiosqlite

from freshet.storage.host_state import HeaderSigns
from freshet.storage.records import Visit

_COUNT = (
    "INSERT INTO host_signals VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (host_id) DO UPDATE SET "
    "skew_s = coalesce(excluded.skew_s, skew_s), "
    + ", ".join(
        f"{name} = {name} + excluded.{name}"
        for name in (
            "dated", "modified_now", "modified_past", "etag_right", "etag_idle", "etag_missed"
        )
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class HostSignals:
    """What the headers of a host (``origin``) showed so far.

    ``dated`` answers had a Date, by which its clock is ``skew_s`` ahead of ours (median of the
    last ones). Last-Modified was the time of the answer ``modified_now`` times, else an earlier
    one. At second looks the ETag was ``etag_right`` (another one where the page had changed, the
    same where it had not), ``etag_idle`` (another one for nothing) or ``etag_missed`` (the same
    although the page had changed).
    """

    origin: str
    dated: int
    skew_s: float | None
    modified_now: int
    modified_past: int
    etag_right: int
    etag_idle: int
    etag_missed: int


async def count(connection: aiosqlite.Connection, visits: Sequence[Visit]) -> None:
    """Add what the answers of these visits showed."""
    by_host: dict[int, list[HeaderSigns]] = {}
    for visit in visits:
        if visit.signs is not None:
            by_host.setdefault(visit.due.host_id, []).append(visit.signs)
    await connection.executemany(_COUNT, [_row(*each) for each in by_host.items()])


async def load_signals(
    connection: aiosqlite.Connection, host_id: int | None = None
) -> list[HostSignals]:
    """Of all hosts, or of one, by origin."""
    rows = await connection.execute_fetchall(
        "SELECT h.origin, s.dated, s.skew_s, s.modified_now, s.modified_past, s.etag_right, "
        "s.etag_idle, s.etag_missed FROM host_signals AS s JOIN host AS h ON h.id = s.host_id "
        "WHERE ?1 IS NULL OR h.id = ?1 ORDER BY h.origin",
        (host_id,),
    )
    return [HostSignals(*row) for row in rows]


def _row(host_id: int, signs: Sequence[HeaderSigns]) -> tuple[int | float | None, ...]:
    skews = [each.skew_s for each in signs if each.skew_s is not None]
    modified = Counter(each.modified_now for each in signs)
    etags = Counter(
        (each.etag_moved, each.text_moved)
        for each in signs
        if each.etag_moved is not None and each.text_moved is not None
    )
    return (
        host_id,
        len(skews),
        skews[-1] if skews else None,
        modified[True],
        modified[False],
        etags[True, True] + etags[False, False],
        etags[True, False],
        etags[False, True],
    )
