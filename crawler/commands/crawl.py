"""``freshet crawl``: crawl a site list into a store, or crawl again what it knows."""

from __future__ import annotations

from typing import Annotated

import typer

from freshet.crawler.commands import running
from freshet.crawler.commands.console import fail, print_json
from freshet.crawler.commands.crawling import CrawlOrder, Mode, crawl
from freshet.crawler.commands.logs import LogFormat
from freshet.crawler.commands.options import (
    DEFAULT_DB,
    ArchiveDir,
    ConfigFile,
    Contact,
    Db,
    Delay,
    Json,
    Logs,
    PrivateAddresses,
    Resolve,
    Scope,
    Strict,
    Verbose,
    read_settings,
)
from freshet.crawler.commands.progress import watching
from freshet.crawler.commands.site_lists import given_seeds, overrides
from freshet.crawler.commands.summary import print_summary


def crawl_command(  # noqa: PLR0913, PLR0917 - the options are the arguments
    sites: Annotated[
        list[str] | None,
        typer.Argument(metavar="SITE…", help="Hosts or URLs; without a scheme https, then http."),
    ] = None,
    sites_file: Annotated[
        str | None,
        typer.Option(
            "--sites",
            metavar="FILE",
            help="A site list: text (one a line), CSV (url, importance), OPML or a sitemap; "
            "- for standard input.",
        ),
    ] = None,
    db: Db = DEFAULT_DB,
    scope: Scope = None,
    delay: Delay = None,
    contact: Contact = None,
    max_pages: Annotated[
        int | None, typer.Option(metavar="N", help="Stop after this many pages.")
    ] = None,
    max_depth: Annotated[
        int | None, typer.Option(metavar="N", help="Links from a seed, at most.")
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Stop after this many seconds.")
    ] = None,
    patience: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Seconds to wait for parked hosts before ending."),
    ] = None,
    allow_private_addresses: PrivateAddresses = None,
    resolve: Resolve = None,
    resume: Annotated[bool, typer.Option("--resume", help="Finish the last run.")] = False,
    new: Annotated[bool, typer.Option("--new", help="Start a new run.")] = False,
    archive: ArchiveDir = None,
    strict: Strict = False,
    verbose: Verbose = False,
    log_format: Logs = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Crawl sites politely and completely, and record what changed.

    The same command after an unfinished run finishes it; after a finished one it crawls
    every known page again and says what changed, appeared and vanished. Without any SITE
    the sites of the store are crawled.
    """
    if resume and new:
        fail("--resume and --new exclude each other", 2)
    settings, _ = read_settings(
        config,
        {
            "crawl.scope": scope,
            "politeness.delay_s": delay,
            "crawl.contact": contact,
            "crawl.max_pages": max_pages,
            "crawl.max_depth": max_depth,
            "crawl.time_limit_s": time_limit,
            "crawl.patience_s": patience,
            "network.allow_private_addresses": allow_private_addresses,
            "network.resolve": overrides(resolve),
            "archive.dir": archive,
            "operation.log_format": log_format,
        },
    )
    mode = Mode.RESUME if resume else Mode.NEW if new else Mode.AUTOMATIC
    order = CrawlOrder(db, given_seeds(sites or [], sites_file, strict=strict), mode)
    logs = LogFormat(settings.operation.log_format)
    with watching(quiet=json, verbose=verbose, log_format=logs) as watch:
        report = running.run(crawl(settings, order, watch=watch))
    if json:
        print_json(report.as_json())
    else:
        print_summary(report, db)
