"""The watched pages, and whether each may be requested now. Days are Unix days.

A page is *captured* once there is a copy. Before that, its value is its importance times the days
since it was found, times the probability that it exists
(:mod:`~freshet.scheduler.queue.existence`), so that dead links do not use up a small budget. The
first two factors are the limit of the harmonic and the binary index for a page that has certainly
changed. The value of a captured page is reduced if its folder has been removed. Sites link to pages
before they publish them: the value of a URL that was dead at its first request is multiplied by the
share of such URLs of the host that led to content later. A sitemap lists pages and their changes:
one that was never read has the value of ten pages.
"""

import re
from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from math import inf
from typing import Any, Final
from urllib.parse import urlsplit
from zlib import adler32, crc32

import aiosqlite
import numpy as np
from numpy.typing import ArrayLike, NDArray

from freshet.scheduler.arrays import Arrays, Bools, Column, Floats, Ints, rows_among
from freshet.scheduler.estimate.evidence import VisitResults
from freshet.scheduler.queue.existence import Existence
from freshet.scheduler.sources import Rows
from freshet.storage.queries import columns as columns_queries
from freshet.storage.records import Visit

_DAY_S: Final = 86_400.0
#: Days after which a page that is refused, skipped or redirects is requested again.
_ELSEWHERE_DAYS: Final = 30.0
#: Minimum and maximum for a page that redirects permanently.
_LEAST_ALIAS_DAYS: Final = 1.0
_MOST_ALIAS_DAYS: Final = 365.0
_TURNED_DAYS: Final = 1.0
#: The first wait after the attempts of a page have failed, and the factor by which it grows.
_FAILED_DAYS: Final = 1 / 24
_FAILED_FACTOR: Final = 4.0
#: The number of failures is forgotten at a start; the wait for them is at most this.
_FAILED_MOST_DAYS: Final = 1.0
#: Factor of the value of a page that is gone for the first time.
_GONE_FACTOR: Final = 0.1
#: Prior of the rate at which a host's URLs without content turn into pages: this many in this many
#: days.
_TURNED: Final = 0.5
_EMPTY_DAYS: Final = 20_000.0
#: Prior of the probability that a URL that was dead at its first request leads to content about a
#: day later, because sites link to pages before they publish them: this many attempts.
_EARLY_TRIES: Final = 20.0
_EARLY_DAYS: Final = 1.0
_MOST_TIMES: Final = 30
#: Kinds of observations that do not show where a URL leads.
_SILENT: Final = ("failed", "refused")
_SHOWN: Final = ("new", "changed", "unchanged")
_MOMENT_DAYS: Final = 1e-6
_LIST: Final = 10.0
#: The value of a day of an overdue page, and a lower bound of the values of overdue pages.
_OVERDUE: Final = 1e200
OVERDUE: Final = 1e150

_ROW: Final = np.dtype(
    [
        ("page_id", np.int64),
        ("host", np.intp),
        ("area", np.int16),
        ("pace", np.float32),
        ("found_at", np.float64),
        ("importance", np.float64),
        ("since", np.float64),
        ("asked", np.float64),
        ("absent", np.float64),
        ("captured", np.bool_),
        ("away", np.bool_),
        ("gone", np.int16),
        ("failures", np.int16),
        ("not_before", np.float64),
        ("least", np.float64),
        ("most", np.float64),
        ("taken", np.bool_),
        ("list", np.bool_),
        ("half_life", np.float64),
        ("paid", np.float64),
        ("spelling", np.int64),
        ("empty", np.bool_),
        ("leads_to", np.int64),
        ("for_good", np.bool_),
        ("had", np.bool_),
    ]
)

#: Maximum number of redirects between known pages that are followed.
_HOPS: Final = 5

#: Pace of a seed, of the pages that it links to, and so on; the last is for all deeper pages.
_PACE_AT: Final = (3.0, 1.8, 1.0, 0.6)
_DATED_PACE: Final = 0.25

_INDEX: Final = re.compile(r"/index\.(?:html?|php)$")


def spelling(url: str) -> int:
    """Return a number that all spellings of a canonical URL share; 0 for the root of a host.

    Spellings differ in the scheme, ``www.``, an index file or a slash at the end.
    """
    place = _INDEX.sub("/", url.partition("://")[2].removeprefix("www.")).rstrip("/")
    return url_key(place) if "/" in place else 0


def place(origin: str) -> int:
    """Return a number that does not depend on the scheme, the port, or ``www.``."""
    return url_key((urlsplit(origin).hostname or origin).removeprefix("www."))


def url_key(url: str) -> int:
    """Return 63 bits that identify a URL, equal in each process."""
    text = url.encode("utf-8", "replace")
    return (crc32(text) << 31) ^ adler32(text)


_DATED: Final = re.compile(r"/(?:19|20)\d\d[/-]\d|/v?\d+\.\d+|\d{4}")


def is_dated(url: str) -> bool:
    """Return whether a path names a day, a version, or a number of four digits."""
    return _DATED.search(urlsplit(url).path) is not None


def presumed_pace(url: str, depth: int) -> float:
    """Return how often a page presumably changes, relative to the usual page of its site.

    ``depth`` counts the links from a seed to the page. The content of a dated URL is finished. The
    factors are cautious: ``bench sites --paces`` fits larger ones for seeds and first links, and a
    smaller one for dated URLs.
    """
    pace = _PACE_AT[min(depth, len(_PACE_AT) - 1)]
    return pace * _DATED_PACE if is_dated(url) else pace


class PageTable:
    """Growing columns by name: ``table["host"]`` is (n,), written only by its owner.

    Columns:
        host, area: integer codes.
        pace: from :func:`presumed_pace`.
        since: the day on which the copy was last known to be right, or the page was found.
        asked: the day of the last request.
        absent: the ``since`` from before the URL led to no content; inf: it leads to content, or
            was never requested.
        least, most: minimum and maximum days between two visits.
        gone, failures: numbers of consecutive visits that found it gone, or failed.
        taken: whether it is being requested.
        not_before: the day before which it is not requested again.
        away: whether it leads to another page; then it has no copy. If permanently, it is requested
            again after ``recheck_days``, and then each time after as long as the redirect has
            lasted.
        half_life: whether it is an ephemeral source, as in
            :class:`~scheduler.queue.page_rules.PageRules`.
        leads_to: id of the page to which it redirects, −1 if unknown.
        for_good: whether that redirect is permanent.
        had: whether there was ever a copy.
        paid: the value of the last visit when it was taken, 0 before.
    """

    def __init__(self, recheck_days: float = _ELSEWHERE_DAYS) -> None:
        self.existence = Existence()
        self._recheck_days = min(max(recheck_days, _LEAST_ALIAS_DAYS), _MOST_ALIAS_DAYS)
        # One array per column: a valuation reads some of them whole.
        self._columns = {name: Column[Any](_ROW[name]) for name in _ROW.names or ()}
        #: The ids of the first rows, while they ascend, and the rows of all others.
        self._ascending = array("q")
        self._row_of: dict[int, int] = {}
        #: For each host (code): the number of pages that came back after being gone, and the days
        #: until then.
        self._turned: defaultdict[int, tuple[int, float]] = defaultdict(lambda: (0, 0.0))
        #: The ``absent`` of pages that were linked again and count as new; by row.
        self._linked_again: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self._columns["page_id"])

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._columns[name].rows

    def row(self, page_id: int) -> int | None:
        """Return the row of a page, or None."""
        place = bisect_left(self._ascending, page_id)
        if place < len(self._ascending) and self._ascending[place] == page_id:
            return place
        return self._row_of.get(page_id)

    def add(
        self, page_id: NDArray[np.int64], *, urls: Sequence[str], **columns: NDArray[np.generic]
    ) -> Rows:
        """Append pages that are not watched yet; return their rows, (m,)."""
        first = len(self)
        rows = np.arange(first, first + len(page_id))
        for column in self._columns.values():
            column.append(len(page_id))
        usual = {"page_id": page_id, "pace": 1.0, "absent": inf, "leads_to": -1}
        for name, values in {**usual, **columns}.items():
            self[name][first:] = values
        self._index(page_id, rows)
        self.existence.watch(self["host"][first:], urls)
        return rows

    def _index(self, page_id: Ints, rows: Rows) -> None:
        last = self._ascending[-1] if self._ascending else -1
        ascends = not self._row_of and bool((np.diff(page_id, prepend=last) > 0).all())
        if ascends and len(self._ascending) == len(self) - len(rows):
            self._ascending.frombytes(np.ascontiguousarray(page_id, np.int64).tobytes())
        else:
            self._row_of.update(zip(page_id.tolist(), rows.tolist(), strict=True))

    def shift(self, by: float, now: float) -> None:
        """Shift times after a jump of the clock by some days; no time lies in the future."""
        self["not_before"][:] += by
        for name in ("found_at", "since", "asked", "absent"):
            known = np.isfinite(self[name])
            self[name][known] = np.minimum(self[name], now)[known]

    def recall_gone(self, visits: VisitResults, before: Arrays | None = None) -> None:
        """Count how often in a row pages were gone at their last visits, and which came back.

        ``before`` are columns (k,) of the first rows before these visits; None: all are new.
        """
        there = ~visits.gone
        self._recall_places(visits.row, there, before)
        last_there = np.full(len(self), -1)
        last_there[visits.row[there]] = np.flatnonzero(there)
        is_after = visits.gone & (np.arange(len(visits)) > last_there[visits.row])
        times = np.bincount(visits.row[is_after], minlength=len(self))
        days, absent = self["found_at"].copy(), dict[int, float]()
        if before is not None:
            known = slice(len(before["since"]))
            times[known] += np.where(last_there[known] < 0, before["gone"], 0)
            days[known] = before["since"]
            away = np.flatnonzero((before["gone"] > 0) & np.isfinite(before["absent"]))
            absent = dict(zip(away.tolist(), before["absent"][away].tolist(), strict=True))
        gone = self["gone"] > 0
        self["gone"][gone] = np.clip(times[gone], 1, _MOST_TIMES)
        was_gone = visits.row[visits.gone]
        some = np.append(was_gone, np.array(list(absent), np.intp)) if absent else was_gone
        since = dict(zip(some.tolist(), days[some].tolist(), strict=True))
        for k in np.flatnonzero(np.isin(visits.row, some)).tolist():
            row, at = int(visits.row[k]), float(visits.at[k])
            if visits.gone[k]:
                absent.setdefault(row, since[row])
            else:
                since[row] = at
                self._count_turned(row, at, absent.pop(row, inf))

    def _recall_places(self, rows: Rows, there: Bools, before: Arrays | None) -> None:
        tried = np.zeros(len(self), np.bool_)
        if before is not None:
            known = slice(len(before["since"]))
            tried[known] = before["captured"] | np.isfinite(before["absent"])
        else:
            # Pages that were refused, skipped or redirected have no informative visits.
            led = ~self["captured"] & np.isfinite(self["absent"])
            led[rows] = False
            away = np.flatnonzero(self["away"])
            target, is_known = self._final(away)
            led[away] = False
            led[away[is_known]] = self["host"][away[is_known]] != self["host"][target]
            led[rows] = False
            some = np.flatnonzero(led)
            self.existence.recall(some, np.zeros(len(some), np.bool_), tried)
        self.existence.recall(rows, there, tried)

    # -- in the store --

    def written(self, some: slice) -> NDArray[np.void]:
        """Return a copy of these rows, with no page in flight."""
        rows = np.zeros(len(self["page_id"][some]), _ROW)
        for name in self._columns:
            rows[name] = self[name][some]
        rows["taken"] = False
        # After a start, no page waits longer than this for failures.
        failed = rows["failures"] > 0
        latest = rows["asked"] + _FAILED_MOST_DAYS
        rows["not_before"][failed] = np.minimum(rows["not_before"], latest)[failed]
        rows["failures"] = 0
        return rows

    def read(self, rows: NDArray[np.void], count: int) -> None:
        """Append written rows, of ``count`` in all.

        Raises:
            TypeError: if another version wrote them.
        """
        if rows.dtype != _ROW:
            raise TypeError("the rows were written by another version")
        for name, column in self._columns.items():
            if not len(column):
                column.reserve(count)
            column.extend(rows[name])
        self._index(rows["page_id"], np.arange(len(self) - len(rows), len(self)))

    @property
    def turned(self) -> NDArray[np.float64]:
        """The hosts (codes), their pages that came back, and the days until then; (k, 3)."""
        found = [(host, *counts) for host, counts in self._turned.items()]
        return np.array(found, np.float64).reshape(-1, 3)

    @turned.setter
    def turned(self, found: NDArray[np.float64]) -> None:
        self._turned.update({int(host): (int(n), days) for host, n, days in found.tolist()})

    def refresh(self, rows: Rows, **columns: NDArray[np.generic]) -> None:
        """Set columns of pages (m,) that were visited in the meantime."""
        for name, values in columns.items():
            self[name][rows] = values

    def may_be_requested(self, now: float) -> Bools:
        """Return (n,), whether a page is neither in flight nor deferred."""
        may: Bools = ~self["taken"]
        rows = self
        may &= rows["not_before"] <= now
        may &= (rows["since"] + rows["least"] <= now) | ~rows["captured"]
        return may

    def overdue(self, now: float) -> Bools:
        """Return (n,), whether more than ``most`` days have passed since a page's last visit.

        A page with a fixed interval is overdue even before its first visit, as long after it was
        found.
        """
        found: Bools = self._recurs() & (self["since"] + self["most"] <= now)
        return found

    def next_overdue(self, now: float) -> float:
        """Return the next day on which a page becomes overdue that may then be requested."""
        may = self._recurs() & ~self["taken"] & np.isfinite(self["most"])
        at = self.overdue_from(may)
        return float(np.min(at, where=at > now, initial=inf))

    def overdue_from(self, rows: int | Rows | Bools) -> Any:
        """Return the days from which pages are overdue and may be requested."""
        return np.maximum(self["since"][rows] + self["most"][rows], self["not_before"][rows])

    def _recurs(self) -> Bools:
        is_first = np.isinf(self["absent"]) & (self["least"] == self["most"])
        found: Bools = self["captured"] | is_first
        return found

    def names(self, place: Ints) -> tuple[Rows, Ints]:
        """Return the rows of hosts that only redirect, and (H,) the hosts to which they do, or −1.

        The rows are those that redirect to a held page.

        A host qualifies if all its visited pages redirect to one other host, and none ever had
        content. ``place`` (H,) are the hosts' :func:`place`. A temporary redirect counts only to
        another host of the same place, because elsewhere it may indicate an outage.
        """
        host, held = self["host"], self["captured"] & (self["gone"] == 0)
        some = np.flatnonzero(self["leads_to"] >= 0)
        final, known = self._final(some)
        some = some[known]
        is_name = ~self["had"][some] & (host[some] != host[final])
        is_name &= self["for_good"][some] | (place[host[some]] == place[host[final]])
        some, final = some[is_name], final[is_name]
        target = np.full(len(place), -1)
        if not len(some):
            return some, target
        target[host[some]] = host[final]
        visited = self["captured"] | self["away"] | np.isfinite(self["absent"])
        visited[some[target[host[some]] == host[final]]] = False
        has_others = np.bincount(host[visited], minlength=len(place)) > 0
        target[has_others] = -1
        # Targets of redirects (:meth:`led_to`) are requested at once.
        is_name = held[final] & ~has_others[host[some]] & np.isfinite(self["not_before"][some])
        return some[is_name], target

    def _final(self, some: Rows) -> tuple[Rows, Bools]:
        """Return the rows of the final targets of redirecting pages, and a mask (m,)."""
        final, known = self.rows(self["leads_to"][some])
        for _ in range(_HOPS):
            on = np.flatnonzero(self["leads_to"][final] >= 0)
            then, there = self.rows(self["leads_to"][final[on]])
            final[on[there]] = then
        return final, known

    def weighted(
        self, value: Floats, now: float, turn: float = 0.0, new_page: float = 1.0
    ) -> Floats:
        """Return (n,), the value of a visit: ``value`` (n,) where captured, less where gone.

        A page that was never captured counts as if it had waited ``turn`` more days, times
        ``new_page``.
        """
        rows, found = self, value.copy()
        new = np.flatnonzero(~rows["captured"])
        if len(new):
            # A page found at this moment has a value above 0.
            waited = np.maximum(now - rows["since"][new], _MOMENT_DAYS) + turn
            waited *= new_page * self.existence.of_new(new)
            waited[rows["list"][new]] *= _LIST
            found[new] = rows["importance"][new] * waited
        held = rows["captured"] & (rows["gone"] == 0)
        found[held] *= self.existence.of_held()[held]
        found[rows["gone"] > 0] *= _GONE_FACTOR
        empty = rows["empty"][:] = self._empty()
        found[empty] = self._of_turning(np.flatnonzero(empty), now)
        overdue = self.overdue(now)
        found[overdue] = _OVERDUE * (now - rows["since"][overdue])
        return found

    def lists(self) -> Rows:
        """Return the rows of sitemaps and feeds of hosts with a held page.

        On other hosts they may be the only way to a page.
        """
        host, is_list = self["host"], self["list"]
        has_pages = np.zeros(int(host.max(initial=-1)) + 1, np.bool_)
        has_pages[host[self["captured"] & (self["gone"] == 0) & ~is_list]] = True
        found: Rows = np.flatnonzero(is_list & has_pages[host])
        return found

    def _empty(self) -> Bools:
        """Return (n,), whether a URL led to no content, the last two times if it ever had content.

        A never requested URL that is another spelling of a held page is presumed empty as well.
        """
        captured, led = self["captured"], np.isfinite(self["absent"])
        found: Bools = led & (~captured | (self["gone"] > 1))
        unread = np.flatnonzero(~captured & ~led)
        found[unread] = self._spelt_otherwise(unread) >= 0
        return found

    def _spelt_otherwise(self, some: Rows) -> Rows:
        """Return (m,), the row of a held page with another spelling of each URL, or −1."""
        if not len(some):
            # The usual case: it avoids a search of the whole table.
            return some
        spelling = self["spelling"]
        sought, place_of = np.unique(spelling[some], return_inverse=True)
        place = np.minimum(np.searchsorted(sought, spelling), len(sought) - 1)
        is_held = (sought[place] == spelling) & (spelling != 0)
        is_held &= self["captured"] & (self["gone"] == 0)
        row_of = np.full(len(sought), -1)
        row_of[place[is_held]] = np.flatnonzero(is_held)
        return row_of[place_of]

    def meant(self, page_id: Ints) -> tuple[Rows, Bools]:
        """Return :meth:`rows` of the pages that claims on these ones refer to.

        A claim on another spelling of a held page's URL refers to the held page.
        """
        found, known = self.rows(page_id)
        unread = np.flatnonzero(~self["captured"][found] & (self["absent"][found] == inf))
        other = self._spelt_otherwise(found[unread])
        found[unread] = np.where(other < 0, found[unread], other)
        return found, known

    def _of_turning(self, some: Rows, now: float) -> Floats:
        """Return (m,), the value of a visit to empty URLs, which may lead to content by now."""
        if not len(some):
            return np.zeros(0)
        rows = self
        host, never = rows["host"], ~rows["captured"]
        known = np.isfinite(rows["absent"])
        days = np.bincount(
            host[known], (rows["asked"] - rows["absent"])[known], int(host.max(initial=-1)) + 1
        )
        turned = np.zeros(len(days))
        for code, (times, before) in self._turned.items():
            turned[code] += times
            days[code] += before
        rate = ((turned + _TURNED) / (days + _EMPTY_DAYS))[host[some]]
        waited = np.maximum(now - rows["asked"][some], 0.0)
        x = rate * waited
        since = (x + np.expm1(-x)) / rate
        tried = np.bincount(host[never & (rows["gone"] > 1)], minlength=len(days))
        early = ((turned + _TURNED) / (tried + turned + _EARLY_TRIES))[host[some]]
        early *= never[some] & (rows["gone"][some] == 1)
        since += early * np.maximum(waited - _EARLY_DAYS, 0.0)
        found: Floats = rows["importance"][some] * since
        return found

    def reweigh(self, rows: Rows, importance: Floats, half_life: Floats) -> None:
        """Set the importance and the half-life of these pages, (m,) each."""
        self["importance"][rows], self["half_life"][rows] = importance, half_life

    def rows(self, page_id: Ints) -> tuple[Rows, Bools]:
        """Return the rows of the watched ones among these pages, and a mask (m,)."""
        found, known = rows_among(np.frombuffer(self._ascending, np.int64), page_id)
        if self._row_of:
            others = [self._row_of.get(each, -1) for each in page_id[~known].tolist()]
            whole = np.full(len(page_id), -1)
            whole[known], whole[~known] = found, others
            known = whole >= 0
            found = whole[known]
        return found, known

    def elsewhere_until(self, asked: Floats, since: Floats, permanent: Bools) -> Floats:
        """Return (m,), when redirecting pages are requested again, by their last visits (m,)."""
        as_long = np.clip(asked - since, self._recheck_days, _MOST_ALIAS_DAYS)
        until: Floats = asked + np.where(permanent, as_long, _ELSEWHERE_DAYS)
        return until

    def failed_until(self, asked: Floats, since: Floats) -> Floats:
        """Return (m,), when failed pages of a former run are requested again, within a day."""
        until: Floats = asked + np.clip(asked - since, _FAILED_DAYS, _FAILED_MOST_DAYS)
        return until

    def led_to(self, row: int, since: float, at: float) -> None:
        """Record that another page, whose copy was right at ``since``, redirects here permanently.

        If this page has redirected itself, that may have ended: it is requested, once a day at
        most.
        """
        page = _Page(self, row)
        if page["away"] and page["asked"] < at - _TURNED_DAYS:
            page["not_before"] = -inf
        elif not page["captured"]:
            # There may be content now, even if the page was gone.
            page["since"], page["gone"] = np.minimum(page["since"], since), 0

    def drop(self, rows: Rows) -> None:
        """Drop pages until they are admitted again."""
        self["not_before"][rows] = inf

    def admit_again(self, page_ids: Iterable[int]) -> None:
        """Admit dropped pages again; those that were gone count as new."""
        rows = [row for page_id in page_ids if (row := self.row(page_id)) is not None]
        again = np.array(rows, np.intp)
        self["not_before"][again[np.isinf(self["not_before"][again])]] = -inf
        gone = again[self["gone"][again] > 0]
        self._linked_again.update(zip(gone.tolist(), self["absent"][gone].tolist(), strict=True))
        self["gone"][gone], self["absent"][gone] = 0, inf

    def settle(self, row: int, visit: Visit) -> None:
        """Apply a visit, which decides when the page may be requested again."""
        found, page = visit.observation, _Page(self, row)
        at, asked = found.at / _DAY_S, float(page["asked"][0])
        if found.kind not in _SILENT:
            self._place(row, visit)
        page["taken"], page["asked"] = False, at
        if page["away"] and found.kind not in _SILENT:
            page["away"], page["captured"] = False, visit.due.digests is not None
            page["leads_to"] = -1
        match found.kind:
            case "new" | "changed" | "unchanged":
                absent = float(page["absent"][0]) if page["gone"] else inf
                self._count_turned(row, at, self._linked_again.pop(row, absent))
                page["absent"] = inf
                page["captured"] = page["had"] = True
                page["since"] = at
                page["gone"] = page["failures"] = 0
                page["not_before"] = -inf
            case "gone":
                page["gone"] = np.minimum(page["gone"] + 1, _MOST_TIMES)
                page["absent"] = np.minimum(page["absent"], page["since"])
                page["since"], page["failures"] = at, 0
            case "failed":
                page["failures"] = self._failures(visit, int(page["failures"][0]))
                # Since the last request, or since the page had content.
                interval = max(at - asked, (at - float(page["since"][0])) / 2)
                page["not_before"] = self._tried_again(visit, int(page["failures"][0]), interval)
            case "redirected" if visit.retry_at is not None:
                # Another spelling of the same URL is requested instead, a few times at most.
                page["failures"] = np.minimum(page["failures"] + 1, _MOST_TIMES)
                page["not_before"] = visit.retry_at / _DAY_S
            case _:
                self._led_on(page, visit)

    def _led_on(self, page: "_Page", visit: Visit) -> None:
        """Apply a visit that found a redirect to another page, or nothing that is kept."""
        alias, at = visit.alias, visit.observation.at / _DAY_S
        page["absent"] = np.minimum(page["absent"], page["since"])
        page["failures"] = 0
        if alias is not None:
            page["away"], page["captured"] = True, False
        for_good = np.array([alias is not None and alias.kind == "permanent"])
        page["not_before"] = self.elsewhere_until(np.array([at]), page["since"], for_good)

    def _place(self, row: int, visit: Visit) -> None:
        """Record for the neighbours of a page whether a visit found it."""
        page, kind = _Page(self, row), visit.observation.kind
        # A redirect within its host is no evidence about neighbouring URLs, which may be its
        # targets. URLs of a host's old name redirect as well.
        leads_on = kind == "redirected" and (
            visit.alias is None or urlsplit(visit.alias.url)[1] == urlsplit(visit.due.url)[1]
        )
        if page["captured"] and not page["gone"]:
            self.existence.visited(row, found=kind in _SHOWN)
        elif not page["captured"] and page["absent"] == inf and not leads_on:
            self.existence.tried(row, found=kind in _SHOWN)

    def _count_turned(self, row: int, at: float, absent: float) -> None:
        """Count a page that is back, if it was ``absent`` since a day."""
        if absent < inf:
            host = int(self["host"][row])
            times, days = self._turned[host]
            self._turned[host] = times + 1, days + at - absent

    @staticmethod
    def _failures(visit: Visit, before: int) -> int:
        """Count the failures in a row; an unchanged block page does not count as temporary."""
        if (
            visit.retry_at is None
            and visit.rejected is not None
            and visit.rejected.since < visit.at
        ):
            return 0
        # A failure of the host is not charged to the page.
        return min(before + (visit.charged or visit.retry_at is None), _MOST_TIMES)

    @staticmethod
    def _tried_again(visit: Visit, failures: int, interval: float) -> float:
        """Return the day of the next attempt; the interval for a persistent block page doubles."""
        if visit.retry_at is not None:
            return visit.retry_at / _DAY_S
        wait = _FAILED_DAYS * _FAILED_FACTOR ** (failures - 1) if failures else 2 * interval
        return visit.observation.at / _DAY_S + min(max(wait, _FAILED_DAYS), _ELSEWHERE_DAYS)


class _Page:
    """One page of a table: an array (1,) of each column, by name."""

    def __init__(self, table: PageTable, row: int) -> None:
        self._table, self._at = table, slice(row, row + 1)

    def __getitem__(self, name: str) -> NDArray[Any]:
        found: NDArray[Any] = self._table[name][self._at]
        return found

    def __setitem__(self, name: str, value: ArrayLike) -> None:
        self._table[name][self._at] = value


# -- moved pages --
# The history of the old URL is copied to the new one. A redirect alone does not show that the
# target is the same page. That is known once the target was visited, and its first copy was
# compared with the old URL's copy.


def arrived_by_move(pages: PageTable, visit: Visit) -> bool:
    """Return whether a page's first copy was compared with one of its old URL."""
    row = pages.row(visit.due.page_id)
    if row is None or pages["captured"][row] or visit.due.digests is not None:
        return False
    return visit.observation.kind in {"changed", "unchanged"}


async def follow(reader: aiosqlite.Connection, pages: PageTable, visits: Collection[Visit]) -> None:
    """Record the targets of redirects; move pages that redirect permanently."""
    for visit in visits:
        row, alias = pages.row(visit.due.page_id), visit.alias
        if row is None or alias is None or alias.kind == "refresh":
            continue
        for page_id in await columns_queries.ids(reader, [alias.url]):
            if page_id != visit.due.page_id:
                pages["leads_to"][row] = page_id
                pages["for_good"][row] = alias.kind == "permanent"
            target = pages.row(page_id)
            if target is not None and alias.kind == "permanent":
                since, at = float(pages["since"][row]), visit.observation.at / _DAY_S
                pages.led_to(target, since, at)
