"""The last word on a run: what its pages have in common is known when it is over."""

from __future__ import annotations

from collections.abc import Sequence

from freshet.crawler.detection.detector import SAMPLE_PAGES, is_same_page
from freshet.crawler.detection.memory import Delta, PageMemory, PageRecord
from freshet.crawler.detection.sketch import Sketch
from freshet.crawler.detection.templates import Correction, PageDeltas, Template, settled
from freshet.storage.database import Database
from freshet.storage.entries import Amendment
from freshet.storage.tables import alerts, observations
from freshet.storage.tables.alerts import AlertRule
from freshet.storage.words import Kind, Rung

_WHY = {
    Kind.UNCHANGED: "the same blocks came or went on many pages of the site",
    Kind.CHANGED: "no other page of the site followed",
}


async def correct(
    database: Database,
    run_id: int,
    since: float,
    now: float,
    alert_rules: Sequence[AlertRule] = (),
) -> list[Correction]:
    """Amend the verdicts of a run, begun at ``since``, that its other pages contradict.

    Of pages that were new, those are amended that had only moved.

    May be repeated: a run that was killed and resumed is settled as a whole.
    """
    corrections: list[Correction] = []
    for host_id, pages in await observations.open_hosts(database.reader, run_id):
        differing = [
            PageDeltas(page_id, text, _deltas(data, since))
            for page_id, text, data in await observations.open_memories(
                database.reader, run_id, host_id
            )
        ]
        sample = await observations.sample(database.reader, host_id, SAMPLE_PAGES)
        template = Template.learnt([PageRecord.of(history) for history in sample])
        corrections += settled(differing, pages, template)
    corrections += await _moves(database, run_id)
    async with database.transaction() as connection:
        for correction in corrections:
            await observations.amend(connection, correction.page_id, _amendment(correction), now)
        await alerts.review(connection, alert_rules, now)
    return corrections


async def _moves(database: Database, run_id: int) -> list[Correction]:
    """The pages that were taken for new before their old URL was asked, and redirected here."""
    corrections = []
    for move in await observations.moves(database.reader, run_id):
        old, new = Sketch.from_bytes(move.old_sketch), Sketch.from_bytes(move.new_sketch)
        if is_same_page(old, new):
            kind = Kind.UNCHANGED if old.text_digest == new.text_digest else Kind.CHANGED
            corrections.append(Correction(move.page_id, move.at, Kind.NEW, kind))
    return corrections


def _deltas(memory: bytes, since: float) -> list[Delta]:
    return [delta for delta in PageMemory.from_bytes(memory).deltas if delta.at >= since]


def _amendment(correction: Correction) -> Amendment:
    rung = Rung.FRAME if correction.kind is Kind.UNCHANGED else Rung.BLOCKS
    why = _WHY[correction.kind]
    if correction.was is Kind.NEW:
        rung = Rung.TEXT if correction.kind is Kind.UNCHANGED else Rung.BLOCKS
        why = "it stood at another URL before"
    return Amendment(correction.at, correction.kind, rung, why)
