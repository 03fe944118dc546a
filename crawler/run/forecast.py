"""Forecast of one page: its change rate, the value of a visit, and the time of the next one.

Read from the daemon's last estimate of the page and from the page's own rows; no estimate is made
anew.
"""

import json
from dataclasses import dataclass, replace
from itertools import takewhile
from math import expm1, inf, isnan
from typing import Final

import aiosqlite
import numpy as np
from pydantic import ValidationError

from freshet.config.loading import recorded
from freshet.config.settings import DaemonSettings, Settings
from freshet.config.sites import Sites, StoredSite
from freshet.crawler.capacities import key_of
from freshet.crawler.importance import DEFAULT, Importance, Weighing, learnt_items, speaking, terms
from freshet.crawler.network import with_kept
from freshet.crawler.run.status import record
from freshet.crawler.search_marks import read_marks
from freshet.scheduler.agenda.audit import BesideRotation
from freshet.scheduler.estimate.bayes import EmpiricalBayes
from freshet.scheduler.estimate.evidence import Evidence
from freshet.storage.entries import CappedQueue, Host, Kind, Outlook
from freshet.storage.queries import columns
from freshet.storage.queries import page as page_queries
from freshet.storage.records import Estimate
from freshet.storage.tables import hosts, near_duplicates, observations, runs

_DAY_S: Final = 86_400.0
#: Observations that are searched for the last ones of one kind in a row.
_OBSERVATIONS: Final = 40
#: Largest difference of two equal times, in seconds.
_SAME_S: Final = 1.0
#: Stands for the estimate of a page without a valuation.
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
    """The result of the last visit, which came ``in_a_row``; ``drawn`` for the audit sample.

    ``worth`` is the page's worth when it was chosen, None if it is not known.
    """

    at: float
    kind: Kind
    in_a_row: int
    drawn: bool
    worth: float | None
    reason: str | None
    detail: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PageForecast:
    """The forecast of a page by the daemon of the last run; None where a value does not apply.

    ``estimated_at`` is the time of the daemon's last valuation; None: there is none since the last
    visit, and values that follow from one are None. ``stale`` is the probability that the page has
    changed since its visit or discovery ``age_days`` ago; ``clocked``: it follows the rhythm of the
    site; ``claimed``: it follows change signals (None: there are none, or they are ignored).
    ``least_days`` and ``most_days`` are the bounds of the rules between two visits; ``excluded_by``
    is the pattern of the rule that forbids visits; the page may be visited from ``not_before``
    (Unix seconds) on. Under an index policy ``worth`` is the value of a visit at ``estimated_at``,
    and ``price`` the least value of visited pages; a rate policy plans ``planned`` visits a day.
    ``reveals`` are the new pages that a visit is expected to find. An
    ephemeral source has ``arrival_rate`` new items a day, which lose half of their worth in
    ``half_life_hours``; that and ``item_worth``, relative to what is set, are ``learnt_from`` so
    many openings (None: set). Its ``urgent`` items are fetched at once. ``capped`` is the page's
    host queue if more visits are wanted there than politeness allows. ``rotation`` says how stale
    the copies of its host were beside a rotation, ``searched`` what its changes mean to searchers.
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
    last: LastVisit | None
    least_days: float
    most_days: float | None
    excluded_by: str | None
    not_before: float | None
    worth: float | None
    reveals: float
    arrival_rate: float | None
    half_life_hours: float | None
    learnt_from: float | None
    item_worth: float
    urgent: bool
    price: float | None
    planned: float | None
    due_in_days: float | None
    capped: CappedQueue | None
    rotation: BesideRotation | None
    searched: str | None
    estimated_at: float | None


async def daemon_settings(db: aiosqlite.Connection) -> Settings | None:
    """Return the settings of the last run, if a daemon's, with what the store keeps of sites.

    None for another run, or one of a version with other settings.
    """
    text = await runs.settings_of_latest(db)
    said = json.loads(text) if text else {}
    said.setdefault("db", "")
    if not said.get("daemon", {}).get("budget"):
        return None
    try:
        return await with_kept(recorded(said), db)
    except ValidationError:
        return None


async def rate_of(connection: aiosqlite.Connection, page_id: int) -> Rate:
    """Estimate the change rate of a page from its own visits alone."""
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

    ``brief`` leaves out what reads much of the store: the origin of its importance, the rotation
    of its host, what its changes mean to searchers, and what a source's items are learnt from.
    """
    run = await runs.latest(connection)
    settings = await daemon_settings(connection)
    page = await columns.pages(connection, [page_id])
    if run is None or settings is None or not len(page):
        return None
    said, url = settings.daemon, page.url[0]
    (host,) = await hosts.load(connection, page.host_id.tolist())
    last = await _last(connection, page_id)
    noted = await observations.of_page(connection, page_id)
    # A valuation before the last visit is outdated.
    is_valued = noted is not None and (last is None or noted.visited_at >= last.at - _SAME_S)
    valued = noted if noted is not None and is_valued else _NOT_VALUED
    captured, is_gone = bool(page.captured[0]), bool(page.gone[0])
    since = float((page.asked if is_gone else page.since)[0])
    rate = await rate_of(connection, page_id)
    if noted is not None and noted.rate > 0:
        rate = Rate(noted.rate, noted.low, noted.high, rate.compared)
    hazard = rate.per_day * (now - since) / _DAY_S
    if is_valued:
        hazard = valued.hazard + rate.per_day * (now - valued.at) / _DAY_S
    outlook = await runs.latest_outlook(connection, run.run_id)
    capped = () if outlook is None else outlook.capped
    place = await page_queries.frontier_place(connection, page_id)
    not_before = valued.not_before
    if place is not None and place.attempt:
        not_before = max(place.due_at, not_before or place.due_at)
    due_at = _due_at(noted, None if is_valued else last)
    if due_at is not None:
        due_at = max(due_at, not_before or due_at)
    names = ("never", "least_days", "most_days")
    sites = Sites(settings.sites)
    learnt = None
    if valued.arrival_rate is not None and not brief:
        learnt = await _learnt(connection, page_id, url, settings, sites)
    excluding, least, most = (sites.ruling(url, name) for name in names)
    return PageForecast(
        budget=said.budget,
        policy=said.policy,
        captured=captured,
        importance=await _importance(
            connection, page_id, url, host=host, said=said, sites=sites, noted=noted, brief=brief
        ),
        rate=rate,
        age_days=max(0.0, now - since) / _DAY_S,
        stale=-expm1(-hazard) if captured else 0.0,
        clocked=valued.clocked > 0,
        claimed=valued.claimed,
        last=last if last is None or valued.paid is None else replace(last, worth=valued.paid),
        least_days=0.0 if least is None else least.least_days or 0.0,
        most_days=None if most is None else most.most_days,
        excluded_by=excluding.match if excluding is not None and excluding.never else None,
        not_before=not_before if not_before is not None and not_before > now else None,
        worth=valued.worth,
        reveals=valued.reveals if captured else 0.0,
        arrival_rate=valued.arrival_rate,
        half_life_hours=valued.half_life_hours,
        learnt_from=None if learnt is None else learnt[0],
        item_worth=1.0 if learnt is None else learnt[1],
        urgent=valued.urgent,
        price=None if outlook is None else outlook.price,
        planned=valued.planned if captured else None,
        due_in_days=None if due_at is None else max(0.0, due_at - now) / _DAY_S,
        capped=next((it for it in capped if it.queue == key_of(host)), None),
        rotation=None if brief else await _rotation(connection, host.origin, outlook, now),
        searched=None
        if brief
        else (await read_marks(connection)).said(
            page_id, host.host_id, now, decides=said.policy == "search_quality"
        ),
        estimated_at=valued.at if is_valued else None,
    )


async def _rotation(
    connection: aiosqlite.Connection, origin: str, outlook: Outlook | None, now: float
) -> BesideRotation | None:
    """Return how stale the copies of a host were beside a rotation.

    Nothing is said of the time after the last outlook: without a daemon nobody visits in turn.
    """
    until = now if outlook is None else min(now, outlook.at)
    return dict((await record(connection, until))[1]).get(origin)


def _due_at(noted: Estimate | None, later: LastVisit | None) -> float | None:
    """Return when a visit is due; after a ``later`` one as long as after that of the valuation."""
    if noted is None or noted.due_at is None or later is None:
        return noted.due_at if noted else None
    return None if noted.paid is None else later.at + noted.due_at - noted.visited_at


async def _last(connection: aiosqlite.Connection, page_id: int) -> LastVisit | None:
    """Return the last visit of a page, without its worth."""
    past = await page_queries.observations(connection, page_id, _OBSERVATIONS)
    if not past:
        return None
    last, drawn = past[0], await observations.was_drawn(connection, page_id)
    in_a_row = sum(1 for _ in takewhile(lambda seen: seen.kind == last.kind, past))
    return LastVisit(
        at=last.at,
        kind=last.kind,
        in_a_row=in_a_row,
        drawn=drawn,
        worth=None,
        reason=last.reason,
        detail=last.detail,
    )


async def _learnt(
    connection: aiosqlite.Connection, page_id: int, url: str, settings: Settings, sites: Sites
) -> tuple[float, float] | None:
    """Return what a source's items were learnt from, and their worth; None: it is said or set."""
    ids, none = np.array([page_id]), np.zeros(1)
    listed = Weighing("list", await runs.load(connection)).half_lives(ids, [url])
    if 0 < terms([url], none.astype(np.intp), none, sites, listed).half_life_days[0] < inf:
        return None
    _, worth, opens = (await learnt_items(connection, settings.ephemeral)).of(ids)
    return None if isnan(opens[0]) else (float(opens[0]), float(worth[0]))


async def _importance(
    connection: aiosqlite.Connection, page_id: int, url: str, *, host: Host, said: DaemonSettings,
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
    copies, is_whole = await near_duplicates.sharing(connection, page_id)
    parts = 1 if is_whole else 1 + copies
    listed = await runs.load(connection)
    row = int(speaking([url], np.zeros(1, np.intp), [host.origin], listed)[0])
    seed = listed[row] if row >= 0 and said.importance != "constant" else None
    site = DEFAULT if seed is None else seed.importance
    value = site / parts if noted is None else noted.importance
    origin = "default" if seed is None else "site list"
    if said.importance == "constant":
        return Importance(value, "constant", near_duplicates=copies, is_whole=is_whole)
    is_divided = said.importance != "list" and site > 0
    return Importance(
        value=value,
        origin=origin,
        source=None if seed is None else seed.text,
        site=site,
        divided_by=said.importance if is_divided else None,
        share=value * parts / site if is_divided else 1.0,
        near_duplicates=copies,
        is_whole=is_whole,
    )
