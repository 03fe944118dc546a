"""Fit of the weights that tell a change of a block from a difference without an edit.

``--archive``: clones of Open Terms Archive's collections, as :mod:`scripts.benchmarks.changes`
reads them; only those that may be tuned on are read. Rows are differing blocks of which a reason
may be named why they are minor (the others are changes without any weights): those of real visits
with their labels, and twins, made of real blocks: edited as a site edits without a person, and as a
person does where it looks alike. A person's edit that is called minor is as bad as ten false
changes, and weighs so. Labels that call an entry of a table of contents a change are left out: the
versions that they are of have the table, too.

Ridge regression of the log odds, by Newton's method. For each fold (a collection, or the hosts of a
tenth) the weights are fitted on the others; its figures are printed before those of the fit on all,
which are written to ``crawler/compare/minor_model.json``.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import astuple
from pathlib import Path
from random import Random
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from freshet.crawler.compare import minor
from freshet.crawler.compare.minor import NAMES, REASONS, ReplacedBlock, features
from freshet.crawler.reduce.blocks import Blocks
from scripts.benchmarks.changes import TUNED, Judged, by_service, collections, judged
from scripts.benchmarks.command import arguments, finish, say

#: What a wrong minor verdict costs, in false changes.
_COST = 10.0
_RIDGE = 1.0
_FOLDS = 10
_SEED = 20_261_129
#: Of the blocks of a page every so many makes twins.
_EVERY = 12
_VISITS = 120
_WORD = re.compile(r"\w+")
_PROSE = 12


class Row(NamedTuple):
    """A differing block: its features, whether it is a change, and whose page it stood on."""

    values: tuple[float, ...]
    is_change: bool
    collection: str
    host: str
    source: str
    reason: str


def row(
    pair: ReplacedBlock, *, is_change: bool, collection: str, host: str, source: str
) -> Row | None:
    """A row of a block, None if nothing speaks for its being minor."""
    found = features(pair)
    if found is None:
        return None
    reason = next(name for name in REASONS if getattr(found, name))
    if source != "twins" and reason == "listed" and is_change:
        return None
    return Row(astuple(found), is_change, collection, host, source, reason)


# -- real blocks -------------------------------------------------------------


def of_terms(collection: str, visits: Sequence[Judged]) -> Iterator[Row]:
    """The differing blocks of labelled visits; a change has a word in which the version differs."""
    for each in visits:
        if each.seen.words is None or each.found.difference is None:
            continue
        found = minor.pairs(each.before, each.seen.blocks, each.found.difference, each.seen.at)
        for pair in found:
            old, new = (Counter(_WORD.findall(t.casefold())) for t in (pair.before, pair.after))
            is_change = any(old[word] != new[word] for word in each.seen.words)
            host = each.seen.document.partition("/")[0]
            made = row(pair, is_change=is_change, collection=collection, host=host, source="terms")
            if made is not None:
                yield made


# -- twins -------------------------------------------------------------------

_COUNTS = ("{} views", "Views: {}", "Number of views ({})", "Visitors today: {}", "Viewed {} times")
_BUILDS = ("Version {}", "v{}", "Portal version {}", "Version {} (build 7)", "App v{}")
_CLOCKS = (
    "Current time: {:02}:{:02}",
    "Server time 2026-01-02 {:02}:{:02}",
    "It is now {:02}:{:02}",
)
_NOTES = (" (opens in new tab)", " [external link]", " (s'ouvre dans un nouvel onglet)")
_TELLING = ("Tel. +49 30 12345{}", "Fee: {} €", "Discount: {} %")
_ADDRESSES = ("law@terms.example", "legal@x.example", "www.x.example", "www.terms.example/contact")
_CONTENT = re.compile(r"[@€$£%]|https?:|www\.")
_NUMBERED = ("News ({})", "{} articles", "Cart {}", "Page {}")


def twins(blocks: Blocks, random: Random) -> Iterator[tuple[ReplacedBlock, bool]]:
    """Pairs made of the blocks of a page, each with whether it is a change."""
    for text in blocks.texts[random.randrange(_EVERY) :: _EVERY]:
        one, other = random.sample(range(2, 9_999), 2)
        share = random.random() ** 2
        last = random.random() < 0.3
        words = len(_WORD.findall(text))
        for pair, is_change in _made(text, words, (one, other), random):
            yield pair._replace(share=share, is_last=last or pair.is_last), is_change


def _made(
    text: str, words: int, numbers: tuple[int, int], random: Random
) -> Iterator[tuple[ReplacedBlock, bool]]:
    one, other = numbers
    curly = text.replace("'", "\u2019").replace('"', "\u201d").replace(" -", " \u2013")
    if curly != text:
        yield ReplacedBlock(text, curly), False
    straight = text.replace("\u2019", "'").replace("\u201c", '"').replace("\u201d", '"')
    if straight != text:
        yield ReplacedBlock(text, straight), False
    if text.endswith("."):
        yield ReplacedBlock(text, text[:-1]), False
    yield ReplacedBlock(text, text + random.choice(_NOTES)), False
    count, build, clock = (random.choice(each) for each in (_COUNTS, _BUILDS, _CLOCKS))
    yield ReplacedBlock(count.format(one), count.format(one + 7)), False
    version, next_one = (build.format(f"1.{n % 40}.{n % 7}") for n in (one, one + 1))
    yield ReplacedBlock(version, next_one, is_last=True), False
    now, later = (clock.format(n % 24, n % 60) for n in (one, other))
    yield ReplacedBlock(now, later), False
    for day in (3, 4):
        yield ReplacedBlock(f"{day} May 2021", f"{day + 1} May 2021", moved=True), False
    is_prose = words >= _PROSE or _CONTENT.search(text) is not None
    # What all pages of a small host have is frame if it is short; a long text is a notice, and an
    # address or a price is content.
    yield ReplacedBlock(text, "", is_frame=True), is_prose
    yield ReplacedBlock("", text, is_frame=True), is_prose
    short = " ".join(text.split()[:3])
    yield ReplacedBlock(short, f"{short} beta", is_frame=True), False
    for telling, is_change in ((random.choice(_TELLING), True), (random.choice(_NUMBERED), False)):
        yield ReplacedBlock(telling.format(one), telling.format(other), is_frame=True), is_change
    before, after = random.sample(_ADDRESSES, 2)
    yield ReplacedBlock(f"Write to {before}", f"Write to {after}", is_frame=True), True
    # What a heading says, too, is an entry of a table of contents; a paragraph is none.
    yield ReplacedBlock(text, "", is_listed=True), is_prose
    yield ReplacedBlock("", short, is_listed=True), False


# -- fit ---------------------------------------------------------------------

Matrix = NDArray[np.float64]


def fitted(values: Matrix, labels: Matrix, weights: Matrix) -> Matrix:
    """The weights of a ridge regression of log odds; the first is the intercept, which is free."""
    columns = np.hstack([np.ones((len(values), 1)), values])
    penalty = np.full(columns.shape[1], _RIDGE)
    penalty[0] = 0.0
    found = np.zeros(columns.shape[1])
    for _ in range(60):
        chance = 1 / (1 + np.exp(-np.clip(columns @ found, -50, 50)))
        slope = columns.T @ (weights * (chance - labels)) + penalty * found
        curve = (columns.T * (weights * chance * (1 - chance))) @ columns + np.diag(penalty)
        step = np.linalg.solve(curve + 1e-9 * np.eye(len(found)), slope)
        found -= step
        if np.abs(step).max() < 1e-8:
            break
    return found


def _arrays(rows: Sequence[Row]) -> tuple[Matrix, Matrix, Matrix]:
    labels = np.array([row.is_change for row in rows], float)
    return np.array([row.values for row in rows]), labels, np.where(labels > 0, _COST, 1.0)


def figures(rows: Sequence[Row], weights: Matrix) -> dict[str, object]:
    """How many changes are called minor, and how many differences without an edit changes."""
    values, labels, _ = _arrays(rows)
    is_minor = values @ weights[1:] + weights[0] < 0
    by_reason: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for each, called in zip(rows, is_minor.tolist(), strict=True):
        counts = by_reason[f"{each.source}: {each.reason}"]
        counts[0 if each.is_change else 2] += 1
        counts[1 if each.is_change else 3] += called == each.is_change
    return {
        "changes": int(labels.sum()),
        "changes_called_minor": int((is_minor & (labels > 0)).sum()),
        "minor": int((1 - labels).sum()),
        "minor_called_changes": int((~is_minor & (labels == 0)).sum()),
        "by_reason: changes, wrong, minor, wrong": dict(sorted(by_reason.items())),
    }


def rows_of(archive: Path) -> list[Row]:
    """All rows."""
    found: list[Row] = []
    random = Random(_SEED)
    for name, snapshots, versions in collections(archive):
        if name not in TUNED:
            say(f"{name} is kept for judging")
            continue
        for visits in by_service(snapshots, versions, _VISITS):
            told = asyncio.run(judged(visits))
            found += of_terms(name, told)
            for pages in visits:
                for seen in pages[:1]:
                    host = seen.document.partition("/")[0]
                    made = (
                        row(pair, is_change=it, collection=name, host=host, source="twins")
                        for pair, it in twins(seen.blocks, random)
                    )
                    found += filter(None, made)
        say(f"{name}: {len(found)} rows so far")
    return found


def main() -> None:
    """Fit, print, and write the weights."""
    parser = arguments(__doc__)
    parser.add_argument("--archive", type=Path, metavar="DIR", help="clones of the repositories")
    options = parser.parse_args()
    if options.archive is None:
        say("nothing is fitted: name a folder of Open Terms Archive's repositories with --archive")
        return
    rows = rows_of(options.archive)
    folds: dict[str, list[Row]] = {
        f"collection {name}": [row for row in rows if row.collection == name]
        for name in sorted({row.collection for row in rows})
    }
    for n in range(_FOLDS):
        folds[f"hosts {n}"] = [row for row in rows if crc32(row.host.encode()) % _FOLDS == n]
    told: dict[str, object] = {}
    for name, held in folds.items():
        if held:
            left_out = set(map(id, held))
            others = [row for row in rows if id(row) not in left_out]
            told[name] = figures(held, fitted(*_arrays(others)))
    weights = fitted(*_arrays(rows))
    model = {
        "intercept": round(float(weights[0]), 3),
        "weights": {n: round(float(w), 3) for n, w in zip(NAMES, weights[1:], strict=True)},
    }
    path = Path(minor.__file__).with_name("minor_model.json")
    path.write_text(json.dumps(model, indent=2) + "\n", "utf-8")
    finish({"folds": told, "all": figures(rows, weights), **model}, options.output)
