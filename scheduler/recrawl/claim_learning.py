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
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from freshet.scheduler.arguments import Floats
from freshet.scheduler.compiling import compiled, part
from freshet.scheduler.recrawl.attribution import exp_digamma
from freshet.scheduler.recrawl.change_posterior import add_interval, drift, fit, log_loss, mean_rate
from freshet.scheduler.recrawl.claim_scores import score, time_claim
from freshet.scheduler.recrawl.claim_state import FIRST_FIT, SOURCES, STANDING, Told
from freshet.scheduler.sources import Rows

#: One record of an array; numba reads its fields by their names.
Record: TypeAlias = Any

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
def shares(told: Told, slot: int) -> float:
    """S of a page."""
    return _sum_of(told, told.standing[slot], told.page[slot].standing)


@part
def _sum_of(told: Told, numbers: Rows, count: int) -> float:
    """The shares of events, as far as they are remembered."""
    total: float = 0.0
    for j in range(count):
        if numbers[j] >= told.facts[0].events - len(told.event):
            total += told.event[numbers[j] % len(told.event)].share
    return total


@part
def unclaimed(told: Told, begin: float, end: float) -> float:
    """ω: which part of the changes expected between two days has come without a claim so far.

    Of those after the sources were asked last it is all.
    """
    facts = told.facts[0]
    part_of: float = min(facts.unclaimed / facts.expected, 1.0)
    unheard = _unheard(told, begin, end)
    return unheard + part_of * (1 - unheard)


@part
def _unheard(told: Told, begin: float, end: float) -> float:
    """Which part of the time between two days came after the sources were asked last."""
    heard = _heard(told)
    if end <= begin or heard >= end:
        return 0.0
    return (end - max(begin, heard)) / (end - begin)


@part
def _heard(told: Told) -> float:
    """The day on which a source was asked last; inf: none is ever asked."""
    heard: float = -np.inf
    asked = False
    for j in range(told.facts[0].sources):
        if told.source[j].asked >= 0:
            asked = True
            heard = max(heard, told.source[j].heard)
    return heard if asked else np.inf


@part
def _size(pages: int, alive: int) -> int:
    """Which size an event of so many pages is, of a site of so many."""
    if pages <= 2:
        return 0
    part_of = pages / max(alive, 1)
    if part_of <= 0.05:
        return 1
    if part_of <= 0.2:
        return 2
    return 3 if part_of <= 0.6 else 4


@compiled
def hear(told: Told, source: int, at: float, claims: NDArray[np.void], alive: int) -> None:
    """Take in what a source (its place) says, the claims in the order of their events.

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
def _event(told: Told, source: int, at: float, claims: NDArray[np.void], alive: int) -> None:
    """Let an event stand for the pages that were not looked at since."""
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
def stale(told: Told, pages: NDArray[np.void], hazard: Floats, now: float) -> Floats:
    """(slots,), the probabilities that copies are stale; ``hazard`` (n,) without claims."""
    found = np.zeros(told.facts[0].pages)
    for slot in range(len(found)):
        row = told.page[slot].row
        if pages[row].alive:
            other = unclaimed(told, pages[row].last, now) * hazard[row]
            found[slot] = -expm1(-told.page[slot].weight * shares(told, slot) - other)
    return found


@compiled
def credit(told: Told, source: int, news: float) -> None:
    """Count what a hearing has told."""
    it = told.source[source]
    it.told += news
    if it.days > _DAYS_KEPT:
        it.told *= _DAYS_KEPT / it.days
        it.days = _DAYS_KEPT


@part
def _stand(told: Told, slot: int, number: int) -> None:
    page = told.page[slot]
    if page.standing == STANDING:
        for j in range(STANDING - 1):
            told.standing[slot, j] = told.standing[slot, j + 1]
        page.standing -= 1
    told.standing[slot, page.standing] = number
    page.standing += 1


@part
def _settle_held(told: Told) -> None:
    """Count looks that found what no source claims, as all that are asked have been asked since."""
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
def _count_unclaimed(told: Told, hazard: float, changed: bool) -> None:
    facts = told.facts[0]
    facts.unclaimed += 1.0 if changed else 0.0
    facts.expected += hazard
    if facts.expected > _EXPECTED_KEPT:
        facts.unclaimed *= _EXPECTED_KEPT / facts.expected
        facts.expected = _EXPECTED_KEPT


@compiled
def learn(told: Told, looks: NDArray[np.void], slots: Rows, alive: int) -> None:
    """Take in looks at pages of the site (slots; −1: nothing was ever claimed), in their order.

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
def _look(told: Told, slot: int, look: Record, alive: int) -> None:
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
def _take_in(told: Told, slot: int) -> None:
    """Take in for good what the look before found."""
    page = told.page[slot]
    if page.past > 0:
        _add_past(told, slot, told.likelihood[slot])
        page.past = 0


@part
def _add_past(told: Told, slot: int, sums: NDArray[np.floating]) -> None:
    page = told.page[slot]
    drift(sums, told.prior, page.past_days)
    share = _sum_of(told, told.past[slot], page.past)
    if share > _LEAST_SHARE:
        add_interval(sums, share, page.past_other, page.past_changed)


@part
def _weight(told: Told, slot: int) -> float:
    """κ of a page by all its looks, the last one as its events are seen now."""
    if told.page[slot].past == 0:
        return mean_rate(told.likelihood[slot], told.prior)
    sums = told.likelihood[slot].astype(np.float64)
    _add_past(told, slot, sums)
    return mean_rate(sums, told.prior)


@part
def _attribute(told: Told, slot: int, expected: float, changed: bool) -> None:
    """Put what a look found down to the events that stand."""
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
def _fit(told: Told) -> None:
    """Fit the prior of the weights, and the weights by it."""
    count = told.facts[0].pages
    fit(told.likelihood, np.arange(count), told.prior, told.parent, _STEPS)
    for slot in range(count):
        told.page[slot].weight = _weight(told, slot)
