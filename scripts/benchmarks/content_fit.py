"""Fit of the trees that choose the main content of a page (ADR 0008).

``--wcxb``: a clone of Murrough-Foley/web-content-extraction-benchmark, of which the part ``dev``
is read; ``--articles``: one of scrapinghub/article-extraction-benchmark, of which the half
``tuned`` is read (:mod:`scripts.benchmarks.main_text`). ``--manuals``: a folder with a folder of
HTML files for each manual, whose generators mark the main element; of each manual a sample is read.
``--lightgbm``: the folder of an
environment in which LightGBM is installed; it is no dependency of the project.

A piece counts as content if six tenths of its runs of three words are in the known main text. It
has the weight of its share of that text. The words of names get their log odds of content, from
the other half of the pages than the rows they describe, so that the trees learn how far to trust
them.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import log
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray
from selectolax.lexbor import LexborHTMLParser

from freshet.crawler.reduce import content
from freshet.crawler.reduce.content import Vocabulary, described, names_in
from freshet.crawler.reduce.page import markup_of, tree_shown
from freshet.crawler.reduce.pieces import Pieces
from freshet.crawler.reduce.tree import Tree
from scripts.benchmarks.command import arguments
from scripts.benchmarks.main_text import Page, articles, in_tuned_half, wcxb

_WORD = re.compile(r"\w+")
_RUN = 3
_IS_CONTENT = 0.6
#: Pages of the second corpus are few, and the only ones whose notes leave out captions.
_ARTICLE_WEIGHT = 3.0
#: Pages of each manual, so that none outweighs the others, and their most bytes and least words.
_PAGES = 40
_MOST_BYTES = 600_000
_LEAST_WORDS = 20
#: The main element as generators of manuals mark it, the likely ones first.
_MAIN = (
    "main, [role=main], #page-content, div.innertube, #apicontent, #main, article, "
    "body > div.book, body > div.chapter, body > div.sect1, body > div.refentry, "
    "body > div.preface, body > div.appendix, body > div.part, body > div.section, "
    "div.document, #content, div.content"
)
#: What is frame in it.
_FRAME = "nav, [role=navigation], .navheader, .navfooter, .nav-panel, .headerlink, form, button"
_UNSEEN = ["script", "style", "template", "svg", "noscript"]
_ROUNDS = 300
_LEVELS = 6
_PARAMETERS: Mapping[str, object] = {
    "objective": "binary",
    "learning_rate": 0.06,
    "num_leaves": 16,
    "max_depth": _LEVELS,
    "min_data_in_leaf": 60,
    "feature_fraction": 0.6,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "lambda_l2": 5,
    "verbose": -1,
    "num_threads": 2,
    "seed": 1,
    "deterministic": True,
    "force_row_wise": True,
}


@dataclass(slots=True)
class Known:
    """The pieces of a page with what is known of them."""

    page: Page
    tree: Tree
    pieces: Pieces
    title: str
    is_content: NDArray[np.bool_]
    shares: NDArray[np.float64]
    weight: float

    def rows(self, vocabulary: Vocabulary) -> NDArray[np.float64]:
        """What the trees are fitted on."""
        return described(self.pieces, self.title, vocabulary)

    def names_above(self, node: int) -> frozenset[str]:
        """The words of the names of an element and of those above it, up to the body."""
        tree, found = self.tree, names_in(self.tree.attributes(node))
        top = tree.body
        while node not in {top, 0}:
            node = tree.parent[node]
            found |= names_in(tree.attributes(node))
        return found


def known(page: Page, weight: float) -> Known:
    wanted = _WORD.findall((page.reference or "").lower())
    runs = {n: set(_runs(wanted, n)) for n in range(1, _RUN + 1)}
    tree = tree_shown(markup_of(page.body, page.content_type))[0]
    pieces = Pieces(tree)
    labels, shares = [], []
    for text in pieces.texts:
        words = _WORD.findall(text.lower())
        own = list(_runs(words, min(_RUN, len(words))))
        found = sum(run in runs[len(run)] for run in own)
        labels.append(bool(own) and found >= _IS_CONTENT * len(own))
        shares.append(min(1.0, len(words) / max(30, len(wanted))))
    return Known(
        page, tree, pieces, content.title_of(tree), np.array(labels, bool), np.array(shares), weight
    )


def _runs(words: Sequence[str], length: int) -> Iterator[tuple[str, ...]]:
    if length:
        yield from (tuple(words[i : i + length]) for i in range(len(words) - length + 1))


def manuals(folder: Path) -> Iterator[Page]:
    """Yield pages of each manual whose main element is known."""
    for manual in sorted(folder.iterdir()):
        paths = sorted(p for p in manual.rglob("*.htm*") if p.is_file() and not p.is_symlink())
        for path in Random(0).sample(paths, min(_PAGES, len(paths))):  # a sample, no secret
            body = path.read_bytes()
            text = main_element(body) if len(body) <= _MOST_BYTES else ""
            if len(text.split()) >= _LEAST_WORDS:
                yield Page(f"{manual.name}/{path.name}", body, text)


def main_element(body: bytes) -> str:
    """Return the text of a page's own main element, or none."""
    tree = LexborHTMLParser(body.decode("utf-8", "replace"))
    tree.strip_tags(_UNSEEN)
    node = tree.css_first(_MAIN)
    if node is None:
        return ""
    for each in node.css(_FRAME):
        if each.mem_id != node.mem_id:
            each.decompose()
    return node.text(separator=" ")


def lexicon(pages: Sequence[Known], least: int = 8) -> dict[str, float]:
    """The log odds of content of words in names, of those on several pages."""
    inside, outside = defaultdict[str, float](float), defaultdict[str, float](float)
    pages_with = Counter[str]()
    for page in pages:
        seen = set[str]()
        for piece, is_content, share in zip(page.pieces, page.is_content, page.shares, strict=True):
            names = page.names_above(piece.holder)
            seen |= names
            for name in names:
                (inside if is_content else outside)[name] += share
        pages_with.update(seen)
    shares = np.concatenate([page.shares for page in pages])
    labels = np.concatenate([page.is_content for page in pages])
    base = shares[labels].sum() / shares[~labels].sum()
    prior = base / (1 + base)
    odds = {
        name: log((inside[name] + prior / 2) / (outside[name] + (1 - prior) / 2) / base)
        for name, count in sorted(pages_with.items())
        if count >= least and 1 < len(name) < 20
    }
    return {name: round(value, 2) for name, value in odds.items() if abs(value) > 0.5}


def columns(trees: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """The trees as columns, as :mod:`freshet.crawler.reduce.content` reads them."""
    nodes: list[list[float]] = []
    roots = []

    def add(node: Mapping[str, Any]) -> int:
        number = len(nodes)
        nodes.append([0, 0.0, number, number, 0.0])
        if "leaf_value" in node:
            nodes[number][4] = round(node["leaf_value"], 4)
        else:
            nodes[number][:2] = node["split_feature"], float(f"{node['threshold']:.5g}")
            nodes[number][2:4] = add(node["left_child"]), add(node["right_child"])
        return number

    roots = [add(tree["tree_structure"]) for tree in trees]
    names = ("column", "limit", "yes", "no", "value")
    return {**dict(zip(names, map(list, zip(*nodes, strict=True)), strict=True)), "roots": roots}


def fitted(pages: Sequence[Known]) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Return the log odds of words in names, and the trees, fitted on these pages."""
    import lightgbm

    halves: tuple[list[Known], list[Known]] = ([], [])
    for page in pages:
        halves[sha256(page.page.name.encode()).digest()[1] & 1].append(page)
    rows: list[NDArray[np.float64]] = []
    for some, others in (halves, halves[::-1]):
        vocabulary = Vocabulary(lexicon(others))
        rows += [page.rows(vocabulary) for page in some]
    ordered = [*halves[0], *halves[1]]
    weights = np.concatenate([(page.shares + 0.0005) * page.weight for page in ordered])
    data = lightgbm.Dataset(
        np.concatenate(rows).astype(np.float32),
        np.concatenate([page.is_content for page in ordered]),
        weight=weights / weights.mean(),
    )
    model = lightgbm.train(dict(_PARAMETERS), data, _ROUNDS).dump_model()
    return lexicon(pages), columns(model["tree_info"])


def main() -> None:
    """Fit and write."""
    parser = arguments(__doc__)
    for name in ("wcxb", "articles", "manuals", "lightgbm"):
        parser.add_argument(f"--{name}", type=Path, metavar="DIR", required=True)
    options = parser.parse_args()
    sys.path.extend(map(str, options.lightgbm.glob("lib/python*/site-packages")))
    dev = (known(page, 1.0) for page in wcxb(options.wcxb, "dev") if page.reference is not None)
    half = (known(p, _ARTICLE_WEIGHT) for p in articles(options.articles) if in_tuned_half(p))
    marked = (known(page, 1.0) for page in manuals(options.manuals))
    pages = [page for page in (*dev, *half, *marked) if page.pieces]
    words, trees = fitted(pages)
    written = {"trees": trees, "words": words}
    target = Path(content.__file__).with_name("content_model.json")
    target.write_text(json.dumps(written, separators=(",", ":")) + "\n", encoding="utf-8")
    print(f"{len(pages):,} pages, {len(words):,} words: {target}")
