"""A page's prospects as the last run's daemon has them: rate, worth, next look.

Worked out from the store, by going through the daemon's learning again. The change rate is that by
the page's own history under its site's prior; what a look is worth may go by the site's clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from math import inf
from typing import Final

import aiosqlite
import numpy as np

from freshet.crawler.commands.budget import parsed
from freshet.crawler.commands.recollecting import LastOrder, hosts_of, order_of, terms_of
from freshet.crawler.commands.revelations import Revelations, revelations
from freshet.crawler.commands.sources.exchange import costs_of
from freshet.crawler.commands.sources.importance import Importance
from freshet.crawler.commands.sources.limits import key_of, limits_of
from freshet.crawler.commands.sources.page_rules import ruling
from freshet.crawler.commands.sources.weighing import Weighing, weigh
from freshet.crawler.commands.valuing import Valuing, Watched, valuing
from freshet.scheduler.agenda.ephemeral import decays
from freshet.scheduler.agenda.history import News, stored_news
from freshet.scheduler.agenda.pages import Terms, Watchlist
from freshet.scheduler.arrays import Bools, rows_among
from freshet.storage.entries import CappedLane, Host, Outlook
from freshet.storage.queries import columns as columns_queries
from freshet.storage.queries import page as page_queries
from freshet.storage.queries.columns import WatchedPages
from freshet.storage.queries.page import FrontierPlace, PastObservation
from freshet.storage.records import Alias, DueUrl, Observation, Visit
from freshet.storage.tables import hosts as hosts_tables
from freshet.storage.tables import observations, runs
from freshet.storage.words import AliasKind, Kind

_DAY_S: Final = 86_400.0
_DAY_HOURS: Final = 24.0
#: Observations that are gone through for what the last ones in a row were.
_OBSERVATIONS: Final = 40


@dataclass(frozen=True, slots=True)
class Rate:
    """Changes a day, with the interval that holds them at 90 %, from so many comparisons."""

    per_day: float
    lower: float
    upper: float
    compared: int


@dataclass(frozen=True, slots=True)
class LastVisit:
    """What the last visit found, how often that ``in_a_row``, and whether it was ``drawn``.

    ``worth`` is what the last look was worth when it was taken, None where that has no meaning.
    """

    at: float
    kind: Kind
    in_a_row: int
    drawn: bool
    worth: float | None
    reason: str | None
    detail: str | None


@dataclass(frozen=True, slots=True)
class Prospect:
    """A page as the daemon of the last run sees it.

    ``stale`` is the probability that the copy has changed since it was looked at, ``age_days`` ago,
    or the page found; ``clocked`` says whether that goes by the clock of its site, ``claimed`` by
    what is claimed of the page (None: nothing is, or nobody listens). ``least_days``
    and ``most_days`` are between looks by the rules; ``excluded_by`` is the pattern of the rule
    by which the page is not asked for, ``not_before`` (Unix seconds) when it may be. Under an
    index policy ``worth`` is what a look is worth now, and ``price`` what looks are taken at (at
    its host's pages, if that is capped); under a rate policy ``planned`` are the looks a day.
    ``reveals`` is how many new pages a look is expected to reveal; ``arrival_rate`` how many items
    appear a day, if it is taken for an ephemeral source, ``half_life_hours`` how fast they fade;
    ``urgent`` is an item of such a source that is fetched at once. ``due_in_days`` follows. All
    are None where they do not apply. ``capped`` is the page's host if it is at its cap.
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
    urgent: bool
    price: float | None
    planned: float | None
    due_in_days: float | None
    capped: CappedLane | None


@dataclass(frozen=True, slots=True)
class _Records:
    """What the store knows that bears upon the page in ``row`` of ``pages``."""

    order: LastOrder
    pages: WatchedPages
    row: int
    hosts: dict[int, Host]
    weighing: Weighing
    news: News
    past: list[PastObservation]
    place: FrontierPlace | None
    drawn: bool
    outlook: Outlook | None


async def prospect(connection: aiosqlite.Connection, page_id: int, now: float) -> Prospect | None:
    """What the last run's daemon thinks of a page; None if that was no daemon, or holds it back."""
    found = await _records(connection, page_id)
    return None if found is None else await _prospect(connection, found, now)


async def _records(connection: aiosqlite.Connection, page_id: int) -> _Records | None:
    run, text = await runs.latest(connection), await runs.settings_of_latest(connection)
    pages = await columns_queries.pages(connection)
    rows = np.flatnonzero(pages.page_id == page_id)
    order = order_of(text)
    if run is None or order is None or not len(rows):
        return None
    known = await hosts_tables.load(connection, np.unique(pages.host_id).tolist())
    return _Records(
        order, pages, int(rows[0]), {host.host_id: host for host in known},
        await weigh(connection, order.daemon.importance),
        await stored_news(connection, partial(rows_among, pages.page_id)),
        await page_queries.observations(connection, page_id, _OBSERVATIONS),
        await page_queries.frontier_place(connection, page_id),
        await observations.was_drawn(connection, page_id),
        await runs.latest_outlook(connection, run.run_id),
    )  # fmt: skip


async def _prospect(connection: aiosqlite.Connection, it: _Records, now: float) -> Prospect:
    pages, row, day, order = it.pages, it.row, now / _DAY_S, it.order.daemon
    host_ids, codes, origins = hosts_of(pages, it.hosts)
    in_order = [it.hosts[host_id] for host_id in host_ids.tolist()]
    on_terms = terms_of(pages, codes, origins, it.weighing, order)
    looks, page = it.news.looks, _watched(it, on_terms)
    columns = Watched(codes, on_terms.area, on_terms.importance, pages.found_at / _DAY_S)
    known = await revelations(connection, pages, codes, on_terms, looks)
    reveals = Revelations(
        *known, row, order.new_page_worth, it.order.takes_in,
        int(pages.captured.sum()) / parsed(order.budget), float(known[0].existing(day)[row]),
        it.order.exchange, costs_of(in_order, it.order.spacing.delay_s),
    )  # fmt: skip
    value = valuing(order.policy, parsed(order.budget), columns, it.news, page, reveals)
    limits = limits_of(in_order, {}, it.order.spacing)
    capped = _capped(it)
    same_lane = limits.lane[codes] == limits.lane[codes[row]]
    price = _price(it, value, same_lane if capped is not None else None)
    planned = value.planned(parsed(order.budget), limits.lane[codes], limits.per_day)
    worth, reveal = value.worth(day), reveals.on(day)
    lower, upper = value.learning.credible(row)
    weight = float(on_terms.importance[row])
    excluding = ruling(pages.url[row], order.rules, "never")
    most = float(on_terms.most_days[row])
    free_at = _free_at(page)
    return Prospect(
        budget=order.budget,
        policy=order.policy,
        captured=_number(page, "captured") > 0,
        importance=it.weighing.told(
            int(pages.page_id[row]), pages.url[row], origins[int(codes[row])], weight, order
        ),
        rate=Rate(
            value.learning.rate(row), lower, upper, int((looks.compared & (looks.row == row)).sum())
        ),
        age_days=max(0.0, day - _number(page, "since")),
        stale=value.stale(day),
        clocked=value.is_clocked(day),
        claimed=value.is_claimed(),
        last=_last(it, value.worth_at_last_look()),
        least_days=float(on_terms.least_days[row]),
        most_days=None if most == inf else most,
        excluded_by=excluding.match if excluding is not None and excluding.never else None,
        not_before=free_at * _DAY_S if free_at > day else None,
        worth=None if worth == inf else worth,
        reveals=reveal.pages if pages.captured[row] else 0.0,
        arrival_rate=reveal.rate or None,
        half_life_hours=_half_life_hours(it, on_terms) if reveal.rate else None,
        urgent=reveal.is_urgent,
        price=price,
        planned=planned,
        due_in_days=_due_in_days(value, day, free_at, price, planned),
        capped=capped,
    )


def _watched(it: _Records, on_terms: Terms) -> Watchlist:
    """The page alone on a watchlist, its last visits settled as a daemon would."""
    row, pages = it.row, it.pages
    page, own = Watchlist(it.order.recheck_days), slice(row, row + 1)
    page.add(
        pages.page_id[own], importance=on_terms.importance[own], least=on_terms.least_days[own],
        most=on_terms.most_days[own], since=pages.found_at[own] / _DAY_S,
        captured=pages.captured[own], not_before=np.full(1, -inf),
    )  # fmt: skip
    page_id, url = int(pages.page_id[row]), pages.url[row]
    due = DueUrl(page_id, url, url, int(pages.host_id[row]), 0.0)
    retry_at = it.place.due_at if it.place is not None and it.place.attempt else None
    for seen in reversed(it.past):
        observation = Observation(page_id, seen.at, seen.kind)
        is_last = seen is it.past[0]
        alias = _alias(pages, row) if is_last and seen.kind is Kind.REDIRECTED else None
        page.settle(0, Visit(due, observation, retry_at=retry_at if is_last else None, alias=alias))
    return page


def _half_life_hours(it: _Records, on_terms: Terms) -> float:
    decay = decays(on_terms.half_life_days[it.row : it.row + 1], it.order.exchange)
    return float(np.log(2) / decay[0]) * _DAY_HOURS


def _alias(pages: WatchedPages, row: int) -> Alias | None:
    """What kind of another page's name it is, if it is one; whose does not matter here."""
    kind = AliasKind.PERMANENT if pages.permanent[row] else AliasKind.TEMPORARY
    return Alias("", kind) if pages.alias[row] else None


def _number(page: Watchlist, column: str) -> float:
    return float(np.asarray(page[column], np.float64)[0])


def _free_at(page: Watchlist) -> float:
    """The day from which on the page may be asked for."""
    if not _number(page, "captured"):
        return _number(page, "not_before")
    return max(_number(page, "not_before"), _number(page, "since") + _number(page, "least"))


def _due_in_days(
    value: Valuing, day: float, free_at: float, price: float | None, planned: float | None
) -> float | None:
    """When a look is worth the price, or due on average, but not before it may be taken."""
    if planned:
        last = float(value.learning.table().last_crawl[value.row])
        due: float | None = max(0.0, last + 1 / planned - day)
    else:
        due = None if price is None else value.due_at_price(price, day)
    return None if due is None else max(due, free_at - day)


def _last(it: _Records, worth: float | None) -> LastVisit | None:
    if not it.past:
        return None
    last = it.past[0]
    in_a_row = sum(1 for _ in takewhile(lambda seen: seen.kind is last.kind, it.past))
    return LastVisit(last.at, last.kind, in_a_row, it.drawn, worth, last.reason, last.detail)


def _price(it: _Records, value: Valuing, lane: Bools | None) -> float | None:
    """What looks are taken at: as noted, but those of a ``lane`` at its cap at more."""
    if lane is not None:
        return value.usual_worth(lane)
    noted = None if it.outlook is None else it.outlook.price
    return value.usual_worth(np.ones(len(it.pages), np.bool_)) if noted is None else noted


def _capped(it: _Records) -> CappedLane | None:
    key = key_of(it.hosts[int(it.pages.host_id[it.row])])
    lanes: Sequence[CappedLane] = () if it.outlook is None else it.outlook.capped
    return next((lane for lane in lanes if lane.lane == key), None)
