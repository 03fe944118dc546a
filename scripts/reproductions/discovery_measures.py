"""What each algorithm would have found, week by week, with every budget at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, nan
from typing import Final

import numpy as np
from scipy.sparse import csr_array

from freshet.scheduler.arrays import Floats, Ints
from freshet.scheduler.discovery.covers import RecrawlHistory, greedy
from freshet.scheduler.discovery.reveal_graph import Reveals
from freshet.scheduler.discovery.thesis_covers import ALGORITHMS, upper_bounds

BUDGETS: Final = (1, 10, 100, 1_000, 10_000)
#: Weeks between full recrawls for OD-WIN and CLIQ-WIN; figures are means over these.
FREQUENCIES: Final = (2, 3, 4, 5, 6)
#: Nothing is judged before the longest of them has seen one recrawl.
FIRST: Final = max(FREQUENCIES)
OPTIMAL: Final = "Optimal"
#: Whether a full recrawl comes before a bandit's first choice.
BANDITS: Final[Mapping[str, bool]] = {"bandit": False, "bandit, told": True}
#: What the thesis calls the algorithms of Table 3.2, by ours and the weeks between recrawls.
TABLE: Final[Mapping[str, tuple[str, Sequence[int]]]] = {
    "OD-1": ("od_1", (1,)),
    "OD-WIN": ("od_win", FREQUENCIES),
    "OD-ALL-1": ("od_win", (1,)),
    "COV-WIN": ("cov_win", FREQUENCIES),
    "CLIQ-1": ("cliq_1", (1,)),
    "CLIQ-WIN": ("cliq_win", FREQUENCIES),
    "COV": ("cov", (1,)),
}
#: A site of which so large a share is new at once was rebuilt: no week to judge by.
REBUILT: Final = 0.5

Choose = Callable[[RecrawlHistory, Reveals], Ints]


@dataclass(frozen=True, slots=True)
class Trace:
    """One cover, judged: ``found[k]`` new pages with its first k pages; of ``new`` there were."""

    new: int
    found: Ints

    def size(self, budget: float) -> int:
        """How many pages are visited with a budget."""
        return int(min(budget, self.found.size - 1))


@dataclass(frozen=True, slots=True)
class Row:
    """Means over sites and weeks, as in Table 3.2; shares, not per cent.

    ``overhead`` is the mean of visits per page found over the covers that found any,
    ``overall`` all looks for all pages found, weeks in which nothing was new among them.
    """

    depth: float
    overhead: float
    overall: float
    coverage: float


def weeks(recrawls: Sequence[Reveals]) -> list[Reveals]:
    """The weeks of a site without orphans, as the thesis discards these."""
    return [without_orphans(each) for each in recrawls]


def without_orphans(reveals: Reveals) -> Reveals:
    """The same graph of the new pages that some old one reveals."""
    kept = np.unique(reveals.members)
    members = np.searchsorted(kept, reveals.members).astype(np.int64)
    return Reveals(reveals.old, kept.size, reveals.set_of, reveals.offsets, members)


def is_judged(week: Reveals) -> bool:
    """Whether a site only grew, and was not rebuilt."""
    return week.new <= REBUILT * week.old


def trace(now: Reveals, cover: Ints) -> Trace:
    """What each beginning of a cover reveals."""
    found = np.zeros(cover.size + 1, np.int64)
    numbers = now.set_of[cover]
    is_one = numbers >= 0
    first = np.full(now.sizes.size, cover.size, np.int64)
    np.minimum.at(first, numbers[is_one], np.flatnonzero(is_one))
    by = np.full(now.new, cover.size, np.int64)
    np.minimum.at(by, now.members, np.repeat(first, now.sizes))
    found[1:] = np.cumsum(np.bincount(by, minlength=cover.size + 1)[: cover.size])
    return Trace(now.new, found)


def judged(site: Sequence[Reveals], choose: Choose, every: int) -> Iterator[Trace]:
    """Each week between full recrawls ``every`` so many weeks, for each week these may begin in.

    Every week counts as often as any other, and so does every age of what is known. With a
    recrawl each week, what counts is what it knew of before.
    """
    for begin in range(every):
        for week in range(FIRST, len(site)):
            now = site[week]
            if (every > 1 and week % every == begin) or not is_judged(now):
                continue
            past = RecrawlHistory(now.old, [site[t] for t in range(begin, week, every)])
            yield trace(now, choose(past, now))


def optimal(site: Sequence[Reveals]) -> Iterator[Trace]:
    """GREEDY, knowing."""
    return judged(site, lambda _past, now: greedy(now), 1)


def by_history(site: Sequence[Reveals], name: str, every: int) -> Iterator[Trace]:
    """One of the algorithms of ``freshet discover``; its cover for any budget begins the next's."""
    choose = ALGORITHMS[name]
    return judged(site, lambda past, now: choose(past, now.old), every)


def limit(site: Sequence[Reveals], every: int) -> Iterator[Trace]:
    """Every page that ever revealed anything in a full recrawl."""
    return judged(site, lambda past, _now: past.ever(), every)


class Bandit:
    """The payoffs of the arms of a bandit that is told only of those that it pulls."""

    def __init__(self) -> None:
        self._trials = np.zeros(0)
        self._paid = np.zeros(0)
        self._steps = 0

    def choose(self, pages: int, budget: int) -> Ints:
        """The ``budget`` arms of ``pages`` to pull next, the most promising first."""
        self._grow(pages)
        best = np.argsort(
            -upper_bounds(self._trials, self._paid, self._steps)[:pages], kind="stable"
        )
        return np.asarray(best[: max(budget, 0)], np.int64)

    def learn(self, pulled: Mapping[int, Ints]) -> None:
        """Learn what each arm of a batch revealed (new pages, by any numbers).

        A batch that reveals nothing is a step, too, so that its arms give way to others.
        """
        revealed = list(pulled.values())
        new = len(np.unique(np.concatenate(revealed))) if revealed else 0
        steps = max(new, 1)
        self._steps += steps
        self._grow(max(pulled, default=-1) + 1)
        for page, members in pulled.items():
            self._trials[page] += steps
            self._paid[page] += members.size

    def _grow(self, pages: int) -> None:
        more = max(pages - self._trials.size, 0)
        self._trials = np.append(self._trials, np.zeros(more))
        self._paid = np.append(self._paid, np.zeros(more))


def bandit(site: Sequence[Reveals], budget: int, is_told: bool = False) -> Iterator[Trace]:
    """The bandit, which learns from its own visits only, from the first week on.

    One that is told looks at all pages in that week.
    """
    arms = Bandit()
    for number, now in enumerate(site):
        pulled = arms.choose(now.old, now.old if is_told and not number else budget)
        arms.learn({page: now.of(page) for page in pulled.tolist()})
        if number >= FIRST and is_judged(now):
            yield trace(now, pulled)


def row(traces: Iterable[Trace], budget: float = inf) -> Row:
    """The means with a budget."""
    cut = [(each.size(budget), each.new, each) for each in traces]
    visits = np.array([size for size, _, _ in cut], float)
    new = np.array([new for _, new, _ in cut], float)
    found = np.array([each.found[size] for size, _, each in cut], float)
    if not new.sum():
        return Row(nan, nan, nan, nan)
    hits = found > 0
    return Row(
        float(visits[new > 0].mean()),
        float((visits[hits] / found[hits]).mean()) if hits.any() else inf,
        float(visits.sum() / found.sum()) if hits.any() else inf,
        float(found.sum() / new.sum()),
    )


def mean(rows: Sequence[Row]) -> Row:
    """The mean of each figure."""
    columns = [(each.depth, each.overhead, each.overall, each.coverage) for each in rows]
    return Row(*np.mean(columns, axis=0).tolist())


def table(sites: Sequence[Sequence[Reveals]]) -> dict[str, dict[int, Row]]:
    """Table 3.2: a row for each algorithm and budget."""
    found: dict[str, dict[int, Row]] = {}
    for name, (ours, frequencies) in TABLE.items():
        runs = [[t for site in sites for t in by_history(site, ours, n)] for n in frequencies]
        found[name] = {k: mean([row(run, k) for run in runs]) for k in BUDGETS}
    for name, is_told in BANDITS.items():
        found[name] = {
            k: row(t for site in sites for t in bandit(site, k, is_told)) for k in BUDGETS
        }
    knowing = [t for site in sites for t in optimal(site)]
    found[OPTIMAL] = {k: row(knowing, k) for k in BUDGETS}
    return found


def limits(sites: Sequence[Sequence[Reveals]]) -> dict[int, Row]:
    """What no algorithm by history exceeds, by the weeks between full recrawls."""
    return {every: row(t for site in sites for t in limit(site, every)) for every in (1, 2, 4)}


def curves(sites: Sequence[Sequence[Reveals]], every: int) -> dict[str, tuple[Floats, Floats]]:
    """Figures 3.5 and 3.6: depth and coverage of each algorithm, by growing budgets."""
    names = {"OD-WIN": "od_win", "OD-1": "od_1", "CLIQ-WIN": "cliq_win", "CLIQ-1": "cliq_1"}
    runs = {
        shown: [t for site in sites for t in by_history(site, name, every)]
        for shown, name in (names | {"COV": "cov"}).items()
    }
    runs[OPTIMAL] = [t for site in sites for t in optimal(site)]
    return {name: _curve(run) for name, run in runs.items()}


def _curve(run: Sequence[Trace]) -> tuple[Floats, Floats]:
    longest = max((each.found.size - 1 for each in run), default=0)
    budgets = np.unique(np.geomspace(1, max(longest, 1), 60).round())
    rows = [row(run, budget) for budget in budgets.tolist()]
    return np.array([each.depth for each in rows]), np.array([each.coverage for each in rows])


def overlaps(weeks: Iterable[Reveals], bins: int = 20) -> Floats:
    """Figure 3.3: the share of pairs of pages that reveal anything, by Jaccard coefficient."""
    counts = np.zeros(bins)
    for week in weeks:
        counts += _overlaps(week, bins)
    return np.asarray(counts / max(float(counts.sum()), 1.0), np.float64)


def _overlaps(week: Reveals, bins: int) -> Floats:
    pages = np.bincount(week.set_of[week.set_of >= 0], minlength=week.sizes.size).astype(float)
    holds = csr_array(
        (np.ones(week.members.size), week.members, week.offsets), shape=(week.sizes.size, week.new)
    )
    both = (holds @ holds.T).tocoo()
    one, two = both.coords
    upper = one < two
    one, two, common = one[upper], two[upper], both.data[upper]
    coefficients = common / (week.sizes[one] + week.sizes[two] - common)
    places = np.minimum((coefficients * bins).astype(int), bins - 1)
    counts = np.bincount(places, pages[one] * pages[two], bins)
    counts[-1] += (pages * (pages - 1) / 2).sum()
    counts[0] += pages.sum() * (pages.sum() - 1) / 2 - counts.sum()
    return np.asarray(counts, np.float64)


def everywhere(run: Sequence[Trace]) -> tuple[Floats, Floats]:
    """Figure 3.4: coverage and overhead of one GREEDY over all sites and weeks together.

    What a page adds on one site says nothing of another: the largest gains of all come first.
    """
    gains = np.sort(np.concatenate([np.diff(each.found) for each in run] or [np.zeros(0)]))[::-1]
    found = np.cumsum(gains)
    coverage = found / max(sum(each.new for each in run), 1)
    return np.asarray(coverage), np.asarray(np.arange(1, gains.size + 1) / found)
