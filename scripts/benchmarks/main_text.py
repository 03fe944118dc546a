"""Main texts of public corpora: words found, words too many, snippets of boilerplate kept.

``--wcxb``: a clone of Murrough-Foley/web-content-extraction-benchmark; ``--articles``: one of
scrapinghub/article-extraction-benchmark; ``--snippets``: one of adbar/trafilatura. Each half of a
corpus, by a hash of the page's name, is printed apart: rules are tuned on the half ``tuned`` only.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from statistics import fmean

from freshet.crawler.reduce.page import parse
from scripts.benchmarks.command import arguments, finish

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Page:
    """A page, its main text if it is known, and snippets that are and are not part of it."""

    name: str
    body: bytes
    reference: str | None = None
    inside: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    content_type: str = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Score:
    """What was found of a page's words and snippets."""

    words: tuple[float, float] | None
    inside: tuple[bool, ...]
    outside: tuple[bool, ...]


def wcxb(folder: Path, part: str = "*") -> Iterator[Page]:
    for truth in sorted(folder.glob(f"{part}/ground-truth/*.json")):
        known = json.loads(truth.read_text(encoding="utf-8"))["ground_truth"]
        packed = truth.parents[1] / "html" / f"{truth.stem}.html.gz"
        snippets = tuple(known.get("with") or ()), tuple(known.get("without") or ())
        body = gzip.decompress(packed.read_bytes())
        yield Page(f"wc-{truth.stem}", body, known.get("main_content") or None, *snippets)


def articles(folder: Path) -> Iterator[Page]:
    known = json.loads((folder / "ground-truth.json").read_text(encoding="utf-8"))
    for name, page in sorted(known.items()):
        body = gzip.decompress((folder / "html" / f"{name}.html.gz").read_bytes())
        yield Page(f"sh-{name}", body, page["articleBody"])


def snippets(folder: Path) -> Iterator[Page]:
    tests = folder / "tests"
    known = json.loads((tests / "evaldata.json").read_text(encoding="utf-8"))
    for page in known.values():
        paths = (tests / part / page["file"] for part in ("cache", "eval"))
        if path := next(filter(Path.is_file, paths), None):
            texts = tuple(page["with"]), tuple(page["without"])
            yield Page(f"tr-{page['file']}", path.read_bytes(), None, *texts, "text/html")


def in_tuned_half(page: Page) -> bool:
    """Whether rules may be chosen on the page."""
    return not sha256(page.name.encode()).digest()[0] & 1


_READERS = {"wcxb": wcxb, "articles": articles, "snippets": snippets}


def scored(page: Page) -> Score:
    """Reduce a page and compare: precision and recall of words, as bags, and snippets."""
    blocks = parse(page.body, "https://h.example/", page.content_type).blocks
    text = plain("\n".join(blocks.texts))
    words = None
    if page.reference is not None:
        found, wanted = (Counter(_WORD.findall(t)) for t in (text, plain(page.reference)))
        common = (found & wanted).total()
        words = common / max(1, found.total()), common / max(1, wanted.total())
    return Score(words, *(tuple(plain(s) in text for s in t) for t in (page.inside, page.outside)))


def plain(text: str) -> str:
    return " ".join(text.split()).lower()


def figures(scores: list[Score]) -> dict[str, float]:
    """Means over pages; the shares of snippets are over all snippets."""
    words = [score.words for score in scores if score.words is not None]
    result: dict[str, float] = {"pages": len(scores)}
    if words:
        result["f1"] = fmean(2 * p * r / (p + r) if p + r else 0.0 for p, r in words)
        result["precision"], result["recall"] = map(fmean, zip(*words, strict=True))
        result["pages_with_recall_below_half"] = sum(r < 0.5 for _, r in words)
    if kept := [found for score in scores for found in score.outside]:
        result["snippets_found"] = fmean(found for score in scores for found in score.inside)
        result["boilerplate_kept"] = fmean(kept)
    return {name: round(value, 4) for name, value in result.items()}


def main() -> None:
    """Reduce all pages of the corpora that were named, and print."""
    parser = arguments(__doc__)
    for name in _READERS:
        parser.add_argument(f"--{name}", type=Path, metavar="DIR")
    options = parser.parse_args()
    result: dict[str, object] = {}
    for name, read in _READERS.items():
        if (folder := getattr(options, name)) is not None:
            halves: tuple[list[Score], list[Score]] = ([], [])
            for page in read(folder):
                halves[not in_tuned_half(page)].append(scored(page))
            result[name] = {"tuned": figures(halves[0]), "other": figures(halves[1])}
    finish(result, options.output)
