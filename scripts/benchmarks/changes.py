"""How often a verdict on a page of terms is right, by the versions that people published of it.

``--archive``: a folder with clones of Open Terms Archive's repositories, ``NAME-snapshots`` and
``NAME-versions`` for each collection. A snapshot is a page as it was fetched, and a version its
terms, cut out by hand-made selectors. The documents of a service are judged as the pages of a
host, visit after visit; a visit is a true change if the words of the version differ between it and
the visit before. Each document has up to ``--visits`` visits, and those that brought a new version.
Without a folder nothing is measured.

``--beside``: a checkout of another commit, with its own environment. Both judge the same visits of
the tuning collections in turn; printed is the CPU time of the check of differences, and of
it and the check of block pages together.

Prints one JSON object with counts for each collection: ``true`` changes with a difference in the
compared text that has a word of the version's, and of those ``found``; ``same``, visits at which
the version stayed, and of those ``false`` changes; and visits that are ``refreshed``. A version
has noise of its own (banners, numbers of partners). ``elsewhere`` are true changes in words that
the compared text does not have, ``elsewhere_found`` those among them with another change. For each
reason of a minor difference there is its gain, visits at which the version stayed, and its harm,
true changes: in collections that are not ``tuned``, on pages that it was not fitted on.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import zlib
from base64 import b64encode
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence, Set
from contextlib import closing
from dataclasses import dataclass, field
from heapq import merge
from pathlib import Path
from typing import NamedTuple, TextIO
from urllib.parse import quote

from freshet.crawler.compare.detection import Detector, Verdict
from freshet.crawler.reduce.blocks import Blocks
from freshet.crawler.reduce.page import parse, standing
from freshet.crawler.reduce.sketch import sketch
from freshet.storage.records import Digests, DueUrl, PageHistory
from scripts.benchmarks.command import arguments, finish, say, workspace

#: The collections that weights may be fitted to, and thresholds set by; the others judge.
TUNED = ("dating", "demo", "dsa-reports", "genai-eu")
_DAY_S = 86_400
_TYPE = "text/html; charset=utf-8"
#: The label of two visits farther apart is not trusted.
_MOST_DAYS = 14
_LOCATION = re.compile(r"X-source-document-location: (\S+)|recorded from (\S+)|from: (\S+)")
_COMMIT = re.compile(r"\b[0-9a-f]{40}\b")
_WORD = re.compile(r"\w+")
_MARKUP = re.compile(r"\]\([^)]*\)|[\\*_`#]")
_LOG = "--format=%x01%H%x02%at%x02%s%x02%b%x03"


class Repository:
    """A clone, read through one process of git."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._reader = subprocess.Popen(
            ["git", "-C", str(path), "cat-file", "--batch"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def close(self) -> None:
        """End the process."""
        self._reader.communicate()

    def commits(self) -> Iterator[tuple[str, int, str, str, list[tuple[str, str]]]]:
        """Commits, oldest first: hash, time, subject, body, and files with what was done."""
        command = ["git", "-c", "core.quotepath=off", "-C", str(self.path), "log", "--reverse"]
        log = subprocess.run(
            [*command, "--no-renames", _LOG, "--name-status"], capture_output=True, check=True
        )
        for record in log.stdout.decode("utf8", "replace").split("\x01")[1:]:
            head, _, names = record.partition("\x03")
            commit, at, subject, body = head.split("\x02")
            files = [line.split("\t") for line in names.strip().split("\n") if "\t" in line]
            yield commit, int(at), subject, body, [(done, name) for done, name, *_ in files]

    def file(self, commit: str, name: str) -> bytes:
        """A file as of a commit."""
        assert self._reader.stdin is not None
        assert self._reader.stdout is not None
        self._reader.stdin.write(f"{commit}:{name}\n".encode())
        self._reader.stdin.flush()
        head = self._reader.stdout.readline().split()
        if not head[-1].isdigit():
            raise ValueError(f"{self.path}: no {name} at {commit}")
        content = self._reader.stdout.read(int(head[-1]))
        self._reader.stdout.read(1)
        return content


class Snapshot(NamedTuple):
    """A page as fetched; ``version`` is the commit of the terms cut out of it, if they differ."""

    at: int
    commit: str
    url: str
    version: str | None


@dataclass(slots=True)
class Document:
    """The visits of one page, and the commits with its terms by time."""

    name: str
    visits: list[Snapshot] = field(default_factory=list)
    versions: list[tuple[int, str, bool]] = field(default_factory=list)


def documents(snapshots: Repository, versions: Repository, visits: int) -> Iterator[Document]:
    """The documents of a collection with their labels; those cut out of several pages are not."""
    of_snapshot: dict[str, str] = {}
    published: defaultdict[str, list[tuple[int, str, bool]]] = defaultdict(list)
    mixed: set[str] = set()
    for commit, at, subject, body, files in versions.commits():
        named = set(_COMMIT.findall(body))
        terms = [name for _, name in files if name.endswith(".md") and "/" in name]
        if len(terms) != 1:
            continue
        if len(named) > 1:
            mixed.add(terms[0].removesuffix(".md"))
        is_news = subject.startswith("Record new changes")
        published[terms[0].removesuffix(".md")].append((at, commit, is_news))
        if len(named) == 1:
            of_snapshot[named.pop()] = commit
    pages = snapshots_of(snapshots)
    for name, history in sorted(pages.items()):
        history[:] = [it._replace(version=of_snapshot.get(it.commit)) for it in history]
        labelled = [i for i, each in enumerate(history) if each.version is not None]
        if not labelled or name in mixed:
            continue
        chosen = {i for n in labelled for i in (n - 1, n) if i >= labelled[0]}
        rest = range(labelled[0], len(history))
        chosen.update(rest[:: max(1, len(rest) // visits)])
        yield Document(name, [history[i] for i in sorted(chosen)], published[name])


def snapshots_of(snapshots: Repository) -> dict[str, list[Snapshot]]:
    """The snapshots of each page of a collection, oldest first, without labels."""
    pages: defaultdict[str, list[Snapshot]] = defaultdict(list)
    for commit, at, _, body, files in snapshots.commits():
        for done, name in files:
            if done in "AM" and name.endswith(".html"):
                found = _LOCATION.search(body)
                url = next((group for group in found.groups() if group), "") if found else ""
                pages[name.removesuffix(".html")].append(Snapshot(at, commit, url, None))
    return pages


class Seen(NamedTuple):
    """One visit of a document: its text, and the words in which its version differs.

    ``words`` is None if the label is not known; ``body`` is compressed.
    """

    document: str
    at: int
    url: str
    commit: str
    blocks: Blocks
    words: frozenset[str] | None
    body: bytes


def seen(document: Document, snapshots: Repository, versions: Repository) -> Iterator[Seen]:
    """The visits of a document, in order."""
    last: Snapshot | None = None
    for visit in document.visits:
        body = snapshots.file(visit.commit, f"{document.name}.html")
        url = visit.url or f"https://{quote(document.name.partition('/')[0])}.example/"
        try:
            blocks = parse(body, url, _TYPE).blocks
        except ValueError:
            continue
        words = None if last is None else _label(document, last, visit, versions)
        last = visit
        packed = zlib.compress(body, 1)
        yield Seen(document.name, visit.at, url, visit.commit, blocks, words, packed)


def _label(
    document: Document, last: Snapshot, visit: Snapshot, versions: Repository
) -> frozenset[str] | None:
    if visit.at - last.at > _MOST_DAYS * _DAY_S or visit.url != last.url:
        return None
    times = [at for at, _, _ in document.versions]
    # The terms are published moments after the snapshot that they are of.
    before, after = (_number(document, times, each) for each in (last, visit))
    if before < 0 or not all(news for _, _, news in document.versions[before + 1 : after + 1]):
        return None
    if before == after:
        return frozenset()
    old, new = (
        _words(versions.file(document.versions[i][1], f"{document.name}.md").decode())
        for i in (before, after)
    )
    return frozenset(word for word in old | new if old[word] != new[word]) or None


def _number(document: Document, times: Sequence[int], visit: Snapshot) -> int:
    for i, (_, commit, _) in enumerate(document.versions):
        if commit == visit.version:
            return i
    return bisect_right(times, visit.at) - 1


def _words(markdown: str) -> Counter[str]:
    return Counter(
        _WORD.findall(_MARKUP.sub(lambda m: "]" * (m[0] != m[0][:1]), markdown).casefold())
    )


# -- judging -----------------------------------------------------------------


class Host:
    """The pages of a host as a store keeps them; only its last texts."""

    def __init__(self) -> None:
        self.pages: dict[int, PageHistory] = {}
        self.digests: dict[int, Digests] = {}
        self.texts: dict[int, Blocks] = {}
        self.bodies: dict[int, bytes] = {}
        self.detector = Detector(self)

    async def history(self, page_id: int) -> PageHistory | None:
        """Return that of a page."""
        return self.pages.get(page_id)

    async def sample(self, host_id: int, most: int) -> list[PageHistory]:
        """Return the first pages."""
        return list(self.pages.values())[:most]

    async def nothing(self, of: object) -> None:
        """Return None."""

    predecessor = not_content = again = channels = nothing

    async def content(self, page_id: int) -> tuple[bytes, str | None]:
        """Return the last bytes of a page, and their type."""
        return zlib.decompress(self.bodies[page_id]), _TYPE

    async def text(self, due: DueUrl, _content: object) -> Blocks | None:
        """Return the last text of a page."""
        return self.texts.get(due.page_id)

    async def standing(
        self, _due: DueUrl, content: tuple[bytes, str | None], digests: Set[int]
    ) -> Blocks | None:
        """Return the blocks with these digests among all that a version says."""
        return standing(*content, digests)

    async def visit(self, page_id: int, blocks: Blocks, body: bytes, at: float) -> Verdict:
        """Judge a visit and keep what a store would; the body is compressed."""
        new = sketch(blocks.texts, blocks.places)
        digests = self.digests.get(page_id)
        due = DueUrl(page_id, "", "", 1, at, digests=digests)
        self.detector.visited(1)
        content = zlib.decompress(body), _TYPE
        found = await self.detector.detect(due, new, at, text=blocks, content=content)
        past = self.pages.get(page_id)
        if past is None or found.keeps_sketch:
            still, kept = 0, new.to_bytes()
        else:
            still, kept = past.still + 1, past.sketch
        if found.memory is not None:
            still = 0
        memory = found.memory or (past.memory if past else None)
        self.pages[page_id] = PageHistory(kept, memory, still)
        self.digests[page_id] = Digests(b"", new.text_digest)
        self.texts[page_id] = blocks
        self.bodies[page_id] = body
        return found


class Judged(NamedTuple):
    """A visit with its label and its verdict, and the text before."""

    seen: Seen
    before: Blocks
    found: Verdict

    @property
    def shows(self) -> bool:
        """Whether the compared text differs in a word of the label's."""
        old, new = (Counter(_WORD.findall(" ".join(each.texts).casefold()))
                    for each in (self.before, self.seen.blocks))  # fmt: skip
        return any(old[word] != new[word] for word in self.seen.words or ())


async def judged(visits: Sequence[Sequence[Seen]]) -> list[Judged]:
    """Judge the visits of the documents of one service, in the order of time."""
    host, numbers, found = Host(), dict[str, int](), list[Judged]()
    for visit in merge(*visits, key=lambda each: each.at):
        number = numbers.setdefault(visit.document, len(numbers) + 1)
        before = host.texts.get(number, Blocks())
        verdict = await host.visit(number, visit.blocks, visit.body, float(visit.at))
        found.append(Judged(visit, before, verdict))
    return found


def counted(visits: Sequence[Judged]) -> dict[str, object]:
    """Counts over labelled visits."""
    counts: Counter[str] = Counter()
    rungs: Counter[str] = Counter()
    gains: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for each in visits:
        if each.seen.words is None:
            continue
        is_changed, is_refreshed = each.found.kind == "changed", each.found.rung == "minor"
        counts["refreshed"] += is_refreshed
        if is_refreshed and (not each.seen.words or each.shows):
            for reason in (each.found.detail or "").split("; "):
                gains[reason][bool(each.seen.words)] += 1
        if not each.seen.words:
            counts["same"] += 1
            counts["false"] += is_changed
            if is_changed or each.found.rung not in {"text", "body", "304"}:
                rungs[f"{each.found.rung}"] += 1
        elif each.shows:
            counts["true"] += 1
            counts["found"] += is_changed
        else:
            counts["elsewhere"] += 1
            counts["elsewhere_found"] += is_changed
    true, same = max(1, counts["true"]), max(1, counts["same"])
    return {
        **counts,
        "recall": round(counts["found"] / true, 4),
        "false_share": round(counts["false"] / same, 4),
        "refreshed_share": round(counts["refreshed"] / (counts["true"] + same), 4),
        "rungs_of_same": dict(rungs),
        "minor: gain, harm": dict(gains),
    }


def collections(archive: Path) -> Iterator[tuple[str, Path, Path]]:
    """Names and clones of the collections in a folder."""
    for snapshots in sorted(archive.glob("*-snapshots")):
        name = snapshots.name.removesuffix("-snapshots")
        yield name, snapshots, archive / f"{name}-versions"


def by_service(snapshots: Path, versions: Path, visits: int) -> Iterator[list[list[Seen]]]:
    """The visits of each service's documents."""
    with closing(Repository(snapshots)) as pages, closing(Repository(versions)) as terms:
        of_service: defaultdict[str, list[Document]] = defaultdict(list)
        for document in documents(pages, terms, visits):
            of_service[document.name.partition("/")[0]].append(document)
        for found in of_service.values():
            yield [list(seen(document, pages, terms)) for document in found]


# -- CPU ---------------------------------------------------------------------

_ROUNDS = 3
_MEASURED_VISITS = 400


def cpu_beside(archive: Path, checkout: Path, visits: int) -> dict[str, object]:
    """The CPU seconds of the check of differences of both, the least of some rounds."""
    script = Path(__file__).with_name("change_cpu.py")
    pythons = {"here": Path(sys.executable), "there": checkout / ".venv" / "bin" / "python"}
    with workspace() as place:
        path = place / "visits.json"
        with path.open("w", encoding="utf-8") as file:
            for name, snapshots, _ in collections(archive):
                if name in TUNED:
                    _write_visits(snapshots, archive / f"{name}-versions", visits, file)
        told_of: dict[str, list[dict[str, float]]] = {each: [] for each in pythons}
        found: dict[str, float] = {}
        for _ in range(_ROUNDS):
            for name, python in pythons.items():
                command = [str(python), str(script), str(path)]
                told = subprocess.run(command, capture_output=True, check=True, cwd=place)
                found = json.loads(told.stdout)
                told_of[name].append(found)
    result: dict[str, object] = {"visits": found["visits"]}
    for checks in ("seconds", "both"):
        here, there = (min(each[checks] for each in told_of[name]) for name in ("here", "there"))
        result[checks] = {
            "here": round(here, 3), "there": round(there, 3), "ratio": round(here / there, 3)
        }  # fmt: skip
    return result


def _write_visits(snapshots: Path, versions: Path, visits: int, file: TextIO) -> None:
    """Write the visits of each service on a line, up to so many of a collection."""
    with closing(Repository(snapshots)) as pages, closing(Repository(versions)) as terms:
        left = _MEASURED_VISITS
        for number, document in enumerate(documents(pages, terms, visits)):
            rows = []
            for visit in document.visits[:left]:
                body = zlib.compress(pages.file(visit.commit, f"{document.name}.html"))
                rows.append((number, float(visit.at), visit.url, b64encode(body).decode()))
            file.write(f"{json.dumps(rows)}\n")
            left -= len(rows)
            if left <= 0:
                return


def main() -> None:
    """Judge and print."""
    parser = arguments(__doc__)
    parser.add_argument("--archive", type=Path, metavar="DIR", help="clones of the repositories")
    parser.add_argument("--beside", type=Path, metavar="CHECKOUT", help="measure CPU beside it")
    parser.add_argument("--visits", type=int, default=120, help="visits of each document, or so")
    options = parser.parse_args()
    if options.archive is None:
        say(
            "nothing is measured: name a folder of Open Terms Archive's repositories with --archive"
        )
        return
    if options.beside is not None:
        finish(cpu_beside(options.archive, options.beside, options.visits), options.output)
        return
    result: dict[str, object] = {}
    for name, snapshots, versions in collections(options.archive):
        found: list[Judged] = []
        for visits in by_service(snapshots, versions, options.visits):
            found += asyncio.run(judged(visits))
        result[name] = {"tuned": name in TUNED, **counted(found)}
        say(f"{name}: {len(found)} visits")
    finish(result, options.output)
