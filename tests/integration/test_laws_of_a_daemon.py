"""A consumer of the changefeed beside a daemon: its copies are what the store delivers."""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from html import unescape
from pathlib import Path
from random import Random

import pytest
import zstandard

import freshet
from freshet.config.loading import load
from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.frontier.clock import VirtualClock
from freshet.crawler.read.changefeed import Change
from freshet.crawler.read.documents import StoredDocument
from freshet.crawler.run.daemon import keep
from freshet.crawler.run.orders import DaemonOrder
from scripts.benchmarks.recorded_web import RecordedWeb, Recording
from tests.integration.quick import unwatched
from tests.integration.timeserver import FOLDER, NO_FOLDER

DAY_S = 86_400.0
#: A part of the recording in which pages change, and the days between two reads of the feed.
BEGINS_AFTER, ROUNDS, ROUND = 200.0, 7, 1.0
VISITS_A_DAY = 120.0
WORD = re.compile(r"[^\W_]+")
SITES = "ada age flink httpwg lean lucene nifi parquet servo struts".split()

pytestmark = [pytest.mark.long, pytest.mark.skipif(FOLDER is None, reason=NO_FOLDER)]


class Consumer:
    """Keeps a copy of each document, by what the changefeed tells by default."""

    def __init__(self, db: Path) -> None:
        self._db, self._cursor = db, "0"
        self.copies: dict[str, StoredDocument] = {}
        self.told: Counter[str] = Counter()
        self.broken: list[str] = []

    def read(self) -> None:
        with freshet.Store(self._db) as store:
            changes = store.changefeed(self._cursor)
            for change in changes:
                self._take(store, change)
            self._cursor = changes.cursor
            self.broken += self._differing(store)

    def _take(self, store: freshet.Store, change: Change) -> None:
        self.told[change.kind] += 1
        before = self.copies.get(change.id)
        if change.deleted or change.doc is None:
            self.copies.pop(change.id, None)
            return
        self.copies[change.id] = change.doc
        if change.kind != "changed" or before is None:
            return
        if forms(before) == forms(change.doc):
            self.broken.append(f"{change.id} changed, and its document is the same")
        # The last significant change: the bytes of other versions are perhaps not kept.
        difference = store.diff(change.id)
        older = store.page(change.id, difference.before.number)
        sides = (("removed", older), ("added", change.doc))
        for side, document in sides:
            words = {
                word.casefold()
                for block in difference.blocks
                if block.change == side
                for word in WORD.findall(block.text)
            }
            if missing := words - set(WORD.findall(shown(document))):
                self.broken.append(f"{change.id}: {side} and not delivered: {sorted(missing)[:5]}")

    def _differing(self, store: freshet.Store) -> Iterator[str]:
        for url, copy in self.copies.items():
            if forms(store.page(url)) != forms(copy):
                yield f"{url}: the document is another, and nothing was told"


def forms(document: StoredDocument) -> tuple[str, str]:
    return document.markdown, document.html


def shown(document: StoredDocument) -> str:
    return unescape(f"{document.text} {document.markdown} {document.html}").casefold()


def unpack(site: str, folder: Path) -> Path:
    path = folder / f"{site}.sqlite"
    with Path(FOLDER or "", f"{site}.sqlite.zst").open("rb") as packed, path.open("wb") as out:
        zstandard.ZstdDecompressor().copy_stream(packed, out)
    return path


@pytest.mark.parametrize("site", SITES)
async def test_a_consumer_has_what_the_store_delivers(site: str, tmp_path: Path) -> None:
    db, unpacked = tmp_path / "crawl.db", unpack(site, tmp_path)
    consumer = Consumer(db)
    with closing(Recording(unpacked)) as recording:
        clock = VirtualClock(recording.begin + BEGINS_AFTER * DAY_S)
        web = RecordedWeb(recording, clock)
        settings, _ = load(
            None, {"crawl.contact": "https://example.org/test", "store.bodies_per_page": 99}
        )
        seeds = seeds_from_arguments([recording.start]).seeds
        for number in range(ROUNDS):
            order = DaemonOrder(db, seeds, VISITS_A_DAY, time_limit_s=ROUND * DAY_S)
            await keep(
                settings, order, watch=unwatched, fetcher=web, clock=clock, rng=Random(number)
            )
            consumer.read()
    assert consumer.broken == []
    assert consumer.told["new"] > 5
    # Its pages change every day.
    assert site != "lean" or consumer.told["changed"] > 5
