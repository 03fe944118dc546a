"""The weights by which a page is judged to be no content: a ridge logistic regression.

Real short pages and paragraphs (``--real``, folders as in :mod:`~scripts.benchmarks.short_pages`)
stand against block pages: the tuned ones of ``not_content_pages``, and the half ``fit`` of those
in ``--blocks``, a folder of clones, see :mod:`~scripts.benchmarks.block_pages`.
No author or host weighs more than a few pages, and each is judged by weights that were fitted
without its fold. The reliability table says how often pages with a probability were none;
``--judge`` prints what each feature gains and harms on pages that it was not fitted on,
``--kinds`` how often the kind of a block page is right. ``--elsewhere`` and ``--replaced`` weigh
what a page has by where it stands.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import chain, pairwise
from math import log
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from freshet.crawler.compare.not_content import host
from freshet.crawler.compare.not_content.cues import words_up_to
from freshet.crawler.compare.not_content.evidence import weigh
from freshet.crawler.compare.not_content.host import ShownTexts
from freshet.crawler.compare.not_content.page import SHORT, NotContentKind, replaces
from freshet.crawler.reduce.page import parse
from freshet.crawler.reduce.sketch import Sketch, sketch
from scripts.benchmarks.block_pages import read_blocks
from scripts.benchmarks.changes import Repository, collections, snapshots_of
from scripts.benchmarks.command import arguments, finish, say
from scripts.benchmarks.not_content import facts_of_page, samples
from scripts.benchmarks.not_content_kinds import judged
from scripts.benchmarks.not_content_sites import Served, SiteMaker
from scripts.benchmarks.short_pages import RealPage, paragraphs, read_folder, short

_PAGES: Final = Path(__file__).parent / "not_content_pages" / "tuned"
_WEIGHTS: Final = Path(host.__file__).with_name("weights.json")
#: Block pages among short ones in a crawl.
_PRIOR: Final = 0.05
_RIDGE: Final = 3.0
_FOLDS: Final = 5
#: No author and no host weighs more than so many pages; a paragraph is a third of a page.
_MOST_OF_AUTHOR: Final = 8.0
_PARAGRAPH: Final = 0.3
_BINS: Final = (0.0, 0.01, 0.03, 0.1, 0.2, 0.5, 0.8, 0.95, 1.0)
#: Features that a page has by its host.
_OF_HOST: Final = ("probe", "return")
#: Hosts in the folders whose pages are block pages or empty, by eye.
_BLOCKED: Final = frozenset({"hily.example", "brevo.example", "n0551.example"})


@dataclass(frozen=True, slots=True)
class Row:
    """A page: its author or host, whether it is a block page, its weight and its features."""

    author: str
    is_block: bool
    weight: float
    features: Mapping[str, float]


def row(author: str, html: str, url: str, weight: float, *, is_block: bool) -> Row | None:
    """Return the row of a page; None where the score does not judge it."""
    evidence = weigh(facts_of_page(Served(url, html)))
    if evidence.kind is NotContentKind.NEEDS_JAVASCRIPT and evidence.cues:
        return None
    return Row(author, is_block, weight, evidence.features)


def block_rows(blocks: Iterable[tuple[str, str]]) -> Iterator[Row]:
    """Yield the rows of block pages (author and template), with and without their host."""
    for n, (author, template) in enumerate(blocks):
        maker = SiteMaker(f"www.block{n}.example", random.Random(n))
        url = f"https://{maker.host}/river/stone-lantern-{n}"
        found = row(author, maker.filled(template, url), url, 1.0, is_block=True)
        if found is not None:
            yield found
            for name in _OF_HOST:
                yield replace(found, weight=0.1, features={**found.features, name: 1.0})


def real_rows(pages: Iterable[RealPage], weight: float) -> Iterator[Row]:
    """Yield the rows of real pages."""
    for page in pages:
        if page.host not in _BLOCKED:
            found = row(page.host, page.html, page.url, weight, is_block=False)
            if found is not None:
                yield found


def elsewhere_weight(pages: Iterable[RealPage]) -> float:
    """Return the weight of a short text that URLs of four names of a host show.

    Real pages are counted; three more are taken for such, which is the upper end of a 95 % interval
    where there is none. Half of the visits of a block page of a site come after its third name.
    """
    texts: defaultdict[str, ShownTexts] = defaultdict(ShownTexts)
    count = shown = 0
    for page in pages:
        facts = facts_of_page(Served(page.url, page.html))
        # One that leads a browser away is a redirect in a crawl.
        if page.host not in _BLOCKED and facts.signs.refresh_s is None:
            count += 1
            shown += texts[page.host].is_elsewhere(facts)
    say(f"elsewhere: {shown} of {count} real pages")
    return round(log(0.5 * count / (shown + 3)), 4)


def replaced_weight(archives: Iterable[Path], visits: int = 100) -> float:
    """Return the weight of a few words that stand in place of a long text.

    The services of Open Terms Archive at whose pages they do are counted, and their texts printed
    to be read: none was content when the weight was made (November 2026). Three more that are
    content are taken for granted, the upper end of a 95 % interval.
    """
    services = set[str]()
    for name, snapshots, _ in chain.from_iterable(map(collections, archives)):
        with closing(Repository(snapshots)) as repository:
            for document, history in sorted(snapshots_of(repository).items()):
                bodies = (
                    repository.file(each.commit, f"{document}.html")
                    for each in history[:: max(1, len(history) // visits)]
                )
                for text in sorted(set(_replacing(bodies))):
                    say(f"{name}, {document}: {text[:120]}")
                    services.add(document.partition("/")[0])
    say(f"replaced: {len(services)} services")
    return round(log(len(services) / 3) - log(_PRIOR / (1 - _PRIOR)), 4)


def _replacing(bodies: Iterable[bytes]) -> Iterator[str]:
    """Yield the short texts that stand in place of a long one among the visits of a page."""
    last: Sketch | None = None
    for body in bodies:
        try:
            texts = parse(body, "https://h.example/", "text/html; charset=utf-8").blocks.texts
        except ValueError:
            continue
        new = sketch(texts)
        if last is not None and words_up_to(texts, SHORT + 1) <= SHORT and replaces(new, last):
            yield " ".join(texts)
        last = new


def balanced(rows: Sequence[Row]) -> list[Row]:
    """Let no author weigh too much, and block pages as much as in a crawl."""
    of_author: defaultdict[tuple[str, bool], float] = defaultdict(float)
    for each in rows:
        of_author[each.author, each.is_block] += each.weight
    capped = [
        replace(r, weight=r.weight * min(1, _MOST_OF_AUTHOR / of_author[r.author, True]))
        if r.is_block else r
        for r in rows
    ]  # fmt: skip
    blocks = sum(r.weight for r in capped if r.is_block)
    real = sum(r.weight for r in capped if not r.is_block)
    share = _PRIOR / (1 - _PRIOR) * real / blocks
    return [replace(r, weight=r.weight * share) if r.is_block else r for r in capped]


def matrix(rows: Sequence[Row], names: Sequence[str]) -> NDArray[np.float64]:
    return np.array([[1.0, *(float(r.features.get(n, 0.0)) for n in names)] for r in rows])


def fitted(rows: Sequence[Row], names: Sequence[str]) -> NDArray[np.float64]:
    """Return the weights, of the intercept first, by Newton's method on scaled features."""
    x, y = matrix(rows, names), np.array([float(r.is_block) for r in rows])
    w = np.array([r.weight for r in rows])
    scale = x.std(axis=0)
    scale[scale == 0] = 1.0
    z, found = x / scale, np.zeros(x.shape[1])
    ridge = np.eye(len(found)) * _RIDGE
    ridge[0, 0] = 0.0
    for _ in range(60):
        p = 1.0 / (1.0 + np.exp(-np.clip(z @ found, -30, 30)))
        slope = z.T @ (w * (y - p)) - ridge @ found
        step = np.linalg.solve(
            (z.T * (w * p * (1 - p))) @ z + ridge + 1e-9 * np.eye(len(found)), slope
        )
        found += step * min(1.0, 4.0 / max(1e-9, float(np.abs(step).max())))
        if float(np.abs(step).max()) < 1e-8:
            break
    return np.asarray(found / scale)


def fold_of(author: str) -> int:
    return sha256(author.encode()).digest()[0] % _FOLDS


def held_out(rows: Sequence[Row], names: Sequence[str]) -> NDArray[np.float64]:
    """Return each page's probability by weights that were fitted without its fold."""
    chances = np.zeros(len(rows))
    for fold in range(_FOLDS):
        weights = fitted(balanced([r for r in rows if fold_of(r.author) != fold]), names)
        within = [n for n, r in enumerate(rows) if fold_of(r.author) == fold]
        if within:
            odds = matrix([rows[n] for n in within], names) @ weights
            chances[within] = 1.0 / (1.0 + np.exp(-np.clip(odds, -30, 30)))
    return chances


def reliability(rows: Sequence[Row], chances: NDArray[np.float64]) -> list[dict[str, float]]:
    """Return, by bins of the probability, its mean and the share that were block pages."""
    weights = np.array([r.weight for r in balanced(rows)])
    blocks = np.array([r.is_block for r in rows])
    found = []
    for low, high in pairwise(_BINS):
        within = (chances >= low) & ((chances < high) | (high == 1.0))
        if within.any():
            found.append({
                "from": low, "pages": int(within.sum()),
                "predicted": round(float(np.average(chances[within], weights=weights[within])), 3),
                "block_pages": round(float(np.average(blocks[within], weights=weights[within])), 3),
            })  # fmt: skip
    return found


def shares(rows: Sequence[Row], chances: NDArray[np.float64]) -> list[dict[str, float]]:
    """Return, by thresholds, the shares of real and of block pages above."""
    alone = np.array([r.features.keys().isdisjoint(_OF_HOST) for r in rows])
    weights = np.array([r.weight for r in balanced(rows)])
    blocks = np.array([r.is_block for r in rows])
    whole = np.array([r.weight == 1.0 for r in rows])
    real, some, texts = alone & ~blocks & whole, alone & blocks, alone & ~blocks & ~whole
    found = []
    for least in (0.05, 0.1, 0.2, 0.3, 0.5, 0.8):
        above = chances >= least
        found.append({
            "from": least, "real": round(float(above[real].mean()), 4),
            "paragraphs": round(float(above[texts].sum() / max(1, texts.sum())), 4),
            "block_pages": round(float(np.average(above[some], weights=weights[some])), 3),
        })  # fmt: skip
    return found


def rules(others: Sequence[Row]) -> list[dict[str, Any]]:
    """Return what each feature gains and harms on pages that it was not fitted on.

    ``gain`` counts block pages that are marked with it and not without, less those that are marked
    without it only; ``harm`` counts real pages, and ``harm_texts`` paragraphs, in the same way.
    """
    blocks = np.array([r.is_block for r in others])
    texts = np.array([not r.is_block and r.weight < 1 for r in others])
    whole = _marked(others)
    table = []
    for name in json.loads(_WEIGHTS.read_text("utf-8")):
        if name != "intercept":
            gained = whole.astype(int) - _marked(others, without=name).astype(int)
            sums = (int(gained[each].sum()) for each in (blocks, ~blocks & ~texts, texts))
            table.append({"rule": name, **dict(zip(_GAINS, sums, strict=True))})
    return table


_GAINS: Final = ("gain", "harm", "harm_texts")


def _marked(rows: Sequence[Row], without: str = "") -> NDArray[np.bool_]:
    features = ({n: v for n, v in r.features.items() if n != without} for r in rows)
    return np.array([host.probability(each) >= host.DOUBTFUL_FROM for each in features])


def judged_rules(folders: Sequence[Path], blocks: Sequence[Path], most: int) -> None:
    """Print what each rule gains and harms on these real pages, and block pages of others."""
    real = [page for folder in folders for page in read_folder(folder, most)]
    new = [(s.name, s.template) for s in samples(_PAGES.with_name("held_out")) if s.kind != "real"]
    pages = (each for folder in blocks for each in read_blocks(folder))
    new += [(each.author, each.html) for each in pages if each.half in {"report", "new"}]
    others = [
        *(r for r in block_rows(new) if r.weight == 1.0),
        *real_rows(short(real), 1.0),
        *real_rows(paragraphs(real), _PARAGRAPH),
    ]
    for line in rules(others):
        say(" ".join(f"{name} {value}" for name, value in line.items()))


def fit(rows: Sequence[Row]) -> tuple[dict[str, float], dict[str, Any]]:
    """Return the weights by feature, and what is to be said of them."""
    # A page by itself stands nowhere else, and in no other's place.
    names = sorted({name for r in rows for name in r.features} - {"elsewhere", "replaced"})
    chances = held_out(rows, names)
    found = fitted(balanced(rows), names)
    weights = {"intercept": round(float(found[0]), 4)}
    weights |= {n: round(float(v), 4) for n, v in zip(names, found[1:], strict=True)}
    told = {
        "real": sum(not r.is_block for r in rows), "block_rows": sum(r.is_block for r in rows),
        "reliability": reliability(rows, chances), "shares": shares(rows, chances),
    }  # fmt: skip
    return weights, told


def _write(weights: Mapping[str, float]) -> None:
    text = json.dumps(dict(sorted(weights.items())), indent=1, ensure_ascii=False)
    _WEIGHTS.write_text(text + "\n", encoding="utf-8")


def main() -> None:
    """Read, fit, write and print."""
    parser = arguments(__doc__)
    for name, help_ in (("real", "real pages"), ("blocks", "clones with block pages")):
        parser.add_argument(f"--{name}", type=Path, metavar="DIR", action="append", help=help_)
    parser.add_argument(
        "--judge", type=Path, metavar="DIR", action="append",
        help="real pages to judge each rule on, with those of --blocks that are not fitted on",
    )  # fmt: skip
    parser.add_argument("--most", type=int, default=120, metavar="N", help="pages of a host")
    parser.add_argument(
        "--elsewhere", action="store_true", help="weigh texts at several URLs anew, nothing else"
    )
    parser.add_argument(
        "--replaced", type=Path, metavar="DIR", action="append",
        help="clones of Open Terms Archive: weigh texts in place of others anew, nothing else",
    )  # fmt: skip
    parser.add_argument("--kinds", action="store_true", help="judge the kinds of block pages only")
    options = parser.parse_args()
    if options.kinds:
        finish(judged(options.blocks or (), say), options.output)
        return
    if options.judge:
        judged_rules(options.judge, options.blocks or (), options.most)
        return
    known = json.loads(_WEIGHTS.read_text("utf-8"))
    if options.replaced:
        _write({**known, "replaced": replaced_weight(options.replaced)})
        return
    if not options.real:
        say("nothing is fitted: name folders of real pages with --real")
        return
    pages = [page for folder in options.real for page in read_folder(folder, options.most)]
    if options.elsewhere:
        _write({**known, "elsewhere": elsewhere_weight(short(pages))})
        return
    tuned = samples(_PAGES)
    blocks = [(each.name, each.template) for each in tuned if each.kind != "real"]
    for folder in options.blocks or ():
        blocks += [(each.author, each.html) for each in read_blocks(folder) if each.half == "fit"]
    hard = [
        RealPage(s.name, f"https://{s.name}.example/a", s.template)
        for s in tuned
        if s.kind == "real"
    ]
    rows = [
        *block_rows(blocks), *real_rows(hard, 1.0), *real_rows(short(pages), 1.0),
        *real_rows(paragraphs(pages), _PARAGRAPH),
    ]  # fmt: skip
    weights, told = fit(rows)
    weights |= {"elsewhere": elsewhere_weight(short(pages)), "replaced": known["replaced"]}
    _write(weights)
    for table in ("reliability", "shares"):
        for line in told[table]:
            say(f"{table}: {line}")
    finish({**told, "weights": weights}, options.output)
