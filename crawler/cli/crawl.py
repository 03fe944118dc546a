"""``freshet crawl``: crawl sites into a store, or visit the pages of a store again."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from freshet.crawler.cli import options
from freshet.crawler.run import terminal
from freshet.crawler.run.orders import SUMMARISED, CrawlReport
from freshet.crawler.run.terminal import (
    blocks,
    counted,
    counted_duplicates,
    fail,
    joined,
    print_json,
    show_line,
    show_list,
    show_not_crawled,
    show_rejecting,
    show_shells,
    size,
)
from freshet.storage.entries import INTERNAL_ERROR, REBASED

# -- summary -----------------------------------------------------------------
_show_first = partial(show_list, limit=SUMMARISED)
_REASONS_SHOWN = 4


def print_summary(report: CrawlReport, db: Path) -> None:
    """Print the report for people."""
    print_outcomes(report)
    _print_changes(report)
    print_seeds(report)
    _print_left_out(report)
    if report.duplicates.duplicates:
        show_line("")
        show_line(f"{counted_duplicates(report.duplicates)}; `freshet duplicates` shows them")
    _print_last_line(report, db)


def print_outcomes(report: CrawlReport) -> None:
    """Print the number of URLs by outcome."""
    counts = {
        "new": report.new, "changed": report.changed, "unchanged": report.unchanged,
        "gone": report.gone, "redirected": report.redirected, "refused": report.refused,
        "skipped": report.skipped, "failed": report.errors,
    }  # fmt: skip
    rows = [(name, count, _mostly(report, name)) for name, count in counts.items() if count]
    total = ("pages (200 or 304)", report.pages, f"{counted(report.fetches, 'request')} in all")
    rebased = report.reasons.get(f"new: {REBASED}", 0)
    title = f"Run {report.run}{', resumed' if report.resumed else ''}"
    needed = report.requisites or {}
    ends = [f"{name} {n:,}" for name, n in needed.items() if name not in {"fetched", "bytes"}]
    if needed:
        words = ", ".join([size(needed.get("bytes", 0)), *ends])
        rows.append(("requisites", needed.get("fetched", 0), words))
    show_list(title, ("outcome", "URLs", "mostly"), [*rows, total])
    if rebased:
        show_line(
            f"{counted(rebased, 'page')} not compared: the text extraction has changed since "
            "the last visit, and its bytes are not stored",
            "yellow",
        )
    show_shells(report.reasons.get("failed: needs_javascript", 0))
    show_rejecting(report.rejecting)


def _mostly(report: CrawlReport, kind: str) -> str | None:
    found = [(why.partition(": "), n) for why, n in report.reasons.items()]
    words = [f"{why} {n:,}" for (of, _, why), n in found if of == kind]
    return ", ".join(words[:_REASONS_SHOWN]) or None


def _print_changes(report: CrawlReport) -> None:
    _show_first(
        f"Changed ({len(report.changed_pages):,})",
        ("page", "what", "resemblance"),
        [
            (
                page.url,
                report.words.get(page.url) or blocks(page.blocks_added, page.blocks_removed),
                None if page.resemblance is None else f"{page.resemblance:.2f}",
            )
            for page in report.changed_pages
        ],
    )
    for title, urls in (("Appeared", report.appeared), ("Vanished", report.vanished)):
        _show_first(f"{title} ({len(urls):,})", ("page",), [(url,) for url in urls])


def print_seeds(report: CrawlReport) -> None:
    """Print the sites that moved, and the sites without a page."""
    _show_first(
        "Sites that moved (http, https and www count as one site)",
        ("site", "crawled at"),
        report.moved_seeds,
    )
    _show_first(
        "Sites without a page",
        ("site", "why"),
        [(text, why) for text, _, why in report.silent_seeds],
    )


def _print_left_out(report: CrawlReport) -> None:
    _show_first(
        "Deferred to the next run",
        ("host", "URLs", "why"),
        [(host.origin, host.urls, host.reason) for host in report.deferred],
    )
    _show_first(
        "Bounded URL patterns (possible traps)",
        ("pattern", "kind", "crawled", "not"),
        [(f"{origin}{p.shape}", p.kind, p.crawled, p.held) for origin, p in report.bounded],
    )
    show_not_crawled(report.held_back)


def _print_last_line(report: CrawlReport, db: Path) -> None:
    took = f"in {report.seconds:,.1f} s → {db}"
    show_line("")
    if report.ending == "nothing due":
        show_line(f"Finished {took}", "green")
    else:
        limits = {"limit": "limit reached", "requests": "request limit of --max-pages reached"}
        reasons = limits | {"cut off": "no host can be reached"}
        why = reasons.get(report.ending, "interrupted")
        show_line(f"Stopped ({why}) {took}; the same command continues", "yellow")


def _internal_error(report: CrawlReport) -> str | None:
    """Return a warning if an internal error made most pages, or whole sites, fail."""
    failed, pages = sum(report.internal_errors.values()), report.pages + report.errors
    silent = sum(INTERNAL_ERROR in why for *_, why in report.silent_seeds)
    if 2 * failed > pages:
        what = f"{failed:,} of {counted(pages, 'page')}"
    elif 2 * silent > report.seeds:
        what = f"{silent:,} of {counted(report.seeds, 'site')}"
    else:
        return None
    # An earlier invocation of a resumed run may have met the error.
    names = joined(list(report.internal_errors)[:_REASONS_SHOWN]) or "see the first invocation"
    return f"{what} failed by an {INTERNAL_ERROR}: {names}; see the log, and report it"


def crawl_command(  # noqa: PLR0913, PLR0917 - the options are the arguments
    context: typer.Context,
    sites: options.Sites = None,
    sites_file: Annotated[
        str | None,
        typer.Option(
            "--sites",
            metavar="FILE",
            help="A site list: text (one a line), CSV (url, importance), OPML or a sitemap; "
            "- for standard input.",
            rich_help_panel=options.SITES,
        ),
    ] = None,
    db: options.Db = options.DEFAULT_DB,
    scope: options.Scope = None,
    delay: options.Delay = None,
    contact: options.Contact = None,
    max_pages: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Stop after N pages, or about 10 N + 100 requests.",
            rich_help_panel=options.LIMITS,
        ),
    ] = None,
    max_depth: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Follow at most N links from a seed.", rich_help_panel=options.SITES
        ),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", help="Stop after this many seconds.", rich_help_panel=options.LIMITS
        ),
    ] = None,
    patience: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Wait at most N seconds for parked hosts before the end.",
            rich_help_panel=options.LIMITS,
            hidden=True,
        ),
    ] = None,
    allow_private_addresses: options.PrivateAddresses = None,
    resolve: options.Resolve = None,
    shards: options.Shards = None,
    ray: options.RayAddress = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Finish the last run.", rich_help_panel=options.LIMITS)
    ] = False,
    new: Annotated[
        bool, typer.Option("--new", help="Start a new run.", rich_help_panel=options.LIMITS)
    ] = False,
    archive: options.ArchiveDir = None,
    requisites: options.Requisites = None,
    index: options.Index = None,
    queries: options.Queries = None,
    strict: options.Strict = False,
    verbose: options.Verbose = False,
    log_format: options.Logs = None,
    config: options.ConfigFile = None,
    json: options.Json = False,
    help_all: options.HelpAll = False,  # noqa: ARG001 - its callback shows it
) -> None:
    """Crawl sites politely and completely; record what changed.

    The same command finishes an interrupted run. After a finished run, it visits every known page
    again and reports changed, new and vanished pages. Without SITE, it crawls the sites of the
    store.
    """
    from freshet.crawler.cli.progress import watching  # noqa: PLC0415 - slow to import
    from freshet.crawler.run.crawl import CrawlOrder, crawl  # noqa: PLC0415 - likewise

    if resume and new:
        fail("give --resume or --new, not both", 2)
    settings, origins = options.read_settings(
        config,
        {
            "crawl.scope": options.scope_of(db, scope, config),
            "politeness.delay_s": delay,
            "crawl.contact": contact,
            "crawl.max_pages": max_pages,
            "crawl.max_depth": max_depth,
            "crawl.time_limit_s": time_limit,
            "crawl.patience_s": patience,
            "network.allow_private_addresses": allow_private_addresses,
            "network.resolve": options.overrides(resolve),
            "archive.dir": archive,
            "archive.requisites": requisites,
            "search.index": index,
            "search.queries": queries,
            "operation.log_format": log_format,
        },
    )
    settings = options.overruled(settings, scope=scope, max_depth=max_depth, delay_s=delay)
    seeds = options.given_seeds(sites or [], sites_file, strict=strict)
    if (host := options.host_needing_contact(settings, db, seeds)) is not None:
        from freshet.crawler.cli.contact import asked  # noqa: PLC0415 - few need it

        settings = asked(settings, origins, host, context)
    order = CrawlOrder(db, seeds, resume=resume if resume or new else None)
    from freshet.crawler.run.wiring import indexing  # noqa: PLC0415 - slow to import

    if (index_of := indexing()) is not None:
        index_of.prepare(db, settings)
    if options.for_shards(db, shards, ray):
        report = options.run_sharded(
            db, settings, order, shards=shards, address=ray, quiet=json, verbose=verbose
        )
    else:
        style = settings.operation.log_format
        with watching(quiet=json, verbose=verbose, log_format=style) as watch:
            report = terminal.run(crawl(settings, order, watch=watch))
    if json:
        print_json(report.as_json())
    else:
        print_summary(report, db)
    _exit_if_failed(report)


def _exit_if_failed(report: CrawlReport) -> None:
    """Exit with an error after a fault of Freshet, or if no page could be fetched."""
    if error := _internal_error(report):
        fail(error, 1)
    is_silent = not report.pages and len(report.silent_seeds) == report.seeds
    if report.ending == "cut off" or (report.ending == "nothing due" and is_silent):
        fail("no page could be fetched: see why above, or in `freshet status`", 1)
