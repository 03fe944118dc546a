"""What the daemon of the last run went by, read from the store: settings, pages, terms."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from math import inf
from typing import Final

import aiosqlite
import numpy as np

from freshet.config.settings import Daemon, Ephemeral
from freshet.crawler.capacities import Spacing, costs_of, exchange_of, key_of, limits_of
from freshet.crawler.importance import Areas, Importance, Weighing, ruling, terms, weigh
from freshet.crawler.run.daemon import refresher_of
from freshet.crawler.run.orders import parsed
from freshet.scheduler import policy as policy_scheduler
from freshet.scheduler.agenda.ephemeral import Exchange, decays, fading
from freshet.scheduler.agenda.history import News, stored_news
from freshet.scheduler.agenda.new_pages import Discovering, recall
from freshet.scheduler.agenda.pages import Watchlist
from freshet.scheduler.agenda.ranker import Refresher
from freshet.scheduler.agenda.rankers import Guarded, Learning
from freshet.scheduler.agenda.terms import Terms
from freshet.scheduler.arrays import Bools, Floats, Ints, rows_among
from freshet.scheduler.estimate.observations import VisitResults
from freshet.scheduler.policy import IndexPolicy, Policy, RatePolicy
from freshet.scheduler.sources import Rows
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
#: What runs went by of before there was a choice.
_BEFORE: Final = {
    "importance": "list", "new_page_worth": 1.0, "least_discovery": 0.0, "most_discovery": 1.0
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Learnt:
    """What a daemon of this order has learnt; ``sites`` are the codes of hosts by their origins."""

    order: Daemon
    refresher: Guarded
    sites: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class LastOrder:
    """What the daemon of the last run went by.

    Attributes:
        daemon, exchange: its settings, and on which terms ephemeral sources compete.
        spacing: how it spares hosts.
        recheck_days: after which it asks old URLs again.
        takes_in: whether it takes in pages that nobody named.
    """

    daemon: Daemon
    exchange: Exchange
    spacing: Spacing
    recheck_days: float
    takes_in: bool


def order_of(text: str | None) -> LastOrder | None:
    """The order in the settings of a run, if it was a daemon's."""
    said = json.loads(text) if text else {}
    if not said.get("daemon", {}).get("budget"):
        return None
    polite, daemon = said["politeness"], Daemon.model_validate(_BEFORE | said["daemon"])
    # Before there was a choice no page was taken for a source.
    ephemeral = said.get("ephemeral")
    return LastOrder(
        daemon,
        exchange_of(Ephemeral.model_validate(ephemeral), daemon)
        if ephemeral
        else Exchange(recognise=False),
        Spacing(polite["delay_s"], polite["connections_per_host"]),
        said["crawl"]["permanent_recheck_days"],
        said["crawl"].get("scope") != "list",
    )


def hosts_of(pages: WatchedPages, known: Mapping[int, Host]) -> tuple[Ints, Rows, list[str]]:
    """The ids of the pages' hosts, the place among these of each page's, and their origins."""
    host_ids, codes = np.unique(pages.host_id, return_inverse=True)
    return host_ids, codes.astype(np.intp), [known[each].origin for each in host_ids.tolist()]


def terms_of(
    pages: WatchedPages, codes: Rows, origins: Sequence[str], weighing: Weighing, order: Daemon
) -> Terms:
    """On which terms the pages are kept."""
    weights = weighing.importances(pages.page_id, pages.url, codes, origins)
    half_lives = weighing.half_lives(pages.page_id, pages.url)
    return terms(pages.url, Areas().codes(pages.url), weights, order.rules, half_lives)


async def relearnt(connection: aiosqlite.Connection) -> Learnt | None:
    """What the daemon of the last run has learnt; None if that was no daemon, or knows no page."""
    order = order_of(await runs.settings_of_latest(connection))
    pages = await columns_queries.pages(connection)
    if order is None or not len(pages):
        return None
    known = await hosts_tables.load(connection, np.unique(pages.host_id).tolist())
    _, codes, origins = hosts_of(pages, {host.host_id: host for host in known})
    weighing = await weigh(connection, order.daemon.importance)
    on_terms = terms_of(pages, codes, origins, weighing, order.daemon)
    refresher = refresher_of(order.daemon.policy)
    refresher.replan(parsed(order.daemon.budget), 0.0)
    refresher.add(codes, on_terms.area, on_terms.importance, pages.found_at / _DAY_S)
    (await stored_news(connection, partial(rows_among, pages.page_id))).teach(refresher)
    return Learnt(order.daemon, refresher, {origin: code for code, origin in enumerate(origins)})


# -- revelations -------------------------------------------------------------
#
# What a look at a page may reveal, as the daemon of the last run has it, from the store.


@dataclass(frozen=True, slots=True)
class Revelations:
    """What is known of one page, the one in ``row``; ``new_page`` is what a missing page costs.

    ``takes_in`` says whether there can be others than those that are known, ``turn`` are the
    days in which all captured pages could be looked at, ``exists`` is how likely the page is
    there, if it was not asked for yet. On the terms of ``exchange`` ephemeral sources compete, and
    ``cost`` (H,) is what a look at each host costs.
    """

    pages: Watchlist
    discovering: Discovering
    row: int
    new_page: float
    takes_in: bool
    turn: float
    exists: float
    exchange: Exchange
    cost: Floats

    def on(self, day: float) -> Revelation:
        """What a look on a day is expected to reveal."""
        revealing, row = self.discovering.revealing(self.pages, day), self.row
        faded = fading(self.pages, self.discovering, revealing, self.exchange, day, self.cost)
        own = faded.row == row
        return Revelation(
            self.new_page * float(revealing.worth[row]) if self.takes_in else 0.0,
            float(revealing.pages[row]) if self.takes_in else 0.0,
            float(faded.rate[own].sum()), float(faded.worth[own].sum()),
            row in faded.urgent,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Revelation:
    """What a look at a page on one day is expected to reveal.

    Attributes:
        worth: what that is worth, by who revealed new pages before.
        pages: how many pages that are not known.
        rate: of an ephemeral source the new items a day, else 0.
        fading: what a look at it is worth for these.
        is_urgent: whether the page itself is an item of such a source, to be fetched at once.
    """

    worth: float
    pages: float
    rate: float
    fading: float
    is_urgent: bool


async def revelations(
    connection: aiosqlite.Connection,
    found: WatchedPages,
    codes: Rows,
    on: Terms,
    looks: VisitResults,
) -> tuple[Watchlist, Discovering]:
    """All pages, and which of them reveal new ones; ``codes`` are those of their hosts."""
    pages, discovering = Watchlist(), Discovering()
    rows = pages.add(
        found.page_id, host=codes, area=on.area, importance=on.importance,
        found_at=found.found_at / _DAY_S, since=found.since / _DAY_S, captured=found.captured,
        gone=found.gone, half_life=on.half_life_days,
    )  # fmt: skip
    discovering.watch(rows, codes, found.url, found.found_at / _DAY_S)
    await recall(connection, discovering, pages, looks)
    return pages, discovering


# -- valuing -----------------------------------------------------------------
#
# What looks at a page are worth as time goes by, as the daemon of these settings has it.
#
# The daemon's learning is gone through again, from the store: its law is that it depends on the
# looks alone.

#: Looks of which the price is the median worth, where no outlook tells it.
_RECENT: Final = 200
_FARTHEST_DAYS: Final = 3_650.0
_HALVINGS: Final = 40


@dataclass(frozen=True, slots=True)
class Watched:
    """n pages as a refresher takes them; all columns have length n, ``found`` in Unix days."""

    site: Rows
    area: Rows
    importance: Floats
    found: Floats


@dataclass(frozen=True, slots=True)
class Valuing:
    """A page's row in what was learnt, and alone in a watchlist of its own; days are Unix days.

    ``paid`` is what the last looks at any page were worth when they were taken, and the last one
    at this page, for what they kept fresh; ``paid_row`` and ``paid_look`` say at which page, and
    which look of all.
    """

    policy: Policy
    refresher: Refresher
    learning: Learning
    row: int
    site: int
    page: Watchlist
    revelations: Revelations
    looks: VisitResults
    paid: Floats
    paid_row: Rows
    paid_look: Rows

    def worth(self, day: float) -> float | None:
        """What a look is worth on a day; None: the policy has no index; inf: it comes first."""
        if not isinstance(self.policy, IndexPolicy):
            return None
        own = self.refresher.worth(day)[self.row : self.row + 1]
        its, reveals = self.revelations, self.revelations.on(day)
        if reveals.is_urgent:
            return inf
        worth = np.maximum(own + reveals.worth, reveals.fading)
        found = self.page.weighted(worth, day, its.turn, its.new_page)
        return float(found[0]) * (1.0 if self.page["captured"][0] else its.exists)

    def worth_at_last_look(self) -> float | None:
        """What the last look was worth when it was taken, if there was one before."""
        mine = np.flatnonzero(self.looks.row == self.row)
        if len(mine) < 2:
            return None
        taken = self.paid[self.paid_look == mine[-1]]
        return float(taken[0]) if len(taken) else None

    def usual_worth(self, among: Bools) -> float | None:
        """What the last looks at pages of these were worth: their median; ``among`` is (n,)."""
        taken = self.paid[among[self.paid_row]]
        return float(np.median(taken)) if len(taken) else None

    def is_clocked(self, day: float) -> bool:
        """Whether the page's site has a clock of its own that is gone by."""
        return bool(self.refresher.beliefs(day).clocked[self.row] > 0)

    def is_claimed(self) -> bool | None:
        """Whether claims on the page are believed; None: there are none, or nobody listens."""
        if not isinstance(self.refresher, Guarded):
            return None
        listening = self.refresher.listening(self.site)
        if listening is None or not listening.speaks_of(self.row):
            return None
        return listening.proven

    def stale(self, day: float) -> float:
        """The probability that the page has changed since it was looked at."""
        return float(-np.expm1(-self.refresher.beliefs(day).hazard[self.row]))

    def planned(self, budget: float, lane: Rows, per_day: Floats) -> float | None:
        """The looks a day of a plan for so many in all, None where the policy makes none.

        ``lane`` (n,) is that of each page, which allows ``per_day`` looks to all of its pages.
        """
        if not isinstance(self.policy, RatePolicy) or not self.page["captured"][0]:
            return None
        table = replace(self.learning.table(), host=lane, host_capacity=per_day)
        return float(self.policy.rates(table, budget).crawl_rate[self.row])

    def due_at_price(self, price: float, day: float) -> float | None:
        """The days until a look is worth the price; None: not for years."""
        if self._reaches(price, day):
            return 0.0
        early, late = 0.0, _FARTHEST_DAYS
        if not self._reaches(price, day + late):
            return None
        for _ in range(_HALVINGS):
            middle = (early + late) / 2
            early, late = (early, middle) if self._reaches(price, day + middle) else (middle, late)
        return late

    def _reaches(self, price: float, day: float) -> bool:
        worth = self.worth(day)
        return worth is not None and worth >= price


def valuing(
    name: str, budget: float, pages: Watched, news: News, page: Watchlist, reveals: Revelations
) -> Valuing:
    """Learn what a daemon of this policy and budget has learnt from these news."""
    looks, row = news.looks, reveals.row
    chosen, refresher, learning = policy_scheduler.load(name), refresher_of(name), Learning()
    refresher.replan(budget, 0.0)
    refresher.add(pages.site, pages.area, pages.importance, pages.found)
    learning.add(pages.site, pages.importance, pages.found)
    learning.learn(looks)
    told = _told(chosen, looks, row)
    paid, done = np.zeros(len(told)), 0
    for place, look in enumerate(told.tolist()):
        news.teach(refresher, done, look)
        paid[place] = refresher.worth(float(looks.at[look]))[looks.row[look]]
        done = look
    news.teach(refresher, done)
    site = int(pages.site[row])
    return Valuing(
        chosen, refresher, learning, row, site, page, reveals, looks, paid, looks.row[told], told
    )


def _told(chosen: Policy, looks: VisitResults, row: int) -> Rows:
    """The looks whose worth is asked for: the last ones at pages seen before, and the page's."""
    if not isinstance(chosen, IndexPolicy):
        return np.empty(0, np.intp)
    again = np.ones(len(looks), np.bool_)
    again[np.unique(looks.row, return_index=True)[1]] = False
    recent = np.flatnonzero(again)[-_RECENT:]
    mine = np.flatnonzero(looks.row == row)[1:][-1:]
    return np.union1d(recent, mine).astype(np.intp)


# -- prospect ----------------------------------------------------------------
#
# A page's prospects as the last run's daemon has them: rate, worth, next look.
#
# Worked out from the store, by going through the daemon's learning again. The change rate is that
# by the page's own history under its site's prior; what a look is worth may go by the site's
# clock.

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
