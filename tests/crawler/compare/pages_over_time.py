"""A page, and a host of pages, judged visit by visit as a crawl does."""

from collections.abc import Sequence
from dataclasses import replace

from freshet.crawler.compare.detection import Verdict, judge_blocks
from freshet.crawler.compare.history import PageMemory, PageRecord
from freshet.crawler.compare.templates import HostRun
from freshet.crawler.reduce.sketch import Sketch, sketch
from freshet.storage.entries import Amendment, Kind

#: Where blocks stand that a test does not place.
PROSE = [f"Paragraph {n} of a text that stays as it is." for n in range(8)]

#: A block as a test writes it: text in prose, or a place and a text.
Block = str | tuple[int, str]


def sketch_of(blocks: Sequence[Block]) -> Sketch:
    placed = [(1, block) if isinstance(block, str) else block for block in blocks]
    return sketch([text for _, text in placed], [place for place, _ in placed])


class Page:
    """One page of a host; ``see`` is a visit."""

    def __init__(self, blocks: Sequence[Block], host: HostRun | None = None) -> None:
        self.host = HostRun() if host is None else host
        self.record = PageRecord(sketch_of(blocks))
        self.kinds: list[Kind] = []
        self.amendments: list[Amendment] = []
        self.sketches_kept = 0
        self._text = self.record.sketch.text_digest

    def see(self, blocks: Sequence[Block]) -> Verdict:
        new = sketch_of(blocks)
        self.host.pages += 1
        if new.text_digest == self._text:
            self.record = replace(self.record, still=self.record.still + 1)
            self.kinds.append("unchanged")
            return Verdict("unchanged", "text")
        self._text = new.text_digest
        found = judge_blocks(self.record, new, self.host, float(len(self.kinds)))
        kept = new if found.keeps_sketch else self.record.sketch
        self.sketches_kept += found.keeps_sketch
        # What is remembered goes through the store's bytes at every visit.
        assert found.memory is not None
        self.record = PageRecord(kept, PageMemory.from_bytes(found.memory))
        self.kinds.append(found.kind)
        self.amendments += found.amendments
        return replace(found, memory=None, amendments=(), keeps_sketch=True)

    def amended_kinds(self) -> list[Kind]:
        kinds = list(self.kinds)
        for amendment in self.amendments:
            kinds[int(amendment.at)] = amendment.kind
        return kinds
