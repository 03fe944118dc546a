"""``freshet check URL``: fetch a page now, and show the result of each step."""

import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, astuple, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Final

import typer

from freshet.config.settings import Settings, SiteSettings
from freshet.config.sites import Sites
from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.cli.config import toml_value
from freshet.crawler.cli.contact import with_contact
from freshet.crawler.cli.options import (
    DEFAULT_DB,
    AnyUrl,
    ConfigFile,
    Contact,
    Db,
    Json,
    home_of,
    read_settings,
)
from freshet.crawler.compare.detection import Detector, Verdict
from freshet.crawler.compare.kinds import ChangeKinds
from freshet.crawler.compare.not_content.check import facts_of, waits_for_scripts
from freshet.crawler.compare.not_content.cues import is_judged, length
from freshet.crawler.compare.not_content.host import HostJudge
from freshet.crawler.compare.not_content.page import NotContent
from freshet.crawler.errors import CrawlError, ParserLost
from freshet.crawler.fetch.client import Fetcher, Request
from freshet.crawler.fetch.heads import REPAIRS
from freshet.crawler.fetch.responses import is_repeatable
from freshet.crawler.frontier.clock import SteadyClock
from freshet.crawler.frontier.frontier import ApiRequest
from freshet.crawler.reduce.formats import as_shown
from freshet.crawler.reduce.page import ParsedPage
from freshet.crawler.reduce.parser_process import Parser, Unparsable
from freshet.crawler.reduce.sketch import body_digest, sketch
from freshet.crawler.reduce.tree import SelectorHints
from freshet.crawler.robots import in_force, record_of
from freshet.crawler.robots.preferences import (
    Preference,
    as_json,
    in_words,
    of_lines,
    of_page,
    of_response,
)
from freshet.crawler.run import terminal
from freshet.crawler.run.hooks import CHECKS, FetchedPage
from freshet.crawler.run.network import Network, fetcher_layers, parser_of, texts_of, with_kept
from freshet.crawler.run.rules import counts_at, never_at
from freshet.crawler.run.stored_past import StoredPast
from freshet.crawler.run.terminal import (
    blocks,
    counted,
    joined,
    print_json,
    show_line,
    show_list,
    size,
)
from freshet.crawler.run.upkeep import require_readable
from freshet.crawler.urls import origin, robots_url
from freshet.crawler.visit import absence
from freshet.entry_points import loaded
from freshet.storage.database import reading
from freshet.storage.entries import DOUBTFUL, REBASED, REFRESHED
from freshet.storage.queries import page
from freshet.storage.records import Digests, DueUrl, FetchResult
from freshet.storage.tables import hosts

# -- checking ----------------------------------------------------------------
_REDIRECTS = 5
_NO_CONTENT: Final = "failed: a crawl would store no version, because this is not content"
_STAGES = {
    "text": "the main text is the same; only the page's frame changed",
    "volatile": "only blocks that differ at every visit have changed",
    "frame": "only blocks of the site's template have changed",
    "flip": "the page alternates between these versions",
    "minor": "only blocks that change without an edit of the page have changed",
    "blocks": "blocks of main text have changed",
    "document": "the main text is the same; the document differs in what change.counts names",
    "body": "the bytes differ, and one of the versions has no text",
}


@dataclass(frozen=True, slots=True)
class CheckStep:
    """One step: its name, its result in a word, and the reason."""

    name: str
    answer: str
    why: str


@dataclass(slots=True)
class Check:
    """All steps in order, the conclusion that a crawl would draw, and the blocks of main text.

    A block has its ``text`` and its ``kind`` of markup. ``preferences`` are the stated usage
    preferences of the page.
    """

    url: str
    steps: list[CheckStep] = field(default_factory=list)
    conclusion: str = ""
    blocks: list[dict[str, str]] = field(default_factory=list)
    preferences: list[Preference] = field(default_factory=list)


async def check(settings: Settings, db: Path, urls: list[str], now: float, **keys: object) -> Check:
    """Fetch and judge the first URL that answers, and store nothing.

    ``keys`` override the page's [[sites]] keys.
    """
    if db.exists():
        async with reading(db) as connection:
            await require_readable(connection, db)
            settings = await with_kept(settings, connection)
    if keys:
        tried = Sites(settings.sites).at(urls[0]).model_copy(update={**keys, "match": "/*"})
        settings = settings.model_copy(update={"sites": (tried,)})
    sites = Sites(settings.sites)
    async with AsyncExitStack() as stack:
        parser, network, fetcher = looking(settings, stack)
        await network.require_contact(urls)
        found = Check(urls[0])
        for url in urls:
            found = Check(url, [_table(each) for each in sites.matching(url)])
            result = await visited(fetcher, settings, found)
            if result is not None and result.outcome != "failed":
                result = as_shown(result, settings.fetch.max_body_bytes)
                judged = await _judged(settings, parser, db, found, result, now=now)
                await _extended(parser, settings, judged, result)
                return judged
        return found


@dataclass(frozen=True, slots=True)
class _Alone:
    """Rules for the requests of a single page, which wait for no host."""

    settings: Settings
    network: Network
    parser: Parser

    @property
    def agent_token(self) -> str:
        """Return the product token that robots.txt files address."""
        return self.settings.crawl.product.lower()

    async def needs(self, result: FetchResult) -> bool:
        """Return whether the page is built by scripts."""
        return await waits_for_scripts(self.parser, result)

    async def queue_key(self, url: str) -> str:
        """Return the host queue of a URL."""
        return await self.network.queue_key(url)

    def allows(self, url: str) -> bool | None:
        """Return False for URLs that settings exclude, else None: robots.txt is unknown."""
        is_never = never_at(self.settings)
        return False if is_never is not None and is_never(url) else None

    def pause_s(self, _queue: str, _now: float) -> float:
        """Return 0: this check waits for no host."""
        return 0.0

    def heed(self, *_answer: object) -> None:
        """Ignore an answer."""

    def request(self, _request: ApiRequest) -> None:
        """Make no further request."""

    async def texts(self, result: FetchResult) -> Sequence[str]:
        """Return the main text of a page."""
        return await texts_of(self.parser, result)

    def now(self) -> float:
        """Return the system time."""
        return time.time()


def looking(settings: Settings, closed_by: AsyncExitStack) -> tuple[Parser, Network, Fetcher]:
    """Return a parser, a network, and a fetcher that renders pages as a crawl does.

    The fetcher does not wait for the delay of a host.
    """
    network = Network(settings, SteadyClock())
    closed_by.push_async_callback(network.close)
    parser = parser_of(settings)
    closed_by.push_async_callback(parser.close)
    fetcher: Fetcher = network.fetcher
    for layer in fetcher_layers(settings, closed_by):
        fetcher = layer.around(fetcher, fetcher, _Alone(settings, network, parser))
    return parser, network, fetcher


def _table(table: SiteSettings) -> CheckStep:
    """Return a step with the keys of a [[sites]] table that matches; secrets are masked."""
    values = table.model_dump(mode="json", exclude={"match"}, exclude_none=True)
    return CheckStep(
        "[[sites]]", table.match, ", ".join(f"{k} = {toml_value(v)}" for k, v in values.items())
    )


async def visited(fetcher: Fetcher, settings: Settings, found: Check) -> FetchResult | None:
    """Return the response for a page, or None if robots.txt forbids it."""
    if not await _robots(fetcher, settings, found.url, found):
        found.conclusion = "refused: only robots.txt was fetched"
        return None
    result = await _answer(fetcher, Request(found.url), found)
    found.steps += [_fetched(result), *_mended(result)]
    if result.requests is not None:
        asked = counted(sum(result.requests.values()), "request")
        found.steps.append(
            CheckStep("render", result.reason or "rendered", f"the browser made {asked}")
        )
    found.conclusion = "failed: a crawl would store no version"
    return result


async def _robots(fetcher: Fetcher, settings: Settings, url: str, found: Check) -> bool:
    """Return whether the site's robots.txt allows the URL (RFC 9309)."""
    asked = robots_url(origin(url))
    result, has_left = await _answer(fetcher, Request(asked, "robots"), found), False
    for _ in range(_REDIRECTS):
        if result.outcome != "redirected" or result.location is None:
            break
        has_left = has_left or origin(result.location) != origin(url)
        request = Request(result.location, "robots", is_anonymous=has_left)
        result = await _answer(fetcher, request, found)
    found.steps += _mended(result)
    record = record_of(result, result.ended_at)
    if record.standing == "unreachable":
        why = record.reason or f"HTTP {result.status}"
        found.steps.append(
            CheckStep("robots.txt", "unreachable", f"until it answers, no page is fetched: {why}")
        )
        return False
    if record.standing == "allow_all":
        found.steps.append(
            CheckStep("robots.txt", "allows", f"the host has none (HTTP {result.status})")
        )
        return True
    agent, file = settings.crawl.product.lower(), in_force(record)
    found.preferences += of_lines(file.usage(agent, url), "robots")
    verdict = file.verdict(agent, url)
    rule = "no rule matches" if verdict.rule is None else f"rule: {verdict.rule}"
    answer = "allows" if verdict.allowed else "forbids"
    found.steps.append(CheckStep("robots.txt", answer, rule))
    return verdict.allowed


async def _answer(fetcher: Fetcher, request: Request, found: Check) -> FetchResult:
    """Make a request, and repeat it where a crawl would."""
    result = await fetcher.fetch(request)
    if not is_repeatable(result):
        return result
    what = "robots.txt" if request.accept == "robots" else "fetch"
    why = f"{result.detail or result.reason}: repeated without validators and compression"
    found.steps.append(CheckStep(what, "repeated", why))
    return await fetcher.fetch(replace(request, is_plain=True))


def _fetched(result: FetchResult) -> CheckStep:
    took = f"in {result.duration_s:.2f} s"
    if result.outcome == "fetched":
        kind = result.header("Content-Type") or "no Content-Type"
        return CheckStep(
            "fetch", f"HTTP {result.status}", f"{size(len(result.body))}, {kind}, {took}"
        )
    words = [result.location and f"to {result.location}", result.reason, result.detail, took]
    answer = f"HTTP {result.status}" if result.status is not None else str(result.outcome)
    return CheckStep("fetch", answer, ", ".join(word for word in words if word))


def _mended(result: FetchResult) -> list[CheckStep]:
    """Return a step for each fault of a response that was repaired."""
    where = "robots.txt" if result.url.endswith("/robots.txt") else "fetch"
    return [CheckStep(where, "mended", REPAIRS[repair]) for repair in result.repairs]


async def _is_no_content(
    db: Path, found: Check, result: FetchResult, parsed: ParsedPage, *, now: float
) -> bool:
    """Return whether a crawl would refuse the page as a block page; add a step for a doubt."""
    verdict = await _block_page(db, result, parsed, now)
    if verdict is None:
        return False
    if not verdict.is_refused:
        doubt = f"perhaps {verdict.kind} ({verdict.probability:.2f}): {verdict.why}"
        found.steps.append(CheckStep("content", DOUBTFUL, doubt))
        return False
    found.steps.append(CheckStep("content", str(verdict.kind), verdict.why))
    found.conclusion = _NO_CONTENT
    return True


async def _judged(
    settings: Settings, parser: Parser, db: Path, found: Check, result: FetchResult, *, now: float
) -> Check:
    if result.outcome != "fetched":
        found.conclusion = f"{result.outcome}: there is no content to compare"
        return found
    if (absent := absence(result, had_text=False)) is not None:
        found.steps.append(CheckStep("content", absent.reason or "", absent.detail or ""))
        found.conclusion = _NO_CONTENT
        return found
    parsed = await parsed_page(parser, result)
    if isinstance(parsed, Unparsable):
        found.steps.append(CheckStep("parse", "unparsable", parsed.reason))
        found.conclusion = "a crawl would compare only its bytes"
        return found
    found.steps.append(_read(parsed))
    found.preferences += of_response(result.header_values, settings.crawl.product.lower())
    found.preferences += of_page(parsed.robots_meta, settings.crawl.product.lower())
    found.steps += [CheckStep("use", use, words) for use, words in in_words(found.preferences)]
    blocks = zip(parsed.blocks.kinds, parsed.blocks.texts, strict=True)
    found.blocks = [{"kind": kind, "text": text} for kind, text in blocks]
    if await _is_no_content(db, found, result, parsed, now=now):
        return found
    text_version = parser.text_version(result.url, result.header("Content-Type"))
    seen = Digests(body_digest(result.body), None, text_version)
    try:
        found.conclusion = await _compared(
            parser, db, found, seen, parsed=parsed, result=result, settings=settings, now=now
        )
    except ParserLost as error:
        raise CrawlError(f"{result.url}: not compared: {error}; try again") from error
    return found


async def parsed_page(
    parser: Parser, result: FetchResult, hints: SelectorHints | None = None
) -> ParsedPage | Unparsable:
    """Return the parsed page; raise CrawlError if the parser process failed."""
    try:
        return await parser.parse(result.body, result.url, result.header("Content-Type"), hints)
    except ParserLost as error:
        raise CrawlError(f"{result.url}: not parsed: {error}; try again") from error


async def _block_page(
    db: Path, result: FetchResult, parsed: ParsedPage, now: float
) -> NotContent | None:
    """Judge whether the page is a block page, by itself and by the host's earlier pages."""
    if parsed.is_plain or not is_judged(parsed.title, length(parsed.blocks.texts)):
        return None
    stored = None
    if db.exists():
        async with reading(db) as connection:
            host = await hosts.find(connection, str(origin(result.url)))
            stored = await hosts.not_content(connection, host.host_id) if host is not None else None
    blocks = parsed.blocks
    facts = facts_of(result, result.url, parsed, sketch(blocks.texts, blocks.places))
    return HostJudge.from_bytes(stored).judge(facts, now)


async def _extended(parser: Parser, settings: Settings, found: Check, result: FetchResult) -> None:
    """Add the steps of extensions."""
    if result.outcome == "fetched":
        page = FetchedPage(found.url, result, [block["text"] for block in found.blocks])
        for checking in loaded(CHECKS).values():
            found.steps += [CheckStep(*each) for each in await checking(parser, settings, page)]


def _read(parsed: ParsedPage) -> CheckStep:
    title = f"“{parsed.title}”, " if parsed.title else ""
    blocks, links = len(parsed.blocks), len(parsed.links)
    words = f"{title}{counted(blocks, 'block')} of main text, {counted(links, 'link')}"
    return CheckStep(
        "parse", parsed.encoding or "bytes", joined((words, parsed.remark), "; ") or words
    )


async def _compared(
    parser: Parser,
    db: Path,
    found: Check,
    seen: Digests,
    *,
    parsed: ParsedPage,
    result: FetchResult,
    settings: Settings,
    now: float,
) -> str:
    """Return the conclusion, and add a step per detection stage."""
    if not db.exists():
        return f"new: the store {db} does not exist"
    async with reading(db) as connection:
        known = await page.find(connection, [found.url])
        digests = None if known is None else await page.digests(connection, known.page_id)
        if known is None or digests is None:
            return "new: the store has no version of it"
        if digests.body == seen.body:
            found.steps.append(CheckStep("body", "equal", "same bytes as at the last visit"))
            return "unchanged: the same bytes"
        found.steps.append(CheckStep("body", "differs", "other bytes than at the last visit"))
        new = sketch(parsed.blocks.texts, parsed.blocks.places)
        due = DueUrl(known.page_id, known.url, known.fetch_url, known.host_id, now, digests=digests)
        past = StoredPast(connection, parser)
        detector = Detector(past)
        version, text = seen.text_version, parsed.blocks
        content = result.body, result.header("Content-Type")
        verdict = await detector.detect(
            due, new, now, text_version=version, text=text, content=content
        )
        if verdict.reason == REBASED:
            return f"not compared: {verdict.detail}"
        answer = "equal" if digests.text == new.text_digest else "differs"
        found.steps.append(CheckStep("text", answer, f"{new.shingle_count:,} shingles of 4 words"))
        found.steps.extend(_stage_step(verdict))
        kinds = ChangeKinds(parser, past, counts_at(settings)(due.url))
        verdict = await kinds.judge(due, result, verdict)
        return _concluded(found, verdict)


def _concluded(found: Check, verdict: Verdict) -> str:
    """Return the conclusion of a verdict; add a step for differences beside the text."""
    kind: str = verdict.kind
    if verdict.kinds:
        found.steps.append(CheckStep("document", "differs", ", ".join(verdict.kinds)))
        kind = kind if kind == "changed" else REFRESHED
    why = None if verdict.rung is None else _STAGES.get(verdict.rung)
    return f"{kind}: {why}" if why else kind


def _stage_step(verdict: Verdict) -> list[CheckStep]:
    if verdict.rung is None or verdict.rung == "text":
        return []
    parts = [_STAGES[verdict.rung], *filter(None, [verdict.detail])]
    if told := blocks(verdict.blocks_added, verdict.blocks_removed):
        parts.append(told)
    if verdict.resemblance is not None:
        parts.append(f"similarity {verdict.resemblance:.2f}")
    return [CheckStep("blocks", verdict.rung, ", ".join(parts))]


_TEXT_WIDTH = 100


def check_command(  # noqa: PLR0913, PLR0917 - the options are the arguments
    context: typer.Context,
    url: AnyUrl,
    include: Annotated[
        list[str] | None,
        typer.Option(metavar="SELECTOR", help="Try a CSS selector of the main text; repeatable."),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SELECTOR", help="Try a CSS selector of content to ignore; repeatable."
        ),
    ] = None,
    db: Db = DEFAULT_DB,
    blocks: Annotated[
        int, typer.Option(metavar="N", min=0, help="Show at most N blocks of main text.")
    ] = 20,
    contact: Contact = None,
    allow_private_addresses: Annotated[
        bool,
        typer.Option(
            "--allow-private-addresses", help="Also fetch from loopback and private networks."
        ),
    ] = False,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Fetch a page now, show each step, and store nothing.

    The site's robots.txt is fetched first. If the store has the page, its text is compared with the
    last version, stage by stage.
    """
    urls = terminal.spellings(url)
    given = {
        "crawl.contact": contact,
        "network.allow_private_addresses": allow_private_addresses or None,
    }
    settings, origins = read_settings(config, given)
    # No other page is visited, so the sites of the store do not matter.
    settings = with_contact(settings, origins, None, seeds_from_arguments([url]).seeds, context)
    tried = {name: tuple(v) for name, v in (("include", include), ("ignore", ignore)) if v}
    db = home_of(db, url, config)
    found = terminal.run(check(settings, db, urls, time.time(), **tried))
    if json:
        print_json(asdict(found) | {"preferences": as_json(found.preferences)})
    else:
        _print(found, blocks)


def _print(found: Check, blocks: int) -> None:
    show_list(found.url, ("step", "", "found"), [astuple(step) for step in found.steps])
    show_line("")
    show_line(found.conclusion, "bold")
    texts = found.blocks[:blocks]
    show_list(
        f"Main text: {len(found.blocks):,} blocks",
        ("kind", "text"),
        [(block["kind"], _shortened(block["text"])) for block in texts],
    )
    if len(found.blocks) > blocks:
        show_line(f"… and {len(found.blocks) - blocks:,} more; --blocks shows more", "dim")


def _shortened(text: str) -> str:
    return text if len(text) <= _TEXT_WIDTH else text[: _TEXT_WIDTH - 1] + "…"
