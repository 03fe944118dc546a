"""What each stage of a crawl costs: CPU microseconds a page, beside another way to do it.

The pages are those that a crawl from memory comes to first. That crawl is the whole of
Freshet but for the network, so that what the stages leave of it is the cost of frontier, pool,
event loop and the parser's process. The real functions are called, one page after the other.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time_ns
from typing import ParamSpec, TypeVar
from urllib.parse import urldefrag, urljoin

import uvloop
import zstandard
from datasketch import MinHash
from protego import Protego
from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser

from freshet.crawler.admission.admit import Admission, Scope
from freshet.crawler.admission.traps import TrapLimits
from freshet.crawler.compare.history import PageRecord
from freshet.crawler.compare.ladder import judge_blocks
from freshet.crawler.compare.templates import HostRun
from freshet.crawler.reduce.charset import decode
from freshet.crawler.reduce.main_text import main_text
from freshet.crawler.reduce.markup import read
from freshet.crawler.reduce.nesting import is_calm
from freshet.crawler.reduce.page import ParsedPage, gathered, is_plain, page_links, parse
from freshet.crawler.reduce.sketch import body_digest, sketch
from freshet.crawler.robots import parser
from freshet.storage.records import Targets
from scripts.benchmarks import command
from scripts.benchmarks.crawl_competitors import start_cpu_s
from scripts.benchmarks.crawl_figures import ratios, table
from scripts.benchmarks.crawl_from_memory import Page, Whole, crawl_from_memory
from scripts.benchmarks.crawl_network import exchanges
from scripts.benchmarks.crawl_nginx import Served
from scripts.benchmarks.crawl_quarantine import quarantined
from scripts.benchmarks.crawl_store import write
from scripts.benchmarks.crawl_tree import Tree, edited

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_PASSES = 3
_AGENT = "freshet"
_ROBOTS = "User-agent: *\nDisallow: /cgi-bin/\nDisallow: /search\nDisallow: /*?print=\n"
_OPTIONS = LexborDocumentOptions.WO_EVENTS.value
_MAX_LINKS = 50_000
_ZSTD_LEVEL = 3
#: The stages that a page passes on its way through a first crawl; the others say more about
#: these or stand for changed pages.
_FIRST_CRAWL = ("robots", "nesting", "digest", "page", "admission", "sketch", "compress")


@dataclass(slots=True)
class Stopwatch:
    """CPU nanoseconds by what was called."""

    spent: dict[str, int] = field(default_factory=dict)

    def time(
        self,
        name: str,
        function: Callable[Arguments, Result],
        /,
        *arguments: Arguments.args,
        **options: Arguments.kwargs,
    ) -> Result:
        """The function's result; its time is added to the name's."""
        started_at = process_time_ns()
        result = function(*arguments, **options)
        self.spent[name] = self.spent.get(name, 0) + process_time_ns() - started_at
        return result


def stages(pages: Sequence[Page]) -> dict[str, float]:
    """Microseconds a page for each stage, the least of three passes."""
    watches = [Stopwatch() for _ in range(_PASSES)]
    for watch in watches:
        admission = Admission(Scope("host", [page.url for page in pages]), TrapLimits())
        rules = parser.parse(_ROBOTS.encode()), Protego.parse(_ROBOTS)
        for page in pages:
            _take_bytes(watch, page, *rules)
            _take_text(watch, page, admission)
    return {
        name: min(watch.spent[name] for watch in watches) / 1e3 / len(pages)
        for name in watches[0].spent
    }


def _take_bytes(watch: Stopwatch, page: Page, ours: parser.RobotsTxt, theirs: Protego) -> None:
    """The stages that do not look into the page."""
    body = page.body
    watch.time("robots", ours.allows, _AGENT, page.url)
    watch.time("robots: protego", theirs.can_fetch, page.url, _AGENT)
    watch.time("nesting", is_calm, body)
    watch.time("digest", body_digest, body)
    watch.time("digest: sha256", hashlib.sha256, body)
    watch.time("compress", zstandard.compress, body, _ZSTD_LEVEL)
    watch.time("compress: zstd level 1", zstandard.compress, body, 1)
    watch.time("compress: gzip level 6", gzip.compress, body, 6)


def _take_text(watch: Stopwatch, page: Page, admission: Admission) -> None:
    """All of reading at once (``page``), and the stages that follow it."""
    parsed = watch.time("page", _parsed, page, page.body)
    _take_apart(watch, page)
    links, targets = parsed.links, Targets()
    columns = range(len(links))
    watch.time("admission", admission.links, targets, links, columns, 1, nofollow=False)
    blocks = parsed.blocks
    old = watch.time("sketch", sketch, blocks.texts, blocks.places)
    watch.time("sketch: datasketch update_batch, sha1", _datasketch, blocks.texts)
    later = _parsed(page, edited(page.body, 1)).blocks
    new = sketch(later.texts, later.places)
    watch.time("compare", judge_blocks, PageRecord(old), new, HostRun(), 0.0)


def _parsed(page: Page, body: bytes) -> ParsedPage:
    return parse(body, page.url, page.content_type, _AGENT, _MAX_LINKS)


def _take_apart(watch: Stopwatch, page: Page) -> None:
    """The parts of reading a page, by themselves, with the caches that the whole has filled."""
    text, _ = watch.time("page/decode", decode, page.body, page.content_type)
    if is_plain(page.content_type):
        return
    tree = watch.time("page/parse", LexborHTMLParser, text, options=_OPTIONS)
    html = watch.time("page/write", getattr, tree, "html")
    markup = watch.time("page/tags", read, html)
    watch.time("page/links", lambda: gathered(page_links(markup, page.url), _MAX_LINKS))
    hrefs = [tag.link[0] for _, tag in markup.told if tag.link is not None]
    watch.time("page/links: urldefrag(urljoin())", _joined, page.url, hrefs)
    watch.time("page/blocks", main_text, markup)
    if tree.body is not None:
        watch.time("page/blocks: text of the body", tree.body.text)


def _joined(base: str, hrefs: Sequence[str]) -> None:
    for href in hrefs:
        try:
            urldefrag(urljoin(base, href))
        except ValueError:  # what is no URL leads nowhere
            continue


def _datasketch(texts: Sequence[str]) -> None:
    """Four-word shingles as strings, hashed as the library does it by default."""
    words = " ".join(texts).split()
    shingles = {" ".join(words[n : n + 4]).encode() for n in range(max(1, len(words) - 3))}
    MinHash(num_perm=128).update_batch(list(shingles))


def measure(tree: Tree, served: Served, sample: int, directory: Path) -> dict[str, object]:
    """All the figures; the table goes to standard error."""
    whole = uvloop.run(crawl_from_memory(tree, served.origins, sample, directory))
    figures = stages(whole.pages)
    figures |= uvloop.run(exchanges([page.url for page in whole.pages]))
    store = uvloop.run(write(whole.entries, whole.seeds, directory))
    aside = uvloop.run(quarantined(whole.pages))
    figures |= {name: us / len(whole.pages) for name, us in (store | aside).items()}
    figures |= _rest(figures, whole)
    command.say(table(figures))
    return {
        "pages": len(whole.pages),
        "kilobytes_a_page": round(whole.bytes_a_page / 1e3, 1),
        "links_a_page": round(whole.links_a_page, 1),
        "start_cpu_s": round(start_cpu_s(), 2),
        "microseconds_a_page": {name: round(us, 1) for name, us in figures.items()},
        "ratios": ratios(figures),
    }


def _rest(figures: dict[str, float], whole: Whole) -> dict[str, float]:
    accounted = sum(figures[name] for name in (*_FIRST_CRAWL, "store"))
    first, again = whole.first_us, whole.again_us
    return {
        "crawl but network": first,
        "crawl but network/parser's process": whole.first_children_us,
        "crawl but network/not in a stage": first - accounted,
        "recrawl but network, all 304": again,
    }
