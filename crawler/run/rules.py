"""The rules of a run, from its settings and their ``[[sites]]`` tables."""

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import UTC
from typing import TypeVar, cast
from zoneinfo import ZoneInfo

from freshet.config.settings import Settings
from freshet.config.sites import Sites
from freshet.crawler.admission.admit import HasRoom, ScopeKind
from freshet.crawler.frontier.politeness import Hours, PolitenessRules, RulesAt
from freshet.crawler.urls import site_key
from freshet.storage.entries import Channel
from freshet.storage.tables import pages
from freshet.storage.tables.url_patterns import CopyRule

T = TypeVar("T")


def copy_rule(settings: Settings) -> CopyRule:
    """Return the rule for URL patterns that lead only to copies."""
    traps = settings.traps
    return CopyRule(traps.min_copy_urls, traps.copy_share, traps.min_copy_pairs > 0)


def politeness_rules(settings: Settings) -> PolitenessRules:
    """Return the politeness rules."""
    return PolitenessRules(**settings.politeness.model_dump(exclude={"key", "groups"}))


def hours_of(text: str, zone: str | None) -> Hours:
    """Return hours written as ``22:00-06:00``, in a time zone (None: UTC)."""
    start, end = (
        60 * int(hour) + int(minute or 0)
        for hour, _, minute in (each.partition(":") for each in text.split("-"))
    )
    return Hours(start, min(end, 1_440), ZoneInfo(zone) if zone else UTC)


def rules_at(settings: Settings) -> RulesAt:
    """Return a function that applies the [[sites]] tables of an origin to politeness rules."""
    sites = Sites(settings.sites)

    def at(rules: PolitenessRules, origin: str) -> PolitenessRules:
        it = sites.at(origin)
        return replace(
            rules,
            delay_s=rules.delay_s if it.delay_s is None else it.delay_s,
            connections_per_host=it.connections_per_host or rules.connections_per_host,
            hours=() if it.active_hours is None else (hours_of(it.active_hours, it.zone),),
        )

    return at


def key_at(settings: Settings, key: str, everywhere: T) -> Callable[[str], T]:
    """Return a function for a [[sites]] key at a URL; ``everywhere`` is the default value."""
    sites = Sites([each for each in settings.sites if getattr(each, key) is not None])

    def at(url: str) -> T:
        table = sites.ruling(url, key)
        return everywhere if table is None else cast(T, getattr(table, key))

    return at if sites else lambda _url: everywhere


def depth_at(settings: Settings) -> Callable[[str], int]:
    """Return a function for the most links from a seed to a URL; 0 is no limit."""
    return key_at(settings, "max_depth", settings.crawl.max_depth)


def scope_at(settings: Settings) -> Callable[[str], ScopeKind]:
    """Return a function for the scope of a seed."""
    return key_at(settings, "scope", settings.crawl.scope)


def counts_at(settings: Settings) -> Callable[[str], Collection[Channel]]:
    """Return a function for the kinds of difference that count as a change at a URL."""
    return key_at(settings, "counts", settings.change.counts)


def never_at(settings: Settings) -> Callable[[str], bool] | None:
    """Return a function that tests whether a URL is excluded, or None if none is."""
    tables = [each for each in settings.sites if each.never is not None]
    sites = Sites(tables)

    def at(url: str) -> bool:
        table = sites.ruling(url, "never")
        return table is not None and bool(table.never)

    return at if any(each.never for each in tables) else None


def nowhere(_url: str) -> bool:
    """Return False: no URL is excluded."""
    return False


def take_over_pages(
    connection: sqlite3.Connection, settings: Settings, *, lasting: bool, lift: bool = True
) -> HasRoom | None:
    """Apply the settings to the stored pages; return :func:`room_of` the sites.

    The store still reflects the former settings. With ``lift``, pages that were too deep, or behind
    nofollow links only, are admitted if the settings allow them now.
    """
    own = [(each.match, each.scope) for each in settings.sites if each.scope is not None]
    pages.take_over_scope(connection, [("", settings.crawl.scope), *own])
    # A daemon excludes such pages itself, because a reload may bring them back.
    pages.hold_never(connection, None if lasting else never_at(settings))
    if lift:
        pages.lift_depth(connection, depth_at(settings))
        if settings.crawl.follow_nofollow:
            pages.lift_nofollow(connection)
    has_room = room_of(settings)
    pages.hold_beyond(connection, has_room)
    return has_room


def room_of(settings: Settings) -> HasRoom | None:
    """Return a function that tests whether a site may have one more page; None: no limit is set.

    The limit of a table applies to each host. Seeds are always admitted, and count.
    """
    sites = Sites([each for each in settings.sites if each.max_pages is not None])
    # Store hashes: a store may have a million URLs.
    taken = defaultdict[tuple[str, str], set[int]](set)

    def has_room(url: str, depth: int) -> bool:
        table = sites.ruling(url, "max_pages")
        if table is None or not table.max_pages:
            return True
        known, page = taken[table.match, site_key(url)], hash(url)
        if depth and page not in known and len(known) >= table.max_pages:
            return False
        known.add(page)
        return True

    return has_room if sites else None
