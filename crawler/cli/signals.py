"""``freshet signals``: the sources of change signals, and their reliability."""

import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from freshet.crawler.cli.options import DEFAULT_DB, Db, Json, read_each
from freshet.crawler.run.forecast import daemon_settings
from freshet.crawler.run.state import DaemonState, load_state
from freshet.crawler.run.terminal import counted, print_json, show_line, show_list, span, when
from freshet.crawler.run.upkeep import require_readable
from freshet.scheduler.estimate.sources_trust import Reputation, Trust
from freshet.scheduler.queue.rankers import IntervalRanker, PolicyRanker
from freshet.scheduler.queue.site_clock_ranker import SiteClockRanker
from freshet.storage.queries import page
from freshet.storage.tables import claims, hosts
from freshet.storage.tables.claims import ClaimSource
from freshet.storage.tables.hosts import HostSignals

HEADER: Final = (
    "source", "trust", "right", "finds", "late", "pages", "signals", "odd", "polled", "last"
)  # fmt: skip
_HEADERS: Final = ("host", "clock", "Last-Modified", "ETag")
_DAY_S: Final = 86_400.0
_BELIEVED: Final[dict[Trust, str]] = {
    "complete": "complete",
    "noisy": "noisy",
    "worthless": "no",
    "unjudged": "too early",
}


#: A source and its reliability as the daemon rates it; None without a rating.
_Reputed: TypeAlias = tuple[ClaimSource, Reputation | None]


def signals_command(
    db: Db = DEFAULT_DB,
    host: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only hosts whose origin contains this.")
    ] = None,
    json: Json = False,
) -> None:
    """Show who reports changes, and how reliably.

    *right*: the share of signals that a visit confirmed. *finds*: the share of found changes that a
    signal had announced. *late*: the time from a change to its signal. *odd*: impossible dates.
    """
    found, down = read_each(db, partial(_read, host=host))
    policy = next((followed for followed, _, _ in found if followed), None)
    sources = sorted(chain(*(some for _, some, _ in found)), key=lambda each: each[0].host)
    headers = sorted(chain(*(some for _, _, some in found)), key=lambda each: each.origin)
    if json:
        print_json(
            {
                "policy": policy,
                "sources": [_as_json(*each) for each in sources],
                "headers": [asdict(each) for each in headers],
            }
            | down
        )
        return
    _print(policy, sources, time.time())
    show_list("Reliability of headers", _HEADERS, [_header_row(each) for each in headers])


def _as_json(source: ClaimSource, reputation: Reputation | None) -> dict[str, object]:
    thought = {} if reputation is None else asdict(reputation)
    thought.pop("source", None)
    return asdict(source) | {"reputation": thought or None}


async def _read(db: Path, host: str | None) -> tuple[str | None, list[_Reputed], list[HostSignals]]:
    """Return the daemon's policy, the sources with their reliability, and the header statistics."""
    async with page.snapshot(db) as connection:
        await require_readable(connection, db)
        known = [
            each for each in await claims.sources(connection) if host is None or host in each.host
        ]
        headers = [
            each
            for each in await hosts.load_signals(connection)
            if host is None or host in each.origin
        ]
        settings = await daemon_settings(connection)
        thought: dict[tuple[str, int], Reputation] = {}
        if known and settings is not None:
            state = await load_state(connection, settings)
            try:
                thought = await _reputations(state)
            finally:
                await state.close()
        sources = [(each, thought.get((each.host, each.source_id))) for each in known]
        followed = settings.daemon.policy if known and settings is not None else None
        return followed, sources, headers


async def _reputations(state: DaemonState) -> dict[tuple[str, int], Reputation]:
    """Return the reliability of each source, by host origin and source number."""
    ranker = state.ranker
    if isinstance(ranker, IntervalRanker) or not isinstance(ranker, SiteClockRanker | PolicyRanker):
        return {}
    return {
        (host.origin, each.source): each
        for site, host in enumerate(await state.hosts())
        for each in ranker.reputations(site)
    }


def _print(policy: str | None, sources: Sequence[_Reputed], now: float) -> None:
    if not sources:
        show_line("no source has signalled a change yet")
    by_host: dict[str, list[_Reputed]] = {}
    for each in sources:
        by_host.setdefault(each[0].host, []).append(each)
    for host, found in by_host.items():
        show_list(host, HEADER, [_row(*each, now) for each in found])
    if policy is not None and sources and all(thought is None for _, thought in sources):
        show_line(f"\nthe policy {policy} does not use change signals")


def _row(it: ClaimSource, thought: Reputation | None, now: float) -> Sequence[str | int | None]:
    judged: tuple[str | None, ...] = (None,) * 4
    if thought is not None:
        late = None if thought.late_days is None else span(thought.late_days * _DAY_S)
        shares = _percent(thought.precision), _percent(thought.recall)
        judged = (_BELIEVED[thought.trust], *shares, late)
    return (
        f"{it.kind} {it.url.removeprefix(it.host) or it.url}",
        *judged,
        it.entries,
        it.entries + it.moved,
        it.rejected or None,
        None if it.polls is None else counted(it.polls, "time"),
        when(it.said_at, now),
    )


def _percent(share: float | None) -> str | None:
    return None if share is None else f"{share:.0%}"


def _header_row(it: HostSignals) -> Sequence[str | None]:
    skew = None if it.skew_s is None else f"{it.skew_s:+.0f} s"
    modified = it.modified_now + it.modified_past
    visits = it.etag_right + it.etag_idle + it.etag_missed
    return (
        it.origin,
        skew,
        f"{it.modified_past / modified:.0%} older than the response" if modified else None,
        _etag(it, visits) if visits else None,
    )


def _etag(it: HostSignals, visits: int) -> str:
    wrong = [
        f"changed without a change {it.etag_idle:,} times" if it.etag_idle else "",
        f"kept after a change {it.etag_missed:,} times" if it.etag_missed else "",
    ]
    return "; ".join([f"right {it.etag_right:,} of {visits:,} times", *filter(None, wrong)])
