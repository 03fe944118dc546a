"""What Freshet knows of one URL, and what it would do with it next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import aiosqlite

from freshet.crawler.commands import lookup
from freshet.crawler.commands.display import moment
from freshet.crawler.robots.robots_txt import Verdict, in_force, is_fresh
from freshet.crawler.urls import origin
from freshet.storage.entries import Host, HostState
from freshet.storage.queries import page
from freshet.storage.queries.page import (
    FrontierPlace,
    GoodCapture,
    InLink,
    KnownUrl,
    OtherName,
    PastObservation,
)
from freshet.storage.tables import claims as claims_tables
from freshet.storage.tables import hosts, url_patterns
from freshet.storage.tables.claims import HeardClaim
from freshet.storage.tables.url_patterns import CopyPattern
from freshet.storage.words import AliasKind, RobotsStanding, Role

_ALIASES = 20
_OBSERVATIONS = 5
_CLAIMS = 5
_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class ExplanationRules:
    """The settings that an explanation depends on; ``agent`` is the robots token."""

    agent: str
    robots_max_age_s: float
    permanent_recheck_days: float


@dataclass(frozen=True, slots=True)
class Finding:
    """How a URL became known.

    ``how`` is seed, link, sitemap, feed, redirect, robots.txt or discovery (of feeds);
    ``source`` is the line of the site list, or the URL that led here.
    """

    how: str
    source: str | None
    anchor: str | None = None
    rel: str | None = None


@dataclass(frozen=True, slots=True)
class RobotsView:
    """What a host's stored robots.txt says of the URL; ``fresh`` if it is not asked again."""

    verdict: Verdict
    standing: RobotsStanding
    fetched_at: float
    fresh: bool
    stale_since: float | None
    reason: str | None
    crawl_delay_s: float | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything there is to say; ``known`` is None for a URL that nothing has led to.

    ``pattern`` is that of a URL with parameters, ``copy_of`` the page that it says again.
    ``linked_out_of_scope`` is then a link that was seen, and ``nearest`` are known URLs.
    """

    url: str
    at: float
    outlook: str
    known: KnownUrl | None
    found: Finding | None
    place: FrontierPlace | None
    robots: RobotsView | None
    host: HostState | None
    capture: GoodCapture | None
    aliases: list[OtherName]
    pattern: CopyPattern | None
    copy_of: str | None
    observations: list[PastObservation]
    claims: list[HeardClaim]
    linked_out_of_scope: InLink | None
    nearest: list[str]

    def as_json(self) -> dict[str, object]:
        """The explanation as JSON values."""
        return asdict(self)


async def explain(
    connection: aiosqlite.Connection, urls: Sequence[str], rules: ExplanationRules, now: float
) -> Explanation:
    """Explain the first of these canonical URLs that the store knows, else the first."""
    known = await page.find(connection, urls)
    if known is None:
        return await _explain_unknown(connection, urls, rules, now)
    page_id = known.page_id
    host = next(iter(await hosts.load(connection, [known.host_id])))
    place = await page.frontier_place(connection, page_id)
    robots = _robots_view(host, known.url, rules, now)
    aliases = await page.other_names(connection, page_id, _ALIASES)
    pattern = await url_patterns.pattern_of(connection, page_id)
    return Explanation(
        url=known.url,
        at=now,
        outlook=_outlook(known, place, robots, host.state, rules, now) + _because(known, pattern),
        known=known,
        found=await _finding(connection, known, aliases),
        place=place,
        robots=robots,
        host=host.state,
        capture=await page.good_capture(connection, page_id),
        aliases=aliases,
        pattern=pattern,
        copy_of=await url_patterns.original_of(connection, page_id),
        observations=await page.observations(connection, page_id, _OBSERVATIONS),
        claims=await claims_tables.last_words(connection, page_id, _CLAIMS),
        linked_out_of_scope=None,
        nearest=[],
    )


async def _explain_unknown(
    connection: aiosqlite.Connection, urls: Sequence[str], rules: ExplanationRules, now: float
) -> Explanation:
    found = [(url, await hosts.find(connection, str(origin(url)))) for url in urls]
    url, host = next((each for each in found if each[1] is not None), found[0])
    link = await page.first_link_out_of_scope(connection, url)
    return Explanation(
        url=url,
        at=now,
        outlook=_outlook_unknown(link),
        known=None,
        found=None,
        place=None,
        robots=_robots_view(host, url, rules, now) if host else None,
        host=host.state if host else None,
        capture=None,
        aliases=[],
        pattern=None,
        copy_of=None,
        observations=[],
        claims=[],
        linked_out_of_scope=link,
        nearest=await lookup.nearest(connection, url),
    )


def _robots_view(host: Host, url: str, rules: ExplanationRules, now: float) -> RobotsView | None:
    record = host.robots
    if record is None:
        return None
    file = in_force(record)
    return RobotsView(
        file.verdict(rules.agent, url),
        record.standing,
        record.fetched_at,
        is_fresh(record, now, rules.robots_max_age_s),
        record.stale_since,
        record.reason,
        file.crawl_delay_s(rules.agent),
    )


async def _finding(
    connection: aiosqlite.Connection, known: KnownUrl, aliases: Sequence[OtherName]
) -> Finding | None:
    """A seed explains itself; else the first link, a redirect, or robots.txt."""
    if text := await page.seed_text(connection, known):
        return Finding("seed", text)
    link = await page.first_link(connection, known.page_id)
    if known.redirects and aliases and (link is None or link.first_seen_at > known.found_at):
        return Finding("redirect", aliases[0].url)
    if link is not None:
        how = "link" if link.role is Role.PAGE else str(link.role)
        return Finding(how, link.url, link.anchor or None, link.rel or None)
    # What is named by no link that is kept: by a robots.txt, in the head of a page, or tried.
    unlinked = {Role.SITEMAP: "robots.txt", Role.FEED: "discovery"}.get(known.role)
    return Finding(unlinked, None) if unlinked else None


def _outlook_unknown(link: InLink | None) -> str:
    if link is not None:
        return "not crawled: it was out of scope where a link to it was found"
    return "not crawled: no seed, link, sitemap or redirect has led to it"


def _outlook(
    known: KnownUrl,
    place: FrontierPlace | None,
    robots: RobotsView | None,
    host: HostState | None,
    rules: ExplanationRules,
    now: float,
) -> str:
    """What happens to a known URL next, and what stands in its way."""
    if known.held_back is not None:
        return f"not crawled: {known.held_back}"
    when = _when_due(place, now) if place else _when_again(known, rules, now)
    hindered = obstacle(robots, host, now)
    return f"{when}; {hindered}" if hindered else when


def _because(known: KnownUrl, pattern: CopyPattern | None) -> str:
    """Why a pattern is closed, of a URL that is held back for it."""
    if known.held_back != url_patterns.KIND or pattern is None:
        return ""
    return (
        f": {pattern.copies:,} of {pattern.read:,} pages like {pattern.shape} said what others "
        "say; a sample is asked for to see if that changes"
    )


def _when_due(place: FrontierPlace, now: float) -> str:
    if place.deferred is not None:
        return f"deferred to the next run ({place.deferred}), due first there"
    if place.due_at > now:
        return f"another try is due at {moment(place.due_at, now)}"
    return "due now"


def _when_again(known: KnownUrl, rules: ExplanationRules, now: float) -> str:
    alias = known.alias
    if alias is not None and alias.kind is AliasKind.PERMANENT:
        again_at = alias.at + rules.permanent_recheck_days * _DAY_S
        if again_at > now:
            return f"an alias, asked again in the first run after {moment(again_at, now)}"
    return "not due in this run; due again when the next one starts"


def obstacle(robots: RobotsView | None, host: HostState | None, now: float) -> str | None:
    """What stands in the way of asking a host for a URL, or None."""
    if robots is not None and robots.standing is RobotsStanding.UNREACHABLE:
        return f"nothing is asked for while robots.txt cannot be reached: {robots.reason}"
    if robots is not None and not robots.verdict.allowed:
        return "robots.txt forbids it, so it is recorded as refused"
    if host is not None and host.parked_until is not None and host.parked_until > now:
        return f"its host is parked until {moment(host.parked_until, now)}: {host.parked_reason}"
    return None
