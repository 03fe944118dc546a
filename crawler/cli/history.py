"""``freshet history URL``: every observation of a page, newest first."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import aiosqlite
import typer

from freshet.crawler import documents, terminal
from freshet.crawler.cli.options import DEFAULT_DB, Db, Json, Page
from freshet.crawler.terminal import Cell, joined, moment, print_json, show_line, show_list, size
from freshet.storage.queries import page
from freshet.storage.queries.page import KnownUrl, OtherName, PastObservation

HEADER = ("time", "kind", "version", "rung", "HTTP", "resemblance", "blocks", "size", "reason")


@dataclass(frozen=True, slots=True)
class _VisitHistory:
    """A URL's newest observations out of ``total``; for an alias, also the final page's."""

    url: str
    total: int
    observations: list[PastObservation]
    alias: OtherName | None = None
    final_page: _VisitHistory | None = None


def history_command(
    url: Page,
    db: Db = DEFAULT_DB,
    limit: Annotated[
        int, typer.Option(metavar="N", min=1, max=10**9, help="Show at most N observations.")
    ] = 20,
    json: Json = False,
) -> None:
    """Show what every visit to a page found, newest first.

    Each line has the result (kind), the rung of the change-detection ladder that decided, and the
    similarity of the main text to the one before (0 to 1).
    """
    history = terminal.run(_read(db, url, limit))
    if json:
        print_json(asdict(history))
    else:
        _print(history, time.time())


async def _read(db: Path, url: str, limit: int) -> _VisitHistory:
    async with page.snapshot(db) as connection:
        known = await documents.known(connection, url)
        own = await _visits(connection, known, limit)
        if known.alias is None:
            return own
        final = await _visits(connection, known.alias, limit)
        return replace(own, alias=known.alias, final_page=final)


async def _visits(
    connection: aiosqlite.Connection, of: KnownUrl | OtherName, limit: int
) -> _VisitHistory:
    total = await page.observation_count(connection, of.page_id)
    return _VisitHistory(of.url, total, await page.observations(connection, of.page_id, limit))


def _print(history: _VisitHistory, now: float) -> None:
    _print_one(history, now)
    if history.alias is not None and history.final_page is not None:
        alias = history.alias
        show_line(f"It is an alias ({alias.kind}, {moment(alias.at, now)}) of {alias.url}")
        _print_one(history.final_page, now)


def _print_one(history: _VisitHistory, now: float) -> None:
    if not history.observations:
        show_line(f"{history.url}: never visited")
        return
    show_list(history.url, HEADER, [row(o, now) for o in history.observations])
    if history.total > len(history.observations):
        older = history.total - len(history.observations)
        show_line(f"… and {older:,} older; --limit shows more", "dim")


def row(observation: PastObservation, now: float) -> Sequence[Cell]:
    """Return an observation as a row under :data:`HEADER`."""
    o = observation
    return (
        moment(o.at, now),
        o.kind,
        str(o.version) if o.version is not None else None,
        o.rung,
        str(o.status) if o.status is not None else None,
        _resemblance(o),
        _blocks(o),
        size(o.size_bytes) if o.size_bytes is not None else None,
        joined((o.reason, o.detail), ": "),
    )


def _resemblance(observation: PastObservation) -> str | None:
    if observation.resemblance is None:
        return None
    error = observation.resemblance_se
    return f"{observation.resemblance:.2f}" + (f" ± {error:.2f}" if error is not None else "")


def _blocks(observation: PastObservation) -> str | None:
    added, removed = observation.blocks_added, observation.blocks_removed
    return None if added is None and removed is None else f"+{added or 0} −{removed or 0}"
