"""Change signals, the reliability of their sources by site, and values of visits with signals."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from math import exp
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from freshet.compiled import numeric
from freshet.compiled.numeric import CONSTANTS, Records, Structure, record
from freshet.scheduler.arrays import Arrays, Column, Floats, Ints
from freshet.scheduler.estimate.evidence import SignalBatch, VisitResults
from freshet.scheduler.estimate.site_model import POINTS, RATES
from freshet.scheduler.sources import Rows

# -- claims --
#
# Change signals of sitemaps, feeds and pings are claims, weighted by event and by page.
#
# Pages that a source claims to have changed at the same time are an *event*: a build of the site,
# or an edit. Since its last visit page i may have changed by the events that apply, and
# unannounced; the expected changes are
#
#     y = κ S + ω x,    S = Σ r_e  over the events e that apply,
#
#     r_e  the share of event e that is more than boilerplate: Gamma(s ρ, s) a priori, with ρ the
#          mean of its source for events of that size;
#     κ    the weight of an event for the page: its posterior on a grid, with a prior of the site;
#     x    changes expected without claims;  ω  the share of changes without a claim.
#
# A change that a visit finds is attributed to the events that apply by exp(E[ln r_e]); a visit
# without a change counts against each of these events: after a few visits to pages of a build, the
# remaining pages are visited or not. So claims are believed by event and by page. A site's claims
# are used while the decayed log loss of y, which predicts the outcome of every visit as x does, is
# the smaller one.
#
# A visit that finds other bytes without a claim waits until the sources have been polled again:
# their claim may be late.
#
# The credit of a signal is the change of beliefs that it causes: Σ μ |Δp|/2 over the pages of the
# site, with p the probability that a copy is stale; at most as many pages as can be visited until
# the next signal. The value of polling a source with a recent credit of A a day is A τ²/2 after τ
# days, the index of a page for small hazards. A source that claims every day that all pages have
# changed has no credit, although it moves every date.
#
# Reference: ours; the index after Gittins, as in :mod:`scheduler.policies.noisy_signal_index`.

_STANDING, _SOURCES, _SIZES = (int(CONSTANTS[name]) for name in ("STANDING", "SOURCES", "SIZES"))
_EVENTS: Final = 256
_MOST_EVENTS: Final = 65_536
#: Of the logarithm of a weight.
_SPREAD: Final = 1.5
_ROOM: Final = 16
_FIRST_SHARE: Final = 2.0


@dataclass(frozen=True, slots=True)
class _ClaimState:
    """The state of one site's claims, which ``claims.c`` writes to.

    ``page`` (n,), ``standing`` and ``past`` (n, 12), numbers of events, and ``likelihood`` (n, 48)
    have a row for each page with a claim; ``event`` is a ring buffer; ``share`` is (sources, 5, 2):
    changes found and weights exposed, for events of each size.
    """

    facts: Records
    page: Records
    standing: Rows
    past: Rows
    likelihood: NDArray[np.float32]
    event: Records
    source: Records
    share: Floats
    prior: Floats
    parent: Floats
    structure: Structure = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        room, size, known = len(self.page), len(self.event), len(self.source)
        made = Structure("claims", self, room=room, size=size, known=known)
        object.__setattr__(self, "structure", made)


def first_prior() -> Floats:
    """Return the prior of unknown weights: log-normal around 1."""
    prior = np.exp(-((np.log(RATES) / _SPREAD) ** 2) / 2)
    return np.asarray(prior / prior.sum())


def no_signals_yet() -> _ClaimState:
    """Return the state of a site without claims."""
    facts = np.zeros(1, record("claim_facts"))
    facts["fit_at"] = CONSTANTS["FIRST_FIT"]
    # Initially, half of the changes are assumed to be claimed.
    facts["unclaimed"], facts["expected"] = 0.5, 1.0
    facts["share_sum"], facts["shares"] = 1.0, _FIRST_SHARE
    facts["weight_sum"], facts["weights"] = 1.0, 1.0
    return _ClaimState(
        facts=facts,
        page=np.zeros(0, record("claimed_page")),
        standing=np.zeros((0, _STANDING), np.int64),
        past=np.zeros((0, _STANDING), np.int64),
        likelihood=np.zeros((0, POINTS), np.float32),
        event=np.zeros(_EVENTS, record("event")),
        source=np.zeros(0, record("source")),
        share=np.full((0, _SIZES, 2), _FIRST_SHARE),
        prior=first_prior(),
        parent=first_prior(),
    )


def with_pages(state: _ClaimState, count: int) -> _ClaimState:
    """Return the state with room for more pages."""
    wanted = int(state.facts[0]["pages"]) + count
    if wanted <= len(state.page):
        return state
    more = max(wanted, 2 * len(state.page), _ROOM) - len(state.page)
    return replace(
        state,
        page=np.concatenate([state.page, np.zeros(more, record("claimed_page"))]),
        standing=np.concatenate([state.standing, np.zeros((more, _STANDING), np.int64)]),
        past=np.concatenate([state.past, np.zeros((more, _STANDING), np.int64)]),
        likelihood=np.concatenate([state.likelihood, np.zeros((more, POINTS), np.float32)]),
    )


def with_source(state: _ClaimState, number: int, asked: int, at: float) -> _ClaimState:
    """Return the state with another source, first seen on this day."""
    source = np.zeros(1, record("source"))
    source["number"], source["asked"], source["received"] = number, asked, at
    source["days"], source["gain"] = 1.0, 0.5
    return replace(
        state,
        source=np.concatenate([state.source, source]),
        share=np.concatenate([state.share, np.full((1, _SIZES, 2), _FIRST_SHARE)]),
    )


def with_events(state: _ClaimState, count: int, needed: float) -> _ClaimState:
    """Return the state with a ring for ``count`` new events and the events after ``needed``."""
    length, after = len(state.event), int(state.facts[0]["events"])
    longer = length
    while longer < count:
        longer *= 2
    lost = np.arange(max(0, after - length), max(0, after - length + count)) % length
    if after > length - count and (state.event["at"][lost] > needed).any():
        longer = max(longer, min(2 * length, _MOST_EVENTS))
    if longer == length:
        return state
    event = np.zeros(longer, record("event"))
    numbers = np.arange(max(0, after - length), after)
    event[numbers % longer] = state.event[numbers % length]
    return replace(state, event=event)


# -- values of visits with claims --
#
# Values of visits to pages with claims, and of polling sources. With signals of mean precision q at
# rate ν, each true with that probability, and with the cost rate C(n) after the n-th unanswered
# signal, the value of a visit at the n-th is (n C(n) − Σ_{k<n} C(k))/ν
# (:mod:`scheduler.policies.noisy_signal_index`). By the expected changes y, and with unclaimed
# changes, this is
#
#     W = μ (y − 1 + e^{−y} + ½ q (1 − e^{−s})) / (q (ν + κ/T) + ω D),
#
# where s is the claimed part of y: unclaimed changes happen at any moment.
#
# T is the period of a round-robin schedule over all pages, in days: after an event that changes a
# whole site, a visit gains at most the days until the page's turn, so a signal counts for at most
# T/κ days.

#: κ of a page without history.
_FIRST_WEIGHT: Final = 1.0
#: Events are remembered for this number of turns, in which all pages can be visited once.
_TURNS_KEPT: Final = 3.0
_MOST_GAIN: Final = 2.0
#: Nats of evidence that are needed for a judgement.
_JUDGED: Final = 3.0
#: Number of confirmed changes after which a source counts as informative.
_CONFIRMED: Final = 0.5
#: Shares of right claims, and of changes claimed, of a complete source.
_COMPLETE: Final = 0.9


#: By the number of a site: its pages, and (n,) their changes expected without claims.
SiteOf: TypeAlias = Callable[[int], tuple[int, Floats]]


#: The reliability of a source. Complete: it claims nearly all changes and little else. Noisy: it
#: claims some changes, with errors. Worthless: its claims do not help. Unjudged: too few visits.
Trust: TypeAlias = Literal["complete", "noisy", "worthless", "unjudged"]


@dataclass(frozen=True, slots=True)
class Reputation:
    """The reliability of a source at one site, by its last fifty claims and changes.

    Attributes:
        source: its number.
        trust: its class of reliability.
        precision: the share of its claims that a visit found true; None: no visit yet.
        recall: the share of the changes found at its pages that it had claimed, among changes for
            which it was polled in time; None: no change yet.
        late_days: days from a change to its claim; None: no such claim.
        pages: the number of pages of the site with its claims.
        claims: the number of its claims.
    """

    source: int
    trust: Trust
    precision: float | None
    recall: float | None
    late_days: float | None
    pages: int
    claims: int


class SiteTrust:
    """The claims about the pages of one site, and their reliability."""

    def __init__(self) -> None:
        self.state = no_signals_yet()
        self._places: dict[int, int] = {}
        #: Whether it has learnt since it was written.
        self.is_altered = True

    def written(self) -> Arrays:
        """Return the whole state."""
        return {it.name: getattr(self.state, it.name) for it in fields(_ClaimState) if it.init}

    @classmethod
    def of(cls, written: Arrays) -> "SiteTrust":
        """Return an object with a written state.

        Raises:
            TypeError, KeyError: if another version wrote it.
        """
        self = cls()
        names = [it.name for it in fields(_ClaimState) if it.init]
        self.state = _ClaimState(**{name: written[name] for name in names})
        numbers = self.state.source["number"].tolist()
        self._places = {number: place for place, number in enumerate(numbers)}
        self.is_altered = False
        return self

    @property
    def proven(self) -> bool:
        """Return whether predictions with claims are better than without."""
        return self._against < 0

    @property
    def _against(self) -> float:
        """The evidence (nats) against the claims; negative if it supports them."""
        facts = self.state.facts[0]
        return float(facts["loss"] - (1 - CONSTANTS["LEAST_GAIN"]) * facts["loss_without"])

    def reputations(self) -> list[Reputation]:
        """Return the reliability of each source, in the order of their first signals."""
        by = self.state.page["by"][: int(self.state.facts[0]["pages"])]
        return [
            self._reputation(it, int((by >> place & 1).sum()) if place < _SOURCES else 0)
            for place, it in enumerate(self.state.source)
        ]

    def _reputation(self, it: np.void, pages: int) -> Reputation:
        precision, recall = _share(it["found"], it["visited"]), _share(it["claimed"], it["changes"])
        trust: Trust = "worthless" if self._against > _JUDGED else "unjudged"
        if self.proven:
            trust = "complete" if min(precision or 0.0, recall or 0.0) >= _COMPLETE else "noisy"
        return Reputation(
            source=int(it["number"]),
            trust=trust,
            precision=precision,
            recall=recall,
            late_days=_share(it["late"], it["timed"]),
            pages=pages,
            claims=int(it["claims"]),
        )

    @property
    def rows(self) -> Rows:
        """The rows of the pages with claims."""
        found: Rows = self.state.page["row"][: int(self.state.facts[0]["pages"])]
        return found

    def knows(self, source: int) -> bool:
        """Return whether this source has claimed changes of the site."""
        return source in self._places

    def receive(
        self,
        batch: SignalBatch,
        claims: Records,
        alive: int,
        expected: Floats,
        *,
        page: Records,
        importance: Floats,
        turn: float,
    ) -> None:
        """Learn a signal, with its ``claims`` in the order of the events.

        ``expected`` (n,) are the changes expected without claims. The credit of a signal is at most
        two pages, because only that much of an event on the whole site can be visited.
        """
        self.is_altered = True
        if batch.source not in self._places:
            self._places[batch.source] = len(self._places)
            self.state = with_source(self.state, batch.source, batch.asked, batch.at)
        count = int(claims["number"][-1]) + 1 if len(claims) else 0
        self.state = with_events(self.state, count, batch.at - _TURNS_KEPT * turn)
        place = self._places[batch.source]
        state = self.state.structure
        before = numeric.claims_stale(state, page, expected, batch.at)
        numeric.claims_receive(state, place, batch.at, claims, alive)
        after = numeric.claims_stale(state, page, expected, batch.at)
        before, after = before[: len(self.rows)], after[: len(self.rows)]
        weight = importance[self.rows]
        news = float((np.abs(after - before) * weight).sum()) / 2
        mean = float(weight.mean()) if len(weight) else 0.0
        numeric.claims_credit(state, place, min(news, mean * _MOST_GAIN))

    def add_pages(self, rows: Rows, at: float) -> Rows:
        """Return slots for pages with their first claims."""
        first = int(self.state.facts[0]["pages"])
        self.state = with_pages(self.state, len(rows))
        slots = np.arange(first, first + len(rows))
        page = self.state.page[first : first + len(rows)]
        page["row"], page["since"], page["weight"] = rows, at, _FIRST_WEIGHT
        self.state.facts[0]["pages"] += len(rows)
        return slots

    def learn(self, visits: Records, slots: Rows, alive: int) -> None:
        """Learn visits that a site's learner has seen."""
        self.is_altered = True
        numeric.claims_learn(self.state.structure, visits, slots, alive)


def _share(part_of: float, whole: float) -> float | None:
    return float(part_of / whole) if whole > 0 else None


class SourceTrust:
    """The claims at all sites; rows are rows of the page table."""

    def __init__(self) -> None:
        self._slot = Column[np.int32](np.int32)
        self._sites: dict[int, SiteTrust] = {}

    def add(self, count: int) -> None:
        """Append rows."""
        self._slot.append(count)

    @property
    def slots(self) -> NDArray[np.int32]:
        """Return (n,), one more than the position of each page among pages with claims, or 0."""
        return self._slot.rows

    def altered(self) -> Iterator[tuple[int, SiteTrust]]:
        """Yield the sites that have learnt since they were written."""
        yield from ((site, it) for site, it in self._sites.items() if it.is_altered)

    def read(self, site: int, written: Arrays) -> None:
        """Restore the written state of a site."""
        self._sites[site] = SiteTrust.of(written)

    def of(self, site: int) -> SiteTrust | None:
        """Return the claims at a site; None if no claim was ever made."""
        return self._sites.get(site)

    def believed(self, count: int) -> NDArray[np.int8]:
        """Return 1 for pages with believed claims, 0 for disbelieved ones, −1 without claims."""
        found = np.full(count, -1, np.int8)
        for it in self._sites.values():
            found[it.rows] = int(it.proven)
        return found

    def receive(
        self,
        batch: SignalBatch,
        site_of: Rows,
        site: SiteOf,
        *,
        page: Records,
        importance: Floats,
        turn: float,
    ) -> None:
        """Learn a source's signal; ``site`` returns the state of a site by its number.

        ``page`` (n,), of :data:`~freshet.scheduler.estimate.site_model.PAGE`, and ``importance``
        (n,) cover all pages; ``turn`` is the days in which all could be visited once.
        """
        sites = site_of[batch.row]
        concerned = {s for s, it in self._sites.items() if it.knows(batch.source)}
        for s in sorted(concerned | set(sites.tolist())):
            it = self._sites.setdefault(s, SiteTrust())
            mine = batch.take(np.flatnonzero(sites == s))
            new = mine.row[self._slot.rows[mine.row] == 0]
            self._slot.rows[new] = it.add_pages(new, batch.at) + 1
            alive, expected = site(s)
            claims = self._claims(mine, page)
            it.receive(mine, claims, alive, expected, page=page, importance=importance, turn=turn)

    def _claims(self, batch: SignalBatch, pages: Records) -> Records:
        order, numbers = batch.events()
        row = batch.row[order]
        claims = np.empty(len(row), record("claim"))
        claims["slot"] = self._slot.rows[row].astype(np.int64) - 1
        claims["until"], claims["number"] = batch.until[order], numbers
        page = pages[row]
        claims["last"] = np.where(page["known"], page["last"], -np.inf)
        return claims

    def learn(self, site: int, visits: Records, alive: int) -> None:
        """Learn visits to pages of a site, with the changes that its learner expected."""
        it = self._sites.get(site)
        if it is not None:
            it.learn(visits, self._slot.rows[visits["row"]].astype(np.int64) - 1, alive)

    def value(
        self, page: Records, now: float, turn: float, hazard: Floats, rate: Floats
    ) -> tuple[Floats, Floats]:
        """Write the beliefs from claims; return q, 0 without claims, and the divisor; (n,) each."""
        jump, per = np.zeros(len(hazard)), rate.copy()
        for it in self._sites.values():
            if it.proven:
                numeric.claims_value(
                    it.state.structure,
                    page,
                    now=now,
                    turn=turn,
                    hazard=hazard,
                    rate=rate,
                    jump=jump,
                    per=per,
                )
        return jump, per

    def polled(self, *, confirmed: bool) -> Rows:
        """Return the pages of polled sources with confirmed claims (``confirmed``), or without."""
        tables = [it.state.source for it in self._sites.values()]
        found = [
            table["asked"][(table["asked"] >= 0) & ((table["found"] >= _CONFIRMED) == confirmed)]
            for table in tables
        ]
        return np.unique(np.concatenate(found)) if found else np.zeros(0, np.intp)

    def value_polls(self, now: float, value: Floats) -> None:
        """Raise the values of pages that poll sources to the values of polling."""
        for it in self._sites.values():
            numeric.claims_value_polls(it.state.structure, now, value)


# -- signal rates --
#
# Signals as columns of a table of pages: the pending number, the rate, and the precision.
#
# A signal is a source's claim that a page has changed since its last visit and since its previous
# claim. The visits to a page give
#
#     q  the precision: Σ t / Σ k,  t = kq/c of the k signals before a change, 0 before none;
#     r  the recall: the mean of (1 − (1 − q)^k)/c over the changes;
#     c  1 − (1 − q)^k e^{−(1 − r)ds}, the probability that the page has changed in s days,
#
# which are the expectations of the number of true signals, and of whether one was true: a page may
# have changed unannounced. For each site, q and r have a prior of one half with a weight of two;
# for each page, the prior is the site's value with a weight of four. The rate of signals is g =
# rΔ/q: the number of announced changes is at most the number of changes.
#
#     Δ  change rate    changes a day, as estimated elsewhere
#     d  the same from the visits here, accurate enough to attribute a change
#     k  pending        signals since the last visit
#
# Cost: 3 µs for a visit to a page with signals. Reference: ours; the moments of the model of
# :mod:`freshet.scheduler.policies.noisy_signal_index`.

_SITE_PRIOR: Final = 2.0
_PAGE_PRIOR: Final = 4.0
_HALF: Final = 0.5
#: Prior of a site's change rate: one change in this many days.
_DAYS_BEFORE: Final = 10.0
_PAGE: Final = np.dtype(
    [
        ("site", np.intp),
        ("signalled", np.bool_),
        ("pending", np.int64),
        ("visited", np.float64),
        ("until", np.float64),
        ("signals", np.float64),
        ("true", np.float64),
        ("changes", np.float64),
        ("announced", np.float64),
        ("days", np.float64),
    ]
)
_COUNTS: Final = ("signals", "true", "changes", "announced", "days")


_PRECISION: Final = ("true", "signals")
_RECALL: Final = ("announced", "changes")
_CHANGES: Final = _COUNTS.index("changes")
_DAYS: Final = _COUNTS.index("days")


class SignalRates:
    """Counts of the signals and the changes of n pages; rows are never removed."""

    def __init__(self) -> None:
        self._page = Column[np.void](_PAGE)
        self._site = Column[np.float64](np.float64, width=len(_COUNTS))

    def add(self, site: Rows) -> None:
        """Append rows."""
        first = len(self._page)
        self._page.append(len(site))
        self._page.rows["site"][first:] = site
        self._page.rows["visited"][first:] = self._page.rows["until"][first:] = -np.inf
        self._site.append(max(0, int(site.max(initial=-1)) + 1 - len(self._site)))

    def receive(self, rows: Rows, until: Floats) -> None:
        """Learn that these pages last changed on these days, (m,) each."""
        page = self._page.rows
        page["signalled"][rows] = True
        page["pending"][rows] += until > np.maximum(page["visited"], page["until"])[rows]
        page["until"][rows] = np.maximum(page["until"][rows], until)

    def learn(self, visits: VisitResults) -> None:
        """Learn from visits, in their order."""
        page = self._page.rows
        some = np.flatnonzero(page["signalled"][visits.row])
        for row, at, is_compared, is_changed in zip(
            visits.row[some].tolist(), visits.at[some].tolist(), visits.compared[some].tolist(),
            visits.changed[some].tolist(), strict=True,
        ):  # fmt: skip
            span = at - float(page["visited"][row])
            if is_compared and 0 < span < np.inf:
                self._count(row, span, is_changed=is_changed)
            page["pending"][row] = 0
            page["visited"][row] = max(at, float(page["visited"][row]))
        np.maximum.at(page["visited"], visits.row, visits.at)

    def _count(self, row: int, span: float, *, is_changed: bool) -> None:
        only = slice(row, row + 1)
        page, site = self._page.rows[only], int(self._page.rows["site"][row])
        pending, true, announced = float(page["pending"][0]), 0.0, 0.0
        if pending and is_changed:
            q, r = (float(self._shares(*each, only)[0]) for each in (_PRECISION, _RECALL))
            of_site = self._site.rows[site]
            usual = (of_site[_CHANGES] + 1.0) / (of_site[_DAYS] + _DAYS_BEFORE)
            own = (float(page["changes"][0]) + 1.0) / (float(page["days"][0]) + 1.0 / usual)
            silent = (1 - q) ** pending
            changed = 1 - silent * exp(-(1 - r) * own * span)
            true, announced = pending * q / changed, (1 - silent) / changed
        found = (pending, true, float(is_changed), announced, span)
        for place, (name, value) in enumerate(zip(_COUNTS, found, strict=True)):
            page[name] += value
            self._site.rows[site, place] += value

    def _shares(self, part: str, whole: str, rows: slice) -> Floats:
        """Return the shares of these pages, from their counts and their sites' counts."""
        page = self._page.rows[rows]
        site = self._site.rows[page["site"]]
        total = site[:, _COUNTS.index(whole)] + _SITE_PRIOR
        usual = (site[:, _COUNTS.index(part)] + _SITE_PRIOR * _HALF) / total
        share: Floats = (page[part] + _PAGE_PRIOR * usual) / (page[whole] + _PAGE_PRIOR)
        return share

    def inherit(self, old: int, new: int) -> None:
        """Copy the counts of one page to another; their site has counted them already."""
        page = self._page.rows
        for name in ("signalled", "visited", *_COUNTS):
            page[name][new] = page[name][old]

    def columns(self, change_rate: Floats) -> tuple[Ints, Floats, Floats]:
        """Return pending signals, their rate and precision, of pages with these change rates.

        (n,) each; 0 for pages without signals.
        """
        page, every = self._page.rows, slice(None)
        signalled = page["signalled"]
        if not signalled.any():
            nothing = np.zeros(len(page))
            return np.zeros(len(page), np.int64), nothing, nothing
        precision = self._shares(*_PRECISION, every)
        rate = self._shares(*_RECALL, every) * change_rate / precision
        return (
            page["pending"].copy(),
            np.where(signalled, rate, 0.0),
            np.where(signalled, precision, 0.0),
        )
