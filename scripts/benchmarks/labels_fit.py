"""Fit of the words of labels that are frame, which the choice of content leaves out (ADR 0020).

``--wcxb`` and ``--lightgbm`` are those of ``scripts/fit content``; SciPy is in that environment,
too. ``--manuals`` adds pages to each of five fits of the trees, by the domains of the pages. Each
judges the pages of the others, so that it is known how much trees trust a text that they have not
seen. Of its short texts the words are weighed by a logistic regression that adds to that, with a
prior (L2); each domain counts as twenty texts at most. Words of fewer than 15 domains are left
out, and those that tell what a shop, a recipe or an event has.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import numpy as np

from freshet.crawler.reduce import content
from freshet.crawler.reduce.content import Vocabulary, judged, trees_of
from scripts.benchmarks import content_fit
from scripts.benchmarks.command import arguments
from scripts.benchmarks.content_fit import Known, known
from scripts.benchmarks.main_text import wcxb

_FOLDS: Final = 5
_MOST_WORDS: Final = 12
_LEAST_DOMAINS: Final = 15
_MOST_TEXTS: Final = 20.0
_LEAST_PROBABLE: Final = 0.02
_LEAST_ODDS: Final = 0.1
_WORD: Final = re.compile(r"[A-Za-z0-9_\x80-\U0010ffff]+")
#: What they say changes, and is content.
_CONTENT: Final = frozenset(
    """
    see stock sold out price prices sale msrp shipping delivery quantity available availability
    sku description details specifications size color colour weight in back soon pre order
    backorder add cart buy checkout bag basket see january february march april may june july
    august september october november december jan feb mar apr jun jul aug sep sept oct nov dec
    monday tuesday wednesday thursday friday saturday sunday minutes mins min hours hour day
    days year years rating ratings am pm prep cook time method directions ingredients example
    examples note notes warning table contents section chapter parameters
    """.split()
)


class _Text(NamedTuple):
    """A short text: its words, what the trees say of it, and whether it is content."""

    domain: str
    words: frozenset[str]
    odds: float
    is_content: bool


def words_in(text: str) -> frozenset[str]:
    """Return the words of a text that may have a weight, in small letters."""
    found = {word.lower() for word in _WORD.findall(text) if word.isascii() and word.isalpha()}
    return frozenset(found - _CONTENT)


def _domains(folder: Path) -> dict[str, str]:
    """Return the domains of pages by their names."""
    found = {}
    for truth in folder.glob("dev/ground-truth/*.json"):
        host = urlsplit(json.loads(truth.read_text(encoding="utf-8")).get("url") or "").hostname
        found[f"wc-{truth.stem}"] = ".".join((host or truth.stem).split(".")[-2:])
    return found


def _texts(page: Known, domain: str, vocabulary: Vocabulary, trees: Any) -> Iterator[_Text]:
    some = page.pieces.without_controls() or page.pieces
    odds = judged(some, page.title, vocabulary, trees)
    labels = iter(page.is_content[[not acts for acts in page.pieces.controls]])
    said = labels if len(some) < len(page.pieces) else iter(page.is_content)
    for piece, text, its, is_content in zip(some, some.texts, odds, said, strict=True):
        is_short = 0 < len(text.split()) <= _MOST_WORDS and piece.kind not in {"pre", "table", "h1"}
        if is_short and 1 / (1 + np.exp(-its)) > _LEAST_PROBABLE:
            yield _Text(domain, words_in(text), float(its), bool(is_content))


def weights(texts: Sequence[_Text]) -> dict[str, float]:
    """Return the log odds of the words of these texts, beside what the trees say."""
    from scipy.optimize import minimize
    from scipy.sparse import csr_matrix

    domains = defaultdict[str, set[str]](set)
    for text in texts:
        for word in text.words:
            domains[word].add(text.domain)
    names = sorted(word for word, of in domains.items() if len(of) >= _LEAST_DOMAINS)
    numbers, counts = {word: i for i, word in enumerate(names)}, Counter(it.domain for it in texts)
    rows = [[numbers[word] for word in text.words if word in numbers] for text in texts]
    ends = np.cumsum([0, *map(len, rows)])
    column = np.concatenate([np.array(row, np.int64) for row in rows])
    words = csr_matrix((np.ones(len(column)), column, ends), shape=(len(texts), len(names)))
    wanted = np.array([text.is_content for text in texts], float)
    odds = np.array([text.odds for text in texts])
    weight = np.array([min(1.0, _MOST_TEXTS / counts[text.domain]) for text in texts])

    def loss(found: Any) -> tuple[float, Any]:
        said = words @ found[:-1] + found[-1] + odds
        error = weight * (1 / (1 + np.exp(-said)) - wanted)
        value = (weight * (np.logaddexp(0, said) - wanted * said)).sum() + (
            found[:-1] ** 2
        ).sum() / 2
        return value, np.append(words.T @ error + found[:-1], error.sum())

    found = minimize(loss, np.zeros(len(names) + 1), jac=True, method="L-BFGS-B").x
    said = {word: round(float(found[number]), 1) for word, number in numbers.items()}
    return {word: odds for word, odds in said.items() if abs(odds) >= _LEAST_ODDS}


def main() -> None:
    """Fit and write."""
    parser = arguments(__doc__)
    for name in ("wcxb", "manuals", "lightgbm"):
        parser.add_argument(f"--{name}", type=Path, metavar="DIR", required=True)
    options = parser.parse_args()
    sys.path.extend(map(str, options.lightgbm.glob("lib/python*/site-packages")))
    domains = _domains(options.wcxb)
    pages = [it for page in wcxb(options.wcxb, "dev") if (it := known(page, 1.0)).pieces]
    marked = [
        it for page in content_fit.manuals(options.manuals) if (it := known(page, 1.0)).pieces
    ]
    folds: list[list[Known]] = [[] for _ in range(_FOLDS)]
    for page in pages:
        folds[sha256(domains[page.page.name].encode()).digest()[0] % _FOLDS].append(page)
    texts: list[_Text] = []
    for fold in folds:
        others = [page for it in folds if it is not fold for page in it if page.page.reference]
        words, trees = content_fit.fitted([*others, *marked])
        said = Vocabulary(words), trees_of(trees, len(content.COLUMNS))
        for page in fold:
            texts += _texts(page, domains[page.page.name], *said)
    found = weights(texts)
    lines = (f"{word} {odds}\n" for word, odds in sorted(found.items()))
    target = Path(content.__file__).with_name(content.LABEL_WORDS)
    target.write_text("".join(lines), encoding="ascii")
    print(f"{len(pages):,} pages, {len(texts):,} short texts, {len(found):,} words: {target}")
