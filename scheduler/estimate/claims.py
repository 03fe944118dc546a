"""What claims of changes (sitemaps, feeds, pings) tell of a site's pages.

Pages of which a source says that they changed at the same time are an *event*: a build of the
site, or an edit. Since the last look at page i it may have changed by the events that stand, and
unannounced; expected are

    y = κ S + ω x,    S = Σ r_e  over the events e that stand,

    r_e  the share of event e, how much of it is more than boilerplate: Gamma(s ρ, s) a priori,
         where ρ is the mean of its source for events of that size;
    κ    how much an event means for the page: its posterior on a grid, with a prior of the site;
    x    what is expected without claims;  ω  which part of the changes nobody claims.

A change that is found is put down to the events that stand by exp(E[ln r_e]), one that is not
counts against each of them: after a few looks at pages of a build nobody looks at the rest, or
everybody does. So claims are believed event by event and page by page. Whether they are believed
at all on a site is decided as for its clock: y and x both foretell the outcome of every look, and
claims count while the decayed log loss of y is the smaller one.

A look that finds other bytes of which nothing was claimed waits until the sources have been asked
again: these may not have said it yet.

What a hearing tells is by how much it moves beliefs: Σ μ |Δp|/2 over the pages of the site, p the
probability that a copy is stale; at most what can be looked at until the next one. A source that
has told A a day lately is worth asking A τ²/2 after τ days, which is the index of a page for small
hazards. One that says of all pages every day that they have changed tells nothing, though it
moves every date.

The functions are compiled.

Reference: ours; the index after Gittins, as in :mod:`scheduler.policies.noisy_signal_index`.
"""

from __future__ import annotations

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

# -- claim state -------------------------------------------------------------
#
# What claims have told of a site's pages, as arrays that compiled functions write into.

#: Claims on a page that stand until the next look; of more the oldest are forgotten.
STANDING: Final = 12
#: Sources whose pages are told apart.
SOURCES: Final = 63
#: Events by how much of the site is in them.
SIZES: Final = 5
#: Looks at pages with claims before the prior is fitted for the first time.
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
        # Which sources (bits, by their places, 63 at most) have claimed something of the page.
        ("by", np.int64),
        # Since when something is claimed of the page, and how often that moved.
        ("since", np.float64),
        ("moves", np.int64),
        # κ: expected changes by unit of an event's share.
        ("weight", np.float64),
        ("standing", np.int64),
        # The look before, taken in for good at the next one, when its events have settled.
        ("past", np.int64),
        ("past_days", np.float64),
        ("past_other", np.float64),
        ("past_changed", np.bool_),
        # A look that found what nothing had claimed, until the sources have been asked again.
        ("held", np.bool_),
        ("changed", np.bool_),
        ("begin", np.float64),
        ("at", np.float64),
        ("hazard", np.float64),
    ],
    align=True,
)
#: A claim as it is heard: of the page in a slot, last looked at on a day, −inf: never.
CLAIM: Final = np.dtype(
    [
        ("slot", np.int64),
        ("until", np.float64),
        ("last", np.float64),
        # Of the event that it belongs to, within the hearing.
        ("number", np.int64),
    ],
    align=True,
)
EVENT: Final = np.dtype(
    [
        ("source", np.int64),
        ("size", np.int64),
        ("at", np.float64),
        # Changes found that are put down to it, the weights of the pages looked at, and its share.
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
        ("heard", np.float64),
        ("claims", np.int64),
        # Days listened to lately, and what it told in these.
        ("days", np.float64),
        ("told", np.float64),
        # Looks lately at pages of which it claimed a change, and the changes found at these.
        ("looked", np.float64),
        ("found", np.float64),
        # Changes found lately at any of its pages, and those that it had claimed.
        ("changes", np.float64),
        ("claimed", np.float64),
        # Days lately from changes to the hearings of them, and how many hearings these were.
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
        ("looks", np.int64),
        ("fit_at", np.int64),
        # Decayed log losses: by what was claimed, and without.
        ("loss", np.float64),
        ("loss_without", np.float64),
        # Looks that nothing claimed: changes found, and how many were expected without claims.
        ("unclaimed", np.float64),
        ("expected", np.float64),
        # The mean share of events over their claims.
        ("share_sum", np.float64),
        ("shares", np.float64),
        # The mean weight of pages that were looked at, over looks.
        ("weight_sum", np.float64),
        ("weights", np.float64),
        # Whether a page has changed of which the sources had said nothing when last asked.
        ("news", np.bool_),
    ],
    align=True,
)


class ClaimState(NamedTuple):
    """The state of one site's claims.

    ``page`` (n,), ``standing`` and ``past`` (n, 12), numbers of events, and ``likelihood`` (n, 48)
    have a row for each page of which something was claimed; ``event`` is a ring; ``share`` is
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


def nothing_told() -> ClaimState:
    """Return the state of a site without claims."""
    facts = np.zeros(1, FACTS)
    facts["fit_at"] = FIRST_FIT
    # Half of the changes are taken to be claimed, until it shows.
    facts["unclaimed"], facts["expected"] = 0.5, 1.0
    facts["share_sum"], facts["shares"] = 1.0, _FIRST_SHARE
    facts["weight_sum"], facts["weights"] = 1.0, 1.0
    return ClaimState(
        facts, np.zeros(0, PAGE),
        np.zeros((0, STANDING), np.intp), np.zeros((0, STANDING), np.intp),
        np.zeros((0, POINTS), np.float32), np.zeros(_EVENTS, EVENT), np.zeros(0, SOURCE),
        np.full((0, SIZES, 2), _FIRST_SHARE), first_prior(), first_prior(),
    )  # fmt: skip


def with_pages(told: ClaimState, count: int) -> ClaimState:
    """Return the state with room for more pages."""
    wanted = int(told.facts[0]["pages"]) + count
    if wanted <= len(told.page):
        return told
    more = max(wanted, 2 * len(told.page), _ROOM) - len(told.page)
    return told._replace(
        page=np.concatenate([told.page, np.zeros(more, PAGE)]),
        standing=np.concatenate([told.standing, np.zeros((more, STANDING), np.intp)]),
        past=np.concatenate([told.past, np.zeros((more, STANDING), np.intp)]),
        likelihood=np.concatenate([told.likelihood, np.zeros((more, POINTS), np.float32)]),
    )


def with_source(told: ClaimState, number: int, asked: int, at: float) -> ClaimState:
    """Return the state with another source, first heard of on this day."""
    source = np.zeros(1, SOURCE)
    source["number"], source["asked"], source["heard"] = number, asked, at
    source["days"], source["told"] = 1.0, 0.5
    told.facts["sources"] += 1
    return told._replace(
        source=np.concatenate([told.source, source]),
        share=np.concatenate([told.share, np.full((1, SIZES, 2), _FIRST_SHARE)]),
    )


def with_events(told: ClaimState, count: int, needed: float) -> ClaimState:
    """Return the state with a ring that keeps ``count`` new events and those after ``needed``."""
    length, after = len(told.event), int(told.facts[0]["events"])
    longer = length
    while longer < count:
        longer *= 2
    lost = np.arange(max(0, after - length), max(0, after - length + count)) % length
    if after > length - count and (told.event["at"][lost] > needed).any():
        longer = max(longer, min(2 * length, _MOST_EVENTS))
    if longer == length:
        return told
    event = np.zeros(longer, EVENT)
    numbers = np.arange(max(0, after - length), after)
    event[numbers % longer] = told.event[numbers % length]
    return told._replace(event=event)


# -- claim scores ------------------------------------------------------------
#
# How often sources of claims are right, and how late, for people to read. Pure; compiled.

#: One record of an array; numba reads its fields by their names.
Record: TypeAlias = Any

#: The last so many count.
_LATELY: Final = 50.0


@part
def time_claim(it: Record, claim: Record, heard_before: float) -> None:
    """Note the delay from a change to its claim, if it came since the source's last signal."""
    if claim.until > heard_before:
        it.late += it.heard - claim.until
        it.timed += 1.0
        if it.timed > _LATELY:
            it.late *= _LATELY / it.timed
            it.timed = _LATELY


@part
def score(told: ClaimState, slot: int, changed: bool, heard: float) -> None:
    """Note for each source of a page whether its claim was right or a change was missed.

    Of the time after it was asked last it could not know.
    """
    page = told.page[slot]
    for j in range(min(told.facts[0].sources, SOURCES)):
        if page.by >> j & 1:
            it = told.source[j]
            claimed = _claims(told, slot, j)
            it.looked += claimed
            it.found += claimed * changed
            it.claimed += claimed * changed * heard
            it.changes += changed * heard
            if it.looked > _LATELY:
                it.found *= _LATELY / it.looked
                it.looked = _LATELY
            if it.changes > _LATELY:
                it.claimed *= _LATELY / it.changes
                it.changes = _LATELY


@part
def _claims(told: ClaimState, slot: int, source: int) -> float:
    """Return 1 where an event of a source stands for a page, else 0."""
    facts = told.facts[0]
    for j in range(told.page[slot].standing):
        number = told.standing[slot, j]
        event = told.event[number % len(told.event)]
        if number >= facts.events - len(told.event) and event.source == source:
            return 1.0
    return 0.0


#: s, the weight of what is known of events of a size beside what is seen of one.
_WEIGHT: Final = 1.0
#: What of events is remembered of a source: the last so many weights.
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
def shares(told: ClaimState, slot: int) -> float:
    """Return S of a page."""
    return _sum_of(told, told.standing[slot], told.page[slot].standing)


@part
def _sum_of(told: ClaimState, numbers: Rows, count: int) -> float:
    """Return the sum of the shares of events, as far as they are remembered."""
    total: float = 0.0
    for j in range(count):
        if numbers[j] >= told.facts[0].events - len(told.event):
            total += told.event[numbers[j] % len(told.event)].share
    return total


@part
def unclaimed(told: ClaimState, begin: float, end: float) -> float:
    """Return ω, the part of expected changes between two days that come without a claim.

    Of those after the sources were asked last it is all.
    """
    facts = told.facts[0]
    part_of: float = min(facts.unclaimed / facts.expected, 1.0)
    unheard = _unheard(told, begin, end)
    return unheard + part_of * (1 - unheard)


@part
def _unheard(told: ClaimState, begin: float, end: float) -> float:
    """Return the part of the time between two days after the sources were polled last."""
    heard = _heard(told)
    if end <= begin or heard >= end:
        return 0.0
    return (end - max(begin, heard)) / (end - begin)


@part
def _heard(told: ClaimState) -> float:
    """Return the day on which a source was polled last; inf: none is ever polled."""
    heard: float = -np.inf
    asked = False
    for j in range(told.facts[0].sources):
        if told.source[j].asked >= 0:
            asked = True
            heard = max(heard, told.source[j].heard)
    return heard if asked else np.inf


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
def hear(told: ClaimState, source: int, at: float, claims: NDArray[np.void], alive: int) -> None:
    """Learn the claims of a source (by its place), given in the order of their events.

    ``alive`` is the number of the site's pages.
    """
    facts, it = told.facts[0], told.source[source]
    heard_before = it.heard
    it.days += at - heard_before
    it.heard = at
    it.claims += len(claims)
    first = 0
    while first < len(claims):
        stop = first
        while stop < len(claims) and claims[stop].number == claims[first].number:
            stop += 1
        _event(told, source, at, claims[first:stop], alive)
        time_claim(it, claims[first], heard_before)
        first = stop
    if it.asked >= 0:
        facts.news = False
        _settle_held(told)


@part
def _event(told: ClaimState, source: int, at: float, claims: NDArray[np.void], alive: int) -> None:
    """Let an event stand for the pages that were not visited since."""
    facts = told.facts[0]
    number = facts.events
    facts.events += 1
    event = told.event[number % len(told.event)]
    event.source, event.size = source, _size(len(claims), alive)
    event.at, event.found, event.exposed = at, 0.0, 0.0
    event.share = told.share[source, event.size, 0] / told.share[source, event.size, 1]
    for j in range(len(claims)):
        claim = claims[j]
        page = told.page[claim.slot]
        if page.held and page.begin < claim.until <= page.at:
            page.held = False
        page.moves += 1
        if source < SOURCES:
            page.by |= 1 << source
        facts.share_sum += event.share
        facts.shares += 1.0
        if claim.until > claim.last > -np.inf:
            _stand(told, claim.slot, number)
    if facts.shares > _SHARES_KEPT:
        facts.share_sum *= _SHARES_KEPT / facts.shares
        facts.shares = _SHARES_KEPT


@compiled
def stale(told: ClaimState, pages: NDArray[np.void], hazard: Floats, now: float) -> Floats:
    """Return the probabilities (slots,) of stale copies; ``hazard`` (n,) is without claims."""
    found = np.zeros(told.facts[0].pages)
    for slot in range(len(found)):
        row = told.page[slot].row
        if pages[row].alive:
            other = unclaimed(told, pages[row].last, now) * hazard[row]
            found[slot] = -expm1(-told.page[slot].weight * shares(told, slot) - other)
    return found


@compiled
def credit(told: ClaimState, source: int, news: float) -> None:
    """Count what a signal has told."""
    it = told.source[source]
    it.told += news
    if it.days > _DAYS_KEPT:
        it.told *= _DAYS_KEPT / it.days
        it.days = _DAYS_KEPT


@part
def _stand(told: ClaimState, slot: int, number: int) -> None:
    page = told.page[slot]
    if page.standing == STANDING:
        for j in range(STANDING - 1):
            told.standing[slot, j] = told.standing[slot, j + 1]
        page.standing -= 1
    told.standing[slot, page.standing] = number
    page.standing += 1


@part
def _settle_held(told: ClaimState) -> None:
    """Count visits that found unclaimed changes, once all polled sources were polled again."""
    facts = told.facts[0]
    heard = np.inf
    for j in range(facts.sources):
        if told.source[j].asked >= 0:
            heard = min(heard, told.source[j].heard)
    for slot in range(facts.pages):
        page = told.page[slot]
        if page.held and page.at <= heard:
            page.held = False
            _count_unclaimed(told, page.hazard, page.changed)


@part
def _count_unclaimed(told: ClaimState, hazard: float, changed: bool) -> None:
    facts = told.facts[0]
    facts.unclaimed += 1.0 if changed else 0.0
    facts.expected += hazard
    if facts.expected > _EXPECTED_KEPT:
        facts.unclaimed *= _EXPECTED_KEPT / facts.expected
        facts.expected = _EXPECTED_KEPT


@compiled
def learn(told: ClaimState, looks: NDArray[np.void], slots: Rows, alive: int) -> None:
    """Learn visits to pages of the site in their order (slots; −1: without claims).

    With the days of the looks before (``begin``) and what was expected without claims (``hazard``).
    """
    facts = told.facts[0]
    for k in range(len(looks)):
        if slots[k] < 0:
            continue
        look, page = looks[k], told.page[slots[k]]
        if look.compared and not look.gone and look.begin > -np.inf and look.at > look.begin:
            _look(told, slots[k], look, alive)
        page.standing = 0
        if facts.looks >= facts.fit_at:
            _fit(told)
            every = max(_FIT_EVERY, facts.pages // 4)
            facts.fit_at += max(FIRST_FIT, min(facts.looks // 2, every))


@part
def _look(told: ClaimState, slot: int, look: Record, alive: int) -> None:
    facts, page = told.facts[0], told.page[slot]
    share = shares(told, slot)
    own, other = page.weight * share, unclaimed(told, look.begin, look.at) * look.hazard
    # What nobody was asked for says nothing of those who claim.
    heard = 1 - _unheard(told, look.begin, look.at)
    fading = 1 - heard / max(_MEMORY, 2.0 * alive)
    facts.loss = facts.loss * fading + heard * log_loss(own + other, look.changed)
    facts.loss_without *= fading
    facts.loss_without += heard * log_loss(look.hazard, look.changed)
    facts.looks += 1
    score(told, slot, look.changed, heard)
    if page.standing == 0:
        if look.moved:
            facts.news = True
            page.held, page.changed, page.hazard = True, look.changed, look.hazard
            page.begin, page.at = look.begin, look.at
        else:
            _count_unclaimed(told, look.hazard, look.changed)
        return
    _take_in(told, slot)
    _attribute(told, slot, own + other, look.changed)
    page.past, page.past_days = page.standing, look.at - look.begin
    page.past_other, page.past_changed = other, look.changed
    for j in range(page.standing):
        told.past[slot, j] = told.standing[slot, j]
    page.weight = _weight(told, slot)


@part
def _take_in(told: ClaimState, slot: int) -> None:
    """Commit the result of the visit before."""
    page = told.page[slot]
    if page.past > 0:
        _add_past(told, slot, told.likelihood[slot])
        page.past = 0


@part
def _add_past(told: ClaimState, slot: int, sums: NDArray[np.floating]) -> None:
    page = told.page[slot]
    drift(sums, told.prior, page.past_days)
    share = _sum_of(told, told.past[slot], page.past)
    if share > _LEAST_SHARE:
        add_interval(sums, share, page.past_other, page.past_changed)


@part
def _weight(told: ClaimState, slot: int) -> float:
    """Return κ of a page by all its visits, the last one with its events as known now."""
    if told.page[slot].past == 0:
        return mean_rate(told.likelihood[slot], told.prior)
    sums = told.likelihood[slot].astype(np.float64)
    _add_past(told, slot, sums)
    return mean_rate(sums, told.prior)


@part
def _attribute(told: ClaimState, slot: int, expected: float, changed: bool) -> None:
    """Attribute the changes that a visit found to the events that stand."""
    facts, page = told.facts[0], told.page[slot]
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
        number = told.standing[slot, j]
        if number >= facts.events - len(told.event):
            event = told.event[number % len(told.event)]
            kept = told.share[event.source, event.size]
            shape = before * kept[0] / kept[1] + event.found
            parts[j] = exp_digamma(shape) / (before + event.exposed)
            total += parts[j]
    for j in range(page.standing):
        if parts[j] > 0:
            event = told.event[told.standing[slot, j] % len(told.event)]
            part_of = changes * parts[j] / total
            event.found += part_of
            event.exposed += page.weight
            kept = told.share[event.source, event.size]
            kept[0] += part_of
            kept[1] += page.weight
            if kept[1] > _SHARES_KEPT:
                kept[0] *= _FADING
                kept[1] *= _FADING
            shape = before * kept[0] / kept[1] + event.found
            event.share = shape / (before + event.exposed)


@part
def _fit(told: ClaimState) -> None:
    """Fit the prior of the weights, and the weights by it."""
    count = told.facts[0].pages
    fit(told.likelihood, np.arange(count), told.prior, told.parent, _STEPS)
    for slot in range(count):
        told.page[slot].weight = _weight(told, slot)
