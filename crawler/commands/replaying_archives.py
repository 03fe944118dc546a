"""Archives on the disk, as the runs that a replay takes in."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from math import inf
from pathlib import Path
from typing import Final

from freshet.config.settings import Settings
from freshet.crawler.commands.replaying import RunPast
from freshet.crawler.errors import CrawlError
from freshet.crawler.replaying.accounts import Account, accounts_of
from freshet.crawler.replaying.captures import ArchivedExchange, Damage, Position
from freshet.crawler.replaying.inputs import Input, inputs_of
from freshet.crawler.replaying.order import Entry, Order
from freshet.crawler.replaying.playing import Played
from freshet.crawler.replaying.reading import Reading
from freshet.crawler.replaying.results import accept_of, fetch_result, is_ours
from freshet.crawler.urls import origin
from freshet.storage.records import FetchResult

#: A probe is what its host is sent next: so many exchanges of it, and of all, are looked at.
_NEXT_OF_HOST: Final = 4
_NEXT: Final = 2_000
_TOLD_EVERY: Final = 500
#: Records that every archive has, and of which nobody expects an exchange.
_PLAIN: Final = frozenset({"warcinfo"})
#: Of damages so many are told one by one.
_LISTED: Final = 20


@dataclass(slots=True)
class Losses:
    """What of the archives could not be taken in."""

    damages: list[str] = field(default_factory=list)
    flaws: Counter[str] = field(default_factory=Counter)
    skipped: dict[str, int] = field(default_factory=dict)

    def add(self, damage: Damage) -> None:
        """Note a damage; the first ones word for word."""
        self.flaws[str(damage.flaw)] += 1
        if len(self.damages) < _LISTED:
            self.damages.append(str(damage))

    def as_json(self) -> dict[str, object]:
        """The same as JSON values."""
        return {
            "damages": dict(self.flaws),
            "first_damages": self.damages,
            "records_skipped": self.skipped,
        }

    def lines(self) -> list[str]:
        """The same as lines for people."""
        found = [*self.damages]
        left = self.flaws.total() - len(self.damages)
        if left > 0:
            found.append(f"and {left:,} more damaged or missing records")
        skipped = {kind: count for kind, count in self.skipped.items() if kind not in _PLAIN}
        if skipped:
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in skipped.items())
            found.append(f"no exchange of HTTP, and skipped: {kinds}")
        return found


class Archives:
    """Archives in the order of time, over an index that stands beside the new store."""

    def __init__(
        self, paths: Sequence[Path], index: Path, settings: Settings, tell: Callable[[str], None]
    ) -> None:
        self._settings = settings
        self._tell = tell
        inputs = inputs_of(paths)
        limits = settings.fetch.max_body_bytes, settings.sitemaps.max_bytes
        self._order = _order_of(inputs, index, tell)
        self._reading = Reading(self._order, max(limits), requests=False)
        self.losses = Losses(skipped=self._order.skipped())
        for damage in self._order.damages():
            self.losses.add(damage)

    def close(self) -> None:
        """Close the files."""
        self._reading.close()
        self._order.close()

    def runs(self) -> list[RunPast]:
        """The runs that wrote the archives; one for all that others wrote.

        Raises:
            CrawlError: there is nothing in them.
        """
        infos = (each for each in self._reading.infos() if not isinstance(each, Damage))
        accounts = accounts_of(infos)
        first = next(self._order.entries(), None)
        if first is None:
            raise CrawlError("there is no exchange in the archives")
        ends = [each.began_at for each in accounts] + [inf]
        found = [self._run(a, end) for a, end in zip(accounts, ends[1:], strict=True)]
        if first.position.ended_at < ends[0]:
            others = Account(first.started_at, is_lasting=False, seeds=())
            # Nobody else sends probes.
            found.insert(0, replace(self._run(others, ends[0]), probe=_no_probe))
        return found

    def _run(self, account: Account, end: float) -> RunPast:
        def exchanges(after: float) -> AsyncIterator[Played]:
            return self._exchanges(max(after, account.began_at), end)

        async def probe(at_origin: str, after: float) -> FetchResult | None:
            return self._probe(at_origin, after)

        return RunPast(account.began_at, account.seeds, exchanges, probe, account.is_lasting)

    async def _exchanges(self, begin: float, end: float) -> AsyncIterator[Played]:
        for number, found in enumerate(self._reading.exchanges(Position(begin, -1, -1))):
            if isinstance(found, Damage):
                self.losses.add(found)
                continue
            if found.ended_at >= end:
                return
            if number % _TOLD_EVERY == 0:
                self._tell(f"Replaying {number:,} of {self._order.exchanges:,}")
            yield self._played(found)

    def _played(self, found: ArchivedExchange) -> Played:
        result = fetch_result(found, self._settings.fetch.max_body_bytes)
        return Played(result, accept_of(found), is_ours(found), found.facts.is_unasked)

    def _probe(self, at_origin: str, after: float) -> FetchResult | None:
        """The answer to the next probe of a host, where that is what it was sent next."""
        probe = self._order.next_probe(at_origin, after)
        if probe is None:
            return None
        nearby = islice(self._order.entries(Position(after, -1, -1)), _NEXT)
        of_host = islice((each for each in nearby if _is_of(each, at_origin)), _NEXT_OF_HOST)
        if all(each.position != probe.position for each in of_host):
            return None
        try:
            return self._played(self._reading.exchange(probe)).result
        except (ValueError, OSError):
            # It is told of when its turn comes.
            return None


def _order_of(inputs: Sequence[Input], index: Path, tell: Callable[[str], None]) -> Order:
    """The index of these archives; where they cannot be read, none is left behind."""
    is_new = not index.exists()
    order = Order(index)
    try:
        order.build(inputs, lambda name: tell(f"Reading {name}"))
    except BaseException as error:
        order.close()
        if is_new and isinstance(error, CrawlError):
            index.unlink()
        raise
    return order


async def _no_probe(_at_origin: str, _after: float) -> None:
    return None


def _is_of(entry: Entry, at_origin: str) -> bool:
    try:
        return str(origin(entry.url)) == at_origin
    except ValueError:
        return False
