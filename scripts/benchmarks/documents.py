"""Main content of pages beside that of other extractors: F1, and pages per second of processor.

``--wcxb``: a clone of Murrough-Foley/web-content-extraction-benchmark, whose own parts ``dev`` and
``test`` are the tuned and the other one; the score is its own, the mean F1 of bags of words.
``--articles``: one of scrapinghub/article-extraction-benchmark, in halves as in
:mod:`scripts.benchmarks.main_text`; the score is its own, F1 of the mean precision and recall of
runs of four words. ``--snippets``: one of adbar/trafilatura; the score is F1 over all snippets, as
its own. ``--others``: the folder of an environment with trafilatura, resiliparse or
readability-lxml, of which those that are installed are measured, too.

``--html``: a folder of HTML files; of a sample of them the processor time of a document is taken,
``--beside`` the same with another checkout of Freshet that is set up, in turn. The least time of
each page counts. Pages with other documents there are named.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from random import Random
from statistics import fmean
from typing import TypeAlias

from freshet.crawler.reduce.document import document
from scripts.benchmarks.command import arguments, finish
from scripts.benchmarks.main_text import Page, articles, in_tuned_half, plain, snippets, wcxb

_WORD = re.compile(r"\w+")
_RUN = 4

Extract: TypeAlias = Callable[[Page], str]
Score: TypeAlias = dict[str, float]


def of_freshet(page: Page) -> str:
    return document(page.body, "https://h.example/", page.content_type).text


def others() -> Iterator[tuple[str, Extract]]:
    """The other extractors that are installed, as their authors use them on these corpora."""
    if find_spec("trafilatura"):
        import trafilatura

        yield "trafilatura", lambda page: trafilatura.extract(_text(page), include_comments=False)
    if find_spec("resiliparse"):
        from resiliparse.extract.html2text import extract_plain_text

        yield "resiliparse", lambda page: extract_plain_text(_text(page), main_content=True)
    if find_spec("readability"):
        from lxml import html
        from readability import Document as Readable

        yield (
            "readability",
            lambda page: html.fromstring(Readable(_text(page)).summary()).text_content(),
        )


def _text(page: Page) -> str:
    return page.body.decode("utf-8", "replace")


def of_bags(pages: list[Page], texts: list[str]) -> Score:
    """The mean of each page's F1, precision and recall of words, as bags."""
    rows = []
    for page, text in zip(pages, texts, strict=True):
        found, wanted = (Counter(_WORD.findall(t.lower())) for t in (text, page.reference or ""))
        common = (found & wanted).total()
        if not wanted or not found:
            same = float(found == wanted)
            rows.append((same, same, same))
        else:
            p, r = common / found.total(), common / wanted.total()
            rows.append((2 * p * r / (p + r) if common else 0.0, p, r))
    return dict(
        zip(("f1", "precision", "recall"), map(fmean, zip(*rows, strict=True)), strict=True)
    )


def of_runs(pages: list[Page], texts: list[str]) -> Score:
    """F1 of the mean precision and the mean recall of runs of words."""
    precisions, recalls = [], []
    for page, text in zip(pages, texts, strict=True):
        found, wanted = _runs(text), _runs(page.reference or "")
        common = (found & wanted).total()
        if found:
            precisions.append(common / found.total())
        if wanted:
            recalls.append(common / wanted.total())
    p, r = fmean(precisions), fmean(recalls)
    return {"f1": 2 * p * r / (p + r), "precision": p, "recall": r}


def of_wcxb(pages: list[Page], texts: list[str]) -> Score:
    """Return the scores of bags and of snippets."""
    return of_bags(pages, texts) | of_boilerplate(pages, texts)


def of_boilerplate(pages: list[Page], texts: list[str]) -> Score:
    """Return the share of snippets of boilerplate that documents keep.

    The main text of the reference has some of the snippets, too: those are counted apart.
    """
    kept = both = total = 0
    for page, text in zip(pages, texts, strict=True):
        found = [snippet for snippet in map(plain, page.outside) if snippet in plain(text)]
        kept, total = kept + len(found), total + len(page.outside)
        both += sum(snippet in plain(page.reference or "") for snippet in found)
    total = max(1, total)
    return {"boilerplate_kept": kept / total, "kept_by_the_reference_too": both / total}


def _runs(text: str) -> Counter[tuple[str, ...]]:
    words = _WORD.findall(text)
    starts = range(max(1, len(words) - _RUN + 1)) if words else ()
    return Counter(tuple(words[i : i + _RUN]) for i in starts)


def of_snippets(pages: list[Page], texts: list[str]) -> Score:
    """Precision and recall over all snippets that should and should not be found."""
    true = false = missed = 0
    for page, text in zip(pages, texts, strict=True):
        found = sum(snippet in text for snippet in page.inside)
        true, missed = true + found, missed + len(page.inside) - found
        false += sum(snippet in text for snippet in page.outside)
    p, r = true / max(1, true + false), true / max(1, true + missed)
    return {"f1": 2 * true / (2 * true + false + missed), "precision": p, "recall": r}


def measured(pages: list[Page], extract: Extract, score: Callable[..., Score]) -> Score:
    began = time.process_time()
    texts = [_extracted(page, extract) for page in pages]
    seconds = time.process_time() - began
    result: Score = {
        "pages": len(pages),
        **score(pages, texts),
        "pages_per_cpu_second": len(pages) / seconds,
    }
    return {name: round(value, 4) for name, value in result.items()}


def _extracted(page: Page, extract: Extract) -> str:
    try:
        return extract(page) or ""
    except Exception as error:  # noqa: BLE001  # whatever another library raises
        print(f"{page.name}: {error!r}", file=sys.stderr)
        return ""


#: Run by each checkout: reads paths, and writes each page's least seconds and its digest.
_TIMES = """
import hashlib, sys, time
from pathlib import Path
from freshet.crawler.reduce.document import document
bodies = [Path(line.rstrip()).read_bytes() for line in sys.stdin]
for body in [*bodies[:10], *bodies]:
    took = []
    for _ in range(3):
        began = time.process_time()
        found = document(body, "https://h.example/", "text/html")
        took.append(time.process_time() - began)
    print(min(took), hashlib.sha256(repr(found).encode("utf-8", "replace")).hexdigest())
"""
_SAMPLE = 100
_ROUNDS = 2


def costs(folder: Path, beside: Path | None) -> dict[str, object]:
    """The processor time of a document here and in another checkout."""
    paths = sorted(path for path in folder.rglob("*.html") if path.is_file())
    paths = Random(0).sample(paths, min(_SAMPLE, len(paths)))  # a sample, no secret
    here = Path(__file__).parents[2]
    checkouts = [here] if beside is None else [here, beside.resolve()]
    rounds = [[_times(checkout, paths) for checkout in checkouts] for _ in range(_ROUNDS)]
    own, *others = [
        fmean(min(times) for times in zip(*(took for took, _ in runs), strict=True))
        for runs in zip(*rounds, strict=True)
    ]
    result: dict[str, object] = {"pages": len(paths), "us": round(1e6 * own)}
    for other in others:
        digests = zip(paths, *(digest for _, digest in rounds[0]), strict=True)
        result |= {
            "us_beside": round(1e6 * other),
            "ratio": round(own / other, 3),
            "differ": [str(path.relative_to(folder)) for path, a, b in digests if a != b],
        }
    return result


def _times(checkout: Path, paths: Sequence[Path]) -> tuple[list[float], list[str]]:
    """The seconds and the digest of each document."""
    command = [str(checkout / ".venv/bin/python"), "-c", _TIMES]
    names = "".join(f"{path.resolve()}\n" for path in paths)
    done = subprocess.run(
        command, cwd=checkout, input=names, capture_output=True, text=True, check=True
    )
    rows = [line.split() for line in done.stdout.splitlines()][-len(paths) :]
    return [float(took) for took, _ in rows], [digest for _, digest in rows]


def main() -> None:
    """Extract from all pages of the corpora that were named, and print."""
    parser = arguments(__doc__)
    for name in ("wcxb", "articles", "snippets", "others", "html", "beside"):
        parser.add_argument(f"--{name}", type=Path, metavar="DIR")
    options = parser.parse_args()
    if options.others is not None:
        sys.path.extend(map(str, options.others.glob("lib/python*/site-packages")))
    extractors: Mapping[str, Extract] = {"freshet": of_freshet, **dict(others())}
    parts: dict[str, tuple[list[Page], Callable[..., Score]]] = {}
    if options.wcxb is not None:
        parts["wcxb dev"] = list(wcxb(options.wcxb, "dev")), of_wcxb
        parts["wcxb test"] = list(wcxb(options.wcxb, "test")), of_wcxb
    if options.articles is not None:
        pages = list(articles(options.articles))
        parts["articles tuned"] = list(filter(in_tuned_half, pages)), of_runs
        parts["articles other"] = [page for page in pages if not in_tuned_half(page)], of_runs
    if options.snippets is not None:
        parts["snippets"] = list(snippets(options.snippets)), of_snippets
    result: dict[str, object] = {
        part: {name: measured(pages, extract, score) for name, extract in extractors.items()}
        for part, (pages, score) in parts.items()
    }
    if options.html is not None:
        result["cost"] = costs(options.html, options.beside)
    finish(result, options.output)
