"""Sessions: periods in which a host is visited, so that one robots.txt serves many visits.

A robots.txt is valid for 24 hours. With a budget of few requests a day, that file alone would use
much of the budget; so visits are saved up. At a price λ of a request, a host is opened when, a day
from now, the value of its pages would exceed the price by

    Σ_i (W_i − λ)⁺ ≥ K λ

For n equal pages, K = 4 makes that 2√n visits a session. No host opens again before that many
visits are paid for, including the requests that the budget adds while it is open. A host with pages
due many times a day reaches the bound at once and never closes. The budget limits the number of
open hosts: the host with the most to gain opens first, and no host opens if its pages would have to
wait for better pages of other hosts. No host stays closed while requests are unused: when the
requests of the longest session are saved, the best host opens. A host without any copy, or with a
visit that cannot wait, opens as soon as its robots.txt and one page are paid for.

*Invariant.* A host is opened only if the saved requests, plus the requests of half a session, pay
for its robots.txt and one page, and for the same of hosts that were opened before and have not been
served. Consequence: if such pages rank before all others (:attr:`Sessions.unserved`), no robots.txt
is fetched in vain: with one request a week, it would be too old for the next one.

At the price, visits at the ages τ_i, with h(D_i τ_i) μ_i/D_i = λ, take nine tenths of the
budget, Σ 1/τ_i = 0.9 R.

    W   value of a visit   importance · days      D   changes a day    h(x) = x − 1 + e^{−x}
    μ   importance         R   requests a day

Reference: ours.
"""

from collections.abc import Sequence
from math import inf
from typing import Final

import numpy as np

from freshet.scheduler.arrays import Bools, Floats, Ints
from freshet.scheduler.queue.valuer import CANNOT_WAIT, VisitValuer, VisitValues
from freshet.scheduler.sources import Rows

#: Days for which a host stays open: slightly less than the validity of its robots.txt.
SESSION_DAYS: Final = 23 / 24
#: K.
_ENOUGH: Final = 4.0
#: Share of a session's visits that must be served in competition with other hosts' pages; fewer
#: visits count if their total value is as high.
_PART: Final = 0.25
_FOR_PAGES: Final = 0.9
#: The requests of the shortest session: robots.txt, and a page.
_SHORTEST: Final = 2.0
#: The part of a session within which the shortest session must be paid for.
_BY: Final = 0.5
#: Days after which the price is computed again.
_PRICE_DAYS: Final = 0.25
_HALVINGS: Final = 40
#: The price is found with this many pages, then refined with all pages in this many steps.
_SAMPLE: Final = 20_000
_STEPS: Final = 2
_STEP: Final = 1e-3
_LEAST_RATE: Final = 1e-6
#: Factor for visits to silent hosts after their share of the requests is spent.
_SILENT: Final = 1e-9
_X: Final[Floats] = np.geomspace(1e-6, 1e6, 481)
_LN_H: Final[Floats] = np.log(np.where(_X < 1e-3, _X**2 / 2 - _X**3 / 6, _X + np.expm1(-_X)))


def price(rate: Floats, importance: Floats, budget: float) -> float:
    """Return λ for n pages with these changes a day; 0 without pages.

    >>> rate = np.full(100, 0.01)  # each visited every 111 days
    >>> lam = price(rate, np.ones(100), 1.0)
    >>> round(float((1.1111 - 1 + np.exp(-1.1111)) / 0.01 / lam), 3)
    1.0
    """
    counts = importance > 0
    if not counts.any() or budget == inf:
        return 0.0
    d = np.maximum(rate[counts], _LEAST_RATE)
    ln = np.log(d / importance[counts])
    wanted, stride = _FOR_PAGES * budget, -(-len(d) // _SAMPLE)
    low, high = -60.0, 60.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_low = stride * _visits(d[::stride], ln[::stride], middle) > wanted
        low, high = (middle, high) if is_low else (low, middle)
    for _ in range(_STEPS if stride > 1 else 0):
        # The price of a sample is a good start for Newton's method, in logarithms, on all pages.
        here, there = (_visits(d, ln, high + step) for step in (0.0, _STEP))
        if not 0 < there < here:
            break
        high += _STEP * np.log(wanted / here) / np.log(there / here)
    return float(np.exp(high))


def _visits(d: Floats, ln: Floats, price: float) -> float:
    """Return the visits a day, at the logarithm of a price, to pages with these change rates."""
    x = np.exp(np.interp(price + ln, _LN_H, np.log(_X)))
    return float((d / x).sum())


class Sessions:
    """The open hosts; hosts are codes, days are Unix days.

    Attributes:
        price: λ.
        saves: the maximum number of requests to save.
        closed: (H,), the hosts that may not be visited.
        unserved: the open hosts without a taken page since they opened, in the order of opening.
        tried: (H,), the hosts that were open before.
    """

    def __init__(self) -> None:
        self.price = 0.0
        self.saves = 0.0
        self.closed: Bools = np.zeros(0, np.bool_)
        self.unserved: dict[int, None] = {}
        self.tried: Bools = np.zeros(0, np.bool_)
        #: (H,), the hosts to open as soon as that is paid for.
        self._called: Bools = np.zeros(0, np.bool_)
        self._until: Floats = np.zeros(0)
        self._priced_at = -inf

    def grow(self, hosts: int) -> None:
        """Add new hosts, which are closed."""
        more = hosts - len(self._until)
        self._until = np.append(self._until, np.zeros(more))
        self.closed = np.append(self.closed, np.ones(more, np.bool_))
        self._called = np.append(self._called, np.zeros(more, np.bool_))
        self.tried = np.append(self.tried, np.zeros(more, np.bool_))

    def close(self, now: float) -> Bools:
        """Close the hosts after the end of their sessions; return the closed ones, (H,)."""
        self.closed = self._until <= now
        self._called &= self.closed
        for code in [code for code in self.unserved if self.closed[code]]:
            del self.unserved[code]
        return self.closed

    def call(self, hosts: Rows) -> None:
        """Open these hosts, if they are closed, as soon as possible."""
        self._called[hosts] = True

    def serve(self, host: int) -> None:
        """Record that a page of a host was taken, or that none can be for now."""
        self.unserved.pop(host, None)

    def pays_for_silent(self, saved: float, budget: float) -> bool:
        """Return whether a page is paid for even if robots.txt redirects, as it may have before.

        Otherwise a host with few requests would close before its page, and robots.txt would be
        fetched in vain.
        """
        paid = saved + _BY * budget * SESSION_DAYS
        return paid >= 2 * _SHORTEST or saved >= max(1.0, self.saves)

    def pays_for_all(self, budget: float) -> bool:
        """Return whether a session of every host is paid for within half a session."""
        return _BY * budget * SESSION_DAYS >= _SHORTEST * len(self.closed)

    def open_all(self) -> None:
        """Open all hosts: a session of every host is paid for."""
        self.closed = np.zeros(len(self.closed), np.bool_)
        self.unserved.clear()

    def shift(self, by: float) -> None:
        """Shift all times after a jump of the clock."""
        self._until += by
        self._priced_at += by

    def reprice(self, rate: Floats, importance: Floats, budget: float, now: float) -> None:
        """Compute the price from the held pages (n,)."""
        self._priced_at = now
        self.price = price(rate, importance, budget)

    def should_reprice(self, now: float) -> bool:
        """Return whether the price is old enough to be computed again."""
        return now >= self._priced_at + _PRICE_DAYS

    def open(
        self, value: Floats, later: Floats, host: Rows, *, at_once: Bools, pages: Ints,
        saved: float, now: float, budget: float,
    ) -> Rows:  # fmt: skip
        """Open hosts where a session pays; return their codes.

        ``value`` and ``later`` (n,) are the values of visits now and a day from now, 0 where a page
        may not be requested, ``host`` (n,) their hosts. Hosts ``at_once`` (H,), and called hosts,
        open as soon as that is paid for. ``pages`` (H,) is the number of pages of each host,
        ``saved`` the number of saved requests.
        """
        hosts, closed = len(self.closed), self.closed
        paid = saved + _BY * budget * SESSION_DAYS - _SHORTEST * len(self.unserved)
        above = later > self.price
        gain = np.bincount(host[above], (later - self.price)[above], minlength=hosts)
        visits = np.bincount(host[above], minlength=hosts)
        a_session = budget * SESSION_DAYS
        first = closed & (at_once | self._called)
        chosen = self._first(first, value, host, int(min(paid / _SHORTEST, hosts)))
        paid -= _SHORTEST * float(chosen.sum())
        enough = 2 * np.sqrt(np.maximum(pages, 1)) + 1
        waiting = np.bincount(host[value > self.price], minlength=hosts)
        room = saved + a_session - float(waiting[~closed | chosen].sum())
        is_due = (gain >= _ENOUGH * self.price) & (visits > 0)
        is_due &= saved + a_session >= enough
        # Better pages of other hosts may use up the saved requests before a host's pages.
        soon = self._of_served(later, host, saved + a_session)
        is_served = soon >= _PART * np.minimum(np.maximum(pages, 1), enough) * self.price
        wants = np.flatnonzero(closed & ~first & is_due & is_served)
        due, paid = _paid_for(wants[np.argsort(-soon[wants])], visits, room, paid)
        chosen[due] = True
        left = closed & ~chosen
        if left.any():
            self.saves = float(enough.max()) if enough.max() > a_session else 0.0
            some = np.bincount(host, later, minlength=hosts)
            code = int(np.argmax(np.where(left, soon + 1e-9 * some, -1.0)))
            is_idle = is_served[code] and not visits[~left].any()
            is_idle &= saved + a_session >= enough[code]
            is_unused = not chosen.any() and saved >= max(1.0, self.saves)
            is_paid = paid >= _SHORTEST and some[code] > 0
            chosen[code] |= is_paid and (is_idle or is_unused)
        return self._begin(chosen, now)

    def _begin(self, chosen: Bools, now: float) -> Rows:
        """Open these hosts (H,); return their codes."""
        found = np.flatnonzero(chosen)
        self._until[found] = now + SESSION_DAYS
        self.tried[found] = True
        self._called &= self.closed & ~chosen
        self.unserved.update(dict.fromkeys(found.tolist()))
        self.closed = self.closed & ~chosen
        return found

    def _first(self, wanted: Bools, value: Floats, host: Rows, most: int) -> Bools:
        """Return (H,), the ``wanted`` hosts with the best visits, at most ``most``."""
        best, chosen = np.zeros(len(wanted)), np.zeros(len(wanted), np.bool_)
        np.maximum.at(best, host, value)
        codes = np.flatnonzero(wanted)
        chosen[codes[np.argsort(-best[codes], kind="stable")][: max(most, 0)]] = True
        return chosen

    def _of_served(self, later: Floats, host: Rows, requests: float) -> Floats:
        """Return (H,), the total value of each host's visits among the best ones that fit."""
        most = int(min(requests + 1, len(later)))
        served = np.argpartition(-later, most - 1)[:most] if most else np.empty(0, np.intp)
        found = np.bincount(host[served], later[served], minlength=len(self.closed))
        return found.astype(np.float64)


def _paid_for(wants: Rows, visits: Ints, room: float, paid: float) -> tuple[Sequence[int], float]:
    """Return the first of these hosts, as many as fit and are paid for, and the requests left."""
    found: list[int] = []
    for code in wants.tolist():
        if room <= 0 or paid < _SHORTEST:
            break
        found.append(code)
        room -= float(visits[code])
        paid -= _SHORTEST
    return found, paid


def begin_sessions(
    sessions: Sessions, valuer: VisitValuer, values: VisitValues, offered: Floats, *,
    saved: float, silent: Bools,
) -> Rows:  # fmt: skip
    """Open the hosts that are due for a session; return their codes.

    ``offered`` (n,) are the values of visits that are allowed now, ``saved`` the saved requests.
    The ``silent`` hosts (H,) open only if there is nothing else to request.
    """
    now, budget, host = valuer.now, valuer.budget, valuer.pages["host"]
    if not valuer.has_price and sessions.pays_for_all(budget):
        sessions.open_all()
        return np.zeros(0, np.intp)
    if not sessions.close(now).any():
        return np.zeros(0, np.intp)
    later = valuer.tomorrow(values, offered) * np.where(silent, _SILENT, 1.0)[host]
    at_once = valuer.of_hosts(offered >= CANNOT_WAIT) > 0
    # Values of other policies have no price: then hosts do not wait for more visits.
    is_new = valuer.unvisited() | (not valuer.has_price)
    at_once |= is_new & ~silent & (valuer.of_hosts(offered > 0) > 0)
    pages = valuer.of_hosts(valuer.held)
    return sessions.open(
        offered, later, host, at_once=at_once, pages=pages, saved=saved, now=now, budget=budget
    )
