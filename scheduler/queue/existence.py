"""The probability that a URL leads to a page, learnt from its neighbours and from its folder.

Sites link to many URLs that do not exist, and such URLs cluster: drafts that were dropped, versions
that were removed, parameters without a result. So the probability that a URL exists is learnt from
the URLs along its path: starting with p = 0.7, for each prefix of its path (all digits are treated
as equal), and for its extension in its folder, with or without a query,

    p ← (found + p)/(tried + 1),

where ``tried`` counts the URLs that were requested there for the first time, and ``found`` those
that led to a page. A URL that redirects within its host does not count; one that redirects to
another host counts as not found. A page that was held at its last visit still exists with the
probability

    (1 + found since)/(1 + visits since)

from the visits to other pages of its folder since then: folders tend to be removed as a whole.

Cost: a valuation divides once for each prefix of each place, and once for each page. Memory: 24
bytes a page, and about 500 a place. Reference: ours.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from freshet.scheduler.arrays import Arrays, Bools, Column, Floats, Ints
from freshet.scheduler.sources import Rows

_PRIOR: Final = 0.7
_DIGITS: Final = re.compile(r"\d+")
#: Number of path segments that are distinguished; deeper ones are ignored.
_DEPTH: Final = 12
_COLUMNS: Final = (
    "inside", "found", "tried", "place", "met_then", "visits_then", "met", "visits"
)  # fmt: skip


def _folders(url: str) -> tuple[list[str], str]:
    """Return the folders of a canonical URL from its host on, and the place of the page there."""
    path, _, query = url.partition("://")[2].partition("?")
    names = _DIGITS.sub("#", path.partition("/")[2]).split("/")[:_DEPTH]
    ending = f".{names[-1].rsplit('.', 1)[1]}" if "." in names[-1] else ""
    folders = ["/".join(["", *names[:k]]) for k in range(len(names))]
    return folders, f"{folders[-1]}/{'?' if query else '*'}{ending}"


class Existence:
    """Estimates from the first visits to URLs, and from all later ones; folders are integer codes.

    *Contract.* The state depends only on the order of the visits.
    """

    def __init__(self) -> None:
        self._codes: dict[tuple[int, str], int] = {}
        #: For each place: the folder that contains it (−1: none), and the numbers of URLs found and
        #: tried.
        self._inside = Column[np.int64](np.int64)
        self._found = Column[np.float64](np.float64)
        self._tried = Column[np.float64](np.float64)
        #: For each page: its place, and at its last visit the number of visits to its folder and
        #: the number of these that found a page.
        self._place = Column[np.int64](np.int64)
        self._met_then = Column[np.float64](np.float64)
        self._visits_then = Column[np.float64](np.float64)
        self._met = Column[np.float64](np.float64)
        self._visits = Column[np.float64](np.float64)

    def __len__(self) -> int:
        return len(self._place)

    def watch(self, host: Rows, urls: Sequence[str]) -> None:
        """Append pages of these hosts."""
        codes = [self._code(*each) for each in zip(host.tolist(), urls, strict=True)]
        self._place.extend(codes)
        for column in (self._met_then, self._visits_then):
            column.append(len(codes))

    def _code(self, host: int, url: str) -> int:
        """Return the code of a URL's place; add new places and folders."""
        folders, place = _folders(url)
        code = self._codes.get((host, place), -1)
        if code >= 0:
            return code
        for each in (*folders, place):
            inside, code = code, self._codes.setdefault((host, each), len(self._inside))
            if code == len(self._inside):
                self._inside.extend([inside])
                for column in (self._found, self._tried, self._met, self._visits):
                    column.append(1)
        return code

    def tried(self, row: int, *, found: bool) -> None:
        """Learn from the first visit to a URL that shows whether it leads to a page."""
        code = int(self._place.rows[row])
        self._mark(row)
        while code >= 0:
            self._found.rows[code] += found
            self._tried.rows[code] += 1
            code = int(self._inside.rows[code])

    def visited(self, row: int, *, found: bool) -> None:
        """Learn from a visit to a page that was held."""
        code = self._folder(row)
        self._met.rows[code] += found
        self._visits.rows[code] += 1
        self._mark(row)

    def recall(self, rows: Rows, found: Bools, tried: Bools) -> None:
        """Learn from visits (m,) in order; ``tried`` (n,) marks pages that were tried before."""
        first = np.zeros(len(rows), np.bool_)
        first[np.unique(rows, return_index=True)[1]] = True
        first &= ~tried[rows]
        new = self._place.rows[rows[first]]
        for chain in self._ways(new):
            known = chain >= 0
            np.add.at(self._found.rows, chain[known], found[first][known])
            np.add.at(self._tried.rows, chain[known], 1)
        folder = self._inside.rows[self._place.rows[rows]]
        order = np.argsort(folder, kind="stable")
        sorted_ = folder[order]
        begins = np.searchsorted(sorted_, sorted_)
        for counts, then, one in (
            (self._met.rows, self._met_then.rows, found & ~first),
            (self._visits.rows, self._visits_then.rows, ~first),
        ):
            total = np.cumsum(np.append(0.0, one[order]))
            so_far = np.empty(len(rows))
            so_far[order] = total[1:] - total[begins] + counts[sorted_]
            # The last visit to each row counts.
            then[rows] = so_far
            np.add.at(counts, folder, one)

    # -- in the store --

    def written(self) -> Arrays:
        """Return the whole state."""
        names = json.dumps([[host, place] for host, place in self._codes])
        columns = {name: getattr(self, f"_{name}").rows for name in _COLUMNS}
        return {"names": np.frombuffer(names.encode("ascii"), np.uint8), **columns}

    def read(self, written: Arrays) -> None:
        """Restore a written state."""
        names = json.loads(bytes(written["names"]))
        self._codes = {(host, place): code for code, (host, place) in enumerate(names)}
        for name in _COLUMNS:
            getattr(self, f"_{name}").extend(written[name])

    def _mark(self, row: int) -> None:
        code = self._folder(row)
        self._met_then.rows[row] = self._met.rows[code]
        self._visits_then.rows[row] = self._visits.rows[code]

    def _folder(self, row: int) -> int:
        """Return the folder of a page."""
        return int(self._inside.rows[self._place.rows[row]])

    def _ways(self, places: Ints) -> Iterator[Ints]:
        """Yield these places (m,), their folders, and so on up the path; −1: none."""
        while (places >= 0).any():
            yield places
            places = np.where(places < 0, -1, self._inside.rows[places])

    def of_new(self, rows: Rows) -> Floats:
        """Return (m,), the probabilities that never requested URLs lead to pages."""
        found, tried = self._found.rows, self._tried.rows
        p = np.full(len(found), _PRIOR)
        for chain in reversed(list(self._ways(np.arange(len(found))))):
            known = chain >= 0
            at = chain[known]
            p[known] = (found[at] + p[known]) / (tried[at] + 1)
        there: Floats = p[self._place.rows[rows]]
        return there

    def of_held(self) -> Floats:
        """Return (n,), the probabilities that held pages still exist."""
        folder = self._inside.rows[self._place.rows]
        met = self._met.rows[folder] - self._met_then.rows
        visits = self._visits.rows[folder] - self._visits_then.rows
        there: Floats = (1 + met) / (1 + visits)
        return there
