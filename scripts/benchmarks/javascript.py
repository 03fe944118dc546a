"""How many pages that need JavaScript are recognised, of what frameworks' own tools made.

``javascript_pages`` holds two sets as JSON lines: each page with the tool that made it, its
version and licence, and whether the page needs JavaScript. The rules were found on ``tuned``;
``held_out`` has other frameworks, templates, versions and pages, and was measured when they stood.
Pages that need none can be added: ``--pages DIR`` for HTML files, FRESHET_EVOLUTION_DIR for
recorded sites.
"""

import json
import os
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import zstandard

from freshet.crawler.compare.not_content.page import NotContentKind
from scripts.benchmarks.command import arguments, finish, say, workspace
from scripts.benchmarks.not_content import Verdict, Visitor, real_visits
from scripts.benchmarks.not_content_sites import Served, SiteMaker
from scripts.benchmarks.short_pages import read_folder, read_recordings

_FOLDER: Final = Path(__file__).parent / "javascript_pages"
SetName: TypeAlias = Literal["tuned", "held_out"]
#: Files of a folder, and pages of a recorded site, that are judged.
_MOST: Final = 10_000
_SETS: Final[tuple[SetName, ...]] = ("tuned", "held_out")


@dataclass(frozen=True, slots=True)
class Built:
    """A page as a framework's tool built it."""

    name: str
    tool: str
    version: str
    licence: str
    needs_javascript: bool
    html: str


def pages(name: SetName) -> list[Built]:
    """The pages of a set."""
    packed = (_FOLDER / f"{name}.jsonl.zst").read_bytes()
    lines = zstandard.ZstdDecompressor().decompress(packed, 1 << 26).decode().splitlines()
    return [Built(**json.loads(line)) for line in lines]


def is_recognised(page: Built) -> bool:
    """Whether the page, alone on its host, is taken for one that needs JavaScript."""
    visitor = Visitor(SiteMaker("built.example", random.Random(0)), probing=False)
    verdict = visitor.visit(Served("https://built.example/app/page", page.html)).verdict
    return verdict is not None and verdict.kind is NotContentKind.NEEDS_JAVASCRIPT


def figures(name: SetName) -> dict[str, Any]:
    """Precision and recall on a set, and on the tuned one which pages were judged wrongly."""
    every = pages(name)
    found = [page for page in every if is_recognised(page)]
    right = sum(page.needs_javascript for page in found)
    need = sum(page.needs_javascript for page in every)
    result: dict[str, Any] = {
        "pages": len(every),
        "tools": len({page.tool for page in every}),
        "need_javascript": need,
        "recognised": right,
        "taken_wrongly": len(found) - right,
        "precision": _share(right, len(found)),
        "recall": _share(right, need),
    }
    if name == "tuned":
        result["wrong"] = _wrong(every, found)
    return result


def _wrong(every: Sequence[Built], found: Sequence[Built]) -> list[str]:
    return [page.name for page in every if page.needs_javascript != (page in found)]


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0


def flagged(real: Iterable[Verdict]) -> dict[str, object]:
    """How many of these pages, none of which needs it, are said to need JavaScript."""
    count, taken = 0, []
    for each in real:
        count += 1
        if each.verdict is not None and each.verdict.kind is NotContentKind.NEEDS_JAVASCRIPT:
            taken.append(each.sample)
    return {"pages": count, "taken_wrongly": len(taken), "wrong": taken[:20]}


def main() -> None:
    """Judge and print."""
    parser = arguments(__doc__)
    parser.add_argument("--pages", type=Path, metavar="DIR")
    options = parser.parse_args()
    result: dict[str, object] = {}
    for name in _SETS:
        result[name] = row = figures(name)
        say(f"{name:10} precision {row['precision']}, recall {row['recall']}, {row['pages']} pages")
    if options.pages:
        result["files"] = flagged(real_visits(read_folder(options.pages, _MOST), 1))
    if recorded := os.environ.get("FRESHET_EVOLUTION_DIR"):
        with workspace() as work:
            result["recorded"] = flagged(
                real_visits(read_recordings(Path(recorded), work, _MOST), 1)
            )
    finish(result, options.output)
