"""Change signals of sitemaps, feeds and pings: claims, weighed by event and by page.

Pages that a source claims to have changed at the same time are an *event*: a build of the site, or
an edit. Since its last visit page i may have changed by the events that stand, and unannounced;
expected are

    y = κ S + ω x,    S = Σ r_e  over the events e that stand,

    r_e  the share of event e, how much of it is more than boilerplate: Gamma(s ρ, s) a priori,
         where ρ is the mean of its source for events of that size;
    κ    how much an event means for the page: its posterior on a grid, with a prior of the site;
    x    changes expected without claims;  ω  the part of the changes without a claim.

A change that is found is attributed to the events that stand by exp(E[ln r_e]); a visit without a
change counts against each of them: after a few visits to pages of a build, the rest is visited or
not. So claims are believed event by event and page by page. A site's claims count while the
decayed log loss of y, which predicts the outcome of every visit as x does, is the smaller one.

A visit that finds other bytes without a claim waits until the sources have been polled again:
their claim may be late.

A signal is credited with the beliefs that it moves: Σ μ |Δp|/2 over the pages of the site, p the
probability that a copy is stale; at most as many as can be visited until the next one. Polling a
source credited with A a day lately is worth A τ²/2 after τ days, which is the index of a page for
small hazards. A source that claims every day that all pages have changed tells nothing, though it
moves every date.

The functions are compiled.

Reference: ours; the index after Gittins, as in :mod:`scheduler.policies.noisy_signal_index`.
"""

from math import expm1
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from freshet.scheduler.arrays import Floats, compiled, part
from freshet.scheduler.estimate.grid import (
    POINTS,
    RATES,
    add_interval,
    drift,
    fit,
    log_loss,
    mean_rate,
)
from freshet.scheduler.estimate.site_clock import exp_digamma
from freshet.scheduler.sources import Rows

#: Claims on a page that stand until the next visit; of more the oldest are forgotten.
STANDING: Final = 12
#: Sources whose pages are told apart.
SOURCES: Final = 63
#: Events by how much of the site is in them.
SIZES: Final = 5
#: Visits to pages with claims before the prior is fitted for the first time.
FIRST_FIT: Final = 32
_EVENTS: Final = 256
_MOST_EVENTS: Final = 65_536
#: Of the logarithm of a weight.
_SPREAD: Final = 1.5
_ROOM: Final = 16
_FIRST_SHARE: Final = 2.0
PAGE: Final = np.dtype(
    [
        ("row", np.int64),
        # The sources (bits, by their places, 63 at most) that have claimed something of the page.
        ("by", np.int64),
        # Since when something is claimed of the page, and how often that moved.
        ("since", np.float64),
        ("moves", np.int64),
        # κ: expected changes by unit of an event's share.
        ("weight", np.float64),
        ("standing", np.int64),
        # The visit before, committed at the next one, when its events have settled.
        ("past", np.int64),
        ("past_days", np.float64),
        ("past_other", np.float64),
        ("past_changed", np.bool_),
        # A visit that found an unclaimed change, until the sources have been polled again.
        ("held", np.bool_),
        ("changed", np.bool_),
        ("begin", np.float64),
        ("at", np.float64),
        ("hazard", np.float64),
    ],
    align=True,
)
#: A claim: of the page in a slot, last visited on a day, −inf: never.
CLAIM: Final = np.dtype(
    [
        ("slot", np.int64),
        ("until", np.float64),
        ("last", np.float64),
        # Of the event that it belongs to, within the signal.
        ("number", np.int64),
    ],
    align=True,
)
EVENT: Final = np.dtype(
    [
        ("source", np.int64),
        ("size", np.int64),
        ("at", np.float64),
        # Changes attributed to it, the weights of the visited pages, and its share.
        ("found", np.float64),
        ("exposed", np.float64),
        ("share", np.float64),
    ],
    align=True,
)
SOURCE: Final = np.dtype(
    [
        ("number", np.int64),
        ("asked", np.int64),
        ("received", np.float64),
        ("claims", np.int64),
        # Days observed lately, and the credit earned in these.
        ("days", np.float64),
        ("gain", np.float64),
        # Recent visits to pages of which it claimed a change, and the changes found at these.
        ("visited", np.float64),
        ("found", np.float64),
        # Changes found lately at any of its pages, and those that it had claimed.
        ("changes", np.float64),
        ("claimed", np.float64),
        # Recent days from changes to their claims, and the number of these claims.
        ("late", np.float64),
        ("timed", np.float64),
    ],
    align=True,
)
FACTS: Final = np.dtype(
    [
        ("pages", np.int64),
        ("sources", np.int64),
        ("events", np.int64),
        ("visits", np.int64),
        ("fit_at", np.int64),
        # Decayed log losses with and without claims.
        ("loss", np.float64),
        ("loss_without", np.float64),
        # Visits without claims: changes found, and changes expected.
        ("unclaimed", np.float64),
        ("expected", np.float64),
        # The mean share of events over their claims.
        ("share_sum", np.float64),
        ("shares", np.float64),
        # The mean weight of visited pages, over visits.
        ("weight_sum", np.float64),
        ("weights", np.float64),
        # Whether a page has changed without a claim when the sources were last polled.
        ("news", np.bool_),
    ],
    align=True,
)


class ClaimState(NamedTuple):
    """The state of one site's claims.

    ``page`` (n,), ``standing`` and ``past`` (n, 12), numbers of events, and ``likelihood`` (n, 48)
    have a row for each page with a claim; ``event`` is a ring; ``share`` is
    (sources, 5, 2): changes found and weights exposed of events of each size.
    """

    facts: NDArray[np.void]
    page: NDArray[np.void]
    standing: Rows
    past: Rows
    likelihood: NDArray[np.float32]
    event: NDArray[np.void]
    source: NDArray[np.void]
    share: Floats
    prior: Floats
    parent: Floats


def first_prior() -> Floats:
    """Return the prior of unknown weights: around 1, as likely twice as half of it."""
    prior = np.exp(-((np.log(RATES) / _SPREAD) ** 2) / 2)
    return np.asarray(prior / prior.sum())


def no_signals_yet() -> ClaimState:
    """Return the state of a site without claims."""
    facts = np.zeros(1, FACTS)
    facts["fit_at"] = FIRST_FIT
    # Half of the changes are taken to be claimed, until it shows.
    facts["unclaimed"], facts["expected"] = 0.5, 1.0
    facts["share_sum"], facts["shares"] = 1.0, _FIRST_SHARE
    facts["weight_sum"], facts["weights"] = 1.0, 1.0
    return ClaimState(
        facts=facts,
        page=np.zeros(0, PAGE),
        standing=np.zeros((0, STANDING), np.intp),
        past=np.zeros((0, STANDING), np.intp),
        likelihood=np.zeros((0, POINTS), np.float32),
        event=np.zeros(_EVENTS, EVENT),
        source=np.zeros(0, SOURCE),
        share=np.full((0, SIZES, 2), _FIRST_SHARE),
        prior=first_prior(),
        parent=first_prior(),
    )


def with_pages(state: ClaimState, count: int) -> ClaimState:
    """Return the state with room for more pages."""
    wanted = int(state.facts[0]["pages"]) + count
    if wanted <= len(state.page):
        return state
    more = max(wanted, 2 * len(state.page), _ROOM) - len(state.page)
    return state._replace(
        page=np.concatenate([state.page, np.zeros(more, PAGE)]),
        standing=np.concatenate([state.standing, np.zeros((more, STANDING), np.intp)]),
        past=np.concatenate([state.past, np.zeros((more, STANDING), np.intp)]),
        likelihood=np.concatenate([state.likelihood, np.zeros((more, POINTS), np.float32)]),
    )


def with_source(state: ClaimState, number: int, asked: int, at: float) -> ClaimState:
    """Return the state with another source, first met on this day."""
    source = np.zeros(1, SOURCE)
    source["number"], source["asked"], source["received"] = number, asked, at
    source["days"], source["gain"] = 1.0, 0.5
    state.facts["sources"] += 1
    return state._replace(
        source=np.concatenate([state.source, source]),
        share=np.concatenate([state.share, np.full((1, SIZES, 2), _FIRST_SHARE)]),
    )


def with_events(state: ClaimState, count: int, needed: float) -> ClaimState:
    """Return the state with a ring that keeps ``count`` new events and those after ``needed``."""
    length, after = len(state.event), int(state.facts[0]["events"])
    longer = length
    while longer < count:
        longer *= 2
    lost = np.arange(max(0, after - length), max(0, after - length + count)) % length
    if after > length - count and (state.event["at"][lost] > needed).any():
        longer = max(longer, min(2 * length, _MOST_EVENTS))
    if longer == length:
        return state
    event = np.zeros(longer, EVENT)
    numbers = np.arange(max(0, after - length), after)
    event[numbers % longer] = state.event[numbers % length]
    return state._replace(event=event)


# -- claim scores --

#: One record of an array; numba reads its fields by their names.
Record: TypeAlias = Any

#: The number of recent claims and changes that count.
_LATELY: Final = 50.0


@part
def time_claim(it: Record, claim: Record, polled_before: float) -> None:
    """Note the delay from a change to its claim, if it came since the source's last signal."""
    if claim.until > polled_before:
        it.late += it.received - claim.until
        it.timed += 1.0
        if it.timed > _LATELY:
            it.late *= _LATELY / it.timed
            it.timed = _LATELY


@part
def score(state: ClaimState, slot: int, changed: bool, polled: float) -> None:
    """Note for each source of a page whether its claim was right or a change was missed.

    A source is not blamed for changes after it was polled last.
    """
    page = state.page[slot]
    for j in range(min(state.facts[0].sources, SOURCES)):
        if page.by >> j & 1:
            it = state.source[j]
            claimed = _claims(state, slot, j)
            it.visited += claimed
            it.found += claimed * changed
            it.claimed += claimed * changed * polled
            it.changes += changed * polled
            if it.visited > _LATELY:
                it.found *= _LATELY / it.visited
                it.visited = _LATELY
            if it.changes > _LATELY:
                it.claimed *= _LATELY / it.changes
                it.changes = _LATELY


@part
def _claims(state: ClaimState, slot: int, source: int) -> float:
    """Return 1 where an event of a source stands for a page, else 0."""
    facts = state.facts[0]
    for j in range(state.page[slot].standing):
        number = state.standing[slot, j]
        event = state.event[number % len(state.event)]
        if number >= facts.events - len(state.event) and event.source == source:
            return 1.0
    return 0.0


#: s, the weight of what is known of events of a size beside what is seen of one.
_WEIGHT: Final = 1.0
#: The total weight of events that is remembered of a source.
_SHARES_KEPT: Final = 200.0
_FADING: Final = 0.995
_MOST_CHANGES: Final = 3.0
_MEMORY: Final = 500.0
_EXPECTED_KEPT: Final = 50.0
_DAYS_KEPT: Final = 60.0
_TINY: Final = 1e-12
_LEAST_SHARE: Final = 1e-3
_FIT_EVERY: Final = 200
_STEPS: Final = 15


@part
def shares(state: ClaimState, slot: int) -> float:
    """Return S of a page."""
    return _sum_of(state, state.standing[slot], state.page[slot].standing)


@part
def _sum_of(state: ClaimState, numbers: Rows, count: int) -> float:
    """Return the sum of the shares of events, as far as they are remembered."""
    total: float = 0.0
    for j in range(count):
        if numbers[j] >= state.facts[0].events - len(state.event):
            total += state.event[numbers[j] % len(state.event)].share
    return total


@part
def unclaimed(state: ClaimState, begin: float, end: float) -> float:
    """Return ω, the part of expected changes between two days that come without a claim.

    It is 1 for the time after the sources were polled last.
    """
    facts = state.facts[0]
    part_of: float = min(facts.unclaimed / facts.expected, 1.0)
    missed = _unpolled(state, begin, end)
    return missed + part_of * (1 - missed)


@part
def _unpolled(state: ClaimState, begin: float, end: float) -> float:
    """Return the part of the time between two days after the sources were polled last."""
    received = _last_poll(state)
    if end <= begin or received >= end:
        return 0.0
    return (end - max(begin, received)) / (end - begin)


@part
def _last_poll(state: ClaimState) -> float:
    """Return the day on which a source was polled last; inf: none is ever polled."""
    received: float = -np.inf
    asked = False
    for j in range(state.facts[0].sources):
        if state.source[j].asked >= 0:
            asked = True
            received = max(received, state.source[j].received)
    return received if asked else np.inf


@part
def _size(pages: int, alive: int) -> int:
    """Return the size class of an event of ``pages`` pages at a site of ``alive``."""
    if pages <= 2:
        return 0
    part_of = pages / max(alive, 1)
    if part_of <= 0.05:
        return 1
    if part_of <= 0.2:
        return 2
    return 3 if part_of <= 0.6 else 4


@compiled
def receive(
    state: ClaimState, source: int, at: float, claims: NDArray[np.void], alive: int
) -> None:
    """Learn the claims of a source (by its place), given in the order of their events.

    ``alive`` is the number of the site's pages.
    """
    facts, it = state.facts[0], state.source[source]
    polled_before = it.received
    it.days += at - polled_before
    it.received = at
    it.claims += len(claims)
    first = 0
    while first < len(claims):
        stop = first
        while stop < len(claims) and claims[stop].number == claims[first].number:
            stop += 1
        _event(state, source, at, claims[first:stop], alive)
        time_claim(it, claims[first], polled_before)
        first = stop
    if it.asked >= 0:
        facts.news = False
        _settle_held(state)


@part
def _event(state: ClaimState, source: int, at: float, claims: NDArray[np.void], alive: int) -> None:
    """Let an event stand for the pages that were not visited since."""
    facts = state.facts[0]
    number = facts.events
    facts.events += 1
    event = state.event[number % len(state.event)]
    event.source, event.size = source, _size(len(claims), alive)
    event.at, event.found, event.exposed = at, 0.0, 0.0
    event.share = state.share[source, event.size, 0] / state.share[source, event.size, 1]
    for j in range(len(claims)):
        claim = claims[j]
        page = state.page[claim.slot]
        if page.held and page.begin < claim.until <= page.at:
            page.held = False
        page.moves += 1
        if source < SOURCES:
            page.by |= 1 << source
        facts.share_sum += event.share
        facts.shares += 1.0
        if claim.until > claim.last > -np.inf:
            _stand(state, claim.slot, number)
    if facts.shares > _SHARES_KEPT:
        facts.share_sum *= _SHARES_KEPT / facts.shares
        facts.shares = _SHARES_KEPT


@compiled
def stale(state: ClaimState, pages: NDArray[np.void], hazard: Floats, now: float) -> Floats:
    """Return the probabilities (slots,) of stale copies; ``hazard`` (n,) is without claims."""
    found = np.zeros(state.facts[0].pages)
    for slot in range(len(found)):
        row = state.page[slot].row
        if pages[row].alive:
            other = unclaimed(state, pages[row].last, now) * hazard[row]
            found[slot] = -expm1(-state.page[slot].weight * shares(state, slot) - other)
    return found


@compiled
def credit(state: ClaimState, source: int, news: float) -> None:
    """Count the gain of a signal."""
    it = state.source[source]
    it.gain += news
    if it.days > _DAYS_KEPT:
        it.gain *= _DAYS_KEPT / it.days
        it.days = _DAYS_KEPT


@part
def _stand(state: ClaimState, slot: int, number: int) -> None:
    page = state.page[slot]
    if page.standing == STANDING:
        for j in range(STANDING - 1):
            state.standing[slot, j] = state.standing[slot, j + 1]
        page.standing -= 1
    state.standing[slot, page.standing] = number
    page.standing += 1


@part
def _settle_held(state: ClaimState) -> None:
    """Count visits that found unclaimed changes, once all polled sources were polled again."""
    facts = state.facts[0]
    received = np.inf
    for j in range(facts.sources):
        if state.source[j].asked >= 0:
            received = min(received, state.source[j].received)
    for slot in range(facts.pages):
        page = state.page[slot]
        if page.held and page.at <= received:
            page.held = False
            _count_unclaimed(state, page.hazard, page.changed)


@part
def _count_unclaimed(state: ClaimState, hazard: float, changed: bool) -> None:
    facts = state.facts[0]
    facts.unclaimed += 1.0 if changed else 0.0
    facts.expected += hazard
    if facts.expected > _EXPECTED_KEPT:
        facts.unclaimed *= _EXPECTED_KEPT / facts.expected
        facts.expected = _EXPECTED_KEPT


@compiled
def learn(state: ClaimState, visits: NDArray[np.void], slots: Rows, alive: int) -> None:
    """Learn visits to pages of the site in their order (slots; −1: without claims).

    They have the days of the visits before (``begin``) and the changes expected without claims
    (``hazard``).
    """
    facts = state.facts[0]
    for k in range(len(visits)):
        if slots[k] < 0:
            continue
        visit, page = visits[k], state.page[slots[k]]
        if visit.compared and not visit.gone and visit.begin > -np.inf and visit.at > visit.begin:
            _learn_one(state, slots[k], visit, alive)
        page.standing = 0
        if facts.visits >= facts.fit_at:
            _fit(state)
            every = max(_FIT_EVERY, facts.pages // 4)
            facts.fit_at += max(FIRST_FIT, min(facts.visits // 2, every))


@part
def _learn_one(state: ClaimState, slot: int, visit: Record, alive: int) -> None:
    facts, page = state.facts[0], state.page[slot]
    share = shares(state, slot)
    own, other = page.weight * share, unclaimed(state, visit.begin, visit.at) * visit.hazard
    # Changes since the last poll are not held against the sources.
    polled = 1 - _unpolled(state, visit.begin, visit.at)
    decay = 1 - polled / max(_MEMORY, 2.0 * alive)
    facts.loss = facts.loss * decay + polled * log_loss(own + other, visit.changed)
    facts.loss_without *= decay
    facts.loss_without += polled * log_loss(visit.hazard, visit.changed)
    facts.visits += 1
    score(state, slot, visit.changed, polled)
    if page.standing == 0:
        if visit.moved:
            facts.news = True
            page.held, page.changed, page.hazard = True, visit.changed, visit.hazard
            page.begin, page.at = visit.begin, visit.at
        else:
            _count_unclaimed(state, visit.hazard, visit.changed)
        return
    _take_in(state, slot)
    _attribute(state, slot, own + other, visit.changed)
    page.past, page.past_days = page.standing, visit.at - visit.begin
    page.past_other, page.past_changed = other, visit.changed
    for j in range(page.standing):
        state.past[slot, j] = state.standing[slot, j]
    page.weight = _weight(state, slot)


@part
def _take_in(state: ClaimState, slot: int) -> None:
    """Commit the result of the visit before."""
    page = state.page[slot]
    if page.past > 0:
        _add_past(state, slot, state.likelihood[slot])
        page.past = 0


@part
def _add_past(state: ClaimState, slot: int, sums: NDArray[np.floating]) -> None:
    page = state.page[slot]
    drift(sums, state.prior, page.past_days)
    share = _sum_of(state, state.past[slot], page.past)
    if share > _LEAST_SHARE:
        add_interval(sums, share, page.past_other, page.past_changed)


@part
def _weight(state: ClaimState, slot: int) -> float:
    """Return κ of a page by all its visits, the last one with its events as known now."""
    if state.page[slot].past == 0:
        return mean_rate(state.likelihood[slot], state.prior)
    sums = state.likelihood[slot].astype(np.float64)
    _add_past(state, slot, sums)
    return mean_rate(sums, state.prior)


@part
def _attribute(state: ClaimState, slot: int, expected: float, changed: bool) -> None:
    """Attribute the changes that a visit found to the events that stand."""
    facts, page = state.facts[0], state.page[slot]
    changes = 0.0
    if changed:
        changes = min(_MOST_CHANGES, expected / -expm1(-expected)) if expected > _TINY else 1.0
    facts.weight_sum += page.weight
    facts.weights += 1.0
    if facts.weights > _SHARES_KEPT:
        facts.weight_sum *= _SHARES_KEPT / facts.weights
        facts.weights = _SHARES_KEPT
    before = _WEIGHT * facts.weight_sum / facts.weights
    parts, total = np.zeros(page.standing), 0.0
    for j in range(page.standing):
        number = state.standing[slot, j]
        if number >= facts.events - len(state.event):
            event = state.event[number % len(state.event)]
            kept = state.share[event.source, event.size]
            shape = before * kept[0] / kept[1] + event.found
            parts[j] = exp_digamma(shape) / (before + event.exposed)
            total += parts[j]
    for j in range(page.standing):
        if parts[j] > 0:
            event = state.event[state.standing[slot, j] % len(state.event)]
            part_of = changes * parts[j] / total
            event.found += part_of
            event.exposed += page.weight
            kept = state.share[event.source, event.size]
            kept[0] += part_of
            kept[1] += page.weight
            if kept[1] > _SHARES_KEPT:
                kept[0] *= _FADING
                kept[1] *= _FADING
            shape = before * kept[0] / kept[1] + event.found
            event.share = shape / (before + event.exposed)


@part
def _fit(state: ClaimState) -> None:
    """Fit the prior of the weights, and the weights by it."""
    count = state.facts[0].pages
    fit(state.likelihood, np.arange(count), state.prior, state.parent, _STEPS)
    for slot in range(count):
        state.page[slot].weight = _weight(state, slot)
