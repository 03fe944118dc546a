"""Verdicts on recorded sites, beside labels that another extractor of main text made.

The recordings are SQLite files of page versions (``blobs`` are zstd, each with the one it is
based on as dictionary). Such labels are no truth: they are counted, and a sample of the
disagreements is printed with the blocks that differ, for people to judge.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from difflib import unified_diff
from pathlib import Path

import zstandard

from freshet.crawler.compare.detection import judge_blocks
from freshet.crawler.compare.history import PageMemory, PageRecord
from freshet.crawler.compare.templates import HostRun, Template
from freshet.crawler.reduce.blocks import Blocks
from freshet.crawler.reduce.page import parse
from freshet.crawler.reduce.sketch import Sketch, sketch
from freshet.storage.entries import Kind, Rung

_DAY_S = 86_400
_SAMPLE = 32


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a page: when it came, its blob (None: deleted), its main text by hash."""

    at: float
    blob: int | None
    label: int


@dataclass(frozen=True, slots=True)
class Opinion:
    """What the label and the detector say of two versions of a page that differ in bytes."""

    url: str
    labelled: bool
    kind: Kind
    rung: Rung
    before: Blocks
    after: Blocks

    @property
    def agrees(self) -> bool:
        """Whether both say the same."""
        return self.labelled == (self.kind == "changed")

    def difference(self, lines: int = 6) -> list[str]:
        """The first blocks that differ."""
        diff = unified_diff(self.before.texts, self.after.texts, n=0, lineterm="")
        return [line[:160] for line in list(diff)[2 : 2 + lines]]


class Recording:
    """A recorded site; packed as ``NAME.sqlite.zst``, unpacked beside ``folder``."""

    def __init__(self, packed: Path, folder: Path) -> None:
        path = folder / packed.name.removesuffix(".zst")
        with packed.open("rb") as source, path.open("wb") as target:
            zstandard.ZstdDecompressor().copy_stream(source, target)
        self._connection = sqlite3.connect(path)
        self._bodies: dict[int, bytes] = {}

    def close(self) -> None:
        """Give the file back."""
        self._connection.close()

    def pages(self, limit: int) -> dict[str, list[Version]]:
        """The versions of up to ``limit`` pages, spread over all."""
        rows = self._connection.execute(
            "SELECT url, id FROM pages WHERE url LIKE '%.html' OR url LIKE '%/' ORDER BY url"
        ).fetchall()
        chosen = rows[:: max(1, len(rows) // limit)][:limit]
        return {url: list(self._versions(page)) for url, page in chosen}

    def body(self, blob: int) -> bytes:
        """The bytes of a blob."""
        if blob not in self._bodies:
            base, packed = self._connection.execute(
                "SELECT base, data FROM blobs WHERE id = ?", (blob,)
            ).fetchone()
            like = None if base is None else self.body(base)
            raw = zstandard.DICT_TYPE_RAWCONTENT
            words = None if like is None else zstandard.ZstdCompressionDict(like, dict_type=raw)
            self._bodies[blob] = zstandard.ZstdDecompressor(words).decompress(packed)
        return self._bodies[blob]

    def _versions(self, page: int) -> Iterator[Version]:
        rows = self._connection.execute(
            "SELECT time, blob, main_hash FROM versions WHERE page = ? ORDER BY time", (page,)
        )
        return (Version(*row) for row in rows)


@dataclass(slots=True)
class _Seen:
    """A page as last visited."""

    version: Version
    blocks: Blocks
    text: bytes
    record: PageRecord


def opinions(
    recording: Recording, *, pages: int, visits: int, every_days: float
) -> Iterator[Opinion]:
    """What is said of each page that a visit finds with other bytes; the last visits of all."""
    histories = recording.pages(pages)
    end = max(versions[-1].at for versions in histories.values() if versions)
    seen: dict[str, _Seen] = {}
    for n in reversed(range(visits)):
        at = end - n * every_days * _DAY_S
        known = [page.record for page in list(seen.values())[:_SAMPLE]]
        host = HostRun(Template.learnt(known))
        for url, versions in histories.items():
            version = _current(versions, at)
            if version is None or version.blob is None:
                continue
            host.pages += 1
            opinion = _visit(seen, url, version, recording.body(version.blob), host, at)
            if opinion is not None:
                yield opinion


def _current(versions: Sequence[Version], at: float) -> Version | None:
    number = bisect_right(versions, at, key=lambda version: version.at)
    return versions[number - 1] if number else None


def _visit(
    seen: dict[str, _Seen], url: str, version: Version, body: bytes, host: HostRun, at: float
) -> Opinion | None:
    before = seen.get(url)
    if before is not None and before.version.blob == version.blob:
        before.record = replace(before.record, still=before.record.still + 1)
        return None
    blocks = parse(body, f"https://h.example{url}", "text/html").blocks
    new = sketch(blocks.texts, blocks.places)
    if before is None:
        seen[url] = _Seen(version, blocks, new.text_digest, PageRecord(new))
        return None
    kind, rung, record = _judged(before, new, host, at)
    seen[url] = _Seen(version, blocks, new.text_digest, record)
    labelled = version.label != before.version.label
    return Opinion(url, labelled, kind, rung, before.blocks, blocks)


def _judged(before: _Seen, new: Sketch, host: HostRun, at: float) -> tuple[Kind, Rung, PageRecord]:
    record = before.record
    if new.text_digest == before.text:
        return "unchanged", "text", replace(record, still=record.still + 1)
    found = judge_blocks(record, new, host, at)
    kept = new if found.keeps_sketch else record.sketch
    memory = PageMemory.from_bytes(found.memory or b"")
    return found.kind, found.rung or "blocks", PageRecord(kept, memory)


def agreement(
    packed: Path, folder: Path, *, pages: int = 60, visits: int = 25
) -> dict[str, object]:
    """Counts of what both say of a recorded site, and a few disagreements."""
    with closing(Recording(packed, folder)) as recording:
        found = list(opinions(recording, pages=pages, visits=visits, every_days=14.0))
    counts = Counter(
        f"label {'changed' if o.labelled else 'unchanged'}, here {o.kind} by {o.rung}"
        for o in found
    )
    odd = [o for o in found if not o.agrees]
    return {
        "compared": len(found),
        "agree": round(sum(o.agrees for o in found) / max(1, len(found)), 4),
        "counts": dict(counts.most_common()),
        "disagreements": [
            {"url": o.url, "rung": o.rung, "blocks": o.difference()}
            for o in odd[:: max(1, len(odd) // 8)][:8]
        ],
    }
