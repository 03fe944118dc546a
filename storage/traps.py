"""Table ``trap``: per host, how many URLs of a bounded pattern were crawled and refused."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import aiosqlite

from freshet.storage import copies
from freshet.storage.pages import Admitted
from freshet.storage.targets import Targets


class _Sign(NamedTuple):
    """The pattern that a target falls under, and how many of its URLs are crawled."""

    shape: str
    kind: str
    cap: int


async def bound(
    connection: aiosqlite.Connection, admitted: Sequence[Admitted], targets: Targets
) -> dict[int, str]:
    """Count these pages; the ids of those beyond their pattern's cap, with its kind.

    Before it is counted, a URL of a pattern that gave nothing but copies is held back.
    """
    copied = await _copies(connection, admitted, targets)
    signs = _signs(targets)
    bounded = [
        (page, signs[page.url])
        for page in admitted
        if page.url in signs and page.page_id not in copied
    ]
    return copied | await _beyond_caps(connection, bounded)


async def _copies(
    connection: aiosqlite.Connection, admitted: Sequence[Admitted], targets: Targets
) -> dict[int, str]:
    """Name the patterns of these pages; those of them that are held back as copies."""
    columns = zip(targets.urls, targets.patterns, targets.depths, strict=True)
    patterns = {url: (shape, depth) for url, shape, depth in columns if shape is not None}
    found = [(page, *patterns[page.url]) for page in admitted if page.url in patterns]
    if not found:
        return {}
    await connection.executemany(
        "UPDATE page SET pattern = ? WHERE id = ?", [(shape, p.page_id) for p, shape, _ in found]
    )
    closed = await copies.closed_copies(
        connection, {(page.host_id, shape) for page, shape, _ in found}
    )
    held: list[tuple[int, str]] = []
    refused: dict[int, str] = {}
    for page, shape, depth in found:
        key = page.host_id, shape
        if not depth or key not in closed or copies.is_sampled(page.page_id, closed[key]):
            continue
        closed[key] += 1
        held.append(key)
        refused[page.page_id] = copies.KIND
    await copies.refuse(connection, held)
    return refused


async def _beyond_caps(
    connection: aiosqlite.Connection, bounded: Sequence[tuple[Admitted, _Sign]]
) -> dict[int, str]:
    if not bounded:
        return {}
    counts = await _counts(
        connection, {(page.host_id, sign.shape, sign.kind) for page, sign in bounded}
    )
    refused: dict[int, str] = {}
    for page, sign in bounded:
        key = page.host_id, sign.shape, sign.kind
        if counts[key] >= sign.cap:
            refused[page.page_id] = sign.kind
        else:
            counts[key] += 1
    await connection.executemany(
        "INSERT INTO trap (host_id, shape, kind, admitted, refused) "
        "VALUES (?1, ?2, ?3, NOT ?4, ?4) ON CONFLICT DO UPDATE SET "
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
    connection: aiosqlite.Connection, keys: Iterable[tuple[int, str, str]]
) -> Counter[tuple[int, str, str]]:
    """How many URLs of these patterns were crawled, by host, shape and kind."""
    rows = await connection.execute_fetchall(
        "SELECT host_id, shape, kind, admitted FROM json_each(?) AS k CROSS JOIN trap "
        "ON host_id = k.value ->> 0 AND shape = k.value ->> 1 AND kind = k.value ->> 2",
        (json.dumps(list(keys)),),
    )
    return Counter({(row[0], row[1], row[2]): row[3] for row in rows})
