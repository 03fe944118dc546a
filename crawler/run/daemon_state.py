"""Forecast of one page: its change rate, what a visit is worth, and when the next one is due.

Read from the daemon's last estimate of the page and from the page's own rows: nothing is learnt
anew.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from itertools import takewhile
from math import expm1
from typing import Final

import aiosqlite
import numpy as np

from freshet.config.settings import Daemon, Settings
from freshet.crawler.capacities import key_of
from freshet.crawler.importance import DEFAULT, Importance, ruling, speaking
from freshet.scheduler.estimate.bayes import EmpiricalBayes
from freshet.scheduler.estimate.evidence import Evidence
from freshet.storage.entries import CappedLane, Host
from freshet.storage.queries import columns
from freshet.storage.queries import page as page_queries
from freshet.storage.records import Estimate
from freshet.storage.tables import estimates, hosts, near_duplicates, observations, runs
from freshet.storage.words import Kind

_DAY_S: Final = 86_400.0
#: Observations that are gone through for what the last ones in a row were.
_OBSERVATIONS: Final = 40
#: How far two times may differ that are the same, in seconds.
_SAME_S: Final = 1.0


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

    ``worth`` is what the page was worth when it was chosen, None where that is not known.
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

    ``estimated_at`` is when the daemon valued it; None: it has not since the last visit, and all
    that follows from a valuation is None. ``stale`` is the probability that the copy has changed
    since it was visited, ``age_days`` ago, or the page found; ``clocked`` says whether that follows
    the rhythm of its site, ``claimed`` whether what others say of the page (None: nobody says
    anything, or nobody listens). ``least_days`` and ``most_days`` are between visits by the rules;
    ``excluded_by`` is the pattern of the rule by which the page is not visited, ``not_before``
    (Unix seconds) when it may be. Under an index policy ``worth`` is what a visit was worth at
    ``estimated_at``, and ``price`` what pages must be worth; under a rate policy ``planned`` are
    the visits a day. ``reveals`` is how many new pages a visit is expected to reveal;
    ``arrival_rate`` how many items appear a day at an ephemeral source, ``half_life_hours`` how
    fast they fade; ``urgent`` is an item of such a source that is fetched at once. All are None
    where they do not apply. ``capped`` is the page's host if it is at its cap.
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
    estimated_at: float | None


def daemon_settings(text: str | None) -> Settings | None:
    """Return the settings that a run recorded (JSON); None if it was no daemon's."""
    said = json.loads(text) if text else {}
    return Settings.model_validate(said) if said.get("daemon", {}).get("budget") else None


async def rate_of(connection: aiosqlite.Connection, page_id: int) -> Rate:
    """Estimate the change rate of a page from its own visits alone, without any daemon."""
    looks = await columns.looks(connection, page_id)
    at = looks.at / _DAY_S
    spans = np.diff(at, prepend=at[:1])
    tells = looks.compared & (spans > 0)
    learner, count = EmpiricalBayes(1), int(tells.sum())
    one, changes = np.zeros(count, np.intp), looks.changed[tells].astype(np.int64)
    learner.observe(Evidence(one, at[tells], spans[tells], changes, np.zeros(count, np.bool_)))
    (lower,), (upper,) = learner.credible_interval()
    rate = float(learner.change_rate()[0])
    return Rate(rate, float(lower), float(upper), int(looks.compared.sum()))


async def prospect(connection: aiosqlite.Connection, page_id: int, now: float) -> Prospect | None:
    """Forecast a page; None if the last run was no daemon's, or the page is held back."""
    run = await runs.latest(connection)
    settings = daemon_settings(await runs.settings_of_latest(connection))
    page = await columns.pages(connection, [page_id])
    if run is None or settings is None or not len(page):
        return None
    said, url = settings.daemon, page.url[0]
    (host,) = await hosts.load(connection, page.host_id.tolist())
    last = await _last(connection, page_id)
    noted = await estimates.of_page(connection, page_id)
    # Valued before the last visit, a page is worth something else by now.
    is_valued = noted is not None and (last is None or noted.visited_at >= last.at - _SAME_S)
    valued = noted if noted is not None and is_valued else Estimate(page_id, 0, 0, 0, 0, 0, 0, 0)
    captured, is_gone = bool(page.captured[0]), bool(page.gone[0])
    since = float((page.asked if is_gone else page.since)[0])
    rate = await rate_of(connection, page_id)
    if noted is not None and noted.rate > 0:
        rate = Rate(noted.rate, noted.low, noted.high, rate.compared)
    hazard = rate.per_day * (now - since) / _DAY_S
    if is_valued:
        hazard = valued.hazard + rate.per_day * (now - valued.at) / _DAY_S
    outlook = await runs.latest_outlook(connection, run.run_id)
    lanes = () if outlook is None else outlook.capped
    place = await page_queries.frontier_place(connection, page_id)
    not_before = valued.not_before
    if place is not None and place.attempt:
        not_before = max(place.due_at, not_before or place.due_at)
    due_at = valued.due_at
    if due_at is not None:
        due_at = max(due_at, not_before or due_at)
    names = ("never", "least_days", "most_days")
    excluding, least, most = (ruling(url, said.rules, name) for name in names)
    return Prospect(
        budget=said.budget,
        policy=said.policy,
        captured=captured,
        importance=await _importance(connection, page_id, url, host, said, noted),
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
        urgent=valued.urgent,
        price=None if outlook is None else outlook.price,
        planned=valued.planned if captured else None,
        due_in_days=None if due_at is None else max(0.0, due_at - now) / _DAY_S,
        capped=next((lane for lane in lanes if lane.lane == key_of(host)), None),
        estimated_at=valued.at if is_valued else None,
    )


async def _last(connection: aiosqlite.Connection, page_id: int) -> LastVisit | None:
    """Return the last visit of a page; its worth is not known here."""
    past = await page_queries.observations(connection, page_id, _OBSERVATIONS)
    if not past:
        return None
    last, drawn = past[0], await observations.was_drawn(connection, page_id)
    in_a_row = sum(1 for _ in takewhile(lambda seen: seen.kind is last.kind, past))
    return LastVisit(last.at, last.kind, in_a_row, drawn, None, last.reason, last.detail)


async def _importance(
    connection: aiosqlite.Connection,
    page_id: int,
    url: str,
    host: Host,
    said: Daemon,
    noted: Estimate | None,
) -> Importance:
    """Return the importance of a page, and where it comes from."""
    rule = ruling(url, said.rules, "importance")
    if rule is not None and rule.importance is not None:
        return Importance(rule.importance, "rule", rule.match)
    copies = await near_duplicates.sharing(connection, page_id)
    listed = await runs.load(connection)
    row = int(speaking([url], np.zeros(1, np.intp), [host.origin], listed)[0])
    seed = listed[row] if row >= 0 and said.importance != "constant" else None
    site = DEFAULT if seed is None else seed.importance
    value = site / (1 + copies) if noted is None else noted.importance
    origin = "default" if seed is None else "site list"
    if said.importance == "constant":
        return Importance(value, "constant", near_duplicates=copies)
    is_divided = said.importance != "list" and site > 0
    return Importance(
        value,
        origin,
        None if seed is None else seed.text,
        site,
        said.importance if is_divided else None,
        value * (1 + copies) / site if is_divided else 1.0,
        copies,
    )
