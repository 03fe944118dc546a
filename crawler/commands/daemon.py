"""``freshet daemon``: keep the pages of a site list fresh under a budget, until it is stopped."""

from __future__ import annotations

from typing import Annotated

import typer

from crawler.commands import running
from crawler.commands.budget import crawls_per_day
from crawler.commands.console import print_json
from crawler.commands.keeping import DaemonOrder, keep
from crawler.commands.options import DEFAULT_DB, ConfigFile, Db, Json, read_settings
from crawler.commands.progress import watching
from crawler.commands.site_lists import given_seeds, overrides
from crawler.commands.summary import print_summary


def daemon_command(  # noqa: PLR0913, PLR0917 - the options are the arguments
    budget: Annotated[
        str,
        typer.Option(
            metavar="N/day|N/hour", help="Requests that may be sent: pages, robots.txt, all."
        ),
    ],
    sites: Annotated[
        list[str] | None,
        typer.Argument(metavar="SITE…", help="Hosts or URLs; without a scheme https, then http."),
    ] = None,
    sites_file: Annotated[
        str | None,
        typer.Option("--sites", metavar="FILE", help="A site list, as for `freshet crawl`."),
    ] = None,
    db: Db = DEFAULT_DB,
    policy: Annotated[
        str, typer.Option(metavar="NAME[:OPTION=VALUE,…]", help="What a look is worth.")
    ] = "greedy_index",
    scope: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="What belongs to a seed: host, domain, prefix or list."),
    ] = None,
    delay: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Seconds between two exchanges with a host."),
    ] = None,
    contact: Annotated[
        str | None, typer.Option(metavar="URL", help="URL that tells webmasters who crawls.")
    ] = None,
    time_limit: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0, help="Stop after this many seconds; 0: never."),
    ] = 0.0,
    allow_private_addresses: Annotated[
        bool | None,
        typer.Option("--allow-private-addresses", help="Also crawl loopback and private networks."),
    ] = None,
    resolve: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST:ADDRESS", help="Fixed address of a host; may be repeated."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at a bad line of the site list.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Log every page as it is committed.")
    ] = False,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Keep pages fresh: fetch what is worth most, learn how often each page changes, and go on.

    New pages are found as in a crawl and compete with known ones for the budget, which is
    spent evenly over the day. Ctrl-C ends it after the exchanges under way.
    """
    per_day = crawls_per_day(budget)
    settings, _ = read_settings(
        config,
        {
            "crawl.scope": scope,
            "politeness.delay_s": delay,
            "crawl.contact": contact,
            "network.allow_private_addresses": allow_private_addresses,
            "network.resolve": overrides(resolve),
        },
    )
    seeds = given_seeds(sites or [], sites_file, strict=strict)
    order = DaemonOrder(db, seeds, per_day, policy, time_limit)
    with watching(quiet=json, verbose=verbose) as watch:
        report = running.run(keep(settings, order, watch=watch))
    if json:
        print_json(report.as_json())
    else:
        print_summary(report, db)
