"""Looks and claims in the order in which they became known. Pure; days are Unix days."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from freshet.scheduler.arguments import Floats, Ints
from freshet.scheduler.recrawl.hearing import UNASKED, Hearing
from freshet.scheduler.recrawl.looks import Looks
from freshet.scheduler.recrawl.refresher import Refresher
from freshet.scheduler.sources import Rows


@dataclass(frozen=True, slots=True)
class News:
    """``heard`` has for each hearing how many of the looks came before it."""

    looks: Looks
    heard: tuple[tuple[int, Hearing], ...] = ()

    def teach(self, refresher: Refresher, first: int = 0, stop: int | None = None) -> None:
        """Let a refresher learn of the looks from the so-manieth on, and what was heard after each.

        What was heard before all looks comes with the first.
        """
        stop = len(self.looks) if stop is None else stop
        for after, said in self.heard:
            if first < after <= stop or after == first == 0:
                if after > first:
                    refresher.learn(self.looks.take(slice(first, after)))
                    first = after
                refresher.hear(said)
        if stop > first:
            refresher.learn(self.looks.take(slice(first, stop)))


@dataclass(frozen=True, slots=True)
class ClaimColumns:
    """m claims on pages that are watched, in the order of their receipt.

    Attributes:
        source: number of the source.
        row: of the page.
        since, until: days between which it changed last.
        at: day of the receipt.
    """

    source: Ints
    row: Rows
    since: Floats
    until: Floats
    at: Floats


class Sources:
    """Under which pages the sources of claims are asked: sitemaps and feeds are pages, too."""

    def __init__(self, asked: Mapping[int, int]) -> None:
        """``asked`` has the row of the page of each source that is asked."""
        self._asked = asked
        self._of: dict[int, list[int]] = {}
        for source, row in sorted(asked.items()):
            self._of.setdefault(row, []).append(source)
        self._rows = np.array(sorted(self._of), np.intp)

    def news(self, looks: Looks, claims: ClaimColumns) -> News:
        """Looks with what was heard at them, or between them where nobody asked.

        A look at the page of a source that finds no claim moved is a hearing as well.
        """
        said = _by_hearing(claims)
        heard: list[tuple[int, Hearing]] = []
        for k in np.flatnonzero(np.isin(looks.row, self._rows) & ~looks.gone).tolist():
            row, at = int(looks.row[k]), float(looks.at[k])
            for source in self._of[row]:
                places = said.pop((source, at), _NONE)
                heard.append((k + 1, _hearing(claims, places, source, row, at)))
        for (source, at), places in said.items():
            # Within a batch the looks' order is nearly that of their days.
            after = int(np.searchsorted(looks.at, at, "right"))
            asked = self._asked.get(source, UNASKED)
            heard.append((after, _hearing(claims, places, source, asked, at)))
        heard.sort(key=lambda each: (each[0], each[1].at, each[1].source))
        return News(looks, tuple(heard))


_NONE: Final = np.empty(0, np.intp)


def _by_hearing(claims: ClaimColumns) -> dict[tuple[int, float], Rows]:
    """The places of the claims that came from one source at one time."""
    order = np.lexsort((claims.source, claims.at))
    parted = (np.diff(claims.source[order]) != 0) | (np.diff(claims.at[order]) != 0)
    groups: Sequence[Rows] = np.split(order, np.flatnonzero(parted) + 1) if len(order) else ()
    return dict(_keyed(claims, groups))


def _keyed(
    claims: ClaimColumns, groups: Sequence[Rows]
) -> Iterator[tuple[tuple[int, float], Rows]]:
    for places in groups:
        yield (int(claims.source[places[0]]), float(claims.at[places[0]])), places


def _hearing(claims: ClaimColumns, places: Rows, source: int, asked: int, at: float) -> Hearing:
    return Hearing(
        source, asked, at, claims.row[places], claims.since[places], claims.until[places]
    )
