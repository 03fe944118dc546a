"""How many pages that are no content are recognised, and how many real ones taken for such.

The pages are those of ``not_content_pages/tuned``, on which the words and thresholds were
found, and of ``not_content_pages/held_out`` by other authors, which nobody has read who worked
on the code. Each is met alone (the only page of its host, first visit, no probe), in a site
(eight URLs of a host of thirty answer with it; a probe finds it where it is a soft 404) and at
a recrawl (six URLs that had content answer with it). Recall and precision are over the last
two, and once more ("amended") over the same pages in whole crawls, as the store finds them in
the end. Pages without block pages can be added: ``--pages DIR`` for HTML files,
FRESHET_EVOLUTION_DIR for recorded sites.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from argparse import Namespace
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from urllib.parse import urlsplit
from zlib import crc32

from freshet.crawler.compare.not_content.check import CheckedPage, NotContentCheck, facts_of
from freshet.crawler.compare.not_content.cues import is_short
from freshet.crawler.compare.not_content.host import HostJudge
from freshet.crawler.compare.not_content.page import NotContent, PageFacts, read_signs
from freshet.crawler.reduce.page import ParsedPage, parse
from freshet.crawler.reduce.parser_process import Parser
from freshet.crawler.reduce.sketch import Sketch, sketch
from freshet.storage.records import Digests, DueUrl, FetchResult, PageHistory
from scripts.benchmarks.block_pages import read_blocks
from scripts.benchmarks.command import arguments, finish, say, workspace
from scripts.benchmarks.not_content_cost import costs
from scripts.benchmarks.not_content_crawled import CrawledHost, crawled
from scripts.benchmarks.not_content_sites import Served, SiteMaker
from scripts.benchmarks.short_pages import RealPage, paragraphs, read_folder, read_recordings, short

SEED = 20_261_121
_DAY_S = 86_400.0
_HTML = ((b"Content-Type", b"text/html; charset=utf-8"),)
_LOOP = asyncio.new_event_loop()
_FOLDER = Path(__file__).parent / "not_content_pages"
_REAL = "real"
#: Rules by what their reasons say.
_RULES = {
    "a URL that cannot exist": "like the page for a made-up URL",
    "with different content before": "different content before",
    "other URLs show it, with": "form at several URLs",
    "other URLs show it": "twins",
    "nothing else": "nothing else",
    "only a browser shows it": "needs JavaScript",
}


@dataclass(frozen=True, slots=True)
class Sample:
    """A page of the data: ``kind`` is that of the block page, or ``real``."""

    name: str
    kind: str
    template: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was said of a page at a ``visit`` of its host, which shows ``soft`` to a probe."""

    sample: str
    kind: str | None
    checked: CheckedPage
    page: Served
    visit: int = 0
    soft: str | None = None

    @property
    def verdict(self) -> NotContent | None:
        """Why the page is refused, None if it is stored."""
        return self.checked.verdict

    @property
    def is_marked(self) -> bool:
        """Whether the page is refused, or stored as doubtful."""
        return self.verdict is not None or self.checked.doubt is not None


@dataclass(slots=True)
class Visitor:
    """Visits the pages of one host as the crawl does; ``soft`` is what a probe finds there."""

    maker: SiteMaker
    soft: str | None = None
    probing: bool = True
    at: float = 1_790_000_000.0
    texts: dict[str, Sketch] = field(default_factory=dict)
    _past: dict[int, PageHistory] = field(default_factory=dict)
    _check: NotContentCheck | None = None

    def visit(self, page: Served, *, had_content: bool | None = None) -> CheckedPage:
        """Check a page, after a probe if one is wanted.

        ``had_content`` is found out from earlier visits unless it is given.
        """
        self.at += 1.0
        if self._check is None:
            probes = self if self.probing else None
            past = _Past(self._past)
            self._check = NotContentCheck(past, Parser(), random.Random(SEED), probes=probes)
        parsed, text = _parsed(page), _text(page)
        before = (
            sketch(("Some other text stood here.",)) if had_content else self.texts.get(page.url)
        )
        page_id, digests = crc32(page.url.encode()), None
        if before is not None:
            self._past[page_id] = PageHistory(before.to_bytes(), None, 0)
            digests = Digests(b"", before.text_digest, None)
        due = DueUrl(page_id, page.url, page.url, 1, self.at, digests=digests)
        checking = self._check.check(due, _result(page, self.at), parsed, text)
        checked = _LOOP.run_until_complete(checking)
        if checked.verdict is None:
            self.texts[page.url] = text
        return checked

    async def ask(self, _host: int, url: str) -> FetchResult:
        """Return the answer to a probe."""
        if self.soft is None:
            return FetchResult(url, "gone", self.at, 0.0, 404, "http_404")
        return _result(Served(url, self.maker.filled(self.soft, url)), self.at)


@dataclass
class _Past:
    """A store of these histories, by page."""

    histories: dict[int, PageHistory]

    async def history(self, page_id: int) -> PageHistory | None:
        """Return that of a page."""
        return self.histories.get(page_id)

    async def sample(self, _host: int, _most: int) -> list[PageHistory]:
        """Return none."""
        return []

    async def nothing(self, *_of: object) -> None:
        """Return None."""

    predecessor = not_content = again = text = standing = channels = content = nothing


def facts_of_page(page: Served) -> PageFacts:
    """Return the signs of a page by itself."""
    return facts_of(_result(page, 0.0), page.url, _parsed(page), _text(page))


def _result(page: Served, at: float) -> FetchResult:
    return FetchResult(page.url, "fetched", at, 0.0, 200, headers=_HTML, body=page.html.encode())


def _text(page: Served) -> Sketch:
    blocks = _parsed(page).blocks
    return sketch(blocks.texts, blocks.places)


@lru_cache(maxsize=4)
def _parsed(page: Served) -> ParsedPage:
    return parse(page.html.encode(), page.url, "text/html; charset=utf-8")


def samples(folder: Path) -> list[Sample]:
    """The pages of a folder, by name."""
    return [
        Sample(path.stem, path.stem.partition("__")[0], path.read_text("utf-8"))
        for path in sorted(folder.glob("*.html"))
    ]


def alone(block_pages: Sequence[Sample]) -> Iterator[Verdict]:
    """Each block page as the only page of its host."""
    for n, sample in enumerate(block_pages):
        maker = SiteMaker(f"www.alone{n}.example", random.Random(SEED + n))
        visitor = Visitor(maker, probing=False)
        page = maker.block_page(sample.template, sample.kind)
        yield Verdict(sample.name, sample.kind, visitor.visit(page), page)


def in_sites(block_pages: Sequence[Sample], real: Sequence[Sample]) -> Iterator[Verdict]:
    """Each block page on some URLs of a host, in a first crawl."""
    for n, sample in enumerate(block_pages):
        draw = random.Random(SEED + 1000 + n)
        maker = SiteMaker(f"www.site{n}.example", draw)
        soft = sample.template if sample.kind == "soft_404" else None
        visitor = Visitor(maker, soft)
        pages = [(f"generated {k % 7}", maker.page(k)) for k in range(20)]
        pages += [(each.name, _real_page(maker, each)) for each in _some(real, n, 2)]
        pages += [(sample.name, maker.block_page(sample.template, sample.kind)) for _ in range(8)]
        draw.shuffle(pages)
        for name, page in pages:
            yield Verdict(name, page.kind, visitor.visit(page), page, soft=soft)


def recrawls(block_pages: Sequence[Sample], real: Sequence[Sample]) -> Iterator[Verdict]:
    """Each block page at a later visit of URLs that had content; the other pages were edited."""
    for n, sample in enumerate(block_pages):
        draw = random.Random(SEED + 2000 + n)
        maker = SiteMaker(f"www.again{n}.example", draw)
        soft = sample.template if sample.kind == "soft_404" else None
        visitor = Visitor(maker, soft)
        pages = [(f"generated {k % 7}", maker.page(k)) for k in range(20)]
        pages += [(each.name, _real_page(maker, each)) for each in _some(real, n, 2)]
        for name, page in pages:
            yield Verdict(name, None, visitor.visit(page), page, soft=soft)
        visitor.at += 3 * _DAY_S
        turned = frozenset(draw.sample(range(20), 6))
        for k, (name, page) in enumerate(pages):
            if k in turned:
                block_page = maker.block_page(sample.template, sample.kind, page.url)
                checked = visitor.visit(block_page)
                yield Verdict(sample.name, sample.kind, checked, block_page, 1, soft)
            else:
                edited = Served(page.url, page.html.replace("</main>", "<p>Edited.</p></main>"))
                yield Verdict(name, None, visitor.visit(edited), edited, 1, soft)


def _some(real: Sequence[Sample], n: int, count: int) -> list[Sample]:
    return [real[(n * count + k) % len(real)] for k in range(count)] if real else []


def _real_page(maker: SiteMaker, sample: Sample) -> Served:
    url = f"https://{maker.host}/pages/{sample.name.partition('__')[2].replace('_', '-')}"
    return Served(url, maker.filled(sample.template, url))


def block_figures(folder: Path) -> Iterator[tuple[str, dict[str, object]]]:
    """Figures of block pages of others within sites, by halves; ``authors`` has those of each."""
    found: defaultdict[str, defaultdict[str, list[Verdict]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for n, page in enumerate(read_blocks(folder)):
        half = page.half if not page.author.startswith("framework") else f"{page.half}, framework"
        kind = page.kind or _UNNAMED
        maker = SiteMaker(f"www.block{n}.example", random.Random(n))
        visitor = Visitor(maker, page.html if kind == "soft_404" else None)
        pages = [maker.page(k) for k in range(20)]
        pages += [maker.block_page(page.html, kind) for _ in range(8)]
        random.Random(n).shuffle(pages)
        verdicts = [Verdict(page.name, each.kind, visitor.visit(each), each) for each in pages]
        found[half][page.author] += verdicts
    for half, authors in sorted(found.items()):
        row: dict[str, object] = dict(_marked([v for some in authors.values() for v in some]))
        row["authors"] = {name: _marked(some) for name, some in sorted(authors.items())}
        say(f"blocks: {half:18} {row['pages']:4} pages, refused {row['refused']:.3f}, refused or "
            f"marked {row['marked']:.3f}, kind right {row['kind_right']:.3f}, "
            f"real ones marked {row['real_marked']} of {row['real']}")  # fmt: skip
        yield half, row


#: The kind of a block page that is not told.
_UNNAMED = "unnamed"


def _marked(verdicts: Sequence[Verdict]) -> dict[str, float]:
    """Shares of the block pages that are refused, and refused or doubtful, and the real ones."""
    block_pages = [v for v in verdicts if v.kind is not None]
    real = [v for v in verdicts if v.kind is None]
    told = [
        (v.kind, found.kind.value)
        for v in block_pages
        if v.kind != _UNNAMED and (found := v.verdict or v.checked.doubt) is not None
    ]
    return {
        "pages": len(block_pages) // 8,
        "refused": _share(sum(v.verdict is not None for v in block_pages), len(block_pages)),
        "marked": _share(sum(v.is_marked for v in block_pages), len(block_pages)),
        "kind_right": _share(sum(kind == said for kind, said in told), len(told)),
        "real": len(real),
        "real_marked": sum(v.is_marked for v in real),
    }


def real_alone(real: Sequence[Sample]) -> Iterator[Verdict]:
    """Each real page by itself, at a first visit and where another text stood before."""
    for n, sample in enumerate(real):
        for had_content in (None, True):
            maker = SiteMaker(f"www.real{n}.example", random.Random(SEED + 3000 + n))
            page = _real_page(maker, sample)
            found = Visitor(maker).visit(page, had_content=had_content)
            yield Verdict(sample.name, None, found, page)


def real_visits(pages: Iterable[RealPage], urls: int) -> Iterator[Verdict]:
    """Visit real pages at so many URLs each; the pages of a host stay together."""
    visitors: dict[str, Visitor] = {}
    for page in pages:
        new = Visitor(SiteMaker(page.host, random.Random(SEED)))
        visitor = visitors.setdefault(page.host, new)
        for n in range(urls):
            served = Served(f"{page.url}?from={n}" if n else page.url, page.html)
            yield Verdict(served.url, None, visitor.visit(served), served)


def real_figures(verdicts: Iterable[Verdict]) -> dict[str, object]:
    """Real pages that are refused or doubtful, and the rules that refused them."""
    rules, false, doubtful, visits = Counter[str](), list[str](), list[str](), 0
    for v in verdicts:
        visits += 1
        if v.verdict is not None:
            rules[_rule_of(v.verdict)] += 1
            false.append(f"{v.sample}: {v.verdict.kind}, {v.verdict.why}")
        elif (doubt := v.checked.doubt) is not None:
            doubtful.append(f"{v.sample}: {doubt.kind} ({doubt.probability:.2f}), {doubt.why}")
    return {
        "visits": visits,
        "refused": _share(len(false), visits),
        "doubtful": _share(len(doubtful), visits),
        "by_rule": dict(rules.most_common()),
        "false": false,
        "in_doubt": doubtful,
    }


def _rule_of(verdict: NotContent) -> str:
    """Return the rule by the words of its reason."""
    return next((rule for words, rule in _RULES.items() if words in verdict.why), "own words")


def in_the_store(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The same pages in whole crawls, with the verdicts that the store has in the end.

    Those that lead a browser away at once are redirects there, and left out.
    """
    hosts: defaultdict[str, list[Verdict]] = defaultdict(list)
    for v in verdicts:
        hosts[urlsplit(v.page.url).netloc].append(v)
    with workspace() as work:
        found = crawled([_crawled_host(host, each) for host, each in hosts.items()], work)
    return [
        replace(v, checked=found.verdicts[v.page.url, v.visit])
        for v in verdicts
        if (v.page.url, v.visit) not in found.led_away
    ]


def _crawled_host(host: str, verdicts: Sequence[Verdict]) -> CrawledHost:
    visits = range(1 + max(v.visit for v in verdicts))
    pages = [{v.page.url: v.page.html for v in verdicts if v.visit == n} for n in visits]
    soft, maker = verdicts[0].soft, SiteMaker(host, random.Random(SEED))
    return CrawledHost(
        f"https://{host}", pages, None if soft is None else partial(maker.filled, soft)
    )


def figures(verdicts: Sequence[Verdict]) -> dict[str, object]:
    """Recall of block pages by kind, false ones, and which kinds were taken for which."""
    block_pages = [v for v in verdicts if v.kind is not None]
    real = [v for v in verdicts if v.kind is None]
    false = [v for v in real if v.verdict is not None]
    by_kind: defaultdict[str, list[bool]] = defaultdict(list)
    for v in block_pages:
        by_kind[v.kind or ""].append(v.verdict is not None)
    found = [v for v in block_pages if v.verdict is not None]
    claimed = Counter(v.verdict.kind.value for v in verdicts if v.verdict is not None)
    false_kinds = Counter(v.verdict.kind.value for v in false if v.verdict is not None)
    return {
        "block_pages": len(block_pages),
        "recognised": _share(len(found), len(block_pages)),
        "marked": _share(sum(v.is_marked for v in block_pages), len(block_pages)),
        "real_doubtful": sum(v.is_marked for v in real) - len(false),
        "by_kind": {kind: _share(sum(hits), len(hits)) for kind, hits in sorted(by_kind.items())},
        "precision_by_kind": {
            kind: _share(count - false_kinds[kind], count)
            for kind, count in sorted(claimed.items())
        },
        "kind_right": _share(
            sum(v.verdict is not None and v.verdict.kind == v.kind for v in found), len(found)
        ),
        "confused": dict(
            Counter(
                f"{v.kind} taken for {v.verdict.kind}"
                for v in found
                if v.verdict is not None and v.verdict.kind != v.kind
            ).most_common()
        ),
        "real_pages": len(real),
        "real_taken": len(false),
        "real_taken_share": _share(len(false), len(real)),
        "false": [f"{v.sample}: {v.verdict.kind}, {v.verdict.why}" for v in false if v.verdict][
            :20
        ],
    }


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0


def misses(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """How often each page was not recognised."""
    return dict(Counter(v.sample for v in verdicts if v.kind and v.verdict is None).most_common())


def of_set(name: str, *, tell_names: bool) -> dict[str, object]:
    """All figures of one set of pages."""
    every = samples(_FOLDER / name)
    block_pages = [each for each in every if each.kind != _REAL]
    real = [each for each in every if each.kind == _REAL]
    by_itself, sites, again = (
        list(alone(block_pages)),
        list(in_sites(block_pages, real)),
        list(recrawls(block_pages, real)),
    )
    result: dict[str, object] = {
        "pages": len(block_pages),
        "goal": figures([*sites, *again]),
        "goal_amended": figures([*in_the_store(sites), *in_the_store(again)]),
        "alone": figures(by_itself),
        "in_a_site": figures(sites),
        "recrawl": figures(again),
        "hard_real_pages": figures(list(real_alone(real))),
    }
    if tell_names:
        result["missed"] = {"alone": misses(by_itself), "goal": misses([*sites, *again])}
    return result


def look_cost() -> dict[str, float]:
    """Microseconds for a long page (the first question only) and for a short one (all of it)."""
    maker = SiteMaker("cost.example", random.Random(SEED))
    long, short = maker.page(0), maker.page(4)
    texts = parse(long.html.encode(), long.url, "text/html").blocks.texts * 20
    body = short.html.encode()
    facts = facts_of_page(short)
    return {
        "long_page_us": _microseconds(lambda: is_short(texts), 2000),
        "short_page_signs_us": _microseconds(lambda: read_signs(body, "text/html"), 200),
        "short_page_judge_us": _microseconds(lambda: HostJudge().judge(facts, 0.0), 100),
    }


def _microseconds(action: object, times: int) -> float:
    assert callable(action)
    start = time.perf_counter()
    for _ in range(times):
        action()
    return round((time.perf_counter() - start) / times * 1e6, 2)


def _table(sets: dict[str, dict[str, object]]) -> None:
    say(
        f"{'set':10} {'scenario':16} {'pages':>6} {'found':>7} {'kind':>7} {'real':>6} {'false':>6}"
    )
    for name, result in sets.items():
        for scenario, row in result.items():
            if isinstance(row, dict) and "recognised" in row:
                say(
                    f"{name:10} {scenario:16} {row['block_pages']:6} {row['recognised']:7.4f} "
                    f"{row['kind_right']:7.4f} {row['real_pages']:6} "
                    f"{row['real_taken']:6}"
                )


def _options() -> Namespace:
    parser = arguments(__doc__)
    parser.add_argument("--set", choices=("tuned", "held_out"), action="append", dest="sets")
    for half in ("fit", "report"):
        help_ = f"a folder of real pages, see short_pages; the half {half}"
        parser.add_argument(f"--{half}", type=Path, metavar="DIR", action="append", help=help_)
    parser.add_argument(
        "--blocks", type=Path, metavar="DIR", help="a folder of clones, see block_pages"
    )
    parser.add_argument("--most", type=int, default=80, metavar="N", help="pages of a host")
    parser.add_argument(
        "--old", type=Path, metavar="DIR",
        help="a checkout of another commit: compare the CPU time on the pages of --report",
    )  # fmt: skip
    parser.add_argument("--only-real", action="store_true", help="leave the sets out")
    return parser.parse_args()


def main() -> None:
    """Serve, judge and print."""
    options = _options()
    chosen = [] if options.only_real else options.sets or ["tuned", "held_out"]
    # What was missed of the held-out set stays untold, so that nobody tunes on it.
    sets = {name: of_set(name, tell_names=name == "tuned") for name in chosen}
    _table(sets)
    real = dict(_real(options))
    blocks = {} if options.blocks is None else dict(block_figures(options.blocks))
    if not real:
        say("no real pages: name folders with --fit or --report")
    cost = {**look_cost(), **_costs(options)}
    finish({"seed": SEED, **sets, "real": real, "blocks": blocks, "cost": cost}, options.output)


def _costs(options: Namespace) -> dict[str, object]:
    pages = list(_read(options.report or (), options.most))
    if options.old is None or not pages:
        return {}
    found: dict[str, object] = {}
    for name, some in (("all pages", pages), ("short pages", list(short(pages)))):
        with workspace() as work:
            row = costs(some, options.old, work)
        say(f"CPU of the check, {name:12} {row['pages']:5} pages: {row['old']} us, now "
            f"{row['new']} us, {row['ratio']} of it")  # fmt: skip
        found[name] = row
    return found


def _real(options: Namespace) -> Iterator[tuple[str, dict[str, object]]]:
    for half in ("fit", "report"):
        pages = list(_read(getattr(options, half) or (), options.most))
        if half == "report" and (recorded := os.environ.get("FRESHET_EVOLUTION_DIR")):
            with workspace() as work:
                pages += read_recordings(Path(recorded), work, options.most)
        if not pages:
            continue
        chosen = {"short pages": list(short(pages)), "paragraphs": list(paragraphs(pages))}
        for name, some in chosen.items():
            for urls in (1, 2):
                row = real_figures(real_visits(some, urls))
                title = f"{half}: {name}, {urls} URL{'s' if urls > 1 else ''}"
                say(f"{title:32} {row['visits']:6} visits, refused {row['refused']:.4%}, "
                    f"doubtful {row['doubtful']:.2%}  {row['by_rule']}")  # fmt: skip
                yield title, row


def _read(folders: Iterable[Path], most: int) -> Iterator[RealPage]:
    for folder in folders:
        yield from read_folder(folder, most)
