"""Sources with change signals that announce every change, as visits prove or refute it.

A policy with *complete observations* of a page visits it on its signals alone. So a source must
earn that, and can lose it. Each visit to a page with claims from a source judges the source:

    told      visits that found a pending claim                 false   those without a change
    expected  changes expected in spans without a claim         missed  those that were found there

Visits that follow signals find announced changes, and are no evidence about unannounced ones: hence
the spans without a claim. A change that was found without a claim waits for a day, and for the
source's next answer: our poll may have been late. A claim of a change that is a day older than the
source's last answer counts as a missed change as well.

The upper bound of a share of failures, at 90 %, is

    Q(1 + failures)/(1 + trials),     Q the quantile of a Gamma distribution (Wilson and Hilferty).

A source becomes complete when both bounds are at most a fifth, and remains so while they are at
most three tenths. Some lists never change some of their dates: pages with a claim that has moved
can prove a source complete just for such pages. The last ninety visits with a claim count, and the
last thirty changes that were expected without one.

Doubts about single pages act sooner. After a missed change, a page is observed completely again
after three trials. A page is not observed completely if five changes were expected since its last
visit, or if its source was silent for twenty times its usual gap, or unanswered for five times its
usual gap, and at least for a week. Then it is visited as if there were no signals, which tests the
source.

Reference: ours; complete observations as in Kolobov et al., NeurIPS 2019.
"""

from collections import defaultdict
from math import expm1, inf, sqrt
from typing import Final

import numpy as np

from freshet.scheduler.arrays import Bools, Column, Floats, Ints
from freshet.scheduler.estimate.evidence import UNASKED, SignalBatch
from freshet.scheduler.estimate.sources_trust import Reputation, Trust
from freshet.scheduler.sources import Rows

_ENTERED: Final = 0.2
_LEFT: Final = 0.3
#: Number of trials with a claim, and without, that count.
_CLAIM_TRIALS: Final = 90.0
_CHANGES_KEPT: Final = 30.0
#: Trials for which a page is in doubt after a missed change, and their maximum.
_DOUBT: Final = 3.0
_MOST_DOUBT: Final = 10.0
#: Changes expected without a claim at which a page is in doubt.
_SURPRISING: Final = 5.0
#: Right trials credited to a source with signals that are declared complete.
_DECLARED: Final = 30.0
#: The normal quantile of 90 %.
_Z: Final = 1.2816
#: Days for which a claim may be late.
_GRACE: Final = 1.0
#: Multiples of its usual gap for which a source may be silent, and unanswered.
_SILENT: Final = 20.0
_UNANSWERED: Final = 5.0
_LEAST_SILENCE: Final = 7.0
#: Number of gaps in the running mean.
_GAPS: Final = 20.0
#: Value of polling a source that may still prove to be complete, relative to a complete one.
_CURIOSITY: Final = 0.25

_SOURCE: Final = np.dtype(
    [
        ("number", np.int64),
        ("asked", np.int64),
        ("claims", np.int64),
        *((name, np.float64) for name in ("answered", "answers", "answer_gap")),
        *((name, np.float64) for name in ("spoke", "words", "word_gap")),
        *((name, np.float64) for name in ("told", "false")),
        # By whether a claim on the page has moved.
        *((name, np.float64, 2) for name in ("expected", "missed")),
        # The same, by whether the page is declared.
        ("complete", np.bool_, (2, 2)),
        # Whether it may still prove to be complete.
        ("open", np.bool_),
    ]
)
_MENTION: Final = np.dtype(
    [
        ("page", np.intp),
        ("source", np.intp),
        ("until", np.float64),
        ("pending", np.int64),
        # The day of the first pending claim.
        ("told_at", np.float64),
        ("moved", np.intp),
        ("owed", np.float64),
    ]
)


def at_most(failures: float, trials: float) -> float:
    """Return the upper bound of a share of failures, at 90 %.

    >>> round(at_most(0, 11), 2), round(at_most(3, 30), 2)
    (0.19, 0.22)
    """
    return _quantile(1.0 + failures, _Z) / (1.0 + trials)


def is_more(failures: float, trials: float) -> bool:
    """Return whether a share of failures is above :data:`_LEFT`, at 90 %.

    >>> is_more(2, 2), is_more(5, 6)
    (False, True)
    """
    return failures > 0 and _quantile(failures, -_Z) > _LEFT * (1.0 + trials)


def _quantile(shape: float, z: float) -> float:
    return shape * (1 - 1 / (9 * shape) + z / (3 * sqrt(shape))) ** 3


class CompleteSources:
    """The sources with claims on n pages, and their reliability; rows are never removed.

    Attributes:
        declared: (n,), whether the user declares the signals of a page complete.
        known: (n,), whether a source has claims on a page.
        now: the day of the latest input.
    """

    def __init__(self) -> None:
        self.declared, self.known = Column[np.bool_](np.bool_), Column[np.bool_](np.bool_)
        self.now = -inf
        self._source, self._mention = Column[np.void](_SOURCE), Column[np.void](_MENTION)
        # The position of each source by site and number, and all positions of a number.
        self._place: dict[tuple[int, int], int] = {}
        self._places: defaultdict[int, list[int]] = defaultdict(list)
        # For each page, its mentions by the positions of their sources.
        self._slots: defaultdict[int, dict[int, int]] = defaultdict(dict)
        # For each position, the spans in which changes were found without a claim, with their
        # expectations.
        self._held: defaultdict[int, dict[int, tuple[float, float, float]]] = defaultdict(dict)

    def add(self, count: int) -> None:
        """Append rows."""
        self.declared.append(count)
        self.known.append(count)

    # -- signals -------------------------------------------------------------------

    def receive(self, batch: SignalBatch, site: Rows, visited: Floats) -> None:
        """Learn from a signal; its pages have these sites and days of the last visit."""
        self.now = max(self.now, batch.at)
        codes, which = np.unique(site, return_inverse=True)
        places = np.array([self._place_of(code, batch) for code in codes.tolist()], np.intp)[which]
        pairs = zip(batch.row.tolist(), places.tolist(), strict=True)
        is_new = np.array([place not in self._slots[row] for row, place in pairs], np.bool_)
        first_claims = batch.take(np.flatnonzero(is_new))
        news = self._add_claims(first_claims, places[is_new], visited[is_new])
        columns = (batch.row, places, batch.since, batch.until, visited)
        known = (column[~is_new].tolist() for column in columns)
        for row, place, since, until, last in zip(*known, strict=True):
            if self._is_news(self._slots[row][place], since, until, last):
                news.add(place)
        for place in self._places.get(batch.source, ()):
            self._answered(place, batch.at, has_news=place in news)

    def _add_claims(self, batch: SignalBatch, places: Rows, visited: Floats) -> set[int]:
        """Add the first claims of sources on these pages; return the sources with news."""
        first = len(self._mention)
        self._mention.append(len(places))
        new, is_news = self._mention.rows[first:], batch.until > visited
        new["page"], new["source"], new["until"] = batch.row, places, batch.until
        new["pending"], new["moved"] = is_news, is_news & np.isfinite(visited)
        new["told_at"] = batch.at
        self.known.rows[batch.row] = True
        np.add.at(self._source.rows["claims"], places, 1)
        for slot, (row, place) in enumerate(
            zip(batch.row.tolist(), places.tolist(), strict=True), first
        ):
            self._slots[row][place] = slot
        return set(places[is_news].tolist())

    def _place_of(self, site: int, batch: SignalBatch) -> int:
        key = site, batch.source
        if key not in self._place:
            self._place[key] = len(self._source)
            self._places[batch.source].append(len(self._source))
            self._source.append(1)
            new = self._source.rows[-1]
            new["number"], new["asked"] = batch.source, batch.asked
            new["answered"], new["spoke"] = -inf, batch.at
        return self._place[key]

    def _is_news(self, slot: int, since: float, until: float, visited: float) -> bool:
        """Return whether a claim announces a change that no claim had announced."""
        it = self._mention.rows[slot]
        place, before = int(it["source"]), float(it["until"])
        it["until"] = max(until, before)
        self._source.rows[place]["claims"] += 1
        held = self._held[place]
        if slot in held and until > held[slot][0]:
            _, found_at, _ = held.pop(slot)
            # A list shows the last of several changes: a later one is no evidence about this one.
            if since <= found_at:
                self._count(slot, is_true=True)
                it["moved"] = 1
                return True
        if until <= max(visited, before):
            return False
        if until < self._source.rows[place]["answered"] - _GRACE:
            self._expect(slot, 1.0, missed=1.0)
        it["moved"] = 1
        it["told_at"] = it["told_at"] if it["pending"] else self.now
        it["pending"] += 1
        return True

    def _answered(self, place: int, at: float, *, has_news: bool) -> None:
        source = self._source.rows[place]
        if has_news:
            _note(source, ("spoke", "words", "word_gap"), at)
        _note(source, ("answered", "answers", "answer_gap"), at)
        self._settle(place, at)
        self._judge(place)

    def _settle(self, place: int, now: float) -> None:
        """Count as missed the changes that should have been announced by now."""
        held = self._held[place]
        for slot, (_, at, expected) in list(held.items()):
            if now >= at + _GRACE:
                del held[slot]
                self._expect(slot, expected, missed=1.0)

    # -- visits --------------------------------------------------------------------

    def learn(self, row: int, at: float, span: float, rate: float, *, changed: bool) -> int:
        """Judge the sources of a page with this change rate by a visit; it resets pending claims.

        Return the number of announced changes if that is complete, else −1. The span is 0 if the
        visit did not compare.
        """
        announced = (
            self._judged(row, at, span, -expm1(-rate * span), changed=changed) if span else -1
        )
        for slot in self._slots[row].values():
            self._mention.rows[slot]["pending"] = 0
        return announced

    def _judged(self, row: int, at: float, span: float, expected: float, *, changed: bool) -> int:
        announced, slots = -1, self._slots[row]
        for place, slot in slots.items():
            pending = int(self._mention.rows[slot]["pending"])
            if self._observed(np.array([slot]))[0]:
                announced = max(announced, pending)
            if pending:
                self._count(slot, is_true=changed)
            elif changed:
                self._held[place].setdefault(slot, (at - span, at, expected))
            else:
                self._expect(slot, expected)
            if self._source.rows[place]["asked"] == UNASKED:
                self._settle(place, at)
            self._judge(place)
        return announced if (announced > 0) == changed else -1

    def _count(self, slot: int, *, is_true: bool) -> None:
        it = self._mention.rows[slot]
        source = self._source.rows[it["source"]]
        source["told"] += 1.0
        source["false"] += not is_true
        over = _CLAIM_TRIALS / max(float(source["told"]), _CLAIM_TRIALS)
        source["told"] *= over
        source["false"] *= over
        it["owed"] = max(0.0, it["owed"] - is_true)

    def _expect(self, slot: int, expected: float, *, missed: float = 0.0) -> None:
        it = self._mention.rows[slot]
        source, moved = self._source.rows[it["source"]], int(it["moved"])
        source["expected"][moved] += expected
        source["missed"][moved] += missed
        over = _CHANGES_KEPT / max(float(source["expected"][moved]), _CHANGES_KEPT)
        source["expected"][moved] *= over
        source["missed"][moved] *= over
        owed = it["owed"] + _DOUBT if missed else it["owed"] - expected
        it["owed"] = min(max(owed, 0.0), _MOST_DOUBT)

    def _judge(self, place: int) -> None:
        it = self._source.rows[place]
        announced, false = it["told"], it["false"]
        expected, missed = it["expected"], it["missed"]
        keeps_dates = missed[0] > _LEFT * (1.0 + expected[0])
        for declared in (0, 1):
            more = declared * _DECLARED
            of_all = at_most(missed.sum(), expected.sum() + more)
            of_moved = min(of_all, at_most(missed[1], expected[1] + more))
            for moved, bound in enumerate((inf if keeps_dates else of_all, of_moved)):
                limit = _LEFT if it["complete"][declared, moved] else _ENTERED
                worst = max(bound, at_most(false, announced + more))
                it["complete"][declared, moved] = worst <= limit
        it["open"] = not is_more(false, announced) and not is_more(missed[1], expected[1])

    # -- results --------------------------------------------------------------------

    def _observed(self, slots: Rows | slice) -> Bools:
        """Return whether the source of each mention announces every change of the page."""
        it = self._mention.rows[slots]
        declared = self.declared.rows[it["page"]].astype(np.intp)
        trusted = self._source.rows["complete"][it["source"], declared, it["moved"]]
        found: Bools = trusted & (it["owed"] <= 0) & self._responsive()[it["source"]]
        return found

    def _responsive(self) -> Bools:
        """Return whether each source is neither silent nor unanswered."""
        it = self._source.rows
        silent = np.maximum(_SILENT * it["word_gap"], _LEAST_SILENCE)
        away = np.maximum(_UNANSWERED * it["answer_gap"], _LEAST_SILENCE)
        here = (it["asked"] == UNASKED) | (self.now - it["answered"] <= away)
        found: Bools = (self.now - it["spoke"] <= silent) & here
        return found

    def columns(self, hazard: Floats) -> tuple[Bools, Ints, Floats]:
        """Return (n,) each: completely observed pages, announced changes, and the missed share.

        Announced changes are counted since the last visit. ``hazard`` (n,) are the changes expected
        since the last visit without signals.
        """
        n, it = len(hazard), self._mention.rows
        complete, pending, missed = np.zeros(n, np.bool_), np.zeros(n, np.int64), np.zeros(n)
        some = (it["pending"] > 0) | (hazard[it["page"]] <= _SURPRISING)
        it = it[some & self._observed(slice(None))]
        source = self._source.rows[it["source"]]
        complete[it["page"]] = True
        np.maximum.at(pending, it["page"], it["pending"])
        trials = source["expected"].sum(axis=1) + _DECLARED
        np.maximum.at(missed, it["page"], (1.0 + source["missed"].sum(axis=1)) / trials)
        return complete, pending, missed

    def pending_since(self) -> Floats:
        """Return (n,), the day since which a claim on each page is pending; inf without one."""
        it = self._mention.rows[self._mention.rows["pending"] > 0]
        found = np.full(len(self.known), np.inf)
        np.minimum.at(found, it["page"], it["told_at"])
        return found

    def asked(self, gain: Floats) -> tuple[Rows, Floats]:
        """Return the rows of polled pages, and the total ``gain`` (n,) of their sources' pages."""
        it = self._mention.rows
        source = self._source.rows[it["source"]]
        polled = (source["asked"] != UNASKED) & self._responsive()[it["source"]]
        part = np.where(self._observed(slice(None)), 1.0, _CURIOSITY * source["open"])
        found = np.zeros(len(gain))
        np.add.at(found, source["asked"][polled], (part * gain[it["page"]])[polled])
        rows = np.flatnonzero(found)
        return rows, found[rows]

    def reputations(self, site: int) -> list[Reputation]:
        """Return the reputation of each source of a site."""
        mentioned = np.bincount(self._mention.rows["source"], minlength=len(self._source))
        return [
            _reputation(self._source.rows[place], int(mentioned[place]))
            for (code, _), place in self._place.items()
            if code == site
        ]

    def inherit(self, old: int, new: int) -> None:
        """Copy the claims on one page to another."""
        theirs, mine = self._slots.get(old, {}), self._slots[new]
        for place, slot in theirs.items():
            if place not in mine:
                mine[place] = len(self._mention)
                self._mention.append(1)
                self._mention.rows[-1] = self._mention.rows[slot]
                self._mention.rows["page"][-1] = new
        self.known.rows[new] = bool(mine)


def _note(source: np.void, names: tuple[str, str, str], at: float) -> None:
    """Record a day, and update the number of days and the mean gap between them."""
    day, number, gap = names
    if source[number]:
        weight = 1.0 / min(float(source[number]), _GAPS)
        source[gap] += weight * (at - source[day] - source[gap])
    source[number] += 1.0
    source[day] = at


def _reputation(it: np.void, pages: int) -> Reputation:
    announced, expected = float(it["told"]), float(it["expected"].sum())
    trust: Trust = "noisy" if announced and expected else "unjudged"
    if not it["open"]:
        trust = "worthless"
    if it["complete"][0].any():
        trust = "complete"
    return Reputation(
        source=int(it["number"]),
        trust=trust,
        precision=1.0 - float(it["false"]) / announced if announced else None,
        recall=max(0.0, 1.0 - float(it["missed"].sum()) / expected) if expected else None,
        late_days=None,
        pages=pages,
        claims=int(it["claims"]),
    )
