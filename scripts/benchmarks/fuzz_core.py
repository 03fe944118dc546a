"""Cases of the fuzz run for the compiled core, which reads the bytes of strangers.

With ``--guided`` libFuzzer chooses the cases, by the branches of C and Python that they reach, in a
build that stops at whatever is undefined: this takes clang, and atheris from the package index.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path
from random import Random

from selectolax.lexbor import LexborHTMLParser

from freshet import compiled
from freshet.compiled import build

if __name__ == "__main__":
    # Before what binds its functions: the library with checks that guided() has built.
    compiled._LIBRARY = ctypes.CDLL(sys.argv[1])
    compiled._AT_ONCE = ctypes.PyDLL(sys.argv.pop(1))


from freshet.crawler.errors import TreeLimit
from freshet.crawler.extensions.readers.search_quality import ScoreTable, Scoring, Workload
from freshet.crawler.extensions.search.words import index_lines
from freshet.crawler.reduce.content import choice_of, chosen
from freshet.crawler.reduce.cutting import pieces_of
from freshet.crawler.reduce.main_text import main_text, written
from freshet.crawler.reduce.page import markup_of, parse, tree_shown
from freshet.crawler.reduce.pieces import Pieces
from freshet.crawler.reduce.sketch import sketch
from freshet.crawler.reduce.tree import (
    NO_HINTS,
    PARSER_OPTIONS,
    Tree,
    TreeLimits,
    is_calm,
    max_depth,
)
from freshet.crawler.reduce.tree_parser import tree_of
from freshet.crawler.reduce.tree_reference import reference
from scripts.benchmarks.fuzz_commands import Case
from scripts.benchmarks.fuzz_inputs import document

_PAGES = 40
_DEEPEST = 500


def core(case: Case) -> None:
    """Pages, and documents that no parser would write."""
    for number in range(_PAGES):
        rng = case.rng(number)
        body = document(rng, "html", host="127.0.0.1:9")
        case.inputs[:] = [("page.html", body)]
        _read(rng, body)


def _read(rng: Random, body: bytes) -> None:
    # Any other body is one for Lexbor to take its time over.
    if max_depth(body) > _DEEPEST or not is_calm(body):
        return
    page = parse(body, "http://127.0.0.1:9/", "text/html", max_links=rng.choice((3, 50_000)))
    blocks = page.blocks
    if page.sketch != sketch(blocks.texts, blocks.places):
        raise ValueError("one call of the core makes another sketch")
    tree, html = tree_shown(markup_of(body, "text/html"))
    if blocks != main_text(*choice_of(tree, html, NO_HINTS)[:2]):
        raise ValueError("one call of the core reads another text")
    _score(rng, index_lines(None, blocks.texts, blocks.kinds))
    _tree(rng, body.decode("utf-8", "replace"))


def _score(rng: Random, lines: str) -> None:
    """Score a page, and one that is like it, for queries of its own words and of others."""
    words = [*lines.split()[:500], "nowhere", "é" * rng.randrange(1, 20)]
    queries = [(rng.choices(words, k=rng.randrange(1, 5)), 1.0) for _ in range(rng.randrange(1, 9))]
    workload = Workload.of(queries)
    scoring = Scoring(workload, [3.0, 2.0, 1.0][: rng.randrange(1, 4)])
    table = ScoreTable(workload.frequency, top=rng.randrange(1, 4))
    for number, terms in enumerate(workload.queries):
        if rng.random() < 0.9:
            scoring.freeze(number, [rng.random() for _ in terms], rng.expovariate(0.01))
    before = scoring.scores(None)
    for page in range(rng.randrange(1, 6)):
        after = scoring.scores(lines[rng.randrange(len(lines) + 1) :])
        table.change(page % 3, before, after)
        before = after
    table.usefulness()


def _tree(rng: Random, html: str) -> None:
    parser, links = LexborHTMLParser(html, options=PARSER_OPTIONS), rng.choice((0, 3, 50_000))
    tree = tree_of(html, TreeLimits(links=links))
    if tree != reference(parser, links):
        raise ValueError("the core and the reference read two trees")
    cut, pieces = Pieces(tree), pieces_of(tree, tree.body)
    if [astuple(piece) for piece in cut] != [astuple(piece) for piece in pieces]:
        raise ValueError("the core cuts other pieces")
    chosen(tree, cut, html[:40])
    main_text(tree, cut)
    written(tree, cut, "http://127.0.0.1:9/")
    limits = TreeLimits(rng.randrange(1, 300), rng.randrange(1, 9_000), 60.0, 1 << 32, 50_000)
    with suppress(TreeLimit):
        _bounded(tree_of(html, limits, partly=True), limits)


def _bounded(beginning: Tree, limits: TreeLimits) -> None:
    if len(beginning) > limits.nodes or len(beginning.text) > limits.octets:
        raise ValueError("the beginning of a page is beyond its limits")


# -- guided by coverage -------------------------------------------------------

_CHECKS = "-g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all".split()
_ATHERIS = "atheris==3.0.0"
_SEEDS = 200
_LONGEST = 20_000


def guided(seconds: float, seed: int, keep: Path) -> int:
    """Run cases that libFuzzer chooses; return 0, or its exit code where it found something.

    Raises:
        RuntimeError: there is no clang.
    """
    keep.mkdir(parents=True, exist_ok=True)
    os.environ["CC"] = "clang"
    with tempfile.TemporaryDirectory(prefix="freshet-fuzz-") as directory:
        place = Path(directory)
        ignored = shutil.ignore_patterns("core-*")
        sources = shutil.copytree(Path(build.__file__).parent, place / "core", ignore=ignored)
        library = build.build(sources, _CHECKS)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
        subprocess.run([*pip, str(place / "atheris"), _ATHERIS], check=True)
        corpus = place / "corpus"
        corpus.mkdir()
        for number in range(_SEEDS):
            rng = Random(f"{seed} {number}")
            body = document(rng, "html", host="127.0.0.1:9")
            start = rng.randbytes(4)
            (corpus / f"page-{number}").write_bytes(b"\0" + start + body)
            (corpus / f"words-{number}").write_bytes(b"\1" + start + body)
        (loaded,) = place.glob("atheris/**/asan_with_fuzzer.so")
        limits = [f"-max_total_time={seconds:.0f}", f"-seed={seed}", f"-max_len={_LONGEST}"]
        # By the clock of the wall: at low priority beside other work a case of 20 ms took 10 s.
        limits += ["-timeout=600", "-rss_limit_mb=4096", f"-artifact_prefix={keep}/"]
        variables = {
            "LD_PRELOAD": str(loaded), "ASAN_OPTIONS": "detect_leaks=0",
            "PYTHONPATH": str(place / "atheris"),
        }  # fmt: skip
        module = [sys.executable, "-m", "scripts.benchmarks.fuzz_core", str(library)]
        done = subprocess.run(
            [*module, *limits, str(corpus)], env={**os.environ, **variables}, check=False
        )
        return done.returncode


def _one(data: bytes) -> None:
    """Read what libFuzzer made: a kind, four bytes of chance, then a page or words."""
    rng, rest = Random(data[1:5]), data[5:]
    if data[:1] < b"\1":
        _read(rng, rest)
    else:
        _score(rng, rest.decode("utf-8", "replace"))


if __name__ == "__main__":
    import atheris  # type: ignore[import-untyped]

    atheris.Setup(sys.argv, _one)
    atheris.Fuzz()
