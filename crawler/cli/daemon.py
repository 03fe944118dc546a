"""``freshet daemon``: keep the pages of a site list fresh under a budget; ``freshet reload``."""

import os
import signal
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from freshet.crawler.cli import options
from freshet.crawler.cli.crawl import print_outcomes, print_seeds
from freshet.crawler.cli.status import print_daemon_status
from freshet.crawler.errors import CrawlError
from freshet.crawler.run import terminal
from freshet.crawler.run.orders import CrawlReport, DaemonOrder, Reread, budget_of, crawls_per_day
from freshet.crawler.run.terminal import print_json, show_line, span
from freshet.storage.database import SHARDS_FILE, Owner, owner_of
from freshet.storage.stores import is_folder

if TYPE_CHECKING:
    from freshet.config.loading import SettingsSource
    from freshet.config.settings import Settings


def daemon_command(  # noqa: PLR0913, PLR0917 - the options are the arguments
    context: typer.Context,
    sites: options.Sites = None,
    sites_file: Annotated[
        str | None,
        typer.Option(
            "--sites",
            metavar="FILE",
            help="A site list, as for `freshet crawl`.",
            rich_help_panel=options.SITES,
        ),
    ] = None,
    db: options.Db = options.DEFAULT_DB,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="N/day|N/hour",
            help="Requests of all kinds per day or hour (5000/day, 100/hour). Default: one per "
            "page and day, at most one a second.",
            rich_help_panel=options.LIMITS,
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[:OPTIONS]",
            help="How pages are ranked for the next visit: site_clock (default), greedy_index, …; "
            "OPTIONS are OPTION=VALUE,…",
            rich_help_panel=options.LIMITS,
            hidden=True,
        ),
    ] = None,
    importance: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="Where importance comes from: list, constant, depth, pagerank or opened.",
            rich_help_panel=options.LIMITS,
            hidden=True,
        ),
    ] = None,
    scope: options.Scope = None,
    delay: options.Delay = None,
    contact: options.Contact = None,
    time_limit: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0,
            help="Stop after this many seconds; 0: never.",
            rich_help_panel=options.LIMITS,
        ),
    ] = 0.0,
    allow_private_addresses: options.PrivateAddresses = None,
    resolve: options.Resolve = None,
    archive: options.ArchiveDir = None,
    requisites: options.Requisites = None,
    index: options.Index = None,
    queries: options.Queries = None,
    strict: options.Strict = False,
    verbose: options.Verbose = False,
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS:PORT",
            help="Serve the store at this address: browser pages, /healthz, /metrics and /v1.",
            rich_help_panel=options.RESULTS,
        ),
    ] = None,
    shards: options.Shards = None,
    ray: options.RayAddress = None,
    log_format: options.Logs = None,
    config: options.ConfigFile = None,
    json: options.Json = False,
    help_all: options.HelpAll = False,  # noqa: ARG001 - its callback shows it
) -> None:
    """Keep pages fresh within a budget of requests.

    New pages are found as in a crawl and compete with known pages for the budget, which is spread
    evenly over the day. Ctrl-C stops the daemon after the requests under way. `freshet reload`
    makes it read the settings and the site list again. `freshet status` shows its status, `freshet
    explain URL` the next visit of a page.
    """
    given = {
        "daemon.budget": budget,
        "daemon.policy": policy,
        "daemon.importance": importance,
        "crawl.scope": options.scope_of(db, scope, config),
        "politeness.delay_s": delay,
        "crawl.contact": contact,
        "network.allow_private_addresses": allow_private_addresses,
        "network.resolve": options.overrides(resolve),
        "operation.listen": listen,
        "archive.dir": archive,
        "archive.requisites": requisites,
        "search.index": index,
        "search.queries": queries,
        "operation.log_format": log_format,
    }
    settings, origins = options.read_settings(config, given)
    settings = options.overruled(settings, scope=scope, delay_s=delay)
    seeds = options.given_seeds(sites or [], sites_file, strict=strict)
    if (host := options.host_needing_contact(settings, db, seeds)) is not None:
        from freshet.crawler.cli.contact import asked  # noqa: PLC0415 - few need it

        settings = asked(settings, origins, host, context)
    budgeted = settings.daemon.budget
    per_day = crawls_per_day(budgeted) if budgeted else None
    order = DaemonOrder(db, seeds, per_day, settings.daemon.policy, time_limit)

    def reread() -> DaemonOrder:
        return order_again(order, config, given, sites or [], sites_file, scope=scope)

    from freshet.crawler.run.wiring import indexing  # noqa: PLC0415 - slow to import

    if (index_of := indexing()) is not None:
        index_of.prepare(db, settings)
    if options.for_shards(db, shards, ray):
        report = options.run_sharded(
            db, settings, order, shards=shards, address=ray, quiet=json, verbose=verbose,
            reread=reread,
        )  # fmt: skip
    else:
        from freshet.config.loading import SettingsSource  # noqa: PLC0415 - slow to import

        report = _kept(
            settings, order, reread, SettingsSource(config, given), quiet=json, verbose=verbose
        )
    if json:
        print_json(report.as_json())
    else:
        _print(report, db)


def _kept(
    settings: "Settings", order: DaemonOrder, reread: Reread, source: "SettingsSource", *,
    quiet: bool, verbose: bool,
) -> CrawlReport:  # fmt: skip
    """Run the daemon and its HTTP server; return the report."""
    from freshet.crawler.cli.progress import watching  # noqa: PLC0415 - slow to import
    from freshet.crawler.read.api import StoreApi, pages_of  # noqa: PLC0415 - likewise
    from freshet.crawler.run.daemon import keep  # noqa: PLC0415 - likewise
    from freshet.crawler.run.service import Service  # noqa: PLC0415 - likewise

    async def served() -> CrawlReport:
        api = StoreApi(order.db, settings, source=source)
        try:
            async with Service(settings.operation, os.environ, pages_of(api, settings)) as service:
                return await keep(settings, order, watch=watch, reread=reread, service=service)
        finally:
            await api.close()

    style = settings.operation.log_format
    with watching(quiet=quiet, verbose=verbose, log_format=style) as watch:
        return terminal.run(served())


def _print(report: CrawlReport, db: Path) -> None:
    from freshet.crawler.run.daemon_status import read_status  # noqa: PLC0415 - slow to import

    now = time.time()
    print_outcomes(report)
    if not is_folder(db) and (standing := terminal.run(read_status(db, now))) is not None:
        print_daemon_status(standing, now)
    print_seeds(report)
    why = "limit reached" if report.ending == "limit" else "interrupted"
    took = f"{report.seconds:,.1f} s" if report.seconds < 60 else span(report.seconds)
    show_line("")
    show_line(f"Stopped ({why}) after {took} → {db}; the same command continues", "yellow")


def order_again(
    order: DaemonOrder,
    config: Path | None,
    given: Mapping[str, object],
    sites: list[str],
    sites_file: str | None,
    *,
    scope: str | None = None,
) -> DaemonOrder:
    """Return the daemon's order with the current settings and site list.

    ``scope`` is the value of the --scope option.

    Raises:
        CrawlError: a setting or a line is wrong.
    """
    from freshet.config.loading import load  # noqa: PLC0415 - slow to import

    try:
        settings, _ = load(config, {k: v for k, v in given.items() if v is not None})
        settings = options.overruled(settings, scope=scope, delay_s=given.get("politeness.delay_s"))
        budget = budget_of(settings.daemon.budget)
    except ValueError as error:
        raise CrawlError(str(error)) from error
    # Standard input cannot be read twice, so its seeds stay.
    seeds = order.seeds if sites_file == "-" else options.read_again(sites, sites_file)
    return replace(
        order, seeds=seeds, budget=budget, policy=settings.daemon.policy, settings=settings
    )


# -- reload ------------------------------------------------------------------
#: Seconds to wait for the daemon's answer, and between two checks; a request may take minutes.
_RELOAD_S = 330.0
_POLL_S = 0.1


def _running_daemon(db: Path) -> Owner:
    """Return the daemon that writes this store; raise CrawlError if none runs."""
    owner = owner_of(db)
    if owner is None or owner.name != "daemon":
        inside = " by itself: another program runs one inside it" if owner is not None else ""
        raise CrawlError(
            f"{db}: no daemon is running on this store{inside}; "
            f"`freshet daemon --db {db}` starts one"
        )
    return owner


def reloaded(db: Path) -> str:
    """Make the running daemon read its settings and sites again; return its answer.

    Raises:
        CrawlError: no daemon is running, or it rejects the settings.
    """
    if is_folder(db):
        db /= SHARDS_FILE
    owner = _running_daemon(db)
    os.kill(owner.process, signal.SIGHUP)
    give_up_at = time.monotonic() + _RELOAD_S
    while (now := owner_of(db)) == owner and time.monotonic() < give_up_at:
        time.sleep(_POLL_S)
    if now is None or now.process != owner.process:
        why = f"process {owner.process} has ended; `freshet daemon --db {db}` starts another"
        raise CrawlError(f"{db}: {why}")
    _, _, answer = now.answer.partition(" ")
    if now == owner:
        why = f"process {owner.process} has not answered yet; its log will have the result"
        raise CrawlError(why)
    if answer.startswith("refused"):
        raise CrawlError(f"{answer}; process {owner.process} keeps the old settings")
    return f"process {owner.process} has {answer}"


def reload_command(db: options.Db = options.DEFAULT_DB) -> None:
    """Make the running daemon read its settings and sites again.

    The daemon applies all changes, or reports why it cannot and keeps the old settings. The options
    of its command line stay in force. It does so after the requests under way, and this command
    waits for that.
    """
    with terminal.told_in_one_line():
        show_line(reloaded(db))
