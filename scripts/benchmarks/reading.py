"""Processor time and calls of functions for the reading of a page: its links, text and sketch.

``--html``: a folder of HTML files, packed or not, of which a sample is read; ``--beside``: another
checkout of Freshet that is set up, which reads the same pages in turn. Each page is read for the
first time, in the same order, by one process a round; the rounds' median counts. Calls are those
that Python's profiler sees, of functions of Python and of C. Pages with other texts are counted.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from random import Random
from statistics import median

from scripts.benchmarks.command import arguments, finish

_SAMPLE = 400
_ROUNDS = 3
#: What a longer page costs is another process's.
_LONGEST = 512 * 1024

_READ = """
import gzip, sys, threading, time
from hashlib import sha256
from pathlib import Path
from freshet.crawler.reduce.page import parse
from freshet.crawler.reduce.sketch import sketch

def read(number, body):
    page = parse(body, f"http://h.example/a/{number}", "text/html")
    made = getattr(page, "sketch", None) or sketch(page.blocks.texts, page.blocks.places)
    return page, made.to_bytes()

def note(_frame, event, _of):
    global calls
    calls += event in ("call", "c_call")

counts, calls = sys.argv[1] == "calls", 0
paths = map(Path, sys.stdin.read().splitlines())
packed = [(path.suffix, path.read_bytes()) for path in paths]
bodies = [gzip.decompress(body) if kind == ".gz" else body for kind, body in packed]
read(0, b"<title>A page</title><p>Some words.")
began = time.process_time()
if counts:
    threading.setprofile(note)
    sys.setprofile(note)
found = [read(number, body) for number, body in enumerate(bodies, 1)]
sys.setprofile(None)
took = time.process_time() - began
digests = [sha256(repr((page.blocks.texts, page.links)).encode() + made) for page, made in found]
print(calls if counts else took)
print("\\n".join(each.hexdigest() for each in digests))
"""


def _run(checkout: Path, what: str, names: str) -> tuple[float, list[str]]:
    command = [str(checkout / ".venv/bin/python"), "-c", _READ, what]
    done = subprocess.run(
        command, cwd=checkout, input=names, capture_output=True, text=True, check=True
    )
    figure, *digests = done.stdout.split()
    return float(figure), digests


def costs(folder: Path, beside: Path | None) -> dict[str, object]:
    """Return what the reading of a page costs here, and in another checkout."""
    paths = sorted(path for path in folder.rglob("*.html*") if path.is_file())
    paths = [path for path in paths if not path.is_symlink() and path.stat().st_size <= _LONGEST]
    paths = Random(0).sample(paths, min(_SAMPLE, len(paths)))  # a sample, no secret
    names = "".join(f"{path.resolve()}\n" for path in paths)
    here = Path(__file__).parents[2]
    checkouts = {"here": here} | ({} if beside is None else {"beside": beside.resolve()})
    took: dict[str, list[float]] = {name: [] for name in checkouts}
    for _ in range(_ROUNDS):
        for name, checkout in checkouts.items():
            took[name].append(_run(checkout, "time", names)[0])
    result: dict[str, object] = {"pages": len(paths)}
    digests = []
    for name, checkout in checkouts.items():
        calls, digest = _run(checkout, "calls", names)
        digests.append(digest)
        result[f"us_{name}"] = round(1e6 * median(took[name]) / len(paths))
        result[f"calls_{name}"] = round(calls / len(paths))
    if beside is not None:
        result["ratio"] = round(median(took["here"]) / median(took["beside"]), 3)
        result["differ"] = sum(one != other for one, other in zip(*digests, strict=True))
    return result


def main() -> None:
    """Read the pages of a folder, and print what it took."""
    parser = arguments(__doc__)
    parser.add_argument("--html", type=Path, metavar="DIR", required=True)
    parser.add_argument("--beside", type=Path, metavar="DIR")
    options = parser.parse_args()
    finish(costs(options.html, options.beside), options.output)
