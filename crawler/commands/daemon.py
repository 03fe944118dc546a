"""``freshet daemon``: keep the pages of a site list fresh under a budget, until it is stopped."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from freshet.config.loading import load
from freshet.crawler.commands import running
from freshet.crawler.commands.assembly import Observer
from freshet.crawler.commands.budget import crawls_per_day, parsed
from freshet.crawler.commands.console import fail, print_json
from freshet.crawler.commands.crawling import Live
from freshet.crawler.commands.daemon_order import DaemonOrder
from freshet.crawler.commands.daemon_summary import print_daemon_summary
from freshet.crawler.commands.keeping import keep
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
from freshet.crawler.commands.report import CrawlReport
from freshet.crawler.commands.serving import Service
from freshet.crawler.commands.site_lists import given_seeds, overrides, read_again
from freshet.crawler.commands.standing import read_standing
from freshet.crawler.errors import CrawlError


def daemon_command(  # noqa: PLR0913, PLR0917 - the options are the arguments
    sites: Annotated[
        list[str] | None,
        typer.Argument(metavar="SITE…", help="Hosts or URLs; without a scheme https, then http."),
    ] = None,
    sites_file: Annotated[
        str | None,
        typer.Option("--sites", metavar="FILE", help="A site list, as for `freshet crawl`."),
    ] = None,
    db: Db = DEFAULT_DB,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="N/day|N/hour", help="Requests that may be sent: pages, robots.txt, all."
        ),
    ] = None,
    policy: Annotated[
        str | None, typer.Option(metavar="NAME[:OPTION=VALUE,…]", help="What a look is worth.")
    ] = None,
    importance: Annotated[
        str | None,
        typer.Option(
            metavar="KIND", help="Where it comes from: list, constant, depth or pagerank."
        ),
    ] = None,
    scope: Scope = None,
    delay: Delay = None,
    contact: Contact = None,
    time_limit: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0, help="Stop after this many seconds; 0: never."),
    ] = 0.0,
    allow_private_addresses: PrivateAddresses = None,
    resolve: Resolve = None,
    archive: ArchiveDir = None,
    strict: Strict = False,
    verbose: Verbose = False,
    listen: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS:PORT", help="Answer /healthz and /metrics there."),
    ] = None,
    log_format: Logs = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Keep pages fresh: fetch what is worth most, learn how often each page changes, and go on.

    New pages are found as in a crawl and compete with known ones for the budget, which is
    spent evenly over the day. Ctrl-C ends it after the exchanges under way; `freshet reload`
    lets it read the settings and the site list again. `freshet status` shows how it stands,
    `freshet explain URL` what it thinks of a page.
    """
    given = {
        "daemon.budget": budget,
        "daemon.policy": policy,
        "daemon.importance": importance,
        "crawl.scope": scope,
        "politeness.delay_s": delay,
        "crawl.contact": contact,
        "network.allow_private_addresses": allow_private_addresses,
        "network.resolve": overrides(resolve),
        "operation.listen": listen,
        "archive.dir": archive,
        "operation.log_format": log_format,
    }
    settings, _ = read_settings(config, given)
    if not settings.daemon.budget:
        fail(
            "how many requests may be sent? --budget 5000/day, or daemon.budget in freshet.toml", 2
        )
    per_day = crawls_per_day(settings.daemon.budget)
    seeds = given_seeds(sites or [], sites_file, strict=strict)
    order = DaemonOrder(db, seeds, per_day, settings.daemon.policy, time_limit)

    def reread() -> DaemonOrder:
        return order_again(order, config, given, sites or [], sites_file)

    async def served(watch: Callable[[Live], Observer]) -> CrawlReport:
        async with Service(settings.operation, os.environ) as service:
            return await keep(settings, order, watch=watch, reread=reread, service=service)

    logs = LogFormat(settings.operation.log_format)
    with watching(quiet=json, verbose=verbose, log_format=logs) as watch:
        report = running.run(served(watch))
    if json:
        print_json(report.as_json())
    else:
        now = time.time()
        print_daemon_summary(report, running.run(read_standing(db, now)), db, now)


def order_again(
    order: DaemonOrder,
    config: Path | None,
    given: Mapping[str, object],
    sites: list[str],
    sites_file: str | None,
) -> DaemonOrder:
    """The order by the settings and the site list as they are now.

    Raises:
        CrawlError: something in them is wrong.
    """
    try:
        settings, _ = load(config, {k: v for k, v in given.items() if v is not None})
        budget = parsed(settings.daemon.budget)
    except ValueError as error:
        raise CrawlError(str(error)) from error
    # Standard input cannot be read twice: what came from there stays.
    seeds = order.seeds if sites_file == "-" else read_again(sites, sites_file)
    return replace(
        order, seeds=seeds, budget=budget, policy=settings.daemon.policy, settings=settings
    )
