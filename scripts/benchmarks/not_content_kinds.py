"""The kind of a block page: the rules by hand beside a fitted model, on pages of known kinds.

The model is a multinomial logistic regression with ridge: each kind gets a score from its cues in
title, heading, sentences, buttons, links and markup, with the same weights for all kinds, and a
constant of its own. Kinds and authors weigh alike. Both are judged by folds of authors, and on
pages that neither was made for.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from freshet.crawler.compare.not_content.evidence import cues_by_kind, weigh
from freshet.crawler.compare.not_content.page import NotContentKind
from scripts.benchmarks.block_pages import read_blocks
from scripts.benchmarks.not_content import facts_of_page, samples
from scripts.benchmarks.not_content_sites import Served, SiteMaker

_PAGES: Final = Path(__file__).parent / "not_content_pages"
_KINDS: Final = tuple(NotContentKind)
_RIDGE: Final = 3.0
_FOLDS: Final = 5
#: Pages of a kind by one author that weigh.
_MOST_OF_AUTHOR: Final = 4.0
_MOST_CUES: Final = 4.0


@dataclass(frozen=True, slots=True)
class Page:
    """A block page of a known kind: its cues, one row a kind, and the kind by hand."""

    half: str
    author: str
    kind: NotContentKind
    by_hand: NotContentKind
    cues: NDArray[np.float64]


def pages(folders: Sequence[Path]) -> Iterator[Page]:
    """Yield the written block pages of known kinds, and those of repositories."""
    named = [(half, s) for half in ("tuned", "held_out") for s in samples(_PAGES / half)]
    found = [(half, s.name, s.kind, s.template) for half, s in named if s.kind != "real"]
    for folder in folders:
        found += [(b.half, b.author, b.kind, b.html) for b in read_blocks(folder) if b.kind]
    for n, (half, author, kind, template) in enumerate(found):
        maker = SiteMaker(f"www.kind{n}.example", random.Random(n))
        url = f"https://{maker.host}/river/stone-lantern-{n}"
        facts = facts_of_page(Served(url, maker.filled(template, url)))
        cues = np.minimum(np.array([*cues_by_kind(facts).values()], float), _MOST_CUES)
        rows = np.hstack([cues, np.eye(len(_KINDS))])
        yield Page(half, author, NotContentKind(kind), weigh(facts).kind, rows)


def fitted(chosen: Sequence[Page]) -> NDArray[np.float64]:
    """Return the weights, by Newton's method."""
    x = np.array([each.cues for each in chosen])
    right = np.array([[float(kind is each.kind) for kind in _KINDS] for each in chosen])
    weights = _weights(chosen)
    found = np.zeros(x.shape[2])
    for _ in range(50):
        chances = _chances(x, found)
        slope = np.einsum("n,nk,nkf->f", weights, right - chances, x) - _RIDGE * found
        mean = np.einsum("nk,nkf->nf", chances, x)
        bend = np.einsum("n,nk,nkf,nkg->fg", weights, chances, x, x)
        bend -= np.einsum("n,nf,ng->fg", weights, mean, mean)
        step = np.linalg.solve(bend + _RIDGE * np.eye(len(found)), slope)
        found += step
        if float(np.abs(step).max()) < 1e-8:
            break
    return found


def _weights(chosen: Sequence[Page]) -> NDArray[np.float64]:
    of_author = Counter((each.author, each.kind) for each in chosen)
    own = [min(1.0, _MOST_OF_AUTHOR / of_author[each.author, each.kind]) for each in chosen]
    of_kind: defaultdict[NotContentKind, float] = defaultdict(float)
    for each, weight in zip(chosen, own, strict=True):
        of_kind[each.kind] += weight
    found = np.array([w / of_kind[each.kind] for each, w in zip(chosen, own, strict=True)])
    return np.asarray(found * len(chosen) / found.sum())


def _chances(x: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    odds = x @ weights
    odds = np.exp(odds - odds.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def kinds_of(chosen: Sequence[Page], weights: NDArray[np.float64]) -> list[NotContentKind]:
    """Return the kinds by the model."""
    return [_KINDS[int((each.cues @ weights).argmax())] for each in chosen]


def judged(folders: Sequence[Path], say: Callable[[str], None]) -> dict[str, object]:
    """Judge both, and print how often each is right and what each takes for what."""
    every = list(pages(folders))
    known = [each for each in every if each.half in {"tuned", "fit"}]
    folds = [sha256(each.author.encode()).digest()[0] % _FOLDS for each in known]
    by_model: list[tuple[Page, NotContentKind]] = []
    for fold in range(_FOLDS):
        weights = fitted([p for p, n in zip(known, folds, strict=True) if n != fold])
        within = [p for p, n in zip(known, folds, strict=True) if n == fold]
        by_model += zip(within, kinds_of(within, weights), strict=True)
    others = [p for p in every if p.half in {"held_out", "report", "new"}]
    others = [p for p in others if not p.author.startswith("framework")]
    new = list(zip(others, kinds_of(others, fitted(known)), strict=True))
    result: dict[str, object] = {}
    for name, rows in (("folds", by_model), ("pages neither was made for", new)):
        for how, said in (
            ("by hand", [(p.kind, p.by_hand) for p, _ in rows]),
            ("model", [(p.kind, kind) for p, kind in rows]),
        ):
            right = sum(kind is found for kind, found in said)
            say(f"{name}, {how}: {right} of {len(said)}")
            table = Counter((str(kind), str(found)) for kind, found in said)
            wrong = {f"{kind} as {found}": n for (kind, found), n in table.items() if kind != found}
            say(f"  {dict(sorted(wrong.items(), key=lambda it: -it[1]))}")
            matrix = {f"{kind} as {found}": n for (kind, found), n in sorted(table.items())}
            result[f"{name}, {how}"] = {"right": right, "of": len(said), "matrix": matrix}
    return result
