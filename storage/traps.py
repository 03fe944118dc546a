"""Table ``trap``: per host, how many URLs of a bounded pattern were crawled and refused."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import aiosqlite

from storage.pages import Admitted
from storage.records import Targets


class _Sign(NamedTuple):
    """The pattern that a target falls under, and how many of its URLs are crawled."""

    shape: str
    kind: str
    cap: int


async def bound(
    connection: aiosqlite.Connection, admitted: Sequence[Admitted], targets: Targets
) -> dict[int, str]:
    """Count these pages; the ids of those beyond their pattern's cap, with its kind."""
    signs = _signs(targets)
    bounded = [(page, signs[page.url]) for page in admitted if page.url in signs]
    if not bounded:
        return {}
    counts = await _counts(connection, {(page.host_id, sign.shape) for page, sign in bounded})
    refused: dict[int, str] = {}
    for page, sign in bounded:
        if counts[page.host_id, sign.shape] >= sign.cap:
            refused[page.page_id] = sign.kind
        else:
            counts[page.host_id, sign.shape] += 1
    await connection.executemany(
        "INSERT INTO trap VALUES (?1, ?2, ?3, NOT ?4, ?4) ON CONFLICT DO UPDATE SET "
        "admitted = admitted + excluded.admitted, refused = refused + excluded.refused",
        [(p.host_id, sign.shape, sign.kind, p.page_id in refused) for p, sign in bounded],
    )
    return refused


def _signs(targets: Targets) -> Mapping[str, _Sign]:
    return {
        url: _Sign(shape, kind, cap)
        for url, shape, kind, cap in zip(
            targets.urls, targets.trap_shapes, targets.trap_kinds, targets.trap_caps, strict=True
        )
        if shape is not None and kind is not None
    }


async def _counts(
    connection: aiosqlite.Connection, keys: Iterable[tuple[int, str]]
) -> Counter[tuple[int, str]]:
    """How many URLs of these patterns were crawled, by host and shape."""
    rows = await connection.execute_fetchall(
        "SELECT host_id, shape, admitted FROM json_each(?) AS k CROSS JOIN trap "
        "ON host_id = k.value ->> 0 AND shape = k.value ->> 1",
        (json.dumps(list(keys)),),
    )
    return Counter({(row[0], row[1]): row[2] for row in rows})
