"""Forecast of one page: its change rate, the value of a visit, and the time of the next one.

It is read from the daemon's last estimate of the page and from the page's rows; nothing is
estimated again.
"""

import json
from dataclasses import dataclass, replace
from itertools import takewhile
from math import expm1, inf, isnan
from typing import Final, Literal, TypeAlias

import aiosqlite
import numpy as np
from pydantic import ValidationError

from freshet.config.loading import recorded
from freshet.config.settings import DaemonSettings, Settings
from freshet.config.sites import Sites, StoredSite
from freshet.crawler.run.capacities import key_of
from freshet.crawler.run.importance import (
    DEFAULT,
    Importance,
    ImportanceData,
    interests,
    learnt_items,
    seed_rows,
    terms,
)
from freshet.crawler.run.network import with_kept
from freshet.scheduler import policy
from freshet.scheduler.estimate.bayes import EmpiricalBayes
from freshet.scheduler.estimate.evidence import Evidence
from freshet.scheduler.policies.greedy_index import SiteClock
from freshet.storage.entries import CappedQueue, Host, Kind, Outlook
from freshet.storage.queries import columns
from freshet.storage.queries import page as page_queries
from freshet.storage.records import Estimate, StoredSeed
from freshet.storage.tables import hosts, near_duplicates, observations, runs

_DAY_S: Final = 86_400.0
#: Whether signals report every change: as learnt, or as set; "doubted": set, but not confirmed by
#: visits; "not used": the policy judges signals by itself.
Completeness: TypeAlias = Literal["learnt", "set", "doubted", "not used"]
#: Observations that are read to count the last ones of one kind in a row.
_OBSERVATIONS: Final = 40
#: Two times are equal up to this difference, in seconds.
_SAME_S: Final = 1.0
#: The estimate of a page without a valuation.
_NOT_VALUED: Final = Estimate(
    page_id=0, at=0.0, visited_at=0.0, rate=0.0, low=0.0, high=0.0, hazard=0.0, importance=0.0
)


@dataclass(frozen=True, slots=True)
class Rate:
    """Changes a day with their 90 % interval, from ``compared`` comparisons."""

    per_day: float
    lower: float
    upper: float
    compared: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LastVisit:
    """The last visit; its kind occurred ``in_a_row``. ``sampled``: it was an audit.

    ``value`` is the value of the visit when it was chosen, or None if that is unknown.
    """

    at: float
    kind: Kind
    in_a_row: int
    sampled: bool
    value: float | None
    reason: str | None
    detail: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PageForecast:
    """The forecast of a page by the daemon of the last run; None where a value does not apply.

    ``estimated_at`` is the time of the daemon's last valuation, or None if the page was visited
    since; then all values that depend on one are None. ``stale`` is the probability that the page
    has changed since its visit or discovery ``age_days`` ago. ``clocked``: it follows the rhythm of
    its site. ``claimed``: it follows change signals (None: it has none, or they are ignored).
    ``signals`` is whether they report every change (None: neither learnt nor set).

    ``least_days`` and ``most_days`` limit the interval between two visits. ``excluded_by`` is the
    match of the [[sites]] table that forbids visits. The page may be visited from ``not_before``
    (Unix seconds) on. Under an index policy, ``value`` is the value of a visit at ``estimated_at``,
    and ``price`` the least value of visited pages; a rate policy plans ``planned`` visits a day. A
    visit is expected to find ``reveals`` new pages.

    An ephemeral source has ``arrival_rate`` new items a day, which lose half of their value in
    ``half_life_hours``; that and ``item_value``, relative to the setting, are ``learnt_from`` this
    many clicks (None: set). Its ``urgent`` items are fetched at once. ``capped`` is the page's host
    queue if politeness allows fewer visits there than are wanted. ``searched`` describes what its
    changes mean to searchers.
    """

    budget: str
    policy: str
    captured: bool
    importance: Importance
    rate: Rate
    age_days: float
    stale: float
    clocked: bool
    claimed: bool | None
    signals: Completeness | None
    last: LastVisit | None
    least_days: float
    most_days: float | None
    excluded_by: str | None
    not_before: float | None
    value: float | None
    reveals: float
    arrival_rate: float | None
    half_life_hours: float | None
    learnt_from: float | None
    item_value: float
    urgent: bool
    price: float | None
    planned: float | None
    due_in_days: float | None
    capped: CappedQueue | None
    searched: str | None
    estimated_at: float | None


async def daemon_settings(db: aiosqlite.Connection) -> Settings | None:
    """Return the settings of the last run if it is a daemon's, with stored settings of sites.

    Return None for a crawl, or for a run of a version with other settings.
    """
    text = await runs.settings_of_latest(db)
    stored = json.loads(text) if text else {}
    stored.setdefault("db", "")
    if not stored.get("daemon", {}).get("budget"):
        return None
    try:
        return await with_kept(recorded(stored), db)
    except ValidationError:
        return None


async def rate_of(connection: aiosqlite.Connection, page_id: int) -> Rate:
    """Estimate the change rate of a page from its own visits only."""
    visits = await columns.visit_columns(connection, page_id)
    at = visits.at / _DAY_S
    spans = np.diff(at, prepend=at[:1])
    tells = visits.compared & (spans > 0)
    learner, count = EmpiricalBayes(1), int(tells.sum())
    one, changes = np.zeros(count, np.intp), visits.changed[tells].astype(np.int64)
    learner.observe(Evidence(one, at[tells], spans[tells], changes, np.zeros(count, np.bool_)))
    (lower,), (upper,) = learner.credible_interval()
    rate = float(learner.change_rate()[0])
    return Rate(rate, float(lower), float(upper), int(visits.compared.sum()))


async def forecast_page(
    connection: aiosqlite.Connection, page_id: int, now: float, *, brief: bool = False
) -> PageForecast | None:
    """Forecast a page; None if the last run was a crawl, or the page is held back.

    ``brief`` omits values that need much of the store: the origin of the importance, the meaning of
    changes to searchers, and the source of an ephemeral source's values.
    """
    run = await runs.latest(connection)
    settings = await daemon_settings(connection)
    page = await columns.pages(connection, [page_id])
    if run is None or settings is None or not len(page):
        return None
    daemon, url, sites = settings.daemon, page.url[0], Sites(settings.sites)
    (host,) = await hosts.load(connection, page.host_id.tolist())
    known = _Known(
        await _last(connection, page_id),
        await observations.of_page(connection, page_id),
        captured=bool(page.captured[0]),
    )
    valued = known.valued
    since = float((page.asked if page.gone[0] else page.since)[0])
    rate = known.better(await rate_of(connection, page_id))
    outlook = await runs.latest_outlook(connection, run.run_id)
    not_before = await _not_before(connection, page_id, valued)
    excluded_by, least_days, most_days = _bounds(sites, url)
    learnt_from, item_value = None, 1.0
    if valued.arrival_rate is not None and not brief:
        learnt_from, item_value = await _learnt(connection, page_id, url, settings, sites)
    return PageForecast(
        budget=daemon.budget,
        policy=daemon.policy,
        captured=known.captured,
        importance=await _importance(
            connection, page_id, url, host=host, daemon=daemon, sites=sites, noted=known.noted,
            brief=brief,
        ),
        rate=rate,
        age_days=max(0.0, now - since) / _DAY_S,
        stale=known.stale(rate, since, now),
        clocked=valued.clocked > 0,
        claimed=valued.claimed,
        signals=_signals(sites, url, daemon.policy, claimed=valued.claimed),
        last=known.paid,
        least_days=least_days,
        most_days=most_days,
        excluded_by=excluded_by,
        not_before=_if_later(not_before, now),
        value=valued.worth,
        reveals=known.reveals,
        arrival_rate=valued.arrival_rate,
        half_life_hours=valued.half_life_hours,
        learnt_from=learnt_from,
        item_value=item_value,
        urgent=valued.urgent,
        price=_price(outlook),
        planned=known.planned,
        due_in_days=known.due_in_days(not_before, now),
        capped=_capped(outlook, key_of(host)),
        searched=None if brief else await _searched(connection, page_id, host, daemon, now),
        estimated_at=valued.at if known.is_valued else None,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Known:
    """The last visit of a page and its last valuation, if there are any."""

    last: LastVisit | None
    noted: Estimate | None
    captured: bool

    @property
    def is_valued(self) -> bool:
        """True if the valuation is not older than the last visit."""
        noted, last = self.noted, self.last
        return noted is not None and (last is None or noted.visited_at >= last.at - _SAME_S)

    @property
    def valued(self) -> Estimate:
        """The current valuation, or :data:`_NOT_VALUED`."""
        return self.noted if self.noted is not None and self.is_valued else _NOT_VALUED

    @property
    def paid(self) -> LastVisit | None:
        """The last visit with its value, if that is known."""
        paid = self.valued.paid
        return self.last if self.last is None or paid is None else replace(self.last, value=paid)

    @property
    def reveals(self) -> float:
        """The number of new pages that a visit is expected to find."""
        return self.valued.reveals if self.captured else 0.0

    @property
    def planned(self) -> float | None:
        """The visits a day that a rate policy plans."""
        return self.valued.planned if self.captured else None

    def better(self, own: Rate) -> Rate:
        """Return the rate that the daemon learnt, or else the page's own."""
        noted = self.noted
        if noted is None or noted.rate <= 0:
            return own
        return Rate(noted.rate, noted.low, noted.high, own.compared)

    def stale(self, rate: Rate, since: float, now: float) -> float:
        """Return the probability that the page has changed; 0 before its first capture."""
        if not self.captured:
            return 0.0
        hazard = rate.per_day * (now - since) / _DAY_S
        if self.is_valued:
            hazard = self.valued.hazard + rate.per_day * (now - self.valued.at) / _DAY_S
        return -expm1(-hazard)

    def due_in_days(self, not_before: float | None, now: float) -> float | None:
        """Return the days until the next visit, which is not before a time."""
        due_at = _due_at(self.noted, None if self.is_valued else self.last)
        if due_at is None:
            return None
        return max(0.0, max(due_at, not_before or due_at) - now) / _DAY_S


def _if_later(time: float | None, now: float) -> float | None:
    return time if time is not None and time > now else None


async def _not_before(
    connection: aiosqlite.Connection, page_id: int, valued: Estimate
) -> float | None:
    """Return the time before which a page is not visited: by its retry, or its valuation."""
    place = await page_queries.frontier_place(connection, page_id)
    if place is None or not place.attempt:
        return valued.not_before
    return max(place.due_at, valued.not_before or place.due_at)


async def _seed(connection: aiosqlite.Connection, url: str, host: Host) -> StoredSeed | None:
    """Return the line of the site list that covers a page."""
    listed = await runs.load(connection)
    row = int(seed_rows([url], np.zeros(1, np.intp), [host.origin], listed)[0])
    return listed[row] if row >= 0 else None


def _bounds(sites: Sites, url: str) -> tuple[str | None, float, float | None]:
    """Return the match that forbids visits, and the shortest and longest interval in days."""
    excluding, least, most = (sites.ruling(url, it) for it in ("never", "least_days", "most_days"))
    return (
        excluding.match if excluding is not None and excluding.never else None,
        0.0 if least is None else least.least_days or 0.0,
        None if most is None else most.most_days,
    )


def _signals(sites: Sites, url: str, name: str, *, claimed: bool | None) -> Completeness | None:
    """Return whether signals are considered to report every change of a page."""
    table = sites.ruling(url, "signals")
    is_set = table is not None and table.signals == "complete"
    if isinstance(policy.load(name), SiteClock):
        return "not used" if is_set else None
    if not claimed:
        return "doubted" if is_set else None
    return "set" if is_set else "learnt"


def _price(outlook: Outlook | None) -> float | None:
    return None if outlook is None else outlook.price


def _capped(outlook: Outlook | None, queue: str) -> CappedQueue | None:
    """Return the host queue if politeness allows fewer visits there than are wanted."""
    capped = () if outlook is None else outlook.capped
    return next((it for it in capped if it.queue == queue), None)


async def _searched(
    connection: aiosqlite.Connection, page_id: int, host: Host, daemon: DaemonSettings, now: float
) -> str | None:
    """Return a sentence on what the changes of a page mean to searchers."""
    if (known := interests()) is None:
        return None
    decides = daemon.policy == "search_quality"
    return await known.told(connection, page_id, host.host_id, now, decides=decides)


def _due_at(noted: Estimate | None, later: LastVisit | None) -> float | None:
    """Return when a visit is due; a ``later`` visit gets the same delay as the valued one."""
    if noted is None or noted.due_at is None or later is None:
        return noted.due_at if noted else None
    return None if noted.paid is None else later.at + noted.due_at - noted.visited_at


async def _last(connection: aiosqlite.Connection, page_id: int) -> LastVisit | None:
    """Return the last visit of a page, without its value."""
    past = await page_queries.observations(connection, page_id, _OBSERVATIONS)
    if not past:
        return None
    last, drawn = past[0], await observations.was_drawn(connection, page_id)
    in_a_row = sum(1 for _ in takewhile(lambda seen: seen.kind == last.kind, past))
    return LastVisit(
        at=last.at,
        kind=last.kind,
        in_a_row=in_a_row,
        sampled=drawn,
        value=None,
        reason=last.reason,
        detail=last.detail,
    )


async def _learnt(
    connection: aiosqlite.Connection, page_id: int, url: str, settings: Settings, sites: Sites
) -> tuple[float | None, float]:
    """Return the clicks that a source's items were learnt from (None: set), and their value."""
    ids, none = np.array([page_id]), np.zeros(1)
    listed = ImportanceData("list", await runs.load(connection)).half_lives(ids, [url])
    if 0 < terms([url], none.astype(np.intp), none, sites, listed).half_life_days[0] < inf:
        return None, 1.0
    _, worth, opens = (await learnt_items(connection, settings.ephemeral)).of(ids)
    return (None, 1.0) if isnan(opens[0]) else (float(opens[0]), float(worth[0]))


async def _importance(
    connection: aiosqlite.Connection, page_id: int, url: str, *, host: Host, daemon: DaemonSettings,
    sites: Sites, noted: Estimate | None, brief: bool,
) -> Importance:  # fmt: skip
    """Return the importance of a page, and its origin."""
    table = sites.ruling(url, "importance")
    if table is not None and table.importance is not None:
        origin = "browser" if isinstance(table, StoredSite) else "table"
        valued = None if noted is None else noted.importance
        return Importance(table.importance, origin, table.match, valued=valued)
    if brief and noted is not None:
        return Importance(noted.importance, "as the daemon valued it")
    if brief:
        return Importance(DEFAULT, "assumed until the daemon values it")
    return await _of_site(connection, page_id, url, host=host, daemon=daemon, noted=noted)


async def _of_site(
    connection: aiosqlite.Connection, page_id: int, url: str, *, host: Host, daemon: DaemonSettings,
    noted: Estimate | None,
) -> Importance:  # fmt: skip
    """Return the importance of a page by its site's importance and its share of it."""
    copies, is_whole = await near_duplicates.sharing(connection, page_id)
    parts = 1 if is_whole else 1 + copies
    seed = None if daemon.importance == "constant" else await _seed(connection, url, host)
    site = DEFAULT if seed is None else seed.importance
    value = site / parts if noted is None else noted.importance
    origin, source = ("default", None) if seed is None else ("site list", seed.text)
    if daemon.importance == "constant":
        return Importance(value, "constant", near_duplicates=copies, is_whole=is_whole)
    is_divided = daemon.importance != "list" and site > 0
    return Importance(
        value=value,
        origin=origin,
        source=source,
        site=site,
        divided_by=daemon.importance if is_divided else None,
        share=value * parts / site if is_divided else 1.0,
        near_duplicates=copies,
        is_whole=is_whole,
    )
