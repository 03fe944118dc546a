"""``freshet explain URL``: what Freshet knows of a URL, and what it would do with it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from freshet.crawler.commands import history, lookup, running
from freshet.crawler.commands.console import print_json
from freshet.crawler.commands.display import (
    joined,
    moment,
    show_facts,
    show_line,
    show_list,
    size,
    span,
)
from freshet.crawler.commands.explanation import (
    Explanation,
    ExplanationRules,
    Finding,
    RobotsView,
    explain,
    obstacle,
)
from freshet.crawler.commands.options import DEFAULT_DB, ConfigFile, Db, Json, read_settings
from freshet.crawler.commands.prospect import Prospect, prospect
from freshet.crawler.commands.prospect_words import paragraph
from freshet.storage.database import owner_of
from freshet.storage.entries import HostState
from freshet.storage.queries import page
from freshet.storage.queries.page import GoodCapture, KnownUrl
from freshet.storage.tables.claims import HeardClaim
from freshet.storage.words import RobotsStanding


def explain_command(
    url: Annotated[
        str, typer.Argument(metavar="URL", help="Any URL; without a scheme https, then http.")
    ],
    db: Db = DEFAULT_DB,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Show what is known of a URL, what happens to it next, and why.

    Nothing is fetched: the robots.txt in question is the stored one.
    """
    settings, _ = read_settings(config, {})
    rules = ExplanationRules(
        agent=settings.crawl.product.lower(),
        robots_max_age_s=settings.robots.max_age_s,
        permanent_recheck_days=settings.crawl.permanent_recheck_days,
    )
    explanation, ahead = running.run(_read(db, lookup.spellings(url), rules, time.time()))
    if json:
        print_json(explanation.as_json() | {"prospect": ahead and asdict(ahead)})
    else:
        _print(explanation, ahead, db)


async def _read(
    db: Path, urls: Sequence[str], rules: ExplanationRules, now: float
) -> tuple[Explanation, Prospect | None]:
    async with page.snapshot(db) as connection:
        it = await explain(connection, urls, rules, now)
        page_id = it.known.page_id if it.known is not None else None
        return it, None if page_id is None else await prospect(connection, page_id, now)


def _print(it: Explanation, ahead: Prospect | None, db: Path) -> None:
    show_line(it.url, "bold")
    show_line(it.outlook if ahead is None else _ahead(it, ahead, db))
    if it.known is None:
        _print_unknown(it)
    else:
        _print_identity(it, it.known)
    if it.robots is not None:
        _print_robots(it.robots, it.at)
    if it.host is not None:
        _print_host(it.host, it.at)
    if it.capture is not None:
        _print_capture(it.capture, it.at)
    _print_claims(it.claims, it.at)
    show_list("Last observations", history.HEADER, [history.row(o, it.at) for o in it.observations])


def _ahead(it: Explanation, ahead: Prospect, db: Path) -> str:
    hindered = obstacle(it.robots, it.host, it.at)
    is_running = (owner_of(db) or ("",))[0] == "daemon"
    return paragraph(ahead, it.at, obstacle=hindered, is_running=is_running)


def _print_unknown(it: Explanation) -> None:
    link = it.linked_out_of_scope
    linked = f"{link.url} {_quoted(link.anchor) or ''}" if link else None
    show_facts("Unknown", {"linked from": linked, "nearest": joined(it.nearest)})


def _print_identity(it: Explanation, known: KnownUrl) -> None:
    place, alias = it.place, known.alias
    show_facts(
        "URL",
        {
            "asked for as": known.fetch_url,
            "role": known.role,
            "depth": str(known.depth),
            "found": joined(
                (moment(known.found_at, it.at), _found(it.found) if it.found else None)
            ),
            "held back": known.held_back,
            "copy of": it.copy_of,
            "alias of": f"{alias.url} ({alias.kind}, {moment(alias.at, it.at)})" if alias else None,
            "aliases": joined(f"{name.url} ({name.kind})" for name in it.aliases),
            "due": f"{moment(place.due_at, it.at)}, for {place.reason}" if place else None,
            "failed tries": str(place.attempt) if place and place.attempt else None,
            "deferred": place.deferred if place else None,
            "ETag": known.validators.etag,
            "Last-Modified": known.validators.last_modified,
            "server's wish": _wish(known.wish_s),
        },
    )


def _wish(wish_s: float | None) -> str | None:
    """What Cache-Control or Expires ask for; it is told, not obeyed."""
    if wish_s is None:
        return None
    return f"to be used for {span(wish_s)}" if wish_s else "to be asked every time"


def _print_claims(said: Sequence[HeardClaim], now: float) -> None:
    show_list(
        "What others say (when it changed last, by their clocks)",
        ("source", "changed", "heard"),
        [(f"{c.kind} {c.url}", _claimed(c, now), moment(c.received_at, now)) for c in said],
    )


def _claimed(claim: HeardClaim, now: float) -> str:
    since = moment(claim.since, now)
    return since if claim.since == claim.until else f"{since} to {moment(claim.until, now)}"


def _found(found: Finding) -> str:
    words = joined((found.source, _quoted(found.anchor), found.rel and f"rel={found.rel}"), " ")
    preposition = {
        "seed": "seed",
        "robots.txt": "named by robots.txt",
        "discovery": "as a feed of its host",
    }.get(found.how, f"{found.how} from")
    return f"{preposition} {words}" if words else preposition


def _quoted(anchor: str | None) -> str | None:
    return f"“{anchor}”" if anchor else None


def _print_robots(robots: RobotsView, now: float) -> None:
    verdict = robots.verdict
    show_facts(
        "robots.txt",
        {
            "verdict": "allowed" if verdict.allowed else "forbidden",
            "rule": f"{verdict.rule} (line {verdict.line})" if verdict.rule else None,
            "group": f"User-agent: {verdict.agent}" if verdict.agent else None,
            "standing": _standing(robots),
            "fetched": moment(robots.fetched_at, now),
            "state": _freshness(robots, now),
            "Crawl-delay": f"{robots.crawl_delay_s:g} s" if robots.crawl_delay_s else None,
        },
    )


def _standing(robots: RobotsView) -> str:
    match robots.standing:
        case RobotsStanding.PARSED:
            return "read"
        case RobotsStanding.ALLOW_ALL:
            return "there is none: everything is allowed"
        case RobotsStanding.UNREACHABLE:
            return f"unreachable: everything is forbidden ({robots.reason})"


def _freshness(robots: RobotsView, now: float) -> str:
    if robots.stale_since is not None:
        since = moment(robots.stale_since, now)
        return f"an older copy; the file is unreachable since {since}: {robots.reason}"
    return "fresh" if robots.fresh else "asked for again before the next page"


def _print_host(host: HostState, now: float) -> None:
    parked = host.parked_until is not None and host.parked_until > now
    show_facts(
        "Politeness",
        {
            "lane": host.lane,
            "delay": f"{host.delay_s:g} s",
            "last exchange": moment(host.last_exchange_at, now),
            "failures in a row": host.failures or None,
            "parked until": f"{moment(host.parked_until, now)}: {host.parked_reason}"
            if parked and host.parked_until is not None
            else None,
        },
    )


def _print_capture(capture: GoodCapture, now: float) -> None:
    size_shown = size(capture.size_bytes) if capture.size_bytes is not None else None
    flags = ("noindex", "noarchive", "nofollow")
    show_facts(
        "Last good capture",
        {
            "checked": moment(capture.checked_at, now),
            "content": f"as of {moment(capture.since, now)}; {capture.versions:,} "
            f"{'version' if capture.versions == 1 else 'versions'} in all",
            "size": joined((size_shown, None if capture.body_kept else "body not kept")),
            "type": joined((capture.content_type, capture.encoding)),
            "title": capture.title,
            "language": capture.language,
            "rel=canonical": capture.canonical_url,
            "meta robots": joined(flag for flag in flags if getattr(capture, flag)),
        },
    )
