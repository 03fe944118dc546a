"""Cases of the fuzz run for the compiled core, which reads the bytes of strangers.

They find most in a build that stops at whatever is undefined: give ``freshet.compiled.build.build``
the flags ``-fsanitize=address,undefined``, and Python the compiler's ``libasan.so`` in LD_PRELOAD.
"""

from __future__ import annotations

from random import Random

from selectolax.lexbor import LexborHTMLParser

from freshet.crawler.reduce.markup import cut, read
from freshet.crawler.reduce.nesting import is_calm, max_depth
from freshet.crawler.reduce.page import parse
from freshet.crawler.reduce.sketch import sketch
from scripts.benchmarks.fuzz_commands import Case
from scripts.benchmarks.fuzz_inputs import document, mutated

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
    blocks = parse(
        body, "http://127.0.0.1:9/", "text/html", max_links=rng.choice((3, 50_000))
    ).blocks
    sketch(blocks.texts, blocks.places)
    html = LexborHTMLParser(body.decode("utf-8", "surrogateescape").replace("\0", "")).html or ""
    octets = mutated(rng, html.encode("utf-8", "surrogatepass"), 0.9)
    odd = octets.decode("utf-8", "surrogateescape")
    markup = read(odd)
    starts = [i for i, _ in markup.told]
    markup.texts(starts, rng.choice((0, 1, 2_000)), rng.choice((0, 1, 200)))
    for bar in (float("inf"), rng.expovariate(0.01), -1.0):
        found, *_ = markup.walk(
            selected=rng.random() < 0.2, spares=rng.random() < 0.5, bar=bar, shows_hidden=True
        )
        sketch(found.texts, found.places)
    cut(odd)
