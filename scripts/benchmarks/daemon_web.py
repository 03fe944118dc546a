"""A web of pages that change at Poisson times, as a fetcher that notes what it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from math import inf
from random import Random

import numpy as np

from freshet.crawler.fetch.client import Request
from freshet.crawler.frontier.clock import Clock
from freshet.scheduler.arrays import Floats
from freshet.scheduler.evaluate.changes import ChangeTimes
from freshet.scheduler.sources import Rows
from freshet.storage.records import FetchResult, Validators

DAY_S = 86_400.0
ORIGIN = "http://poisson.localhost"
_PARAGRAPHS = 12
_WORDS = 18
_EXCHANGE_S = 0.05
_VOCABULARY = [f"{a}{b}" for a in ("ka", "lo", "mi", "nu", "re", "ti") for b in "bdfglmnprst"]


def url(row: int) -> str:
    """The address of a page."""
    return f"{ORIGIN}/p/{row}"


@dataclass(slots=True)
class PoissonWeb:
    """Pages by row; each change writes one paragraph anew. ``begin`` is day 0 in Unix seconds.

    Answers carry an ETag, if ``dated`` a Last-Modified, and conditional requests are heeded.

    Attributes:
        rows, days: what was fetched, and when.
        requests: everything asked for.
    """

    changes: ChangeTimes
    begin: float
    clock: Clock
    dated: bool = False
    rows: list[int] = field(default_factory=list)
    days: list[float] = field(default_factory=list)
    requests: int = 0

    async def fetch(self, request: Request) -> FetchResult:
        """Answer at the clock's time; an exchange takes none of it."""
        self.requests += 1
        now = self.clock.now()
        path = request.url.removeprefix(ORIGIN)
        if not path.startswith("/p/"):
            reason = "http_404"
            return FetchResult(request.url, "gone", now, _EXCHANGE_S, 404, reason)
        row, day = int(path[3:]), (now - self.begin) / DAY_S
        self.rows.append(row)
        self.days.append(day)
        revision = int(self.changes.count(np.array([row]), np.array([-1.0]), np.array([day]))[0])
        tag = f'"{revision}"'
        headers = [(b"Content-Type", b"text/html; charset=utf-8"), (b"ETag", tag.encode())]
        if self.dated:
            changed = self.begin + DAY_S * self.last_changes(np.array([row]), day)[0]
            headers.append((b"Last-Modified", formatdate(changed, usegmt=True).encode()))
        if (request.validators or Validators()).etag == tag:
            return FetchResult(
                request.url, "not_modified", now, _EXCHANGE_S, 304, headers=tuple(headers)
            )
        body = text(row, revision)
        return FetchResult(
            request.url, "fetched", now, _EXCHANGE_S, 200, headers=tuple(headers),
            wire_body=body, body=body,
        )  # fmt: skip

    def last_changes(self, rows: Rows, day: float) -> Floats:
        """(m,), the days on which pages changed last; what never changed was written on day 0."""
        until = np.full(len(rows), day)
        _, after = self.changes.stretches(rows, np.full(len(rows), -inf), until)
        found = self.changes.at[np.maximum(after - 1, 0)]
        return np.where(after > self.changes.offsets[rows], found, 0.0)

    async def close(self) -> None:
        """Do nothing: nothing is open."""


def text(row: int, revision: int) -> bytes:
    """A page in its so-manieth version."""
    paragraphs = [_paragraph(row, _last_written(row, place, revision)) for place in _PLACES]
    return (
        f"<html><head><title>Page {row}</title></head><body><main><h1>Page {row}</h1>"
        + "".join(f"<p>{words}</p>" for words in paragraphs)
        + "</main></body></html>"
    ).encode()


_PLACES: Sequence[int] = range(_PARAGRAPHS)


def _last_written(row: int, place: int, revision: int) -> tuple[int, int]:
    """A paragraph's place, and the change that wrote it: they take turns, in a page's own order."""
    turn = (place + row) % _PARAGRAPHS
    rounds = (revision - turn - 1) // _PARAGRAPHS if revision > turn else -1
    return place, turn + 1 + rounds * _PARAGRAPHS if rounds >= 0 else 0


def _paragraph(row: int, written: tuple[int, int]) -> str:
    rng = Random(f"{row} {written}")
    return " ".join(rng.choices(_VOCABULARY, k=_WORDS)).capitalize() + "."
