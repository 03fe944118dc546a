"""What it takes to read an archive: the index pass and the reading in the order of time.

Beside them a loop of warcio that reads each answer once and verifies its digests. And the memory
of an index: rows as of an archive of which four captures in five are revisits.
"""

from __future__ import annotations

import gzip
import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random

from warcio.archiveiterator import ArchiveIterator

from freshet.crawler.archive.exchanges import IndexEntry, key
from freshet.crawler.archive.index import ArchiveIndex, transaction
from freshet.crawler.archive.inputs import ArchiveFile, inputs_of
from freshet.crawler.archive.reader import ExchangeReader, fetch_result
from freshet.crawler.archive.records import ArchivedExchange, written
from scripts.benchmarks.command import say, workspace
from tests.crawler.archive.archives import OK, digest, record

_MAX_BODY_BYTES = 10 * 1024 * 1024
_WORDS = 4_000


def figures(exchanges: int, rows: int) -> dict[str, object]:
    """Exchanges and MB (of answers, unpacked) per CPU-second, and the peak of an index in MB."""
    with workspace() as place:
        path = place / "a.warc.gz"
        say(f"writing {exchanges} exchanges")
        size = _write(path, exchanges)
        passes: dict[str, Callable[[], int]] = {
            "warcio": lambda: _by_warcio(path),
            "index": lambda: _index(place, path),
            "read": lambda: _read(place),
        }
        result: dict[str, object] = {"exchanges": exchanges, "megabytes": round(size / 1e6, 1)}
        for name, run in passes.items():
            say(name)
            began = time.process_time()
            assert run() == exchanges
            took_s = time.process_time() - began
            result[name] = {
                "exchanges_per_cpu_second": round(exchanges / took_s),
                "megabytes_per_cpu_second": round(size / took_s / 1e6, 1),
            }
        say(f"an index of {rows} rows")
        return result | {"index_of_rows": _in_a_process(place / "rows.db", rows)}


def _write(path: Path, exchanges: int) -> int:
    random = Random(1)
    words = [
        "".join(random.choices("abcdefghijklmnop", k=random.randint(2, 9))) for _ in range(999)
    ]
    size = 0
    with path.open("wb") as file:
        for number in range(exchanges):
            body = f"<p>{' '.join(random.choices(words, k=_WORDS))}".encode()
            block = OK + body
            size += len(block)
            url = f"http://a.test/{number}"
            named = {"WARC-Record-ID": f"<urn:{number}>", "WARC-Block-Digest": digest(block)}
            named["WARC-Payload-Digest"] = digest(body)
            near = {"WARC-Concurrent-To": f"<urn:{number}>"}
            for each in (
                record("request", b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", url=url, more=near),
                record("response", block, url=url, more=named),
                record("metadata", b"fetchTimeMs: 9.5\r\noutcome: fetched", url=url, more=near),
            ):
                file.write(gzip.compress(each, 6))
    return size


def _by_warcio(path: Path) -> int:
    count = 0
    with path.open("rb") as file:
        for each in ArchiveIterator(file, check_digests="raise"):
            if each.rec_type == "response":
                each.content_stream().read()
                count += 1
    return count


def _index(place: Path, path: Path) -> int:
    with closing(ArchiveIndex(place / "index.db")) as order:
        order.build(inputs_of([path]))
        return order.exchanges


def _read(place: Path) -> int:
    count = 0
    with (
        closing(ArchiveIndex(place / "index.db")) as order,
        closing(ExchangeReader(order)) as reading,
    ):
        for each in reading.exchanges():
            assert isinstance(each, ArchivedExchange)
            count += fetch_result(each, _MAX_BODY_BYTES).outcome == "fetched"
    return count


def _in_a_process(path: Path, rows: int) -> dict[str, object]:
    """The index of so many rows made and read back in a process of its own."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_fill, args=(path, rows, theirs))
    process.start()
    theirs.close()
    told: dict[str, object] = ours.recv()
    process.join()
    return told


def _fill(path: Path, rows: int, tell: Connection) -> None:
    before = _peak_mb()
    began = time.process_time()
    with closing(ArchiveIndex(path)) as order:
        with transaction(order._db):
            unread = order._match({ArchiveFile(path.parent / "a.warc.gz"): 0})
            order._insert(unread[0][0], _rows(rows))
            order._db.execute("UPDATE source SET finished = 1")
        with transaction(order._db):
            order._finish()
    filled_s = time.process_time() - began
    began = time.process_time()
    with closing(ArchiveIndex(path)) as order:
        last, count = float("-inf"), 0
        for entry in order.entries():
            assert entry.ended_at >= last
            last = entry.ended_at
            count += 1
    assert count == rows
    tell.send(
        {
            "rows": rows,
            "peak_mb": _peak_mb(),
            "peak_mb_at_start": before,
            "bytes_per_row": round(path.stat().st_size / rows),
            "rows_per_cpu_second": {
                "written": round(rows / filled_s),
                "read": round(rows / (time.process_time() - began)),
            },
        }
    )


def _rows(count: int) -> Iterator[IndexEntry]:
    """Captures of a fifth as many pages, nearly in the order of time."""
    random = Random(2)
    pages = max(1, count // 5)
    for number in range(count):
        page = number % pages
        payload = written("sha1", page.to_bytes(20, "big"))
        is_first = number < pages
        started = 1.7e9 + number + random.random() * 50
        url = f"https://www.example.org/documentation/section-{page % 100}/page-{page}.html"
        yield IndexEntry(
            started + random.random(), 1, number * 9_000, 0,
            kind="response" if is_first else "same", url=url, started_at=started, status=200,
            digest=payload, outcome="fetched", accept="page",
            request_offset=number * 9_000 + 8_000, request_nth=0,
            facts_offset=number * 9_000 + 8_400, facts_nth=0,
            record_key=key("record", number), url_key=key(url),
            refers_record=None if is_first else key("record", page),
        )  # fmt: skip


def _peak_mb() -> float:
    """Of this process; what the system says of its usage would include whoever started it."""
    status = Path("/proc/self/status").read_text("ascii")
    return round(int(status.partition("VmHWM:")[2].split()[0]) / 1024, 1)
