"""Captures of content that a store takes back, over whole histories of real pages.

Snapshots of Open Terms Archive (``--archive``, clones as for :mod:`~scripts.benchmarks.changes`;
the collections that were tuned on) and recorded sites (FRESHET_EVOLUTION_DIR) become an archive
that ``freshet replay`` plays into a store, in the order of time. Counted are visits, those refused
and those doubtful, and captures taken back later: doubtful ones, and those that were content.
"""

from __future__ import annotations

import gzip
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from heapq import merge
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

from freshet.crawler.compare.not_content.page import NotContentKind
from freshet.storage.entries import DOUBTFUL
from scripts.benchmarks.changes import TUNED, Repository, collections, snapshots_of
from scripts.benchmarks.command import arguments, finish, say, workspace
from scripts.benchmarks.recorded import Recording

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n\r\n"
_CONTENT = "('new', 'changed', 'unchanged')"


@dataclass(frozen=True, slots=True)
class Counts:
    """Visits of a store, and what became of them."""

    visits: int
    content: int
    refused: int
    doubtful: int
    retracted_doubtful: int
    retracted_content: int


def write_archive(path: Path, pages: Iterable[tuple[float, str, bytes]]) -> None:
    """Write responses (Unix seconds, URL and body) as a WARC file."""
    with gzip.open(path, "wb", 1) as file:
        for at, url, body in pages:
            block = _HEAD % len(body) + body
            date = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            fields = {
                "WARC-Type": "response", "WARC-Record-ID": f"<urn:uuid:{uuid4()}>",
                "WARC-Date": date, "WARC-Target-URI": url,
                "Content-Type": "application/http; msgtype=response",
                "Content-Length": str(len(block)),
            }  # fmt: skip
            named = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
            file.write(b"WARC/1.1\r\n" + named.encode() + b"\r\n" + block + b"\r\n\r\n")


def terms(snapshots: Path, most: int) -> Iterator[tuple[float, str, bytes]]:
    """Yield up to so many snapshots of each page of a collection, in the order of time."""
    with closing(Repository(snapshots)) as repository:
        histories = snapshots_of(repository)
        rows = [
            (float(each.at), each.url, each.commit, name)
            for name, history in sorted(histories.items())
            for each in history[:: max(1, len(history) // most)]
            if urlsplit(each.url).netloc
        ]
        for at, url, commit, name in sorted(rows):
            yield at, url, repository.file(commit, f"{name}.html")


def recorded(packed: Path, work: Path, most: int) -> Iterator[tuple[float, str, bytes]]:
    """Yield the versions of so many pages of a recorded site, in the order of time."""
    host = packed.name.partition(".")[0].lower().replace("_", "-")
    with closing(Recording(packed, work)) as recording:
        histories = (
            [(v.at, url, v.blob) for v in versions if v.blob is not None]
            for url, versions in recording.pages(most).items()
        )
        for at, url, blob in merge(*histories):
            yield at, f"https://{host}.example{url}", recording.body(blob)


def replayed(pages: Iterable[tuple[float, str, bytes]], place: Path) -> Counts:
    """Play pages into a new store and count in it."""
    archive, store = place / "pages.warc.gz", place / "pages.db"
    store.unlink(missing_ok=True)
    write_archive(archive, pages)
    freshet = Path(sys.executable).with_name("freshet")
    command = [str(freshet), "replay", str(archive), "--db", str(store)]
    subprocess.run(command, check=True, capture_output=True, cwd=place)
    with closing(sqlite3.connect(store)) as db:
        return counted(db)


def counted(db: sqlite3.Connection) -> Counts:
    """Count the visits of a store by what they found, and by what was amended."""

    def count(where: str, *values: object) -> int:
        sql = (
            "SELECT count(*) FROM observation AS o "
            f"LEFT JOIN amendment AS a ON a.observation_id = o.id WHERE {where}"
        )
        found: int = db.execute(sql, values).fetchone()[0]
        return found

    kinds = tuple(map(str, NotContentKind))
    taken = f"a.kind = 'failed' AND o.kind IN {_CONTENT}"
    return Counts(
        visits=count("true"),
        content=count(f"o.kind IN {_CONTENT}"),
        refused=count(f"o.kind = 'failed' AND o.reason IN ({','.join('?' * len(kinds))})", *kinds),
        doubtful=count(f"o.kind IN {_CONTENT} AND o.reason IS ?", DOUBTFUL),
        retracted_doubtful=count(f"{taken} AND o.reason IS ?", DOUBTFUL),
        retracted_content=count(f"{taken} AND o.reason IS NOT ?", DOUBTFUL),
    )


def main() -> None:
    """Replay and print."""
    parser = arguments(__doc__)
    parser.add_argument("--archive", type=Path, metavar="DIR", help="clones of the repositories")
    parser.add_argument("--visits", type=int, default=40, help="visits of each page, or so")
    parser.add_argument("--pages", type=int, default=60, help="pages of each recorded site")
    options = parser.parse_args()
    result: dict[str, object] = {}
    with workspace() as place:
        for name, snapshots, _ in collections(options.archive) if options.archive else ():
            if name in TUNED:
                result[name] = asdict(replayed(terms(snapshots, options.visits), place))
                say(f"{name}: {result[name]}")
        if folder := os.environ.get("FRESHET_EVOLUTION_DIR"):
            for packed in sorted(Path(folder).glob("*.sqlite.zst")):
                rows = recorded(packed, place, options.pages)
                result[packed.name] = asdict(replayed(rows, place))
                say(f"{packed.name}: {result[packed.name]}")
    if not result:
        say("nothing is replayed: name a folder with --archive, or set FRESHET_EVOLUTION_DIR")
    finish(result, options.output)
