"""Change rates of a site's pages, learnt visit by visit over its clock and over the days.

Two posteriors of each rate are kept, over the days and over the site's time, and both predict the
outcome of every visit. The clock of a site is *proven* while its decayed log loss is the smaller
one: on a site with independent pages it would see bursts that do not exist. A page's last interval
is *pending*: it is committed one visit later, when the clock there has settled.

*Law.* The state is a function of the visits in their order, however they are divided into batches.
So only visited pages count.

A change is *dated* where the server's Last-Modified tells its day L. Bytes move more often than the
page changes, of the moves of a site a share s are changes; a change found after t days is the last
of the moves with the probability s(1 − e^{−dt/s})/(1 − e^{−dt}), d its rate. If that is high, the
page changed at L, which has the density d e^{−da} where L is a days ago.

A site of fewer than five pages has no clock. When the mean time between visits has become four
times as long or as short, another clock begins with bins to match. The functions are compiled.
"""

from math import exp, expm1, log
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from freshet.scheduler.arrays import Floats, compiled, part
from freshet.scheduler.estimate import site_clock
from freshet.scheduler.estimate.grid import (
    POINTS,
    add_interval,
    drift,
    even,
    fit,
    log_loss,
    mean_rate,
    unfitted_rate,
)
from freshet.scheduler.estimate.site_clock import BINS_A_TURN, REWRITTEN, SHARED, ClockState
from freshet.scheduler.sources import AREAS, Rows

#: Visits before the priors are fitted for the first time.
FIRST_FIT: Final = 32
PAGE: Final = np.dtype(
    [
        ("known", np.bool_),
        ("alive", np.bool_),
        ("pending", np.bool_),
        ("changed", np.bool_),
        ("area", np.int16),
        # The number of the pending interval in the ring of its clock; -1: it is not there.
        ("number", np.int64),
        ("last", np.float64),
        ("begin", np.float64),
        ("end", np.float64),
        ("rate", np.float64),
        ("plain_rate", np.float64),
        # The clock's readings at the last visit, if that is before all of its bins.
        ("shared", np.float64),
        ("cold", np.float64),
    ],
    align=True,
)
VISIT: Final = np.dtype(
    [
        ("row", np.int64),
        ("at", np.float64),
        ("compared", np.bool_),
        ("changed", np.bool_),
        ("gone", np.bool_),
        # Whether its bytes were others, changed or not.
        ("moved", np.bool_),
        # The day that the server names, −inf: none.
        ("modified", np.float64),
        # The mean days between two visits to a page, if all are visited in turn.
        ("turn", np.float64),
        # Filled in: the day of the visit before, −inf if none, and the changes expected.
        ("begin", np.float64),
        ("hazard", np.float64),
    ],
    align=True,
)
_FACTS: Final = np.dtype(
    [
        ("known", np.int64),
        ("alive", np.int64),
        ("visits", np.int64),
        # How many there are when the priors are fitted again.
        ("fit_at", np.int64),
        ("clocked", np.bool_),
        # Decayed log loss of the clock, less that of the days.
        ("loss", np.float64),
        # The geometric mean of the rates.
        ("mean_rate", np.float64),
        # Visits at which the server named a day since the one before, changes found at these, and
        # the days since the named ones, as they were and as they could be expected.
        ("named", np.float64),
        ("found", np.float64),
        ("ages", np.float64),
        ("usual_ages", np.float64),
    ],
    align=True,
)


class Pages(NamedTuple):
    """All pages of all sites: (n,) records, and (n, 48) log-likelihoods by either time."""

    page: NDArray[np.void]
    likelihood: NDArray[np.float32]
    plain_likelihood: NDArray[np.float32]


class SiteState(NamedTuple):
    """The state of a site: its facts, the priors by either time, and the rows of its pages.

    A prior is (areas + 1, 48): that of each area, and in the last row that of the whole site.
    """

    facts: NDArray[np.void]
    prior: Floats
    plain_prior: Floats
    rows: Rows


def unknown_site() -> SiteState:
    """Return the state of a site without visits."""
    facts = np.zeros(1, _FACTS)
    facts["mean_rate"] = unfitted_rate()
    facts["fit_at"] = FIRST_FIT
    prior = np.tile(even(), (AREAS + 1, 1))
    return SiteState(facts, prior, prior.copy(), np.empty(0, np.intp))


#: One record of an array; numba reads its fields by their names.
Record: TypeAlias = Any

_PAGES_OF_A_CLOCK: Final = 5
#: Visits from one fit of the priors to the next: a quarter of the pages, at least this number, but
#: after the first fits half of the visits until then.
_FIT_EVERY: Final = 200
_STEPS: Final = 30
_STEPS_OF_AREAS: Final = 10
_MEMORY: Final = 500.0
#: A change of the mean time between visits by this factor begins bins of another width.
_ANOTHER_WIDTH: Final = 4.0
#: A named day is that of a change if that is as likely as this, and if the site's named days are
#: not much nearer to the visits than chance has it, as where each request makes a page anew.
_LIKELY: Final = 0.7
_USUAL: Final = 0.25
_NAMED_KEPT: Final = 100.0
#: The length of the interval in which a dated change came.
_MOMENT_DAYS: Final = 1e-3


class SiteLearner:
    """The learner of one site; ``pages`` may be another, larger table at each call."""

    def __init__(self) -> None:
        self.site = unknown_site()
        self.clock = site_clock.stopped()

    @property
    def proven(self) -> bool:
        """Return whether the clock predicts better than the days."""
        facts = self.site.facts[0]
        return bool(facts["clocked"] and facts["loss"] < 0)

    @property
    def rows(self) -> Rows:
        """Return the rows of its pages, in the order of their first visits."""
        return self.site.rows[: int(self.site.facts[0]["known"])]

    @property
    def alive(self) -> int:
        """Return the number of visited pages that exist."""
        return int(self.site.facts[0]["alive"])

    def learn(self, pages: Pages, visits: NDArray[np.void]) -> None:
        """Learn these visits to pages of the site, in their order."""
        self._make_room(int(self.site.facts[0]["known"]) + len(visits))
        done = 0
        while (done := int(learn(pages, self.site, self.clock, visits, done))) < len(visits):
            self._grow(pages, visits[done])

    def _make_room(self, pages: int) -> None:
        if pages > len(self.site.rows):
            rows = np.empty(max(pages, 2 * len(self.site.rows)), np.intp)
            rows[: len(self.site.rows)] = self.site.rows
            self.site = self.site._replace(rows=rows)

    def _grow(self, pages: Pages, visit: np.void) -> None:
        """Allocate what the next visit needs."""
        areas = int(pages.page["area"][visit["row"]]) + 1
        if not self.site.facts[0]["clocked"]:
            known = self.site.rows[: self.site.facts[0]["known"]]
            areas = max(areas, int(pages.page["area"][known].max()) + 1)
            self.clock = site_clock.started(visit["at"], visit["turn"] / BINS_A_TURN, areas)
            self.site.facts[0]["clocked"] = True
            mark_all(pages, self.site, self.clock)
        elif areas > self.clock.cold.shape[1]:
            most = min(AREAS, max(areas, 2 * self.clock.cold.shape[1]))
            self.clock = site_clock.with_areas(self.clock, most)
        else:
            self.clock = site_clock.with_larger_ring(self.clock)


@compiled
def learn(
    pages: Pages, site: SiteState, clock: ClockState, visits: NDArray[np.void], first: int
) -> int:
    """Learn visits from ``first`` on; return their number, or the one that needs room."""
    for k in range(first, len(visits)):
        visit = visits[k]
        if _needs_room(pages, site, clock, visit):
            return k
        page = pages.page[visit.row]
        tells = visit.compared and page.known and visit.at > page.last
        visit.begin = page.last if page.known else -np.inf
        _meet(pages, site, visit.row, visit.gone)
        if tells:
            _learn_one(pages, site, clock, visit)
        else:
            _commit(pages, site, clock, visit.row)
            page.last = max(page.last, visit.at)
            _mark(pages, clock, site, visit.row)
    return len(visits)


@part
def _needs_room(pages: Pages, site: SiteState, clock: ClockState, visit: Record) -> bool:
    """Return whether something must be allocated before this visit."""
    if not site.facts[0].clocked:
        return visit.compared and site.facts[0].alive >= _PAGES_OF_A_CLOCK
    if pages.page[visit.row].area >= clock.cold.shape[1]:
        return True
    return visit.changed and site_clock.ring_can_grow(clock) and site_clock.ring_is_full(clock)


@part
def _meet(pages: Pages, site: SiteState, row: int, gone: bool) -> None:
    """Count a page that is visited for the first time, is gone, or there again."""
    facts, page = site.facts[0], pages.page[row]
    if not page.known:
        page.known = True
        page.last = -np.inf
        site.rows[facts.known] = row
        facts.known += 1
        page.rate = mean_rate(pages.likelihood[row], site.prior[page.area])
        page.plain_rate = mean_rate(pages.plain_likelihood[row], site.plain_prior[page.area])
    if page.alive == gone:
        page.alive = not gone
        facts.alive += -1 if gone else 1


@part
def _learn_one(pages: Pages, site: SiteState, clock: ClockState, visit: Record) -> None:
    """Learn from a visit that could be compared with one before."""
    facts, row = site.facts[0], visit.row
    page = pages.page[row]
    last, at = page.last, visit.at
    visit.hazard = page.plain_rate * (at - last)
    if facts.clocked:
        _keep_up(pages, site, clock, visit)
        _judge(pages, site, clock, visit)
    is_dated = _is_dated(site, visit, page.plain_rate)
    begin, end = (visit.modified - _MOMENT_DAYS, visit.modified) if is_dated else (last, at)
    plain, plain_prior = pages.plain_likelihood[row], site.plain_prior[page.area]
    drift(plain, plain_prior, at - last)
    add_interval(plain, end - begin, 0.0, visit.changed)
    if is_dated:
        add_interval(plain, at - end, 0.0, False)
    page.plain_rate = mean_rate(plain, plain_prior)
    _commit(pages, site, clock, row)
    if is_dated:
        _add_quiet(pages, site, clock, row, begin=end, end=at)
    page.pending, page.begin, page.end, page.changed = True, begin, end, visit.changed
    page.number = -1
    page.last = at
    if facts.clocked:
        _tell_clock(pages, site, clock, row)
    page.rate = _estimate(pages, site, clock, row)
    facts.visits += 1
    if facts.visits >= facts.fit_at:
        _fit(pages, site, clock)
        facts.fit_at += max(FIRST_FIT, min(facts.visits // 2, max(_FIT_EVERY, facts.alive // 4)))


@part
def _is_dated(site: SiteState, visit: Record, rate: float) -> bool:
    """Return whether a page changed on the day that the server names, and learn of the days."""
    facts = site.facts[0]
    begin, end, named = visit.begin, visit.at, visit.modified
    if not begin < named - _MOMENT_DAYS < named < end - _MOMENT_DAYS:
        return False
    share = (facts.found + 1) / (facts.named + 2)
    x = rate * (end - begin)
    usual_age = (end - begin) * _mean_age(x / share)
    is_likely = share * expm1(-x / share) / expm1(-x) >= _LIKELY
    is_usual = facts.ages + usual_age >= _USUAL * (facts.usual_ages + usual_age)
    kept = min(1.0, _NAMED_KEPT / (facts.named + 1))
    facts.named = kept * (facts.named + 1)
    facts.found = kept * (facts.found + visit.changed)
    facts.ages = kept * (facts.ages + end - named)
    facts.usual_ages = kept * (facts.usual_ages + usual_age)
    return bool(visit.changed and is_likely and is_usual)


@part
def _mean_age(x: float) -> float:
    """Return the mean time since the last of Poisson events, by the interval; x are expected."""
    return 0.5 - x / 12 if x < 1e-3 else 1 / x + 1 / expm1(-x) + 1


@part
def _add_quiet(
    pages: Pages, site: SiteState, clock: ClockState, row: int, begin: float, end: float
) -> None:
    """Add the days without a change that followed a change on a named day."""
    page, sums = pages.page[row], pages.likelihood[row]
    drift(sums, site.prior[page.area], end - page.last)
    if not site.facts[0].clocked or begin < clock.facts[0].at:
        add_interval(sums, end - begin, 0.0, False)
        return
    _add_by_clock(clock, sums, begin, end, cold=0.0, changed=False)
    theta = coldness(site, page.rate)
    first = site_clock.expose(clock, begin, end, rate=page.rate, theta=theta, area=page.area)
    stop = int((end - clock.facts[0].at) / clock.facts[0].width) + 1
    site_clock.sum_from(clock, first, stop)


@part
def _keep_up(pages: Pages, site: SiteState, clock: ClockState, visit: Record) -> None:
    """Move the clock to the day of a visit: with a new bin width, or without the oldest bins."""
    width = visit.turn / BINS_A_TURN
    if not 1 / _ANOTHER_WIDTH < width / clock.facts[0].width < _ANOTHER_WIDTH:
        for j in range(site.facts[0].known):
            _commit(pages, site, clock, site.rows[j])
        site_clock.restart(clock, visit.at, width)
        mark_all(pages, site, clock)
    while site_clock.crowded(clock, visit.at):
        before = site_clock.dropped_before(clock)
        for j in range(site.facts[0].known):
            page = pages.page[site.rows[j]]
            if page.pending and page.begin < before:
                _commit(pages, site, clock, site.rows[j])
            if clock.facts[0].at <= page.last < before:
                page.shared = site_clock.shared_at(clock, page.last)
                page.cold = site_clock.cold_at(clock, page.last, page.area)
        site_clock.drop_oldest(clock)


@compiled
def mark_all(pages: Pages, site: SiteState, clock: ClockState) -> None:
    """Note the clock's readings at the last visits before it began: as if it had gone evenly."""
    at = clock.facts[0].at
    for j in range(site.facts[0].known):
        page = pages.page[site.rows[j]]
        page.shared = page.last - at
        page.cold = (page.last - at) * REWRITTEN


@part
def _mark(pages: Pages, clock: ClockState, site: SiteState, row: int) -> None:
    """Note the clock's reading at a visit on a day before its first bin."""
    page = pages.page[row]
    if site.facts[0].clocked and page.last < clock.facts[0].at:
        page.shared = clock.shared[0] + page.last - clock.facts[0].at
        page.cold = clock.cold[0, page.area] + (page.last - clock.facts[0].at) * REWRITTEN


@part
def passed(pages: Pages, clock: ClockState, row: int, day: float) -> tuple[float, float]:
    """Return the time on the shared and the cold clock since a page was visited."""
    page = pages.page[row]
    if page.last >= clock.facts[0].at:
        shared = site_clock.shared_at(clock, page.last)
        cold = site_clock.cold_at(clock, page.last, page.area)
    else:
        shared, cold = page.shared, page.cold
    cold = site_clock.cold_at(clock, day, page.area) - cold
    return site_clock.shared_at(clock, day) - shared, cold


@part
def _judge(pages: Pages, site: SiteState, clock: ClockState, visit: Record) -> None:
    """Let both times predict the outcome; the better one so far decides."""
    facts, page = site.facts[0], pages.page[visit.row]
    days = visit.at - page.last
    shared, cold = passed(pages, clock, visit.row, visit.at)
    own = (1 - SHARED) * days + SHARED * shared
    clocked = page.rate * own + coldness(site, page.rate) * cold
    if facts.loss < 0:
        visit.hazard = clocked
    facts.loss *= 1 - 1 / max(_MEMORY, 2.0 * facts.alive)
    facts.loss += log_loss(clocked, visit.changed)
    facts.loss -= log_loss(page.plain_rate * days, visit.changed)


@part
def coldness(site: SiteState, rate: float) -> float:
    """Return θ: near 1 for a page that changes more rarely than others of its site, else near 0."""
    return (site.facts[0].mean_rate / (site.facts[0].mean_rate + rate)) ** 2


@part
def _tell_clock(pages: Pages, site: SiteState, clock: ClockState, row: int) -> None:
    """Add the pending interval of a page to the clock."""
    page = pages.page[row]
    if page.end <= clock.facts[0].at:
        return
    theta = coldness(site, page.rate)
    begin, end, rate, area = page.begin, page.end, page.rate, page.area
    first = site_clock.expose(clock, begin, end, rate=rate, theta=theta, area=area)
    if page.changed:
        if site_clock.ring_is_full(clock):
            _commit_oldest(pages, site, clock)
        touched = site_clock.ascribe(
            clock, begin, end, rate=rate, theta=theta, area=area, owner=row
        )
        first = min(first, touched)
        page.number = clock.facts[0].next - 1
    stop = int((page.end - clock.facts[0].at) / clock.facts[0].width) + 1
    site_clock.sum_from(clock, first, stop)


@part
def _commit_oldest(pages: Pages, site: SiteState, clock: ClockState) -> None:
    """Commit the oldest interval of the ring, if it is pending."""
    number = clock.facts[0].oldest
    row = clock.ring[number % len(clock.ring)].owner
    if pages.page[row].number == number:
        _commit(pages, site, clock, row)


@part
def _commit(pages: Pages, site: SiteState, clock: ClockState, row: int) -> None:
    """Commit the pending interval of a page."""
    if pages.page[row].pending:
        _add_pending(pages, site, clock, row, pages.likelihood[row])
        pages.page[row].pending = False


@part
def _add_pending(
    pages: Pages, site: SiteState, clock: ClockState, row: int, sums: NDArray[np.floating]
) -> None:
    """Add the pending interval of a page, as the clock sees it now."""
    page = pages.page[row]
    days = page.end - page.begin
    drift(sums, site.prior[page.area], days)
    if not site.facts[0].clocked or page.begin < clock.facts[0].at:
        # It is older than the clock.
        add_interval(sums, days, 0.0, page.changed)
        return
    cold = 0.0 if page.number < 0 else site_clock.suspected(clock, page.number)
    _add_by_clock(clock, sums, page.begin, page.end, cold=cold, changed=page.changed)


@part
def _add_by_clock(
    clock: ClockState, sums: NDArray[np.floating], begin: float, end: float, cold: float,
    changed: bool,
) -> None:  # fmt: skip
    """Add an interval by the clock's time."""
    shared = site_clock.shared_at(clock, end) - site_clock.shared_at(clock, begin)
    own = (1 - SHARED) * (end - begin) + SHARED * shared * site_clock.pace_before(clock, end)
    add_interval(sums, max(own, 1e-9), cold, changed)


@part
def _estimate(pages: Pages, site: SiteState, clock: ClockState, row: int) -> float:
    """Return a page's rate with its pending interval as the clock sees it now."""
    if not pages.page[row].pending:
        return mean_rate(pages.likelihood[row], site.prior[pages.page[row].area])
    sums = pages.likelihood[row].astype(np.float64)
    _add_pending(pages, site, clock, row, sums)
    return mean_rate(sums, site.prior[pages.page[row].area])


@part
def _fit(pages: Pages, site: SiteState, clock: ClockState) -> None:
    """Fit the priors to all pages that were ever there, and estimate all under these."""
    facts = site.facts[0]
    rows = site.rows[: facts.known]
    _fit_areas(pages, pages.likelihood, rows, site.prior)
    _fit_areas(pages, pages.plain_likelihood, rows, site.plain_prior)
    total = 0.0
    for j in range(facts.known):
        row = rows[j]
        page = pages.page[row]
        page.plain_rate = mean_rate(pages.plain_likelihood[row], site.plain_prior[page.area])
        page.rate = _estimate(pages, site, clock, row)
        if page.alive:
            total += log(page.rate)
    facts.mean_rate = exp(total / max(facts.alive, 1))


@part
def _fit_areas(pages: Pages, sums: NDArray[np.float32], rows: Rows, prior: Floats) -> None:
    """Fit the prior of a site, and near to it those of its areas."""
    even_prior = np.full(POINTS, 1 / POINTS)
    fit(sums, rows, prior[AREAS], even_prior, _STEPS)
    counts = np.zeros(AREAS, np.intp)
    for j in range(len(rows)):
        counts[pages.page[rows[j]].area] += 1
    for area in range(AREAS):
        mine = np.empty(counts[area], np.intp)
        count = 0
        for j in range(len(rows)):
            if pages.page[rows[j]].area == area:
                mine[count] = rows[j]
                count += 1
        if count == 0:
            for k in range(POINTS):
                prior[area, k] = prior[AREAS, k]
        else:
            fit(sums, mine, prior[area], prior[AREAS], _STEPS_OF_AREAS)
