"""Real pages that are short enough to be judged, read from folders that options name.

A folder is one part of WCXB, ScrapingHub's articles, trafilatura's repository, a bare repository
of snapshots of Open Terms Archive, or holds a folder of HTML files for each host. Each has at most
so many pages of a host. Recorded sites (FRESHET_EVOLUTION_DIR) give first and last versions.
"""

from __future__ import annotations

import gzip
import json
import random
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from pathlib import Path
from urllib.parse import urlsplit

from freshet.crawler.compare.not_content.cues import is_judged, is_short, length
from freshet.crawler.reduce.page import ParsedPage, parse
from scripts.benchmarks.recorded import Recording

SEED = 20_261_129
#: Shorter paragraphs are headings and labels.
_PARAGRAPH_WORDS = 8
_PARAGRAPHS_OF_A_HOST = 40


@dataclass(frozen=True, slots=True)
class RealPage:
    """A page as its host served it, and the host."""

    host: str
    url: str
    html: str


def read_folder(folder: Path, most: int) -> Iterator[RealPage]:
    """Yield the real pages of a folder, at most so many of a host."""
    if (folder / "ground-truth").is_dir():
        return _wcxb(folder)
    if (folder / "ground-truth.json").exists():
        return _articles(folder)
    if (folder / "tests" / "evaldata.json").exists():
        return _trafilatura(folder)
    if (folder / "HEAD").exists():
        return _terms(folder)
    return _hosts(folder, most)


def _wcxb(folder: Path) -> Iterator[RealPage]:
    for truth in sorted(folder.glob("ground-truth/*.json")):
        url = json.loads(truth.read_text("utf-8")).get("url") or f"https://n{truth.stem}.example/"
        packed = folder / "html" / f"{truth.stem}.html.gz"
        yield _page(url, gzip.decompress(packed.read_bytes()))


def _articles(folder: Path) -> Iterator[RealPage]:
    known = json.loads((folder / "ground-truth.json").read_text("utf-8"))
    for name, page in sorted(known.items()):
        packed = folder / "html" / f"{name}.html.gz"
        yield _page(page.get("url") or f"https://{name[:16]}.example/{name}",
                    gzip.decompress(packed.read_bytes()))  # fmt: skip


def _trafilatura(folder: Path) -> Iterator[RealPage]:
    tests = folder / "tests"
    for url, page in sorted(json.loads((tests / "evaldata.json").read_text("utf-8")).items()):
        paths = (tests / part / page["file"] for part in ("cache", "eval"))
        if path := next(filter(Path.is_file, paths), None):
            yield _page(url, path.read_bytes())


def _terms(folder: Path) -> Iterator[RealPage]:
    """Yield the newest snapshots of all pages of a collection."""
    git = ("git", "-c", "core.quotepath=off", "-C", str(folder))
    names = (*git, "ls-tree", "-r", "--name-only", "HEAD")
    listed = subprocess.run(names, capture_output=True, check=True)
    for name in listed.stdout.decode().splitlines():
        if name.endswith(".html"):
            shown = subprocess.run((*git, "show", f"HEAD:{name}"), capture_output=True, check=True)
            service, _, page = name.rpartition("/")
            yield _page(f"https://{_host_name(service)}/{page.replace(' ', '-')}", shown.stdout)


def _hosts(folder: Path, most: int) -> Iterator[RealPage]:
    for host in sorted(path for path in folder.iterdir() if path.is_dir()):
        paths = sorted(p for p in host.rglob("*.htm*") if p.is_file() and p.suffix != ".gz")
        for path in sorted(random.Random(SEED).sample(paths, min(most, len(paths)))):
            name = path.relative_to(host).as_posix()
            yield _page(f"https://{_host_name(host.name)}/{name}", path.read_bytes())


def read_recordings(folder: Path, work: Path, most: int) -> Iterator[RealPage]:
    """Yield the first and the last version of pages of each recorded site, at most so many."""
    for packed in sorted(folder.glob("*.sqlite.zst")):
        host = _host_name(packed.name.partition(".")[0])
        with closing(Recording(packed, work)) as recording:
            for url, versions in recording.pages(most).items():
                blobs = list(dict.fromkeys(v.blob for v in versions if v.blob is not None))
                for blob in dict.fromkeys(blobs[:1] + blobs[-1:]):
                    yield _page(f"https://{host}{url}", recording.body(blob))


def _host_name(name: str) -> str:
    return f"{name.lower().replace(' ', '-').replace('.', '-')}.example"


def _page(url: str, body: bytes) -> RealPage:
    return RealPage(urlsplit(url).netloc, url, body.decode("utf-8", "replace"))


def short(pages: Iterable[RealPage]) -> Iterator[RealPage]:
    """Yield those that are short enough to be judged."""
    for page in pages:
        parsed = _parsed(page)
        if is_judged(parsed.title, length(parsed.blocks.texts)):
            yield page


def paragraphs(pages: Iterable[RealPage]) -> Iterator[RealPage]:
    """Yield paragraphs of pages as pages of their own, each on a host of its own."""
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for page in pages:
        texts = [t for t in _parsed(page).blocks.texts if len(t.split()) >= _PARAGRAPH_WORDS]
        found[page.host] |= dict.fromkeys(t for t in texts if is_short([t]))
    for host, every in found.items():
        drawn = random.Random(SEED).sample([*every], min(_PARAGRAPHS_OF_A_HOST, len(every)))
        for n, text in enumerate(drawn):
            html = f"<!doctype html><title>Notes</title><main><p>{escape(text)}</p></main>"
            yield RealPage(own := f"n{n}.{host}", f"https://{own}/notes/{n}", html)


def _parsed(page: RealPage) -> ParsedPage:
    return parse(page.html.encode(), page.url, "text/html; charset=utf-8")


def is_held_out(host: str) -> bool:
    """Return whether nothing may be fitted on a host whose corpus is in neither half."""
    return bool(sha256(host.encode()).digest()[0] & 1)
