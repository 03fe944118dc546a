"""A simulated audience of the real search and of real digests: what it opens, by their order.

A store of 300 pages in ten sections, made of a vocabulary, with an index. Somebody makes
``--searches`` searches a day, each for one of 40 words, and gets ten pages; each morning a digest
has 5 of the 15 pages that are new that day. Place i is seen with probability 1/i, and a page that
is seen is opened with its appeal: a section's mean is Beta(0.8, 4), a page's Beta(4μ, 4(1 − μ)).
The lists are those of ``freshet search`` and of alerts, with what was opened written into the store
as links do:

``relevance``: nothing is recorded. ``appeal``: it is. ``promotion``: at 0.1 of the places, too.
``oracle``: relevance times the true appeal.

All orders meet the same audience: the same coins for a page on a day at a place.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from statistics import mean, stdev

from freshet.crawler.extensions.readers.audience import OpenedLists, note_opening
from freshet.crawler.extensions.readers.settings import PresentationSettings
from freshet.crawler.extensions.search.searching import Query, search
from freshet.crawler.read.library import Library
from freshet.crawler.read.lists import Impression, MadeFor, RankedPage, record, seed_of
from freshet.crawler.reduce.parser_process import Parser
from freshet.storage.queries import page
from scripts.benchmarks import command
from scripts.benchmarks.search import Written, filled, indexed

ORDERS = ("relevance", "appeal", "promotion", "oracle")
_SECTIONS, _PAGES, _WORDS = 10, 300, 40
_RESULTS, _NEW, _DIGEST = 10, 15, 5
_BEGINS = 1.8e9
_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class World:
    """Pages that are made, by number from 1, how appealing they are, and the words to search."""

    pages: list[Written]
    appeal: list[float]
    words: list[str]

    @classmethod
    def drawn(cls, seed: int, days: int) -> World:
        """Draw pages that searches find, then those that are new on some day."""
        rng = Random(seed)
        words = [f"{a}{b}{c}an" for a in "bdfgklm" for b in "aeio" for c in "rst"]
        means = [rng.betavariate(0.8, 4) for _ in range(_SECTIONS)]
        pages, appeal = list[Written](), list[float]()
        for n in range(_PAGES + _NEW * days):
            section = rng.randrange(_SECTIONS)
            texts = rng.choices(words[:_WORDS] if n < _PAGES else words[_WORDS:], k=60)
            body = tuple(" ".join(texts[i : i + 12]) for i in range(0, 60, 12))
            pages.append(Written(f"Page {n}", body, ("item",) * 5, f"s{'abcdefghij'[section]}/"))
            mu = max(means[section], 1e-3)
            appeal.append(rng.betavariate(4 * mu, 4 * (1 - mu)))
        return cls(pages, appeal, words[:_WORDS])


@dataclass(slots=True)
class Household:
    """Who searches and reads digests, by one of the orders, and what was opened on each day."""

    store: Path
    world: World
    order: str
    seed: int
    opened: defaultdict[str, list[int]]

    @property
    def settings(self) -> PresentationSettings:
        """What its store is told."""
        promotion = "0.1" if self.order == "promotion" else "off"
        records = self.order in {"appeal", "promotion"}
        return PresentationSettings(record=records, links=records, promotion=promotion)

    async def lives(self, days: int, searches: int) -> None:
        """Search and read for some days."""
        parser, rng = Parser(), Random(self.seed)
        try:
            for day in range(days):
                for _ in range(searches):
                    now = _BEGINS + (day + rng.random()) * _DAY_S
                    await self._searches(parser, rng.choice(self.world.words), now)
                await self._reads(day, _BEGINS + (day + 1) * _DAY_S)
        finally:
            await parser.close()

    async def _searches(self, parser: Parser, word: str, now: float) -> None:
        async with page.snapshot(self.store) as db:
            audience = await OpenedLists.of(db, self.settings, now)
        library = Library(self.store, parser)
        limit = _PAGES if self.order == "oracle" else _RESULTS
        query = Query.parse(word, now)
        found, _, _ = await search(library, query, limit, audience=audience, now=now)
        if self.order == "oracle":
            worth = {it.url: it.score * self._appeal(it.showing.page_id) for it in found}
            found = sorted(found, key=lambda it: -worth[it.url])[:_RESULTS]
        listed = [replace(it.showing, place=n) for n, it in enumerate(found, 1)]
        await self._sees("http", audience, listed, now)

    async def _reads(self, day: int, now: float) -> None:
        """Read the digest of the pages that are new."""
        first = _PAGES + day * _NEW + 1
        new = [
            RankedPage(n, f"http://search.example/{self.world.pages[n - 1].directory}{n}", 1.0)
            for n in range(first, first + _NEW)
        ]
        if self.order == "oracle":
            new.sort(key=lambda it: -self._appeal(it.page_id))
        async with page.snapshot(self.store) as db:
            audience = await OpenedLists.of(db, self.settings, now)
            seed = await seed_of(db, f"digest {day}", now)
        chosen = (audience or OpenedLists.nobody()).arranged(new, _DIGEST, seed)
        await self._sees("digest", audience, [e.shown_at(n) for n, e in enumerate(chosen, 1)], now)

    async def _sees(
        self,
        made_for: MadeFor,
        audience: OpenedLists | None,
        listed: Sequence[Impression],
        now: float,
    ) -> None:
        if audience is not None:
            await record(self.store, audience, made_for, now, listed)
        opened = 0
        for each in listed:
            coins = Random(f"{self.seed} {now} {each.page_id} {each.place}")
            if coins.random() < 1 / each.place and coins.random() < self._appeal(each.page_id):
                opened += 1
                if audience is not None:
                    await note_opening(self.store, each.showing_id, now)
        self.opened[made_for].append(opened)

    def _appeal(self, page_id: int) -> float:
        return self.world.appeal[page_id - 1]


def lived(seed: int, days: int, searches: int) -> dict[str, dict[str, float]]:
    """Openings a list, by the order and the kind of list."""
    world, found = World.drawn(seed, days), dict[str, dict[str, float]]()
    for order in ORDERS:
        with command.workspace() as directory:
            store = directory / "s.db"
            filled(store, world.pages)
            asyncio.run(indexed(store, world.pages))
            household = Household(store, world, order, seed, defaultdict(list))
            asyncio.run(household.lives(days, searches))
            found[order] = {kind: mean(counts) for kind, counts in household.opened.items()}
    return found


def main() -> None:
    """The command."""
    parser = command.arguments(__doc__)
    parser.add_argument("--days", type=int, default=7, help="how long the household searches")
    parser.add_argument("--searches", type=int, default=5, help="searches a day")
    parser.add_argument("--seeds", type=int, default=10, help="as many households")
    given = parser.parse_args()
    told = list[dict[str, dict[str, float]]]()
    for seed in range(given.seeds):
        told.append(lived(seed, given.days, given.searches))
        command.say(f"household {seed + 1} of {given.seeds}: {told[-1]['appeal']}")
    result: dict[str, object] = {"days": given.days, "searches_a_day": given.searches}
    for kind, name in (("http", "search"), ("digest", "digest")):
        plain = [each["relevance"][kind] for each in told]
        rows = {order: [each[order][kind] for each in told] for order in ORDERS}
        result[f"opened_a_{name}"] = {
            order: {
                "mean": round(mean(values), 3),
                "more_than_by_relevance": round(mean(values) / mean(plain) - 1, 3),
                "standard_error": round(
                    stdev([v - p for v, p in zip(values, plain, strict=True)])
                    / len(values) ** 0.5 / mean(plain), 3,
                ) if len(values) > 1 else None,
            }
            for order, values in rows.items()
        }  # fmt: skip
    command.finish(result, given.output)
